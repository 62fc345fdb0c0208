//! The commands of the authority (`ringwall site`) and of a host that enrols by file (`ringwall host enroll`).

use std::io::Write;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use authority::directory::{Delivery, Sharing};
use authority::files::{self, Overwrite, Secrecy, Staged};
use authority::limits::{HOST_VALIDITY, SITE_VALIDITY};
use authority::repository::Subnet;
use authority::repository::etcd::{Access, BadAccess};
use authority::{Directory, Entry, Random, Request, enrolment};
use bump::Generator;
use clap::{Args, Subcommand};
use identity::Profile;
use identity::certificate::{CertificateRequest, Role, utc_text};
use identity::profile::{HAS_PAPER, KeyLength};
use serde_json::{Value, json};
use wire::MacAddress;

use crate::failure::Failure;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const DEFAULT_DIRECTORY: &str = "/etc/ringwall/site";

/// What an authority does.
#[derive(Debug, Subcommand)]
pub(crate) enum SiteCommand {
    /// Make a new site: its authority, its site key and an empty record
    ///
    /// The directory must be missing or empty; an existing site is never overwritten. Keep a backup of it: who has it can
    /// make hosts of the site, and without it no host can be added.
    ///
    /// Example: ringwall site init --dir /etc/ringwall/site --name lab
    #[command(verbatim_doc_comment)]
    Init(InitArguments),
    /// Issue a certificate to a host
    ///
    /// In one step, when the manager makes the host's key too; the file is the host's whole identity, so move it safely:
    ///   ringwall site issue --name a --mac 02:00:00:00:00:01 --ip 10.0.0.1 --out a.pem
    ///
    /// For a host that gets its address by DHCP under S-ARP:
    ///   ringwall site issue --name a --mac 02:00:00:00:00:01 --subnet 10.0.0.0/24 --out a.pem
    ///
    /// For a request that the host made with 'ringwall host enroll request'; the bundle holds the site key:
    ///   ringwall site issue --request a.csr.pem --out a.bundle.pem
    ///
    /// Name, MAC and IP given beside --request must equal those in it. A role beyond host must be granted by --role.
    #[command(verbatim_doc_comment)]
    Issue(IssueArguments),
    /// List every certificate that the site has issued
    ///
    /// Example: ringwall site list --dir /etc/ringwall/site --json
    #[command(verbatim_doc_comment)]
    List(ListArguments),
    /// Take a host out of S-ARP
    ///
    /// Key distributors say from now on that it is invalid; hosts that know its key believe it for up to ten minutes more, and
    /// a TCP session that is under way goes on until it ends or pauses, because nobody asks for the address meanwhile.
    /// A certificate that was issued to it stays good for the link layer (mode "cll") until its end. 'site issue' for the
    /// same name takes it back.
    ///
    /// Example: ringwall site revoke --name a
    #[command(verbatim_doc_comment)]
    Revoke(RevokeArguments),
    /// Choose where the repository of hosts is kept: in a file, or in a cluster of etcd that several distributors share
    #[command(subcommand)]
    Repository(RepositoryCommand),
}

/// What can be done with the repository.
#[derive(Debug, Subcommand)]
pub(crate) enum RepositoryCommand {
    /// Move the hosts from the file into a cluster of etcd, and work with that from now on
    ///
    /// End the distributors first, since a key that a host changes meanwhile would be lost. Afterwards give them akd.etcd
    /// in the place of akd.repository. The file stays as hosts.db.moved.
    ///
    /// Example: ringwall site repository import --etcd https://10.0.0.21:2379 --etcd https://10.0.0.22:2379 \
    ///     --etcd https://10.0.0.23:2379 --ca etcd-ca.pem --certificate site.pem --key site.key
    #[command(verbatim_doc_comment)]
    Import(RepositoryArguments),
    /// Work with the repository that is in a cluster already, or reach it in another way
    Use(RepositoryArguments),
}

