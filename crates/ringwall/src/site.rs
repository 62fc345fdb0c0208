//! The commands of the authority (`ringwall site`) and of a host that enrols by file (`ringwall host enroll`).

mod auditing;
mod enforcing;
mod joining;
mod keeping;
mod many;
mod policy;
mod renewing;
mod reported;
pub(crate) mod serve;
mod sharing;
mod signer;
mod stock;
mod survey;
mod table;

use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use authority::audit::Act;
use authority::directory::{Delivery, Pace, Sharing, acting, is_revoked, note};
use authority::files::{self, Overwrite, Secrecy, Staged};
use authority::limits::{HOST_VALIDITY, SITE_VALIDITY};
use authority::repository::Subnet;
use authority::repository::etcd::{Access, BadAccess};
use authority::{Directory, Entry, Random, Request, enrolment};
use clap::{Args, Subcommand};
use identity::Profile;
use identity::certificate::{CertificateRequest, Role, utc_text};
use identity::profile::{HAS_PAPER, KeyLength, PaperKey, RsaHash, RsaKey};
use serde_json::{Value, json};
use wire::MacAddress;

use self::auditing::AuditArguments;
use self::enforcing::EnforceArguments;
use self::joining::{ApproveArguments, PendingArguments, RefuseArguments, RekeyArguments, TokenArguments};
use self::keeping::{BackupArguments, RestoreArguments};
use self::policy::PolicyCommand;
use self::renewing::RenewArguments;
use self::reported::{HostsArguments, SiteForecastArguments};
use self::serve::ServeArguments;
use self::sharing::RekeySharedArguments;
use self::signer::SignerArguments;
use self::survey::{ImportArguments, SurveyArguments};
use crate::failure::Failure;
use crate::randomness;

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
    /// For a host that gets its address by DHCP, in mode "cll" and under S-ARP (which needs --subnet):
    ///   ringwall site issue --name a --mac 02:00:00:00:00:01 --out a.pem
    ///   ringwall site issue --name a --mac 02:00:00:00:00:01 --subnet 10.0.0.0/24 --out a.pem
    ///
    /// For a DHCP server of mode "cll", which makes the certificates of the addresses that it gives:
    ///   ringwall site issue --name d --mac 02:00:00:00:00:09 --ip 10.0.0.9 --role dhcp --serves 10.0.0.128/25 --out d.pem
    ///
    /// For a request that the host made with 'ringwall host enroll request'; the bundle is sealed
    /// for that host:
    ///   ringwall site issue --request a.csr.pem --out a.bundle.pem
    ///
    /// Without a request the host's key is made here, and the file holds it and the site's secrets
    /// in clear. Name, MAC and IP given beside --request must equal those in it. A role beyond host
    /// must be granted by --role.
    #[command(verbatim_doc_comment)]
    Issue(IssueArguments),
    /// Give a host another certificate for the key that it has, with what its newest one says
    ///
    /// For a request of 'ringwall host renew'. Nothing is decided, so a program may call it, for example ssh as the forced
    /// command of a key that all hosts have:
    ///   command="ringwall site renew --request - --out -",restrict ssh-ed25519 AAAA...
    ///
    /// Not renewed is who is revoked, whose certificate has ended, and whose certificate others' identities name (akd, dhcp).
    ///
    /// Example: ringwall site renew --request desk-17.csr --out desk-17.bundle
    #[command(verbatim_doc_comment)]
    Renew(RenewArguments),
    /// List every certificate that the site has issued
    ///
    /// Example: ringwall site list --dir /etc/ringwall/site --json
    #[command(verbatim_doc_comment)]
    List(ListArguments),
    /// Take a host out
    ///
    /// S-ARP: key distributors say from now on that it is invalid; hosts that know its key believe it for up to ten minutes more,
    /// and a TCP session that is under way goes on until it ends or pauses, because nobody asks for the address meanwhile.
    ///
    /// Link layer (mode "cll"): its certificates go on the site's list, revoked.crl.pem. Copy that to the hosts where
    /// cll.revocation_list names it; their daemons read it within seconds, end what they have with the host, and refuse it.
    ///
    /// It still has the site key, so that changes as well, as 'site rekey-shared' does it; the host
    /// is given no other.
    ///
    /// 'site issue' for the same name makes it good again, with another certificate.
    ///
    /// Example: ringwall site revoke --name a
    #[command(verbatim_doc_comment)]
    Revoke(RevokeArguments),
    /// Make tokens by which hosts join over the network
    ///
    /// A token is secret: who has it can apply in the host's place, once. It names the site's key
    /// distributors, so issue their identities before. An earlier token for the same name ends.
    ///
    /// Example: ringwall site token desk-17 --ip 192.0.2.17 --valid 24h
    /// On the host: ringwall join TOKEN
    ///
    /// For many hosts, from a table with the columns name, mac and ip:
    ///   ringwall site token --csv hosts.csv --preapproved --out tokens
    ///   ringwall site approve --watch
    #[command(verbatim_doc_comment)]
    Token(TokenArguments),
    /// Propose what is on the network: hosts, printers, routers, and addresses that two have
    ///
    /// From this machine's neighbours, from leases of dnsmasq and Kea, and from tables that there
    /// are. Makers are named where Debian's ieee-data is installed. Nothing is sent and nothing is
    /// changed.
    ///
    /// Example: ringwall site survey --dnsmasq dnsmasq.leases --csv > hosts.csv
    #[command(verbatim_doc_comment)]
    Survey(SurveyArguments),
    /// Make tokens and a legacy list of a table, as 'ringwall site survey --csv' writes it
    ///
    /// Hosts and routers get a token each, approved beforehand where the table has their hardware
    /// address; those that are enrolled already get none. A name or an address that is there twice
    /// is refused.
    ///
    /// Example: ringwall site import hosts.csv --out tokens
    #[command(verbatim_doc_comment)]
    Import(ImportArguments),
    /// List the tokens that are open, and who applies with them
    ///
    /// Compare the fingerprint with the one that the host shows.
    ///
    /// Example: ringwall site pending --json
    #[command(verbatim_doc_comment)]
    Pending(PendingArguments),
    /// Issue a certificate to a host that applies with a token
    ///
    /// Key distributors hand it out, sealed to the host, for a day.
    ///
    /// Example: ringwall site approve desk-17 --fingerprint 5f1c-...
    ///
    /// All who apply with a token that was preapproved, now and later (the fingerprint is compared
    /// by nobody then):
    ///   ringwall site approve --watch
    #[command(verbatim_doc_comment)]
    Approve(ApproveArguments),
    /// Refuse a host that applies with a token, or end a token
    ///
    /// Example: ringwall site refuse desk-17
    #[command(verbatim_doc_comment)]
    Refuse(RefuseArguments),
    /// Give a host another key, because somebody else may have the one it has
    ///
    /// The old key is out at once: key distributors give out the new one, or say that it is invalid until the host has
    /// enrolled again. The host keeps its name, number, role and addresses.
    ///
    /// By token:
    ///   ringwall site rekey desk-17
    /// By a request that the host made with 'ringwall host enroll request':
    ///   ringwall site rekey desk-17 --request desk-17.csr --out desk-17.bundle
    #[command(verbatim_doc_comment)]
    Rekey(RekeyArguments),
    /// Change the keys that hosts share, because somebody else may have them
    ///
    /// These are the site key, and the masters of distributors and DHCP servers. 'site revoke' does
    /// it by itself. Hosts fetch the new ones with 'ringwall host renew', which a timer runs daily,
    /// and their daemons take them without a pause. Until --after is over all of
    /// them send with the one before, and accept it for --grace longer. A host that has not asked
    /// until then is shut out; it comes back by a pair of files ('ringwall host renew request
    /// --keys').
    ///
    /// Example: ringwall site rekey-shared --after 3d
    #[command(verbatim_doc_comment)]
    RekeyShared(RekeySharedArguments),
    /// Write the whole site to one new file: keys, record and repository
    ///
    /// Distributors may go on working. Of a repository in etcd a copy comes along.
    ///
    /// Example: ringwall site backup /media/key/office.backup
    #[command(verbatim_doc_comment)]
    Backup(BackupArguments),
    /// Make a site again from its backup, in a directory that is missing or empty
    ///
    /// Example: ringwall site restore /media/key/office.backup --dir /etc/ringwall/site
    #[command(verbatim_doc_comment)]
    Restore(RestoreArguments),
    /// Decide for all hosts at once who is admitted in clear, and how strict each is
    ///
    /// Each change makes and signs the next version of the policy, policy.pem beside the revocation
    /// list. The daemon on this machine reads it where host.policy names it, hosts of mode "cll"
    /// hand it to each other, and all apply it without a restart.
    ///
    /// Example: ringwall site policy legacy add --ip 192.0.2.9 --mac 02:00:00:00:00:09
    #[command(subcommand, verbatim_doc_comment)]
    Policy(PolicyCommand),
    /// Run the service that hosts report to and fetch the policy and the revocation list from
    /// (needs root)
    ///
    /// Hosts prove themselves by their certificates (TLS). It listens as a user without privileges,
    /// and has no key of the authority. It ends when the identity is renewed; its unit starts it
    /// again:
    ///   systemctl enable --now ringwall-site.service
    ///
    /// Example: ringwall site serve --listen 192.0.2.5:9478
    #[command(verbatim_doc_comment)]
    Serve(ServeArguments),
    /// Sign for the site's service: renewals, and what tokens were preapproved for (needs root)
    ///
    /// It alone of the service has the authority's key. It has no network, reaches no file but
    /// those of the site, and grants nothing that a manager has not decided before.
    ///   systemctl enable --now ringwall-signer.service
    #[command(verbatim_doc_comment)]
    Signer(SignerArguments),
    /// Show what was done with the authority and by whom, or look whether that record is whole
    ///
    /// Each entry is signed and has the digest of the one before. 'verify' ends with 1 if an entry
    /// was changed, taken out, moved or cut off, and if a certificate was issued that no entry
    /// tells of. It prints number and digest of the last one; noted elsewhere, they show later that
    /// everything up to it is still there.
    ///
    /// Example: ringwall site audit verify --noted 17:5f1c...
    #[command(verbatim_doc_comment)]
    Audit(AuditArguments),
    /// List all enrolled hosts with what they have reported: mode, policy, attacks, certificate
    Hosts(HostsArguments),
    /// Say who would be cut off, and which uses of the network, if hosts enforced now
    ///
    /// Group by group, by what hosts in mode observe or prefer have reported. A group of which a
    /// host is silent is not known wholly, and that is said.
    ///
    /// Example: ringwall site forecast --group 'desk-*'
    #[command(verbatim_doc_comment)]
    Forecast(SiteForecastArguments),
    /// Have a group enforce on trial, and for good if every host of it goes on reporting
    ///
    /// It is not begun while the forecast speaks against it. Unless all of its hosts report in the
    /// second half of the trial that they enforce, it goes back by itself, also if this command or
    /// this machine ends meanwhile.
    ///
    /// Example: ringwall site enforce 'desk-*' --for 1h
    #[command(verbatim_doc_comment)]
    Enforce(EnforceArguments),
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
    /// The key stays here; the request is no secret. What comes back is sealed for this key. The
    /// manager answers it with 'ringwall site issue --request'.
    ///
    /// Example: ringwall host enroll request --name a --mac 02:00:00:00:00:01 --ip 10.0.0.1 \
    ///     --key a.key.pem --out a.csr.pem
    #[command(verbatim_doc_comment)]
    Request(RequestArguments),
    /// Open the bundle that came back and put the key and it together
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
    /// Which algorithms its hosts work with: modern, or paper (those of the papers, to measure their tables; never for real use)
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
    /// An IPv6 address that is the host's and nobody else's, whoever claims it; repeat it for several
    #[arg(long, value_name = "IP6")]
    ip6: Vec<Ipv6Addr>,
    /// A subnet in which the host may be given an address by DHCP, as 10.0.0.0/24; repeat it for several
    #[arg(long, value_name = "SUBNET")]
    subnet: Vec<Subnet>,
    /// For a DHCP server of mode "cll": a subnet in which it gives addresses, each with a certificate, as 10.0.0.128/25; repeat it
    /// for several. It can make certificates for no other addresses, so name its pool and not the whole network
    #[arg(long, value_name = "SUBNET")]
    serves: Vec<Subnet>,
    /// What the host may do: host, router, akd (a key distributor of S-ARP) or dhcp (a DHCP server)
    #[arg(long, value_name = "ROLE", default_value = "host", value_parser = parse_role)]
    role: Role,
    /// How long the certificate lasts
    #[arg(long, value_name = "DAYS", default_value_t = whole_days(HOST_VALIDITY))]
    days: u32,
    /// In a site of the paper profile, the length of the host's DSA key: 512 or 1024, which is what it gets without this
    #[arg(long, value_name = "BITS", value_parser = parse_key_length)]
    dsa_bits: Option<KeyLength>,
    /// In a site of the paper profile, an RSA key for mode cll instead of the DSA key, of 1024, 1536 or 2048 bits
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
    /// Leave the site key as it is, although the host has it
    #[arg(long)]
    keep_shared_keys: bool,
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
            SiteCommand::Renew(arguments) => renewing::renew(&arguments, surroundings),
            SiteCommand::List(arguments) => list(&arguments, surroundings),
            SiteCommand::Revoke(arguments) => revoke(&arguments, surroundings),
            SiteCommand::RekeyShared(arguments) => sharing::rekey(&arguments, surroundings),
            SiteCommand::Token(arguments) => joining::token(&arguments, surroundings),
            SiteCommand::Survey(arguments) => survey::survey(&arguments, surroundings),
            SiteCommand::Import(arguments) => survey::import(&arguments, surroundings),
            SiteCommand::Pending(arguments) => joining::pending(&arguments, surroundings),
            SiteCommand::Approve(arguments) => joining::approve(&arguments, surroundings),
            SiteCommand::Refuse(arguments) => joining::refuse(&arguments, surroundings),
            SiteCommand::Rekey(arguments) => joining::rekey(&arguments, surroundings),
            SiteCommand::Backup(arguments) => keeping::backup(&arguments, surroundings),
            SiteCommand::Restore(arguments) => keeping::restore(&arguments, surroundings),
            SiteCommand::Policy(command) => command.run_in(surroundings),
            SiteCommand::Serve(arguments) => serve::serve(&arguments),
            SiteCommand::Signer(arguments) => signer::run(&arguments),
            SiteCommand::Audit(arguments) => auditing::audit(&arguments, surroundings),
            SiteCommand::Hosts(arguments) => reported::hosts(&arguments, surroundings),
            SiteCommand::Enforce(arguments) => enforcing::enforce(&arguments, surroundings),
            SiteCommand::Forecast(arguments) => reported::forecast(&arguments, surroundings),
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

