//! `ringwall host enroll request` and `install`: a host that enrols by file.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use authority::files::{self, Secrecy, Staged};
use authority::{Request, enrolment};
use clap::{Args, Subcommand};
use identity::certificate::{Role, utc_text};
use serde_json::json;
use wire::MacAddress;

use super::arguments::{overwrite, parse_role};
use super::{Surroundings, with_surroundings};
use crate::failure::Failure;

/// What a host does to become part of a site.
#[derive(Debug, Subcommand)]
pub(crate) enum EnrollCommand {
    /// Make a key and a request for the manager
    ///
    /// The key stays here; the request is no secret. What comes back is sealed for this key. The
    /// manager answers it with 'ringwall site issue --request'.
    ///
    /// Example: ringwall host enroll request --name a --mac 02:00:00:00:00:01 --ip 10.0.0.1 \
    ///     --key a.key.pem --out a.csr.pem
    #[command(verbatim_doc_comment)]
    Request(RequestArguments),
    /// Open the bundle that came back and put the key and it together
    ///
    /// Example: ringwall host enroll install --key a.key.pem --bundle a.bundle.pem --out
    /// /etc/ringwall/identity.pem
    #[command(verbatim_doc_comment)]
    Install(InstallArguments),
}

/// Arguments of `host enroll request`.
#[derive(Debug, Args)]
pub(crate) struct RequestArguments {
    /// Name of this host
    #[arg(long)]
    name: String,
    /// Hardware address of the interface
    #[arg(long, value_name = "MAC")]
    mac: MacAddress,
    /// An IPv4 address of the host; repeat it for several
    #[arg(long, value_name = "IP")]
    ip: Vec<Ipv4Addr>,
    /// What the host would like to be: host or router
    #[arg(long, value_name = "ROLE", default_value = "host", value_parser = parse_role)]
    role: Role,
    /// Where the private key is written
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Where the request is written
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Replace both files if they exist
    #[arg(long)]
    force: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Arguments of `host enroll install`.
#[derive(Debug, Args)]
pub(crate) struct InstallArguments {
    /// The private key that 'request' made
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The bundle that came back from the manager
    #[arg(long, value_name = "FILE")]
    bundle: PathBuf,
    /// Where the identity is written
    #[arg(long, value_name = "FILE", default_value = "/etc/ringwall/identity.pem")]
    out: PathBuf,
    /// Replace the output file if it exists
    #[arg(long)]
    force: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl EnrollCommand {
    /// Carries the command out and prints what it did.
    pub(crate) fn run(self) -> Result<(), Failure> {
        with_surroundings(|surroundings| self.run_in(surroundings))
    }

    pub(super) fn run_in(self, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
        match self {
            EnrollCommand::Request(arguments) => request(&arguments, surroundings),
            EnrollCommand::Install(arguments) => install(&arguments, surroundings),
        }
    }
}

fn request(arguments: &RequestArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let RequestArguments { name, mac, ip, role, key, out, force, json } = arguments;
    let wanted = Request::new(name, *mac, ip.clone())?.with_role(*role);
    let made = enrolment::request(&wanted, surroundings.random)?;
    let staged_key = Staged::new(key, &made.key_pem, Secrecy::Secret, overwrite(*force))?;
    let staged_request = Staged::new(out, &made.request_pem, Secrecy::Public, overwrite(*force))?;
    staged_key.commit()?;
    staged_request.commit()?;
    let value = json!({"name": name, "key": key, "request": out});
    let text = format!("key in {} stays here; send {} to the manager", key.display(), out.display());
    surroundings.print(*json, &value, &text)
}

fn install(arguments: &InstallArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let InstallArguments { key, bundle, out, force, json } = arguments;
    let (key_text, bundle_text) = (files::read(key)?, files::read(bundle)?);
    let (text, identity) = enrolment::install(&key_text, &bundle_text, surroundings.unix_s)
        .map_err(|error| Failure::new(format!("{} and {}: {error}", key.display(), bundle.display())))?;
    files::write(out, &text, Secrecy::Secret, overwrite(*force))?;
    let certificate = identity.certificate();
    let until = utc_text(certificate.not_after_unix());
    let value = json!({"name": certificate.name(), "site": identity.site_name(), "not_after": until, "file": out});
    let text = format!(
        "{} of site {} is in {} until {until}; {} is no longer needed",
        certificate.name(),
        identity.site_name(),
        out.display(),
        key.display()
    );
    surroundings.print(*json, &value, &text)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::testing::{new_site, run};

    #[derive(Parser)]
    struct EnrollLine {
        #[command(flatten)]
        arguments: crate::enroll::EnrollArguments,
    }

    /// Broke `args_conflicts_with_subcommands`: a token beside the way by file was passed over.
    #[test]
    fn a_host_enrols_by_token_or_by_file_and_not_by_both() {
        let parse = |line: &str| EnrollLine::try_parse_from(line.split(' ')).map(|line| line.arguments);
        assert!(parse("enroll --token T").is_ok() && parse("enroll --token - --interface eth0 --timeout 2d").is_ok());
        assert!(parse("enroll install --key k --bundle b").is_ok());
        assert!(parse("enroll --token T install --key k --bundle b").is_err());
        let no_way = parse("enroll").expect("read").run().expect_err("no way").to_string();
        assert!(no_way.contains("--token TOKEN") && no_way.contains("; ") && !no_way.contains('\n'), "{no_way}");
        let no_token = parse("enroll --token T").expect("read").run().expect_err("no token").to_string();
        assert!(no_token.starts_with("the token: ") && !no_token.contains('\n'), "{no_token}");
    }

    #[test]
    fn a_request_leaves_no_key_behind_when_it_fails() {
        let place = new_site();
        let ask = "enroll request --name b --mac 02:00:00:00:00:02 --key @/b.key --out @/missing/b.csr";
        let refused = run(place.path(), ask).expect_err("no such directory");
        assert!(refused.contains("missing/b.csr: No such file"), "{refused}");
        assert!(!place.path().join("b.key").exists());
    }

    #[test]
    fn the_wrong_key_is_named_and_nothing_is_installed() {
        let place = new_site();
        for name in ["a", "b"] {
            let ask = format!(
                "enroll request --name {name} --mac 02:00:00:00:00:0{name} --key @/{name}.key --out @/{name}.csr"
            );
            run(place.path(), &ask).expect("requested");
        }
        run(place.path(), "site issue --dir @/site --request @/a.csr --out @/a.bundle").expect("issued");
        let refused =
            run(place.path(), "enroll install --key @/b.key --bundle @/a.bundle --out @/a.pem").expect_err("key");
        assert!(refused.contains("b.key and ") && refused.contains("sealed for another key; "), "{refused}");
        assert!(!refused.contains('\n') && !place.path().join("a.pem").exists());
    }
}
