//! `ringwall site issue`: a certificate for a host, with or without its request.

#[cfg(test)]
mod tests;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use authority::directory::{Delivery, is_revoked};
use authority::files;
use authority::limits::HOST_VALIDITY;
use authority::repository::Subnet;
use authority::{Entry, Request};
use clap::Args;
use identity::certificate::{CertificateRequest, Role};
use identity::profile::{KeyLength, PaperKey, RsaHash, RsaKey};
use serde_json::json;
use wire::MacAddress;

use super::arguments::{overwrite, parse_role, sharing, whole_days};
use super::listing::{entry_json, entry_text};
use super::{DAY, DEFAULT_DIRECTORY, Surroundings};
use crate::failure::Failure;

/// Arguments of `site issue`.
#[derive(Debug, Args)]
pub(crate) struct IssueArguments {
    /// Where the site is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    dir: PathBuf,
    /// The host's request; without it the host's key is made here
    #[arg(long, value_name = "FILE")]
    request: Option<PathBuf>,
    /// Name of the host
    #[arg(long, required_unless_present = "request")]
    name: Option<String>,
    /// Hardware address of the host's interface
    #[arg(long, value_name = "MAC", required_unless_present = "request")]
    mac: Option<MacAddress>,
    /// An IPv4 address of the host; repeat it for several
    #[arg(long, value_name = "IP")]
    ip: Vec<Ipv4Addr>,
    /// An IPv6 address that is the host's and nobody else's, whoever claims it; repeat it for
    /// several
    #[arg(long, value_name = "IP6")]
    ip6: Vec<Ipv6Addr>,
    /// A subnet in which the host may be given an address by DHCP, as 10.0.0.0/24; repeat it for
    /// several
    #[arg(long, value_name = "SUBNET")]
    subnet: Vec<Subnet>,
    /// For a DHCP server of mode "cll": a subnet in which it gives addresses, each with a
    /// certificate, as 10.0.0.128/25; repeat it for several. It can make certificates for no other
    /// addresses, so name its pool and not the whole network
    #[arg(long, value_name = "SUBNET")]
    serves: Vec<Subnet>,
    /// What the host may do: host, router, akd (a key distributor of S-ARP) or dhcp (a DHCP server)
    #[arg(long, value_name = "ROLE", default_value = "host", value_parser = parse_role)]
    role: Role,
    /// How long the certificate lasts
    #[arg(long, value_name = "DAYS", default_value_t = whole_days(HOST_VALIDITY))]
    days: u32,
    /// In a site of the paper profile, the length of the host's DSA key: 512 or 1024, which is what
    /// it gets without this
    #[arg(long, value_name = "BITS", value_parser = parse_key_length)]
    dsa_bits: Option<KeyLength>,
    /// In a site of the paper profile, an RSA key for mode cll instead of the DSA key, of 1024,
    /// 1536 or 2048 bits
    #[arg(long, value_name = "BITS", value_parser = parse_rsa_bits, conflicts_with = "dsa_bits")]
    rsa_bits: Option<u16>,
    /// What that RSA key hashes with: sha1, sha256 or ripemd160
    #[arg(long, value_name = "HASH", value_parser = parse_rsa_hash, default_value = "sha1", requires = "rsa_bits")]
    rsa_hash: RsaHash,
    /// Where the identity, or the bundle for a request, is written
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Replace the output file if it exists
    #[arg(long)]
    force: bool,
    /// Let several hosts hold one address
    #[arg(long)]
    allow_shared_addresses: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn issue(arguments: &IssueArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let directory = surroundings.open(&arguments.dir)?;
    let delivery = Delivery {
        output: &arguments.out,
        overwrite: overwrite(arguments.force),
        sharing: sharing(arguments.allow_shared_addresses),
    };
    let Surroundings { unix_s, random, .. } = surroundings;
    let (entry, readmitted, holds) = match &arguments.request {
        Some(file) => {
            let proved = read_request(file)?;
            let granted = granted(arguments, file, &proved)?;
            let readmitted = is_revoked(&directory.list()?, granted.name(), *unix_s);
            (directory.issue(&granted, &proved, &delivery, *random, *unix_s)?, readmitted, Holds::of(&proved))
        }
        None => {
            let asked = asked(arguments)?;
            let readmitted = is_revoked(&directory.list()?, asked.name(), *unix_s);
            (directory.issue_identity(&asked, &delivery, *random, *unix_s)?, readmitted, Holds::KeyInClear)
        }
    };
    let out = arguments.out.display();
    let mut value = entry_json(&entry);
    value["file"] = json!(arguments.out);
    value["sealed"] = json!(holds == Holds::Sealed);
    value["readmitted"] = json!(readmitted);
    surroundings.print(
        arguments.json,
        &value,
        &format!(
            "issued {}{}\nwritten to {out}; {}",
            entry_text(&entry),
            readmission(&entry, readmitted),
            holds.in_words()
        ),
    )
}

/// What is said when a host that was revoked is good again.
fn readmission(entry: &Entry, readmitted: bool) -> String {
    let name = &entry.name;
    if readmitted {
        format!("\n{name} was revoked, and is good again with this certificate alone")
    } else {
        String::new()
    }
}

/// What a file for a host gives away to whoever reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// Nothing: the host's key alone opens it.
    Sealed,
    /// The secrets of the site.
    BundleInClear,
    /// These, and the host's private key.
    KeyInClear,
}