/// The site in `dir`, in whose record the manager at this machine stands for who acts.
fn open(dir: &Path) -> Result<Directory, Failure> {
    Ok(acting(Directory::open(dir)?, &auditing::manager()))
}

/// What a command takes from the world besides its arguments.
struct Surroundings<'a> {
    unix_s: u64,
    random: &'a mut Random<'a>,
    output: &'a mut dyn Write,
}

impl Surroundings<'_> {
    /// Prints a line at once, while more is to be done.
    fn say(&mut self, line: &str) -> Result<(), Failure> {
        let printed = writeln!(self.output, "{line}").and_then(|()| self.output.flush());
        printed.map_err(|error| Failure::new(format!("standard output: {error}; the work so far is done")))
    }

    fn print(&mut self, as_json: bool, value: &Value, text: &str) -> Result<(), Failure> {
        let printed = if as_json { writeln!(self.output, "{value}") } else { writeln!(self.output, "{text}") };
        printed.map_err(|error| Failure::new(format!("standard output: {error}; the work itself is done")))
    }
}

fn with_surroundings(run: impl FnOnce(&mut Surroundings<'_>) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut secrets = randomness::secrets()?;
    let mut random = |bytes: &mut [u8]| secrets.fill(bytes);
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
        Profile::Paper => {
            "its hosts sign S-ARP with DSA and SHA-1 or CLL with short RSA keys, which can be forged: NOT for real use"
        }
    };
    surroundings.print(*json, &value, &format!("site {name} is in {} until {until}; {text}", dir.display()))
}

