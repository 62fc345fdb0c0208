//! Where the door is to listen, and with which certificate.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use authority::files;
use identity::certificate::utc_text;
use identity::tls::Pages;
use zeroize::Zeroizing;

use super::look::unix_s;
use super::{ServeArgs, http};
use crate::config::LocalAddress;
use crate::failure::Failure;

/// Before the certificate's end the console ends, once, so that it is started again with the one
/// that was fetched meanwhile: hosts are renewed days before.
const BEFORE_END: Duration = Duration::from_secs(24 * 60 * 60);

/// Where the door is to listen.
pub(super) struct Listening {
    /// What a link begins with, before its token.
    pub(super) link: String,
    /// What the door shows, in PEM, where it speaks TLS.
    pub(super) identity: Option<Zeroizing<String>>,
    /// What is to be known of the certificate at the start.
    pub(super) notes: Vec<String>,
    /// When the console ends for another certificate.
    pub(super) ends_unix: Option<u64>,
}

impl Listening {
    pub(super) fn read(args: &ServeArgs) -> Result<Listening, Failure> {
        match &args.identity {
            Some(file) => Listening::through_tls(&args.listen, file),
            None => Listening::in_clear(&args.listen),
        }
    }

    fn in_clear(listen: &str) -> Result<Listening, Failure> {
        let address = LocalAddress::parse(listen).ok_or_else(|| beyond(listen))?;
        let begin = match address {
            LocalAddress::Tcp(address) => format!("http://{address}"),
            // No port is ours here: a link to one would give the token to whoever has it. The person
            // knows what stands before it.
            LocalAddress::Socket(_) => String::new(),
        };
        Ok(Listening { link: link(&begin), identity: None, notes: Vec::new(), ends_unix: None })
    }

    fn through_tls(listen: &str, file: &Path) -> Result<Listening, Failure> {
        let remedy = "write an address and a port, such as 192.0.2.5:9443; a socket needs no --identity";
        let address: SocketAddr = listen
            .parse()
            .ok()
            .filter(|address: &SocketAddr| address.port() > 0)
            .ok_or_else(|| Failure::new(format!("--listen {listen} is no port for TLS; {remedy}")))?;
        let text = files::read(file)?;
        let wrong = |what: &dyn std::fmt::Display, remedy: &str| Failure::file(file, what, remedy);
        let remedy = "name an identity of the site with --identity, or certificate, chain and key (PKCS#8) in one file";
        let pages = Pages::from_pem(&text).map_err(|error| wrong(&error, remedy))?;
        check_period(&pages, unix_s()).map_err(|what| wrong(&what, "have it renewed; see also `date`"))?;
        let name = name_in_link(&pages, address.ip()).map_err(|(what, remedy)| wrong(&what, &remedy))?;
        let ends_unix = pages.not_after_unix().saturating_sub(BEFORE_END.as_secs());
        Ok(Listening {
            link: link(&format!("https://{name}:{}", address.port())),
            notes: notes(&pages),
            // One that is there already when it begins ends with its certificate.
            ends_unix: Some(if ends_unix > unix_s() { ends_unix } else { pages.not_after_unix() }),
            identity: Some(text),
        })
    }
}

fn link(begin: &str) -> String {
    format!("{begin}{}?token=", http::SIGN_IN)
}

fn beyond(listen: &str) -> Failure {
    Failure::new(format!(
        "--listen {listen} is no socket, and no port of this machine alone, and without --identity FILE there is no \
         TLS: give a certificate with that; or write 127.0.0.1:9479 or an absolute name, and come from another machine \
         by ssh -L 9479:127.0.0.1:9479 or through a proxy that has TLS"
    ))
}

fn check_period(pages: &Pages, now_unix: u64) -> Result<(), String> {
    if now_unix < pages.not_before_unix() {
        return Err(format!("its certificate is not good before {}", utc_text(pages.not_before_unix())));
    }
    if now_unix > pages.not_after_unix() {
        return Err(format!("its certificate was good until {}", utc_text(pages.not_after_unix())));
    }
    Ok(())
}

/// What stands in a link: a name in the certificate, or the address at which it listens, which the
/// certificate must have. Browsers believe no other. Otherwise what is wrong, and the remedy.
fn name_in_link(pages: &Pages, listens: IpAddr) -> Result<String, (String, String)> {
    let exact = pages.names().iter().find(|name| !name.starts_with('*'));
    let is_its = |address: &&IpAddr| listens.is_unspecified() || **address == listens;
    let address = pages.addresses().iter().find(is_its).map(|address| SocketAddr::new(*address, 0));
    let address = address.map(|address| address.to_string().trim_end_matches(":0").to_owned());
    if let Some(found) = exact.cloned().or(address) {
        return Ok(found);
    }
    let own: Vec<String> = pages.addresses().iter().map(IpAddr::to_string).collect();
    let what = format!("its certificate is not for {listens}, so no browser would believe it");
    let remedy = match &own[..] {
        [] => "have one issued with that address".to_owned(),
        own => format!("name one of its addresses with --listen ({}), or have another issued", own.join(", ")),
    };
    Err((what, remedy))
}

fn notes(pages: &Pages) -> Vec<String> {
    let until = utc_text(pages.not_after_unix());
    let mut notes = vec![format!("its certificate is good until {until}, SHA-256 {}", pages.fingerprint())];
    if pages.is_ed25519() {
        let line = "its key is Ed25519, which Firefox and Chromium do not take in TLS: give them a certificate with \
            a P-256 key; see the console's page in the manual";
        notes.push(line.to_owned());
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(listen: &str) -> ServeArgs {
        let listen = listen.to_owned();
        ServeArgs {
            listen,
            identity: None,
            site: None,
            service_name: None,
            operator: None,
            run_dir: None,
            history: Vec::new(),
        }
    }

    #[test]
    fn a_link_leads_to_where_it_listens_and_in_clear_only_on_this_machine() {
        let link = |listen| Listening::read(&args(listen)).map(|listening| listening.link);
        assert_eq!(link("127.0.0.1:9479").ok().as_deref(), Some("http://127.0.0.1:9479/sign-in?token="));
        assert_eq!(link("/run/web/http").ok().as_deref(), Some("/sign-in?token="));
        for listen in ["192.0.2.5:9443", "0.0.0.0:9479", "[::]:9479", "console.sock", "127.0.0.1:0"] {
            let refused = link(listen).expect_err("beyond this machine").to_string();
            assert!(refused.contains("no TLS") && refused.contains("--identity"), "{listen}: {refused}");
        }
    }
}