/// What a host does to become part of a site.
#[derive(Debug, Subcommand)]
pub(crate) enum EnrollCommand {
    /// Make a key and a request for the manager
    ///
    /// The key stays here; the request is no secret. The manager answers it with 'ringwall site issue --request'.
    ///
    /// Example: ringwall host enroll request --name a --mac 02:00:00:00:00:01 --ip 10.0.0.1 \
    ///     --key a.key.pem --out a.csr.pem
    #[command(verbatim_doc_comment)]
    Request(RequestArguments),
    /// Put the key and the bundle that came back together
    ///
    /// Example: ringwall host enroll install --key a.key.pem --bundle a.bundle.pem --out /etc/ringwall/identity.pem
    #[command(verbatim_doc_comment)]
    Install(InstallArguments),
}

/// Arguments of `site init`.
#[derive(Debug, Args)]
pub(crate) struct InitArguments {
    /// Where the site shall be kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    dir: PathBuf,
    /// Name of the site: letters, digits, dots, hyphens, underscores
    #[arg(long)]
    name: String,
    /// How long the authority lasts
    #[arg(long, value_name = "DAYS", default_value_t = whole_days(SITE_VALIDITY))]
    days: u32,
    /// Which algorithms its hosts sign S-ARP with: modern, or paper (DSA with SHA-1, to measure the paper's tables; never for
    /// real use)
    #[arg(long, value_name = "PROFILE", default_value = "modern", value_parser = parse_profile)]
    profile: Profile,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

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
    /// A subnet in which the host may be given an address by DHCP, as 10.0.0.0/24; repeat it for several
    #[arg(long, value_name = "SUBNET")]
    subnet: Vec<Subnet>,
    /// What the host may do: host, router, akd (a key distributor of S-ARP) or dhcp (a DHCP server)
    #[arg(long, value_name = "ROLE", default_value = "host", value_parser = parse_role)]
    role: Role,
    /// How long the certificate lasts
    #[arg(long, value_name = "DAYS", default_value_t = whole_days(HOST_VALIDITY))]
    days: u32,
    /// In a site of the paper profile, the length of the host's DSA key: 512 or 1024, which is what it gets without this
    #[arg(long, value_name = "BITS", value_parser = parse_key_length, conflicts_with = "request")]
    dsa_bits: Option<KeyLength>,
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

/// Arguments of `site list`.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Where the site is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    dir: PathBuf,
    /// Print a list of JSON objects
    #[arg(long)]
    json: bool,
}

/// Arguments of `site revoke`.
#[derive(Debug, Args)]
pub(crate) struct RevokeArguments {
    /// Where the site is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    dir: PathBuf,
    /// Name of the host
    #[arg(long)]
    name: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Arguments of `site repository`.
#[derive(Debug, Args)]
pub(crate) struct RepositoryArguments {
    /// Where the site is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    dir: PathBuf,
    /// A member of the cluster, https://ADDRESS:PORT; repeat it for all of them
    #[arg(long, value_name = "URL", required = true)]
    etcd: Vec<String>,
    /// Certificates of the authority that the members' certificates come from
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// This machine's certificate for the members
    #[arg(long, value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// The key of that certificate
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Let http leave this machine, because something else protects it
    #[arg(long)]
    unprotected: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
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

impl SiteCommand {
    /// Carries the command out and prints what it did.
    pub(crate) fn run(self) -> Result<(), Failure> {
        with_surroundings(|surroundings| self.run_in(surroundings))
    }

    fn run_in(self, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
        match self {
            SiteCommand::Init(arguments) => init(&arguments, surroundings),
            SiteCommand::Issue(arguments) => issue(&arguments, surroundings),
            SiteCommand::List(arguments) => list(&arguments, surroundings),
            SiteCommand::Revoke(arguments) => revoke(&arguments, surroundings),
            SiteCommand::Repository(RepositoryCommand::Import(arguments)) => import(&arguments, surroundings),
            SiteCommand::Repository(RepositoryCommand::Use(arguments)) => use_cluster(&arguments, surroundings),
        }
    }
}

impl EnrollCommand {
    /// Carries the command out and prints what it did.
    pub(crate) fn run(self) -> Result<(), Failure> {
        with_surroundings(|surroundings| self.run_in(surroundings))
    }