fn issue(arguments: &IssueArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let directory = open(&arguments.dir)?;
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
enum Holds {
    /// Nothing: the host's key alone opens it.
    Sealed,
    /// The secrets of the site.
    BundleInClear,
    /// These, and the host's private key.
    KeyInClear,
}

impl Holds {
    fn of(proved: &CertificateRequest) -> Holds {
        if proved.answer_key().is_some() { Holds::Sealed } else { Holds::BundleInClear }
    }

    fn in_words(self) -> &'static str {
        match self {
            Holds::Sealed => "it is sealed for the host's key, and nobody else can open it",
            Holds::BundleInClear => {
                "it is secret\nwarning: it holds the site's secrets in clear, since the request names nothing to seal to; \
                 one of `ringwall host enroll request` does"
            }
            Holds::KeyInClear => {
                "it is secret\nwarning: it holds the host's private key and the site's secrets in clear; with a key that the host \
                 makes itself (`ringwall host enroll request`, `site issue --request`) what leaves here is sealed"
            }
        }
    }
}

fn list(arguments: &ListArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let entries = open(&arguments.dir)?.list()?;
    let unix_s = surroundings.unix_s;
    let listed = |entry: &Entry| {
        let mut value = entry_json(entry);
        value["revoked"] = json!(entry.revoked);
        value["days_left"] = json!(entry.not_after_unix.saturating_sub(unix_s) / DAY.as_secs());
        value
    };
    let value = Value::Array(entries.iter().map(listed).collect());
    let lines: Vec<String> =
        entries.iter().map(|entry| format!("{}, {}", entry_text(entry), standing_text(entry, unix_s))).collect();
    let text = if lines.is_empty() { "nothing was issued yet".to_owned() } else { lines.join("\n") };
    surroundings.print(arguments.json, &value, &text)
}

fn revoke(arguments: &RevokeArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let RevokeArguments { dir, name, keep_shared_keys, json } = arguments;
    let mut directory = open(dir)?;
    let revoked = directory.revoke(name, surroundings.unix_s)?;
    if !revoked.found() {
        let remedy = "see `ringwall site list` for the names that there are";
        let what = format!("no host {name:?} is in the repository, and no certificate of it is still good");
        return Err(Failure::file(dir, what, remedy));
    }
    let roles: Vec<Role> =
        directory.list()?.into_iter().filter(|entry| entry.name == *name).map(|entry| entry.role).collect();
    let serves = roles.iter().any(|role| matches!(role, Role::Distributor | Role::DhcpServer));
    let believed = if serves { "; hosts whose identities name it believe it until these are issued again" } else { "" };
    let list = dir.join("revoked.crl.pem").display().to_string();
    let certificates = revoked.certificates;
    let mut value = json!({
        "name": name, "revoked": true, "in_repository": revoked.in_repository, "certificates": certificates, "list": list
    });
    let shared = if *keep_shared_keys {
        "it still has the site key; `ringwall site rekey-shared` changes it".to_owned()
    } else {
        let change = directory.rekey_shared(Pace::default(), surroundings.random, surroundings.unix_s)?;
        value["site_key"] = sharing::value(&change);
        sharing::text(&change)
    };
    let copied = format!(
        "its certificates that were still good: {certificates}, now on {list}; copy that to the hosts of mode \"cll\""
    );
    surroundings.print(*json, &value, &format!("{name} is revoked{believed}\n{copied} (cll.revocation_list)\n{shared}"))
}

fn import(arguments: &RepositoryArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let RepositoryArguments { dir, etcd, json, .. } = arguments;
    let (directory, access) = (open(dir)?, access(arguments)?);
    note(&directory, Act::Repository, "import", &etcd.join(" "), surroundings.unix_s)?;
    let hosts = directory.import_repository(&access)?;
    let value = json!({"etcd": etcd, "hosts": hosts});
    let text = format!("{hosts} hosts are in etcd now; give every distributor akd.etcd and start it");
    surroundings.print(*json, &value, &text)
}

