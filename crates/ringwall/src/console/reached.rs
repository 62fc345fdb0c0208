//! By which names browsers reach this console, and whether through TLS.

use std::net::IpAddr;

use identity::tls::Pages;

use crate::serving::http::host_name;

/// How browsers reach it.
#[derive(Clone, Debug, Default)]
pub(super) struct Reached {
    pub(super) is_tls: bool,
    /// Names and addresses beside those of the loopback interface.
    addresses: Vec<IpAddr>,
    names: Vec<String>,
}

impl Reached {
    /// Through TLS, with a certificate that names it.
    pub(super) fn with(pages: &Pages) -> Reached {
        Reached { is_tls: true, addresses: pages.addresses().to_vec(), names: pages.names().to_vec() }
    }

    /// Whether it is what a browser asks for with this field Host, with any port. A name that an
    /// attacker's server resolves to this machine is none of these.
    pub(super) fn is(&self, host: &str) -> bool {
        host_name(host).is_some_and(|name| match name.parse::<IpAddr>() {
            Ok(address) => address.is_loopback() || self.addresses.contains(&address),
            Err(_) => {
                let name = name.to_ascii_lowercase();
                name == "localhost" || self.names.iter().any(|own| is_named(own, &name))
            }
        })
    }

    /// What the origin of its own pages begins with.
    pub(super) fn scheme(&self) -> &'static str {
        if self.is_tls { "https://" } else { "http://" }
    }

    /// The name of its cookie. With the prefix, browsers take it from no page in clear and for no
    /// other path (RFC 6265bis, section 4.1.3.2).
    pub(super) fn cookie(&self) -> &'static str {
        if self.is_tls { "__Host-ringwall-console" } else { "ringwall-console" }
    }

    /// What stands behind its value.
    pub(super) fn cookie_terms(&self) -> &'static str {
        if self.is_tls { "; Path=/; Secure; HttpOnly; SameSite=Strict" } else { "; Path=/; HttpOnly; SameSite=Strict" }
    }

    /// A further field of each answer: from now on nothing in clear (RFC 6797). Browsers take it
    /// under a name alone, not under an address.
    pub(super) fn transport(&self) -> &'static str {
        if self.is_tls { "Strict-Transport-Security: max-age=31536000\r\n" } else { "" }
    }
}

/// Whether a certificate for `own` is for `name`: an asterisk stands for its first label alone
/// (RFC 6125, section 6.4.3).
fn is_named(own: &str, name: &str) -> bool {
    match own.strip_prefix("*.") {
        Some(rest) => name.split_once('.').is_some_and(|(first, parent)| !first.is_empty() && parent == rest),
        None => own == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_reached_by_what_its_certificate_says_and_by_nothing_else() {
        let names = vec!["console.office.example".to_owned(), "*.lan.example".to_owned()];
        let reached = Reached { is_tls: true, addresses: vec![[192, 0, 2, 5].into()], names };
        for host in ["192.0.2.5:9443", "Console.Office.example:9443", "desk.lan.example", "127.0.0.1", "localhost:9443"]
        {
            assert!(reached.is(host), "{host}");
        }
        for host in ["192.0.2.6", "office.example", "a.b.lan.example", ".lan.example", "lan.example", "", "[::2]:9443"]
        {
            assert!(!reached.is(host), "{host}");
        }
        assert!(!Reached::default().is("192.0.2.5:9443"));
    }
}
