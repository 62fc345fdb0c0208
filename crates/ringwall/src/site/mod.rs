//! The commands of the authority (`ringwall site`): this file chooses, and each group of commands
//! has a file of its own. A host that enrols by file is here too.

mod arguments;
mod auditing;
mod by_file;
mod enforcing;
mod founding;
mod issuing;
mod joining;
mod keeping;
mod listing;
mod many;
mod operate;
mod operators;
mod orders;
mod policy;
mod recovering;
mod renewing;
mod reported;
mod repository;
mod revoking;
pub(crate) mod serve;
mod sharing;
mod signer;
mod stock;
mod survey;
mod table;
#[cfg(test)]
mod testing;

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use authority::directory::{Cache, Record, acting, caching};
use authority::{Directory, Random};
use clap::Subcommand;
use serde_json::Value;

use self::auditing::AuditArguments;
pub(crate) use self::by_file::EnrollCommand;
use self::enforcing::EnforceArguments;
use self::founding::{InitArguments, RenewAuthorityArguments};
use self::issuing::IssueArguments;
use self::joining::{ApproveArguments, PendingArguments, RefuseArguments, RekeyArguments, TokenArguments};
use self::keeping::{BackupArguments, RestoreArguments};
use self::listing::ListArguments;
pub(crate) use self::operate::{OperateArguments, Viewer, operate};
use self::operators::OperatorCommand;
use self::policy::PolicyCommand;
use self::recovering::RecoverArguments;
use self::renewing::RenewArguments;
pub(crate) use self::reported::{Brief, BriefHost};
use self::reported::{HostsArguments, SiteForecastArguments};
use self::repository::RepositoryCommand;
use self::revoking::RevokeArguments;
use self::serve::ServeArguments;
use self::sharing::RekeySharedArguments;
use self::signer::SignerArguments;
use self::survey::{ImportArguments, SurveyArguments};
use crate::failure::Failure;
use crate::output::{ask, is_somebody_there};
use crate::randomness;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const DEFAULT_DIRECTORY: &str = "/etc/ringwall/site";

/// What an authority does.
#[derive(Debug, Subcommand)]
pub(crate) enum SiteCommand {
    /// Make a new site: its authority, its site key and an empty record
    ///
    /// The directory must be missing or empty; an existing site is never overwritten. Keep a backup
    /// of it: who has it can make hosts of the site, and without it no host can be added.
    ///
    /// Example: ringwall site init --dir /etc/ringwall/site --name lab
    #[command(verbatim_doc_comment)]
    Init(InitArguments),
    /// Give the authority another certificate for its key, before or after the one that it has ends
    ///
    /// Hosts believe what was issued under either, and get the new one with their next renewal.
    /// Nobody has to visit them.
    #[command(verbatim_doc_comment)]
    RenewAuthority(RenewAuthorityArguments),
    /// Issue a certificate to a host
    ///
    /// In one step, when the manager makes the host's key too; the file is the host's whole
    /// identity, so move it safely:
    ///   ringwall site issue --name a --mac 02:00:00:00:00:01 --ip 10.0.0.1 --out a.pem
    ///
    /// For a host that gets its address by DHCP, in mode "cll" and under S-ARP (which needs --subnet):
    ///   ringwall site issue --name a --mac 02:00:00:00:00:01 --out a.pem
    ///   ringwall site issue --name a --mac 02:00:00:00:00:01 --subnet 10.0.0.0/24 --out a.pem
    ///
    /// For a DHCP server of mode "cll", which makes the certificates of the addresses that it gives:
    ///   ringwall site issue --name d --mac 02:00:00:00:00:09 --ip 10.0.0.9 --role dhcp \
    ///     --serves 10.0.0.128/25 --out d.pem
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
    /// For a request of 'ringwall host renew'. Nothing is decided, so a program may call it, for
    /// example ssh as the forced command of a key that all hosts have:
    ///   command="ringwall site renew --request - --out -",restrict ssh-ed25519 AAAA...
    ///
    /// Not renewed is who is revoked, whose certificate has ended, and whose certificate others'
    /// identities name (akd, dhcp).
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
    /// S-ARP: key distributors say from now on that it is invalid; hosts that know its key believe
    /// it for up to ten minutes more, and a TCP session that is under way goes on until it ends or
    /// pauses, because nobody asks for the address meanwhile.
    ///
    /// Link layer (mode "cll"): its certificates go on the site's list, revoked.crl.pem. Copy that
    /// to the hosts where cll.revocation_list names it; their daemons read it within seconds, end
    /// what they have with the host, and refuse it.
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
    /// The old key is out at once: key distributors give out the new one, or say that it is invalid
    /// until the host has enrolled again. The host keeps its name, number, role and addresses.
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
    /// Take back from hosts what the site did after the backup that it was restored from
    ///
    /// Hosts that report to the site's service bring their certificates. They bring the policy and
    /// the list of revoked certificates as well, if the service has older ones. All of it is signed
    /// by the authority. Site keys are no part of reports: give the identity of a host that has the
    /// newest. Revoke nobody and change no policy before this.
    ///
    /// Example: ringwall site recover --identity /etc/ringwall/identity.pem --apply
    #[command(verbatim_doc_comment)]
    Recover(RecoverArguments),
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
    /// It alone of the service has the authority's key. It has no network but for a repository in
    /// etcd. It reaches no file but those of the site and of its token, and grants nothing that a
    /// manager has not decided before.
    ///   systemctl enable --now ringwall-signer.service
    #[command(verbatim_doc_comment)]
    Signer(SignerArguments),
    /// Show what was done with the authority and by whom, or look whether that record is whole
    ///
    /// Each entry is signed and has the digest of the one before. 'verify' ends with 1 if an entry
    /// was changed, taken out, moved or cut off, and if a certificate was issued that no entry
    /// tells of. It prints number and digest of the last one; noted elsewhere, they show later that
    /// everything up to it is still there. Orders that operators were refused are counted apart
    /// ('--refused').
    ///
    /// Example: ringwall site audit verify --noted 17:5f1c...
    /// The 20 before number 400: ringwall site audit --last 20 --before 400
    /// What a viewer tried:      ringwall site audit --refused --operator vic
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
    /// Say who may give the site's service orders, and which ('ringwall operate')
    ///
    /// Example: ringwall site operator add ann --role manager --out ann.pem
    #[command(subcommand, verbatim_doc_comment)]
    Operator(OperatorCommand),
    /// Choose where the repository of hosts is kept: in a file, or in a cluster of etcd that
    /// several distributors share
    #[command(subcommand)]
    Repository(RepositoryCommand),
}