fn use_cluster(arguments: &RepositoryArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let RepositoryArguments { dir, etcd, json, .. } = arguments;
    let (directory, access) = (open(dir)?, access(arguments)?);
    note(&directory, Act::Repository, "use", &etcd.join(" "), surroundings.unix_s)?;
    directory.use_repository(&access)?;
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
    let addresses: Vec<String> = entry.addresses.iter().map(ToString::to_string).collect();
    let addresses = if addresses.is_empty() { "no address".to_owned() } else { addresses.join(", ") };
    let until = utc_text(entry.not_after_unix);
    format!("{} {}: {}, {addresses}, until {until}, serial {}", entry.role, entry.name, entry.mac, entry.serial)
}

fn standing_text(entry: &Entry, unix_s: u64) -> String {
    match entry.not_after_unix.checked_sub(unix_s) {
        _ if entry.revoked => "revoked".to_owned(),
        Some(left) => format!("{} days left", left / DAY.as_secs()),
        None => "over".to_owned(),
    }
}

fn overwrite(force: bool) -> Overwrite {
    if force { Overwrite::Force } else { Overwrite::Never }
}

fn sharing(is_allowed: bool) -> Sharing {
    if is_allowed { Sharing::Allowed } else { Sharing::Refused }
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

fn parse_rsa_bits(bits: &str) -> Result<u16, String> {
    let length = bits.parse().ok().filter(|bits| RsaKey::LENGTHS.contains(bits));
    length.ok_or_else(|| "an RSA key of the paper profile has 1024, 1536 or 2048 bits".to_owned())
}

fn parse_rsa_hash(name: &str) -> Result<RsaHash, String> {
    RsaHash::from_name(name).ok_or_else(|| "a hash is 'sha1', 'sha256' or 'ripemd160'".to_owned())
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

    /// Runs one line in a directory of its own; `@` stands for that directory.
    fn run(place: &Path, line: &str) -> Result<String, String> {
        let line = line.replace('@', &place.display().to_string());
        let parsed = Line::try_parse_from(std::iter::once("ringwall").chain(line.split(' ')));
        let mut generator = bump::Generator::from_seed(identity::hash::sha256(&[line.as_bytes()]));
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

    /// One block, which is none of those that an identity is made of.
    fn assert_sealed(file: &Path) {
        let text = fs::read_to_string(file).expect("there");
        let blocks = identity::pem::blocks(&text).expect("a file");
        let labels: Vec<_> = blocks.iter().map(|block| block.label.as_str()).collect();
        assert_eq!(labels, ["RINGWALL SEALED BUNDLE"]);
    }

    /// The CLL paper, section 6.2. The bundle was in clear: site key, request key and DHCP key.
    #[test]
    fn a_bundle_is_of_use_to_the_host_that_asked_and_to_nobody_else() {
        let place = new_site();
        for name in ["a", "b"] {
            let ask = format!("enroll request --name a --mac 02:00:00:00:00:01 --key @/{name}.key --out @/{name}.csr");
            run(place.path(), &ask).expect("requested");
        }
        let issue = "site issue --dir @/site --request @/a.csr --subnet 10.0.0.0/24 --out @/a.bundle";
        let printed = run(place.path(), issue).expect("issued");
        assert!(
            printed.ends_with("a.bundle; it is sealed for the host's key, and nobody else can open it\n"),
            "{printed}"
        );
        assert_sealed(&place.path().join("a.bundle"));
        let stolen = "enroll install --key @/b.key --bundle @/a.bundle --out @/stolen.pem";
        assert!(run(place.path(), stolen).expect_err("another key").contains("sealed for another key"));
        assert!(!place.path().join("stolen.pem").exists());
        run(place.path(), "enroll install --key @/a.key --bundle @/a.bundle --out @/a.pem").expect("installed");
        assert!(load(&place.path().join("a.pem")).dhcp_key().is_some());
        // Another key for the same host comes in the same way.
        run(place.path(), "site rekey --dir @/site a --request @/b.csr --out @/b.bundle").expect("another key");
        assert_sealed(&place.path().join("b.bundle"));
        run(place.path(), "enroll install --key @/b.key --bundle @/b.bundle --out @/b.pem").expect("installed");
    }

    #[test]
    fn what_is_handed_out_in_clear_is_said_to_be() {
        let place = new_site();
        let issue = "site issue --dir @/site --name a --mac 02:00:00:00:00:01 --ip 10.0.0.1 --out @/a.pem";
        let printed = run(place.path(), issue).expect("issued");
        assert!(printed.contains("\nwarning: ") && printed.contains("host enroll request"), "{printed}");
        let mode =
            |name| std::os::unix::fs::MetadataExt::mode(&fs::metadata(place.path().join(name)).expect("there")) & 0o777;
        assert_eq!(mode("a.pem"), 0o600);
        let json: Value = serde_json::from_str(&run(place.path(), &format!("{issue} --force --json")).expect("issued"))
            .expect("json");
        assert_eq!(json["sealed"], json!(false));
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
        assert!(printed.contains("still good: 1, now on") && printed.contains("cll.revocation_list"), "{printed}");
        assert_eq!(standing(), Some(authority::repository::Standing::Revoked));
        let listed = run(place.path(), "site list --dir @/site").expect("listed");
        assert!(listed.ends_with(", revoked\n"), "{listed}");
        let again = run(place.path(), &format!("{issue} --force")).expect("issued again");
        assert!(again.contains("\na was revoked, and is good again with this certificate alone\n"), "{again}");
        assert_eq!(standing(), Some(authority::repository::Standing::Good));
        let listed = run(place.path(), "site list --dir @/site --json").expect("listed");
        let listed: Value = serde_json::from_str(&listed).expect("json");
        let states: Vec<(&Value, &Value)> =
            listed.as_array().expect("a list").iter().map(|one| (&one["revoked"], &one["days_left"])).collect();
        assert_eq!(states.len(), 2);
        assert!(states.contains(&(&json!(true), &json!(365))) && states.contains(&(&json!(false), &json!(365))));
        let renewal = run(place.path(), &format!("{issue} --force --days 300")).expect("a renewal");
        assert!(!renewal.contains("was revoked"), "{renewal}");
        let refused = run(place.path(), "site revoke --dir @/site --name b").expect_err("unknown");
        assert!(refused.contains("no host \"b\" is in the repository, and no certificate"), "{refused}");
    }

    #[test]
    fn a_table_becomes_tokens_and_a_legacy_list() {
        let place = new_site();
        let keys = "site issue --dir @/site --role akd --name k --mac 02:00:00:00:00:09 --ip 10.0.0.9 --out @/k.pem";
        run(place.path(), keys).expect("issued");
        let table = "kind,name,mac,ip\nhost,a,02:00:00:00:00:01,10.0.0.1\nrouter,r,,10.0.0.254\n\
            printer,lp1,02:00:00:00:00:50,10.0.0.50\nunknown,,02:00:00:00:00:60,10.0.0.60\n";
        fs::write(place.path().join("hosts.csv"), table).expect("written");
        let import = "site import @/hosts.csv --dir @/site --out @/tokens";
        let planned = run(place.path(), &format!("{import} --dry-run")).expect("a plan");
        assert!(
            planned.starts_with("2 hosts get a token, 0 are enrolled already, 1 go on the legacy list"),
            "{planned}"
        );
        assert!(planned.contains("1 are unknown") && !place.path().join("tokens").exists(), "{planned}");
        run(place.path(), import).expect("imported");
        let legacy = fs::read_to_string(place.path().join("tokens/legacy.toml")).expect("there");
        assert!(legacy.ends_with("[[cll.legacy]]\nip = \"10.0.0.50\"\nmac = \"02:00:00:00:00:50\"\n"), "{legacy}");
        let known = fs::read_to_string(place.path().join("tokens/known.toml")).expect("there");
        assert_eq!(known.matches("[[sarp.known_hosts]]").count(), 1, "the router has no hardware address: {known}");
        let token: identity::token::Token =
            fs::read_to_string(place.path().join("tokens/a.token")).expect("there").trim().parse().expect("a token");
        assert_eq!(token.name(), "a");
        let pending: Value =
            serde_json::from_str(&run(place.path(), "site pending --dir @/site --json").expect("listed"))
                .expect("JSON");
        let told = |name: &str| pending.as_array().expect("a list").iter().find(|one| one["name"] == name).cloned();
        let (host, router) = (told("a").expect("a"), told("r").expect("r"));
        assert_eq!((&host["preapproved"], &host["role"]), (&true.into(), &"host".into()));
        // Anybody could come in the place of one whose hardware address nobody has written down.
        assert_eq!((&router["preapproved"], &router["role"]), (&false.into(), &"router".into()));

        run(place.path(), "site issue --dir @/site --name a --mac 02:00:00:00:00:01 --ip 10.0.0.1 --out @/a.pem")
            .expect("issued");
        // Another line draws other numbers here.
        let again = run(place.path(), &format!("{import} --days 30")).expect("imported again");
        assert!(again.starts_with("1 hosts get a token, 1 are enrolled already"), "{again}");
        let many = "site token --dir @/site --csv @/hosts.csv --out-csv @/tokens.csv --days 20";
        assert!(run(place.path(), many).expect("made").starts_with("2 tokens are in @/tokens.csv"));
        let made = fs::read_to_string(place.path().join("tokens.csv")).expect("there");
        assert!(made.starts_with("name,mac,ip,token\na,02:00:00:00:00:01,10.0.0.1,"), "{made}");
        let unseen = run(place.path(), "site token --dir @/site b c").expect_err("two tokens");
        assert!(unseen.contains("several tokens are not printed"), "{unseen}");
        fs::write(place.path().join("hosts.csv"), format!("{table}host,b,02:00:00:00:00:02,10.0.0.1\n"))
            .expect("written");
        let refused = run(place.path(), import).expect_err("an address of two");
        assert!(refused.contains("the address 10.0.0.1 is there 2 times: a, b; say in the table"), "{refused}");
    }

    #[test]
    fn a_survey_is_a_table_that_is_taken_again() {
        let place = tempfile::tempdir().expect("directory");
        let leases = "1795590772 00:1b:21:00:00:17 192.0.2.17 desk-17 *\n1795590772 00:80:77:00:00:09 192.0.2.9 * *\n";
        fs::write(place.path().join("leases"), leases).expect("written");
        fs::write(place.path().join("oui"), "00-80-77   (hex)\t\tBrother industries, LTD.\n").expect("written");
        let survey = "site survey --without-neighbours --dnsmasq @/leases --oui @/oui";
        let shown = run(place.path(), survey).expect("shown");
        let line = "printer  -        192.0.2.9   00:80:77:00:00:09  Brother industries, LTD.  by lease";
        assert!(shown.starts_with("printer") && shown.contains("host     desk-17  192.0.2.17"), "{shown}");
        assert!(shown.lines().any(|one| one == line), "{shown}");
        fs::write(place.path().join("hosts.csv"), run(place.path(), &format!("{survey} --csv")).expect("a table"))
            .expect("written");
        let table =
            fs::read_to_string(place.path().join("hosts.csv")).expect("there").replace("printer,,", "printer,lp1,");
        fs::write(place.path().join("hosts.csv"), table).expect("written");
        let again = run(place.path(), &format!("{survey} --table @/hosts.csv --json")).expect("again");
        let rows: Value = serde_json::from_str(&again).expect("JSON");
        assert_eq!(rows.as_array().map(Vec::len), Some(2), "{rows}");
        assert_eq!(rows[0]["name"], "lp1", "what a manager has written stays");

        // Somebody claims the address of a host that the manager knows, and has a name, too.
        let claimed = format!("{leases}1795590772 00:1b:21:00:00:66 192.0.2.17 desk-66 *\n");
        fs::write(place.path().join("leases"), claimed).expect("written");
        let survey = format!("{survey} --table @/hosts.csv");
        let rows: Value =
            serde_json::from_str(&run(place.path(), &format!("{survey} --json")).expect("again")).expect("JSON");
        let of = |mac: &str| rows.as_array().expect("a list").iter().find(|row| row["mac"] == mac).expect("seen");
        assert_eq!(of("00:1b:21:00:00:17")["addresses"], json!(["192.0.2.17"]));
        let other = of("00:1b:21:00:00:66");
        assert_eq!((&other["kind"], &other["addresses"]), (&json!("unknown"), &json!([])), "{other}");
        let note = other["note"].as_str().expect("a note");
        assert!(note.ends_with("CLAIMS 192.0.2.17, which is that of desk-17"), "{note}");
    }

    #[test]
    fn a_table_becomes_a_policy_and_one_that_is_taken_in_again_changes_nothing() {
        let place = new_site();
        let table = "kind,name,mac,ip\nhost,a,02:00:00:00:00:01,10.0.0.1\nrouter,r,02:00:00:00:00:fe,10.0.0.254\n\
            printer,lp1,02:00:00:00:00:50,10.0.0.50\nprinter,lp2,02:00:00:00:00:51,10.0.0.51\n";
        fs::write(place.path().join("hosts.csv"), table).expect("written");
        let import = "site import @/hosts.csv --dir @/site --out @/tokens --policy --by-service";
        run(place.path(), &format!("{import} --dry-run")).expect("a plan");
        assert!(!place.path().join("site/policy.pem").exists(), "nothing is made");
        run(place.path(), import).expect("imported");
        let content = policy(place.path()).content().clone();
        let of_legacy: Vec<String> = content.legacy.iter().map(|one| format!("{} {}", one.ip, one.mac)).collect();
        assert_eq!(of_legacy, ["10.0.0.50 02:00:00:00:00:50", "10.0.0.51 02:00:00:00:00:51"]);
        assert_eq!((content.version, content.known.len(), content.groups.len()), (1, 3, 1));
        let everybody = &content.groups[0];
        assert_eq!((everybody.patterns.join(","), everybody.mode), ("*".to_owned(), identity::policy::Mode::Observe));

        // What a manager has said since stays; what the table says anew counts.
        let broadcast = "policy legacy add --ip 10.0.0.50 --mac 02:00:00:00:00:50 --broadcast";
        order(place.path(), broadcast).expect("changed");
        run(place.path(), "site policy mode * prefer --dir @/site").expect("changed");
        run(place.path(), &format!("{import} --days 30")).expect("imported again");
        let content = policy(place.path()).content().clone();
        assert_eq!((content.version, content.groups[0].mode), (3, identity::policy::Mode::Prefer));
        assert!(content.legacy.iter().any(|one| one.broadcast));
        let other = table.replace("02:00:00:00:00:51", "02:00:00:00:00:52");
        fs::write(place.path().join("hosts.csv"), other).expect("written");
        run(place.path(), &format!("{import} --days 31")).expect("imported again");
        let content = policy(place.path()).content().clone();
        assert_eq!((content.version, content.legacy.len(), content.known.len()), (4, 2, 3), "one was replaced");

        // Who has a certificate is not heard in clear, and then nothing at all is made.
        run(place.path(), "site issue --dir @/site --name b --mac 02:00:00:00:00:02 --ip 10.0.0.2 --out @/b.pem")
            .expect("issued");
        fs::write(place.path().join("hosts.csv"), format!("{table}printer,lp3,02:00:00:00:00:02,10.0.0.3\n"))
            .expect("written");
        let refused = run(place.path(), import).expect_err("a host");
        assert!(refused.contains("host \"b\" has a certificate for"), "{refused}");
        assert_eq!(policy(place.path()).version(), 4);
    }

    #[test]
    fn a_host_whose_certificate_is_revoked_gets_a_token_of_a_table() {
        let place = new_site();
        let issue = "site issue --dir @/site --name a --mac 02:00:00:00:00:01 --ip 10.0.0.1 --out @/a.pem";
        run(place.path(), issue).expect("issued");
        fs::write(place.path().join("hosts.csv"), "kind,name,mac,ip\nhost,a,02:00:00:00:00:01,10.0.0.1\n")
            .expect("written");
        let import = "site import @/hosts.csv --dir @/site --out @/tokens --dry-run";
        assert!(run(place.path(), import).expect("a plan").starts_with("0 hosts get a token, 1 are enrolled"));
        run(place.path(), "site revoke --dir @/site --name a").expect("revoked");
        assert!(run(place.path(), import).expect("a plan").starts_with("1 hosts get a token, 0 are enrolled"));
    }

    #[test]
    fn the_addresses_of_a_revoked_host_are_free_for_another_name_and_then_taken() {
        let place = new_site();
        let issue = |name: &str, days: u32| {
            let what = "--mac 02:00:00:00:00:01 --ip 10.0.0.1 --ip 10.0.0.2 --ip6 2001:db8::1";
            run(
                place.path(),
                &format!("site issue --dir @/site --name {name} {what} --out @/{name}.pem --force --days {days}"),
            )
        };
        issue("old", 9).expect("issued");
        assert!(issue("new", 9).expect_err("held").contains("\"old\" holds 02:00:00:00:00:01"));
        run(place.path(), "site revoke --dir @/site --name old").expect("revoked");
        issue("new", 9).expect("the same machine under another name");
        let refused = issue("old", 9).expect_err("its addresses are another's now");
        assert!(refused.contains("\"new\" holds"), "{refused}");
        run(place.path(), "site revoke --dir @/site --name new").expect("revoked");
        assert!(issue("old", 8).expect("it comes back").contains("old was revoked"));
    }

    /// The policy of the site, as its hosts would verify it.
    fn policy(place: &Path) -> identity::Verified<identity::policy::SitePolicy> {
        let text = fs::read_to_string(place.join("site/policy.pem")).expect("there");
        let bytes = identity::pem::single(&text, identity::pem::SITE_POLICY).expect("one block");
        let site = Directory::open(&place.join("site")).expect("opened");
        site.site().anchor().verify_policy(&bytes).expect("signed by the authority")
    }

    fn order(place: &Path, what: &str) -> Result<String, String> {
        run(
            place,
            &what
                .replacen("policy", "site policy", 1)
                .replace(" show", " show --dir @/site")
                .replace("--ip", "--dir @/site --ip"),
        )
    }

    #[test]
    fn each_change_of_the_policy_is_a_signed_version() {
        let place = new_site();
        let path = place.path();
        assert!(order(path, "policy show").expect("none").starts_with("there is no policy yet"));
        let add = "policy legacy add --ip 192.0.2.9 --mac 02:00:00:00:00:09";
        let printed = order(path, add).expect("added");
        assert!(printed.ends_with("version 1 of the policy is signed, in @/site/policy.pem\n"), "{printed}");
        let replaced =
            order(path, "policy legacy add --ip 192.0.2.9 --mac 02:00:00:00:00:0a --broadcast").expect("added");
        assert!(replaced.contains("in the place of 192.0.2.9 at 02:00:00:00:00:09"), "{replaced}");
        order(path, "policy known add --ip 192.0.2.7 --mac 02:00:00:00:00:07").expect("added");
        for line in ["exception set 02:00:00:00:00:06 observe", "mode desk-*,gate prefer", "mode * observe"] {
            run(path, &format!("site policy {line} --dir @/site")).expect(line);
        }
        let in_force = policy(path);
        let content = in_force.content();
        assert_eq!((in_force.version(), content.issued_unix), (6, NOW_UNIX_S));
        assert_eq!(content.legacy.len(), 1);
        assert!(content.legacy[0].broadcast && content.legacy[0].mac == MacAddress([2, 0, 0, 0, 0, 10]));
        assert_eq!((content.known.len(), content.exceptions.len(), content.groups.len()), (1, 1, 2));
        let shown = order(path, "policy show").expect("shown");
        assert!(shown.starts_with("version 6, issued 2027-01-15T08:00:00Z\n"), "{shown}");
        for line in ["group *: observe", "group desk-*,gate: prefer", "exception 02:00:00:00:00:06: observe"] {
            assert!(shown.contains(line), "{shown}");
        }
        let json: Value = serde_json::from_str(&order(path, "policy show --json").expect("shown")).expect("json");
        assert_eq!(json["legacy"][0]["ip"], json!("192.0.2.9"));
        run(path, "site policy legacy remove 192.0.2.9 --dir @/site").expect("removed");
        run(path, "site policy mode gate,desk-* none --dir @/site").expect("the order of names does not matter");
        let content = policy(path).content().clone();
        assert_eq!((content.version, content.legacy.len(), content.groups.len()), (8, 0, 1));
    }

    #[test]
    fn a_mode_can_change_at_a_time_or_for_a_while() {
        let place = new_site();
        let mode = |what: &str| run(place.path(), &format!("site policy mode {what} --dir @/site"));
        let desk = || policy(place.path()).content().groups[0].clone();
        use identity::policy::Mode::{Enforce, Observe};
        assert!(mode("desk-* enforce --for 1h").expect_err("to what").contains("no mode yet"));
        mode("desk-* observe").expect("set");
        mode("desk-* enforce --at 2027-01-16T08:00:00Z").expect("set");
        assert_eq!((desk().mode, desk().next), (Observe, Some((NOW_UNIX_S + 24 * 3600, Enforce))));
        mode("desk-* enforce --for 1h").expect("set");
        assert_eq!((desk().mode, desk().next), (Enforce, Some((NOW_UNIX_S + 3600, Observe))));
        mode("desk-* enforce").expect("for good");
        assert_eq!((desk().mode, desk().next), (Enforce, None));
        for (what, wanted) in [
            ("desk-* enforce --at 2027-01-15T08:00:00Z", "--at: this time is over"),
            ("desk-* enforce --at tomorrow", "write it in UTC"),
            ("desk-* strict", "a mode is"),
            ("d\u{e4}sk enforce", "is no name of hosts"),
            ("other none", "no group"),
        ] {
            let refused = mode(what).expect_err(wanted);
            assert!(refused.contains(wanted), "{refused}");
        }
        assert_eq!(policy(place.path()).version(), 4, "what is refused makes no version");
        // A new group goes by what is said of everybody, before and afterwards.
        mode("* prefer").expect("set");
        mode("gate enforce --for 1h").expect("set");
        let content = policy(place.path()).content().clone();
        let gate = content.groups.iter().find(|group| group.patterns == ["gate"]).expect("there");
        assert_eq!((gate.mode, gate.next), (Enforce, Some((NOW_UNIX_S + 3600, identity::policy::Mode::Prefer))));
    }

    #[test]
    fn nobody_is_put_on_the_list_who_has_a_certificate_and_the_list_has_an_end() {
        let place = new_site();
        let issue = "site issue --dir @/site --name a --mac 02:00:00:00:00:01 --ip 10.0.0.1 --out @/a.pem";
        run(place.path(), issue).expect("issued");
        for pair in ["--ip 10.0.0.1 --mac 02:00:00:00:00:02", "--ip 10.0.0.2 --mac 02:00:00:00:00:01"] {
            let refused = order(place.path(), &format!("policy legacy add {pair}")).expect_err("held");
            assert!(refused.contains("host \"a\" has a certificate for"), "{refused}");
        }
        run(place.path(), "site revoke --dir @/site --name a").expect("revoked");
        order(place.path(), "policy legacy add --ip 10.0.0.1 --mac 02:00:00:00:00:01").expect("a printer now");
        let site = Directory::open(&place.path().join("site")).expect("opened");
        let full = authority::directory::change_policy(&site, NOW_UNIX_S, |content| {
            content.legacy = (0..=wire::policy::LEGACY_MAX as u32)
                .map(|number| identity::policy::LegacyHost {
                    mac: MacAddress([
                        2,
                        0,
                        number.to_be_bytes()[0],
                        0,
                        number.to_be_bytes()[2],
                        number.to_be_bytes()[3],
                    ]),
                    ip: number.into(),
                    router: false,
                    broadcast: false,
                })
                .collect();
            Ok::<(), authority::Error>(())
        });
        assert!(full.expect_err("too many").to_string().contains("limits"));
        assert_eq!(policy(place.path()).version(), 1, "the one before stays");
    }

    #[test]
    fn a_backup_has_the_policy() {
        let place = new_site();
        order(place.path(), "policy legacy add --ip 10.0.0.9 --mac 02:00:00:00:00:09").expect("added");
        let before = policy(place.path());
        run(place.path(), "site backup --dir @/site @/kept").expect("kept");
        fs::remove_dir_all(place.path().join("site")).expect("lost");
        run(place.path(), "site restore --dir @/site @/kept").expect("restored");
        assert_eq!(policy(place.path()).bytes(), before.bytes());
    }

    #[test]
    fn what_was_done_is_shown_with_who_did_it_and_a_change_of_it_is_found() {
        let place = new_site();
        let audit = |what: &str| run(place.path(), &format!("site audit {what} --dir @/site").replace("  ", " "));
        assert!(audit("verify").expect("whole").starts_with("nothing was done yet"));
        let issue = "site issue --dir @/site --name a --mac 02:00:00:00:00:01 --ip 10.0.0.1 --out @/a.pem";
        run(place.path(), issue).expect("issued");
        order(place.path(), "policy legacy add --ip 10.0.0.9 --mac 02:00:00:00:00:09").expect("added");
        run(place.path(), "site backup --dir @/site @/kept").expect("kept");
        let shown = audit("").expect("shown");
        for line in ["1 2027-01-15T08:00:00Z issued a: serial ", " policy version 1: legacy 1,", "backed-up"] {
            assert!(shown.contains(line), "{shown}");
        }
        assert_eq!(shown.matches(&format!("(by {})", auditing::manager())).count(), 3, "{shown}");
        let last: Value = serde_json::from_str(&audit("--last 1 --json").expect("shown")).expect("json");
        assert_eq!((&last[0]["act"], &last[0]["number"], &last[1]), (&json!("backed-up"), &json!(3), &Value::Null));
        let verified = audit("verify").expect("whole");
        let noted = verified.trim().rsplit(' ').next().expect("a word").to_owned();
        audit(&format!("verify --noted {noted}")).expect("there");
        run(place.path(), "site restore --dir @/again @/kept").expect("restored");
        let again = run(place.path(), "site audit --dir @/again").expect("shown");
        assert!(again.contains("4 2027-01-15T08:00:00Z restored @/kept: "), "{again}");
        let file = place.path().join("site/audit.jsonl");
        let text = fs::read_to_string(&file).expect("there").replace("legacy 1,", "legacy 0,");
        fs::write(&file, text).expect("changed");
        for what in ["verify", ""] {
            let doubt = audit(what).expect_err("changed");
            assert!(doubt.contains("entry 2 was changed: the authority did not sign it; "), "{doubt}");
        }
        assert!(audit("verify --noted 3").expect_err("no digest").contains("--noted"));
    }

    #[test]
    fn a_token_is_printed_listed_and_ended() {
        let place = new_site();
        let ask = "site token --dir @/site --name desk --ip 10.0.0.7 --mac 02:00:00:00:00:07";
        assert!(run(place.path(), ask).expect_err("no distributor").contains("site issue --role akd"));
        let keys = "site issue --dir @/site --role akd --name keys --mac 02:00:00:00:00:09 --ip 10.0.0.9 --out @/k.pem";
        run(place.path(), keys).expect("issued");
        let printed = run(place.path(), ask).expect("made");
        let token: identity::token::Token = printed.lines().next().expect("a line").parse().expect("a token");
        assert_eq!(token.name(), "desk");
        assert!(printed.contains("good once until 2027-01-16T08:00:00Z"), "{printed}");
        let listed = run(place.path(), "site pending --dir @/site").expect("listed");
        assert!(listed.starts_with("host desk: nobody has applied yet, token "), "{listed}");
        let listed: Value =
            serde_json::from_str(&run(place.path(), "site pending --dir @/site --json").expect("listed"))
                .expect("json");
        assert_eq!((&listed[0]["state"], &listed[0]["allowed_addresses"]), (&json!("open"), &json!(["10.0.0.7"])));
        let refused = run(place.path(), "site approve --dir @/site desk").expect_err("nobody");
        assert!(refused.contains("nobody applies as \"desk\"; "), "{refused}");
        let number = listed[0]["number"].as_str().expect("text");
        run(place.path(), &format!("site refuse --dir @/site {number}")).expect("ended");
        assert!(run(place.path(), "site pending --dir @/site").expect("listed").contains("desk: refused"));
        for (options, wanted) in
            [("--valid 31d", "30 days"), ("--valid soon", "write it as 30s"), ("--days 0", "36525")]
        {
            let refused = run(place.path(), &format!("{ask} {options}")).expect_err(wanted);
            assert!(refused.contains(wanted), "{refused}");
        }
    }

    #[test]
    fn a_host_gets_another_key_by_file() {
        let place = new_site();
        let issue =
            "site issue --dir @/site --name a --mac 02:00:00:00:00:01 --ip 10.0.0.1 --role router --out @/a.pem";
        run(place.path(), issue).expect("issued");
        let ask = "enroll request --name a --mac 02:00:00:00:00:01 --key @/a.key --out @/a.csr";
        run(place.path(), ask).expect("requested");
        let rekey = "site rekey --dir @/site a --request @/a.csr --out @/a.bundle";
        let printed = run(place.path(), rekey).expect("another key");
        assert!(printed.starts_with("a has another key, the old one is out"), "{printed}");
        run(place.path(), "enroll install --key @/a.key --bundle @/a.bundle --out @/new.pem").expect("installed");
        let [old, new] = ["a.pem", "new.pem"].map(|name| load(&place.path().join(name)));
        assert!(new.certificate().is_router() && new.certificate().addresses() == old.certificate().addresses());
        assert_ne!(new.certificate().record_key(), old.certificate().record_key());
        assert!(run(place.path(), &format!("{rekey} --force")).expect_err("the same key").contains("make a new one"));
        assert!(run(place.path(), "site rekey --dir @/site b").expect_err("unknown").contains("no host \"b\""));
        assert!(run(place.path(), "site rekey --dir @/site a --request @/a.csr").expect_err("where").contains("--out"));
    }

    #[test]
    fn a_site_is_backed_up_and_restored() {
        let place = new_site();
        let issue = "site issue --dir @/site --name a --mac 02:00:00:00:00:01 --ip 10.0.0.1 --out @/a.pem";
        run(place.path(), issue).expect("issued");
        let printed = run(place.path(), "site backup --dir @/site @/kept").expect("kept");
        assert!(printed.starts_with("site lab is in @/kept; "), "{printed}");
        let there = run(place.path(), "site backup --dir @/site @/kept").expect_err("there");
        assert!(there.contains("kept: the file exists; ") && !there.contains("--force"), "{there}");
        let listed = run(place.path(), "site list --dir @/site");
        fs::remove_dir_all(place.path().join("site")).expect("lost");
        let restored = run(place.path(), "site restore --dir @/site @/kept --json").expect("restored");
        assert_eq!(restored, "{\"directory\":\"@/site\",\"site\":\"lab\"}\n");
        assert_eq!(run(place.path(), "site list --dir @/site"), listed);
        let wrong = run(place.path(), "site restore --dir @/other @/a.pem").expect_err("no backup");
        assert!(wrong.contains("a.pem: the file is no backup of a site; "), "{wrong}");
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
        let founded = run(place.path(), "site init --dir @/site --name lab --profile paper");
        if !HAS_PAPER {
            assert!(founded.expect_err("no such profile").contains("this build has no paper profile"));
            return;
        }
        let printed = founded.expect("site");
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
        run(place.path(), &format!("{issue} --rsa-bits 1024 --rsa-hash ripemd160")).expect("issued");
        assert!(load(&place.path().join("a.pem")).certificate().signs_as_the_cll_paper());
        let refused = run(place.path(), &format!("{issue} --rsa-bits 512")).expect_err("length");
        assert!(refused.contains("1024, 1536 or 2048"), "{refused}");
        let ask = "enroll request --name b --mac 02:00:00:00:00:02 --ip 10.0.0.2 --key @/b.key --out @/b.csr";
        run(place.path(), ask).expect("requested");
        // The host makes its own key, the site the second one, and both keys' secrets are the
        // host's alone on the way.
        for (option, number) in [("", Some(4)), (" --dsa-bits 512", Some(3)), (" --rsa-bits 1024", None)] {
            let grant = format!("site issue --dir @/site --request @/b.csr --out @/b.bundle --force{option}");
            assert!(run(place.path(), &grant).expect("granted").contains("sealed for the host's key"), "{option}");
            assert_sealed(&place.path().join("b.bundle"));
            let put = "enroll install --key @/b.key --bundle @/b.bundle --out @/b.pem --force";
            run(place.path(), put).expect("installed");
            let identity = load(&place.path().join("b.pem"));
            assert_eq!(identity.certificate().record_key().map(|(number, _)| number), number, "{option}");
            assert_eq!(identity.certificate().signs_as_the_cll_paper(), number.is_none());
        }
        let rekey = "site rekey --dir @/site b --request @/b.csr --out @/b.bundle --force";
        assert!(run(place.path(), rekey).expect_err("which key").contains("paper profile"));
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