impl Holds {
    pub(super) fn of(proved: &CertificateRequest) -> Holds {
        if proved.answer_key().is_some() { Holds::Sealed } else { Holds::BundleInClear }
    }

    pub(super) fn in_words(self) -> &'static str {
        match self {
            Holds::Sealed => "it is sealed for the host's key, and nobody else can open it",
            Holds::BundleInClear => {
                "it is secret\nwarning: it holds the site's secrets in clear, since the request names \
                 nothing to seal to; one of `ringwall host enroll request` does"
            }
            Holds::KeyInClear => {
                "it is secret\nwarning: it holds the host's private key and the site's secrets in clear; \
                 with a key that the host makes itself (`ringwall host enroll request`, \
                 `site issue --request`) what leaves here is sealed"
            }
        }
    }
}

/// What the manager asks for without a request file. Clap has made sure that name and address are
/// there.
fn asked(arguments: &IssueArguments) -> Result<Request, Failure> {
    let name = arguments.name.as_deref().unwrap_or_default();
    furnished(Request::new(name, arguments.mac.unwrap_or_default(), arguments.ip.clone())?, arguments)
}

/// The same with what the manager gives, whatever the host asks for.
fn furnished(mut request: Request, arguments: &IssueArguments) -> Result<Request, Failure> {
    if let Some(length) = arguments.dsa_bits {
        request = request.with_paper_key(PaperKey::Dsa(length));
    }
    if let Some(key) = arguments.rsa_bits.and_then(|bits| RsaKey::new(bits, arguments.rsa_hash)) {
        request = request.with_paper_key(PaperKey::Rsa(key));
    }
    let IssueArguments { role, days, ip6, subnet, serves, .. } = arguments;
    let request = request.with_role(*role).with_validity(DAY * *days)?.with_ipv6(ip6.clone())?;
    Ok(request.with_subnets(subnet.clone())?.with_served(serves.clone())?)
}

/// What the manager grants of a request: all that it asks for except the role, and only if it is
/// what he expects.
fn granted(arguments: &IssueArguments, file: &Path, proved: &CertificateRequest) -> Result<Request, Failure> {
    let differs = |what: &str| Failure::file(file, format!("it asks for another {what}"), "ask the host to correct it");
    if arguments.name.as_deref().is_some_and(|name| name != proved.name()) {
        return Err(differs("name than --name"));
    }
    if arguments.mac.is_some_and(|mac| mac != proved.mac()) {
        return Err(differs("hardware address than --mac"));
    }
    if !arguments.ip.is_empty() && !same_addresses(&arguments.ip, proved.addresses()) {
        return Err(differs("list of addresses than --ip"));
    }
    if proved.role() != arguments.role {
        let asks = format!("it asks for the role {}, not {}", proved.role(), arguments.role);
        return Err(Failure::file(file, asks, &format!("grant it with --role {} or refuse it", proved.role())));
    }
    let request = Request::from_certificate_request(proved).map_err(|error| error.with_file(file))?;
    furnished(request, arguments)
}

fn same_addresses(one: &[Ipv4Addr], other: &[Ipv4Addr]) -> bool {
    let sorted = |addresses: &[Ipv4Addr]| {
        let mut addresses = addresses.to_vec();
        addresses.sort_unstable();
        addresses
    };
    sorted(one) == sorted(other)
}

pub(super) fn read_request(file: &Path) -> Result<CertificateRequest, Failure> {
    let text = files::read(file)?;
    CertificateRequest::from_pem(&text).map_err(|error| authority::Error::from(error).with_file(file).into())
}

fn parse_key_length(bits: &str) -> Result<KeyLength, String> {
    let length = bits.parse().ok().and_then(KeyLength::from_bits);
    length.ok_or_else(|| "a DSA key has 512 or 1024 bits".to_owned())
}

fn parse_rsa_bits(bits: &str) -> Result<u16, String> {
    let length = bits.parse().ok().filter(|bits| RsaKey::LENGTHS.contains(bits));
    length.ok_or_else(|| "an RSA key of the paper profile has 1024, 1536 or 2048 bits".to_owned())
}

fn parse_rsa_hash(name: &str) -> Result<RsaHash, String> {
    RsaHash::from_name(name).ok_or_else(|| "a hash is 'sha1', 'sha256' or 'ripemd160'".to_owned())
}