    fn run_in(self, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
        match self {
            EnrollCommand::Request(arguments) => request(&arguments, surroundings),
            EnrollCommand::Install(arguments) => install(&arguments, surroundings),
        }
    }
}

/// What a command takes from the world besides its arguments.
struct Surroundings<'a> {
    unix_s: u64,
    random: &'a mut Random<'a>,
    output: &'a mut dyn Write,
}

impl Surroundings<'_> {
    fn print(&mut self, as_json: bool, value: &Value, text: &str) -> Result<(), Failure> {
        let printed = if as_json { writeln!(self.output, "{value}") } else { writeln!(self.output, "{text}") };
        printed.map_err(|error| Failure::new(format!("standard output: {error}; the work itself is done")))
    }
}

fn with_surroundings(run: impl FnOnce(&mut Surroundings<'_>) -> Result<(), Failure>) -> Result<(), Failure> {
    let seed = system::clock::random_seed()
        .map_err(|error| Failure::new(format!("the kernel gives no random bytes: {error}; nothing was made")))?;
    let mut generator = Generator::from_seed(seed);
    let mut random = |bytes: &mut [u8]| {
        for chunk in bytes.chunks_mut(32) {
            chunk.copy_from_slice(&generator.bytes::<32>()[..chunk.len()]);
        }
    };
    let unix_ms = system::clock::Clock::new().now().wall.map_or(0, |wall| wall.unix_ms);
    run(&mut Surroundings { unix_s: unix_ms / 1000, random: &mut random, output: &mut std::io::stdout().lock() })
}

fn init(arguments: &InitArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let InitArguments { dir, name, days, profile, json } = arguments;
    let directory = Directory::init(dir, name, DAY * *days, *profile, surroundings.random, surroundings.unix_s)?;
    let until = utc_text(directory.site().anchor().not_after_unix());
    let value = json!({"site": name, "directory": dir, "profile": profile.name(), "not_after": until});
    let text = match profile {
        Profile::Modern => "back the directory up and keep it secret",
        Profile::Paper => "its hosts sign S-ARP with DSA and SHA-1, which can be forged: NOT for real use",
    };
    surroundings.print(*json, &value, &format!("site {name} is in {} until {until}; {text}", dir.display()))
}

fn issue(arguments: &IssueArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let directory = Directory::open(&arguments.dir)?;
    let delivery = Delivery {
        output: &arguments.out,
        overwrite: overwrite(arguments.force),
        sharing: if arguments.allow_shared_addresses { Sharing::Allowed } else { Sharing::Refused },
    };
    let Surroundings { unix_s, random, .. } = surroundings;
    let entry = match &arguments.request {
        Some(file) => {
            let proved = read_request(file)?;
            let granted = granted(arguments, file, &proved)?;
            directory.issue(&granted, &proved, &delivery, *random, *unix_s)?
        }
        None => directory.issue_identity(&asked(arguments)?, &delivery, *random, *unix_s)?,
    };
    let out = arguments.out.display();
    let mut value = entry_json(&entry);
    value["file"] = json!(arguments.out);
    surroundings.print(
        arguments.json,
        &value,
        &format!("issued {}\nwritten to {out}; it is secret", entry_text(&entry)),
    )
}

fn list(arguments: &ListArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let entries = Directory::open(&arguments.dir)?.list()?;
    let value = Value::Array(entries.iter().map(entry_json).collect());
    let lines: Vec<String> = entries.iter().map(entry_text).collect();
    let text = if lines.is_empty() { "nothing was issued yet".to_owned() } else { lines.join("\n") };
    surroundings.print(arguments.json, &value, &text)
}

fn revoke(arguments: &RevokeArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let RevokeArguments { dir, name, json } = arguments;
    let directory = Directory::open(dir)?;
    if !directory.revoke(name)? {
        let remedy = "see `ringwall site list` for the names that there are; one issued by an earlier version must be issued again";
        return Err(Failure::file(dir, format!("no host {name:?} is in the repository"), remedy));
    }
    let unix_s = surroundings.unix_s;
    let holds = directory.list()?.into_iter().filter(|entry| entry.name == *name).map(|entry| entry.not_after_unix);
    let good_until = holds.max().filter(|end| *end > unix_s).map(utc_text);
    let warning = good_until
        .as_ref()
        .map_or_else(String::new, |end| format!("; its certificate stays good for mode \"cll\" until {end}"));
    let roles: Vec<Role> =
        directory.list()?.into_iter().filter(|entry| entry.name == *name).map(|entry| entry.role).collect();
    let serves = roles.iter().any(|role| matches!(role, Role::Distributor | Role::DhcpServer));
    let believed = if serves { "; hosts whose identities name it believe it until these are issued again" } else { "" };
    let value = json!({"name": name, "revoked": true, "certificate_good_until": good_until});
    surroundings.print(*json, &value, &format!("{name} is revoked for S-ARP{warning}{believed}"))
}

fn import(arguments: &RepositoryArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let RepositoryArguments { dir, etcd, json, .. } = arguments;
    let hosts = Directory::open(dir)?.import_repository(&access(arguments)?)?;
    let value = json!({"etcd": etcd, "hosts": hosts});
    let text = format!("{hosts} hosts are in etcd now; give every distributor akd.etcd and start it");
    surroundings.print(*json, &value, &text)
}

fn use_cluster(arguments: &RepositoryArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let RepositoryArguments { dir, etcd, json, .. } = arguments;
    Directory::open(dir)?.use_repository(&access(arguments)?)?;
    surroundings.print(*json, &json!({"etcd": etcd}), "the site works with the repository in etcd")
}

/// The way to the cluster, which later commands take from wherever they are started.
fn access(arguments: &RepositoryArguments) -> Result<Access, Failure> {
    let absolute = |file: &Option<PathBuf>| {
        let file = file.as_deref().map(|file| std::path::absolute(file).map_err(|error| (file, error)));
        file.transpose().map_err(|(file, error)| Failure::file(file, error, "give the right path"))
    };
    let access = Access {
        members: arguments.etcd.clone(),
        ca: absolute(&arguments.ca)?,
        certificate: absolute(&arguments.certificate)?,
        key: absolute(&arguments.key)?,
        unprotected: arguments.unprotected,
    };
    let wrong = |bad: BadAccess| Failure::new(format!("--{}: {bad}; {}", bad.setting(), bad.remedy()));
    access.check().map_err(wrong)?;
    Ok(access)
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

/// What the manager asks for without a request file. Clap has made sure that name and address are there.
fn asked(arguments: &IssueArguments) -> Result<Request, Failure> {
    let name = arguments.name.as_deref().unwrap_or_default();
    let mut request = Request::new(name, arguments.mac.unwrap_or_default(), arguments.ip.clone())?;
    if let Some(length) = arguments.dsa_bits {
        request = request.with_paper_key(length);
    }
    Ok(request.with_role(arguments.role).with_validity(DAY * arguments.days)?.with_subnets(arguments.subnet.clone())?)
}

/// What the manager grants of a request: all that it asks for except the role, and only if it is what he expects.
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
    Ok(request.with_role(arguments.role).with_validity(DAY * arguments.days)?.with_subnets(arguments.subnet.clone())?)
}

fn same_addresses(one: &[Ipv4Addr], other: &[Ipv4Addr]) -> bool {
    let sorted = |addresses: &[Ipv4Addr]| {
        let mut addresses = addresses.to_vec();
        addresses.sort_unstable();
        addresses
    };
    sorted(one) == sorted(other)
}

fn read_request(file: &Path) -> Result<CertificateRequest, Failure> {
    let text = files::read(file)?;
    CertificateRequest::from_pem(&text).map_err(|error| authority::Error::from(error).with_file(file).into())
}

fn entry_json(entry: &Entry) -> Value {
    json!({
        "serial": entry.serial,
        "name": entry.name,
        "role": entry.role.name(),
        "mac": entry.mac.to_string(),
        "addresses": entry.addresses,
        "not_before": utc_text(entry.not_before_unix),
        "not_after": utc_text(entry.not_after_unix),
    })
}

fn entry_text(entry: &Entry) -> String {
    let addresses: Vec<String> = entry.addresses.iter().map(Ipv4Addr::to_string).collect();
    let addresses = if addresses.is_empty() { "no address".to_owned() } else { addresses.join(", ") };
    let until = utc_text(entry.not_after_unix);
    format!("{} {}: {}, {addresses}, until {until}, serial {}", entry.role, entry.name, entry.mac, entry.serial)
}

fn overwrite(force: bool) -> Overwrite {
    if force { Overwrite::Force } else { Overwrite::Never }
}

fn parse_role(name: &str) -> Result<Role, String> {
    Role::from_name(name).ok_or_else(|| "a role is 'host', 'router', 'akd' or 'dhcp'".to_owned())
}

fn parse_profile(name: &str) -> Result<Profile, String> {
    match Profile::from_name(name) {
        Some(Profile::Paper) if !HAS_PAPER => Err("this build has no paper profile".to_owned()),
        Some(profile) => Ok(profile),
        None => Err("a profile is 'modern' or 'paper'".to_owned()),
    }
}

fn parse_key_length(bits: &str) -> Result<KeyLength, String> {
    let length = bits.parse().ok().and_then(KeyLength::from_bits);
    length.ok_or_else(|| "a DSA key has 512 or 1024 bits".to_owned())
}

fn whole_days(validity: Duration) -> u32 {
    u32::try_from(validity.as_secs() / DAY.as_secs()).unwrap_or(u32::MAX)
}

impl From<authority::Error> for Failure {
    fn from(error: authority::Error) -> Failure {
        Failure::new(error)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser;
    use identity::HostIdentity;

    use super::*;

    /// 2027-01-15T08:00:00Z.
    const NOW_UNIX_S: u64 = 1_800_000_000;

    #[derive(Parser)]
    enum Line {
        #[command(subcommand)]
        Site(SiteCommand),
        #[command(subcommand)]
        Enroll(EnrollCommand),
    }

    /// Runs one line in a directory of its own; `@` stands for that directory.
    fn run(place: &Path, line: &str) -> Result<String, String> {
        let line = line.replace('@', &place.display().to_string());
        let parsed = Line::try_parse_from(std::iter::once("ringwall").chain(line.split(' ')));
        let mut generator = Generator::from_seed(identity::hash::sha256(&[line.as_bytes()]));
        let mut random = |bytes: &mut [u8]| bytes.fill_with(|| generator.bytes::<1>()[0]);
        let mut output = Vec::new();
        let mut surroundings = Surroundings { unix_s: NOW_UNIX_S, random: &mut random, output: &mut output };
        match parsed.map_err(|error| error.to_string())? {
            Line::Site(command) => command.run_in(&mut surroundings),
            Line::Enroll(command) => command.run_in(&mut surroundings),
        }
        .map_err(|failure| failure.to_string())?;
        Ok(String::from_utf8(output).expect("text").replace(&place.display().to_string(), "@"))
    }

    fn new_site() -> tempfile::TempDir {
        let place = tempfile::tempdir().expect("directory");
        let printed = run(place.path(), "site init --dir @/site --name lab").expect("site");
        assert!(printed.starts_with("site lab is in @/site until 2037-01-12T08:00:00Z;"), "{printed}");
        place
    }

    fn load(file: &Path) -> HostIdentity {
        HostIdentity::from_pem(&fs::read_to_string(file).expect("there")).expect("identity")
    }

    #[test]
    fn a_manager_makes_a_host_in_one_step() {
        let place = new_site();
        let line = "site issue --dir @/site --name a --mac 02:00:00:00:00:01 --ip 10.0.0.1 --ip 10.0.0.2 --out @/a.pem";
        let printed = run(place.path(), line).expect("issued");
        assert!(
            printed.starts_with("issued host a: 02:00:00:00:00:01, 10.0.0.1, 10.0.0.2, until 2028-01-15T08:00:00Z")
        );
        assert_eq!(load(&place.path().join("a.pem")).certificate().addresses().len(), 2);
        let again = run(place.path(), line).expect_err("exists");
        assert!(again.ends_with("a.pem: the file exists; choose another name or overwrite it with --force"), "{again}");
        run(place.path(), &format!("{line} --force --days 7")).expect("issued again");
    }

    #[test]
    fn a_host_enrols_by_file_and_the_manager_gives_the_role() {
        let place = new_site();
        let ask =
            "enroll request --name b --mac 02:00:00:00:00:02 --ip 10.0.0.2 --role router --key @/b.key --out @/b.csr";
        run(place.path(), ask).expect("requested");
        let grant = "site issue --dir @/site --request @/b.csr --out @/b.bundle";
        let refused = run(place.path(), grant).expect_err("role");
        assert!(refused.ends_with("it asks for the role router, not host; grant it with --role router or refuse it"));
        let grant = &format!("{grant} --role router");
        for (expectation, what) in [
            ("--name c", "name than --name"),
            ("--mac 02:00:00:00:00:03", "hardware address than --mac"),
            ("--ip 10.0.0.3", "list of addresses than --ip"),
        ] {
            let refused = run(place.path(), &format!("{grant} {expectation}")).expect_err(what);
            assert!(refused.contains(what), "{refused}");
        }
        assert_eq!(run(place.path(), "site list --dir @/site").as_deref(), Ok("nothing was issued yet\n"));
        run(place.path(), &format!("{grant} --name b --mac 02:00:00:00:00:02 --ip 10.0.0.2")).expect("granted");
        run(place.path(), "enroll install --key @/b.key --bundle @/b.bundle --out @/b.pem").expect("installed");
        assert!(load(&place.path().join("b.pem")).certificate().is_router());
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
        assert!(refused.contains("b.key and ") && refused.contains("PRIVATE KEY does not belong"), "{refused}");
        assert!(!refused.contains('\n') && !place.path().join("a.pem").exists());
    }

    #[test]
    fn a_revoked_host_is_out_until_it_is_issued_again() {
        let place = new_site();
        let issue = "site issue --dir @/site --name a --mac 02:00:00:00:00:01 --ip 10.0.0.1 --out @/a.pem";
        run(place.path(), issue).expect("issued");
        let standing = || {
            let site = Directory::open(&place.path().join("site")).expect("opened");
            site.repository().expect("there").by_name("a").expect("read").map(|entry| entry.standing)
        };
        assert_eq!(standing(), Some(authority::repository::Standing::Good));
        let printed = run(place.path(), "site revoke --dir @/site --name a").expect("revoked");
        assert!(printed.contains("stays good for mode \"cll\" until 2028-01-15T08:00:00Z"), "{printed}");
        assert_eq!(standing(), Some(authority::repository::Standing::Revoked));
        run(place.path(), &format!("{issue} --force")).expect("issued again");
        assert_eq!(standing(), Some(authority::repository::Standing::Good));
        let refused = run(place.path(), "site revoke --dir @/site --name b").expect_err("unknown");
        assert!(refused.contains("no host \"b\" is in the repository"), "{refused}");
    }

    #[test]
    fn a_cluster_that_cannot_be_meant_is_refused_before_it_is_asked() {
        let place = new_site();
        for (options, wanted) in [
            ("--etcd http://10.0.0.21:2379", "--etcd: http://10.0.0.21:2379 leaves this machine in clear"),
            ("--etcd https://10.0.0.21:2379", "--ca: https without an authority to believe; name the file"),
            ("--etcd https://10.0.0.21:2379 --ca @/ca.pem", "@/ca.pem: No such file"),
        ] {
            let refused = run(place.path(), &format!("site repository use --dir @/site {options}")).expect_err(wanted);
            let refused = refused.replace(&place.path().display().to_string(), "@");
            assert!(refused.starts_with(wanted) && refused.contains("; ") && !refused.contains('\n'), "{refused}");
        }
        let refused = run(place.path(), "site repository import --dir @/site").expect_err("no members");
        assert!(refused.contains("--etcd <URL>"), "{refused}");
    }

    #[test]
    fn json_is_for_programs() {
        let place = new_site();
        let issue = "site issue --dir @/site --name a --mac 02:00:00:00:00:01 --ip 10.0.0.1 --out @/a.pem --json";
        let issued: Value = serde_json::from_str(&run(place.path(), issue).expect("issued")).expect("json");
        let listed: Value =
            serde_json::from_str(&run(place.path(), "site list --dir @/site --json").expect("listed")).expect("json");
        assert_eq!(listed[0]["serial"], issued["serial"]);
        assert_eq!(listed[0]["addresses"], json!(["10.0.0.1"]));
        assert_eq!(issued["file"], json!("@/a.pem"));
        assert_eq!(issued["not_after"], json!("2028-01-15T08:00:00Z"));
    }

    #[test]
    fn a_paper_site_says_what_it_is_and_its_hosts_have_dsa_keys() {
        let place = tempfile::tempdir().expect("directory");
        let printed = run(place.path(), "site init --dir @/site --name lab --profile paper").expect("site");
        assert!(printed.contains("DSA and SHA-1") && printed.contains("NOT for real use"), "{printed}");
        let issue = "site issue --dir @/site --name a --mac 02:00:00:00:00:01 --ip 10.0.0.1 --out @/a.pem --force";
        for (option, number) in [("", 4), (" --dsa-bits 512", 3), (" --dsa-bits 1024", 4)] {
            run(place.path(), &format!("{issue}{option}")).expect("issued");
            let identity = load(&place.path().join("a.pem"));
            assert_eq!(identity.certificate().record_key().map(|(number, _)| number), Some(number), "{option}");
            assert_eq!(identity.profile(), Profile::Paper);
        }
        let refused = run(place.path(), &format!("{issue} --dsa-bits 2048")).expect_err("length");
        assert!(refused.contains("512 or 1024"), "{refused}");
        let ask = "enroll request --name b --mac 02:00:00:00:00:02 --key @/b.key --out @/b.csr";
        run(place.path(), ask).expect("requested");
        let refused =
            run(place.path(), "site issue --dir @/site --request @/b.csr --out @/b.bundle").expect_err("a request");
        assert!(refused.contains("makes its hosts' keys itself; issue without a request"), "{refused}");
        let modern = new_site();
        let refused = run(modern.path(), &format!("{issue} --dsa-bits 512")).expect_err("modern");
        assert!(refused.contains("'site init --profile paper'") && !refused.contains('\n'), "{refused}");
    }

    #[test]
    fn what_is_missing_on_the_line_is_named() {
        let place = new_site();
        let refused = run(place.path(), "site issue --dir @/site --out @/a.pem").expect_err("incomplete");
        assert!(refused.contains("--name <NAME>") && refused.contains("--mac <MAC>"), "{refused}");
        let refused = run(place.path(), "site issue --dir @/site --name a --mac 02 --out @/a.pem").expect_err("mac");
        assert!(refused.contains("--mac <MAC>"), "{refused}");
        let days = "site issue --dir @/site --name a --mac 02:00:00:00:00:01 --days 0 --out @/a.pem";
        assert!(run(place.path(), days).expect_err("days").contains("use 1 to 36525 days"));
    }
}