impl SiteCommand {
    /// Carries the command out and prints what it did.
    pub(crate) fn run(self) -> Result<(), Failure> {
        with_surroundings(|surroundings| self.run_in(surroundings))
    }

    fn run_in(self, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
        match self {
            SiteCommand::Init(arguments) => founding::init(&arguments, surroundings),
            SiteCommand::RenewAuthority(arguments) => founding::renew_authority(&arguments, surroundings),
            SiteCommand::Issue(arguments) => issuing::issue(&arguments, surroundings),
            SiteCommand::Renew(arguments) => renewing::renew(&arguments, surroundings),
            SiteCommand::List(arguments) => listing::list(&arguments, surroundings),
            SiteCommand::Revoke(arguments) => revoking::revoke(&arguments, surroundings),
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
            SiteCommand::Recover(arguments) => recovering::recover(&arguments, surroundings),
            SiteCommand::Policy(command) => command.run_in(surroundings),
            SiteCommand::Serve(arguments) => serve::serve(&arguments),
            SiteCommand::Signer(arguments) => signer::run(&arguments),
            SiteCommand::Audit(arguments) => auditing::audit(&arguments, surroundings),
            SiteCommand::Hosts(arguments) => reported::hosts(&arguments, surroundings),
            SiteCommand::Enforce(arguments) => enforcing::enforce(&arguments, surroundings),
            SiteCommand::Forecast(arguments) => reported::forecast(&arguments, surroundings),
            SiteCommand::Operator(command) => command.run_in(surroundings),
            SiteCommand::Repository(RepositoryCommand::Import(arguments)) => {
                repository::import(&arguments, surroundings)
            }
            SiteCommand::Repository(RepositoryCommand::Use(arguments)) => {
                repository::use_cluster(&arguments, surroundings)
            }
        }
    }
}

/// Who acts, and the certificates that were read for it before: a process that carries out one
/// command after the other has one cache for all.
#[derive(Clone)]
struct Actor {
    /// What stands for it in the record.
    by: String,
    cache: Cache,
}

impl Actor {
    /// One that has read nothing yet.
    fn new(by: String) -> Actor {
        Actor { by, cache: Cache::default() }
    }

    /// The site in `dir`, in whose record stands who acts.
    fn open(&self, dir: &Path) -> Result<Directory, authority::Error> {
        Ok(caching(acting(Directory::open(dir)?, &self.by), &self.cache))
    }

    /// The same for who only looks, and needs no key for it.
    fn record(&self, dir: &Path) -> Result<Record, authority::Error> {
        Ok(Record::open(dir)?.caching(&self.cache))
    }
}

/// What a command takes from the world besides its arguments.
struct Surroundings<'a> {
    unix_s: u64,
    random: &'a mut Random<'a>,
    output: &'a mut dyn Write,
    actor: Actor,
    /// Asks who sits at the terminal, if anybody does.
    person: Option<fn(&str) -> io::Result<bool>>,
}

impl Surroundings<'_> {
    /// As [`Actor::open`].
    fn open(&self, dir: &Path) -> Result<Directory, Failure> {
        Ok(self.actor.open(dir)?)
    }

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
    let output = &mut std::io::stdout().lock();
    let person = is_somebody_there().then_some(ask as fn(&str) -> io::Result<bool>);
    let actor = Actor::new(auditing::manager());
    run(&mut Surroundings { unix_s: unix_ms / 1000, random: &mut random, output, actor, person })
}

impl From<authority::Error> for Failure {
    fn from(error: authority::Error) -> Failure {
        Failure::new(error)
    }
}
