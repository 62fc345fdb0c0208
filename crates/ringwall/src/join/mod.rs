//! `ringwall join` and `ringwall leave`: a machine becomes a guarded host of a site by one command,
//! and stops being one.
//!
//! Each step looks at what is there before it does anything, so a joining that was ended anywhere
//! goes on when the command is given again. What changes the network is a trial, which a process of
//! its own takes back unless the look at the network afterwards is good.
//!
//! - `account.rs`: what is told, step by step.
//! - `cards.rs`: which interface.
//! - `machine.rs`: what is looked at before anything changes.
//! - `around.rs`: who answers on the network, before and after.
//! - `trial.rs`: the daemon on trial; `units.rs`: systemd.
//! - `leave.rs`: the way back.

mod account;
mod around;
pub(crate) mod cards;
mod leave;
mod machine;
mod trial;
mod units;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use authority::files::{self, Overwrite, Secrecy};
use clap::Args;
use identity::HostIdentity;
use identity::certificate::{Role, utc_text};
use identity::token::Token;
use serde_json::json;
use system::clock::Clock;
use system::takeover::{self, state};

use self::account::{Account, Outcome};
use self::around::Before;
use self::trial::{Began, Trial};
use self::units::Units;
use crate::client;
use crate::config;
use crate::config::duration::parse_time;
use crate::enroll::{self, Manner, Place, kept_beside, read_token};
use crate::failure::Failure;
use crate::modes::file::Config;
use crate::modes::name::Mode;
use crate::modes::of;
use crate::output::{ask, is_somebody_there};
use crate::protocol::{Answer, Ask};

pub(crate) use leave::LeaveArguments;

const CONFIG_DIRECTORY: &str = "/etc/ringwall";

/// Where the files of a host are.
#[derive(Debug, Clone, Args)]
pub(crate) struct PlaceArguments {
    /// The interface; without it that of the default route
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// The configuration file; without it /etc/ringwall/INTERFACE.toml
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// What must be known to give the interface back
    #[arg(long, value_name = "DIR", default_value = "/var/lib/ringwall")]
    state_dir: PathBuf,
    /// Lock and socket of the daemon
    #[arg(long, value_name = "DIR", default_value = "/run/ringwall")]
    run_dir: PathBuf,
    /// Leave systemd alone: start or end the daemon, and enable or disable nothing
    #[arg(long)]
    no_units: bool,
}

impl PlaceArguments {
    fn config_of(&self, interface: &str) -> PathBuf {
        let usual = || Path::new(CONFIG_DIRECTORY).join(format!("{interface}.toml"));
        self.config.clone().unwrap_or_else(usual)
    }
}

/// What both commands may be told of their manner.
#[derive(Debug, Clone, Args)]
pub(crate) struct TellingArguments {
    /// Say what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask on a terminal whether to go on
    #[arg(long)]
    yes: bool,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
}

impl TellingArguments {
    /// Asks on a terminal; elsewhere whoever gave the command has decided.
    fn agree(&self, question: &str) -> Result<(), Failure> {
        if self.yes || !is_somebody_there() || ask(question).map_err(Failure::new)? {
            return Ok(());
        }
        Err(Failure::new("nothing was changed; give --yes to go on without a question"))
    }
}

/// Arguments of `join`.
#[derive(Debug, Args)]
pub(crate) struct JoinArguments {
    /// The token that the manager made; - reads it from the standard input, where no other user
    /// sees it. None is needed where an identity is installed
    token: Option<String>,
    /// A file that holds the token
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    places: PlaceArguments,
    /// Where the identity is, or is written to
    #[arg(long, value_name = "FILE", default_value = "/etc/ringwall/identity.pem")]
    identity: PathBuf,
    /// How the site guards its hosts: cll (every frame sealed) or sarp (ARP signed)
    #[arg(long, value_enum, default_value_t)]
    mode: Mode,
    /// What a host of mode cll does with frames in clear: observe (without this; nothing is refused
    /// yet), prefer or enforce
    #[arg(long, value_parser = ["observe", "prefer", "enforce"])]
    migration: Option<String>,
    /// A file of further sections for the configuration, such as the legacy.toml of `site import`
    #[arg(long, value_name = "FILE")]
    append: Option<PathBuf>,
    /// Enrol over the site's service at this address and port, and not by key distributors. The
    /// host reports and renews there from then on
    #[arg(long, value_name = "ADDRESS")]
    service: Option<SocketAddr>,
    /// An IPv4 address that this host would like, if the token says none; without it those that the
    /// interface has
    #[arg(long, value_name = "IP")]
    ip: Vec<Ipv4Addr>,
    /// A host that must answer after the start, beside gateway and name servers; repeat it for
    /// several
    #[arg(long, value_name = "IP")]
    peer: Vec<Ipv4Addr>,
    /// A name server to try in the place of those of /etc/resolv.conf; repeat it for several
    #[arg(long, value_name = "IP")]
    name_server: Vec<Ipv4Addr>,
    /// How long the manager may take to approve: 30s, 5m, 1h, 2d
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = parse_time)]
    timeout: Duration,
    /// When the interface is given back if this command ends before it has confirmed
    #[arg(long, value_name = "TIME", default_value = "3m", value_parser = parse_time)]
    revert_after: Duration,
    /// Replace another identity and another configuration that are there
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    telling: TellingArguments,
}

impl JoinArguments {
    /// Carries the command out and tells each step.
    pub(crate) fn run(self) -> Result<(), Failure> {
        let mut account = Account::new(self.telling.json);
        let outcome = self.carry_out(&mut account);
        account.close("joined", outcome)
    }

    fn carry_out(&self, account: &mut Account) -> Result<(), Failure> {
        let interface = cards::choose(self.places.interface.as_deref(), &self.places.state_dir)?;
        let token = self.token()?;
        let joining = Joining { config: self.places.config_of(&interface), interface, arguments: self };
        account.fact("interface", json!(joining.interface));
        account.fact("config", json!(joining.config));
        account.fact("identity", json!(self.identity));
        joining.look(token.as_ref(), account)?;
        if self.telling.dry_run {
            joining.tell_plan(account);
            return Ok(());
        }
        self.telling.agree(&format!("join with {}?", joining.interface))?;
        let identity = joining.enrol(token.as_ref(), account)?;
        let config = joining.configure(&identity, account)?;
        joining.try_out(&config, account)
    }

    /// Whoever says nothing begins with what refuses nothing.
    fn migration(&self) -> &str {
        self.migration.as_deref().unwrap_or("observe")
    }

    fn token(&self) -> Result<Option<Token>, Failure> {
        match (&self.token, &self.token_file) {
            (Some(text), _) => read_token(text).map(Some),
            (None, Some(file)) if file.as_os_str() == "-" => read_token("-").map(Some),
            (None, Some(file)) => {
                let text = files::read(file)?;
                let first = text.lines().next().unwrap_or_default();
                let wrong = |error| Failure::file(file, error, "put the token into its first line");
                first.trim().parse().map(Some).map_err(wrong)
            }
            (None, None) => Ok(None),
        }
    }
}

/// A machine on its way into a site.
struct Joining<'a> {
    interface: String,
    config: PathBuf,
    arguments: &'a JoinArguments,
}

impl Joining<'_> {
    fn look(&self, token: Option<&Token>, account: &mut Account) -> Result<(), Failure> {
        let wrong = machine::look(self, token, account)?;
        match wrong {
            0 => Ok(()),
            1 => {
                Err(Failure::new("one thing is wrong, so nothing was changed; put it right and give the command again"))
            }
            many => Err(Failure::new(format!("{many} things are wrong, so nothing was changed; put them right first"))),
        }
    }

    fn tell_plan(&self, account: &mut Account) {
        let units = Units::of(&self.interface, self.arguments.places.no_units).with(&self.interface, &self.config);
        let JoinArguments { identity, mode, revert_after, .. } = self.arguments;
        let migration = self.arguments.migration();
        let trial_s = revert_after.as_secs();
        let plan = [
            ("enrolment", format!("an identity in {}, unless it is there", identity.display())),
            ("configuration", format!("{}, mode {}, migration {migration}", self.config.display(), mode.word())),
            ("trial", format!("{} is guarded, and given back after {trial_s} s if this command dies", self.interface)),
            ("self-check", "who answers now must answer then, or the interface is given back at once".to_owned()),
            ("units", units.plan()),
        ];
        for (step, text) in plan {
            account.step(step, Outcome::Planned, &text);
        }
    }

    /// The identity, which is there already or comes by the token.
    fn enrol(&self, token: Option<&Token>, account: &mut Account) -> Result<HostIdentity, Failure> {
        let file = &self.arguments.identity;
        let identity = match self.installed()? {
            Some(identity) if self.serves(&identity, token) => {
                // A joining that ended between the identity and the end of the enrolment has left
                // it.
                let _ = std::fs::remove_file(kept_beside(file));
                account.step("enrolment", Outcome::WasThere, &described(&identity, file));
                identity
            }
            _ => {
                let token = token.ok_or_else(|| {
                    let what = "there is no identity and no token";
                    Failure::file(file, what, "ask the manager for a token: `ringwall site token`")
                })?;
                let service = |address| format!("the site's service at {address}");
                let asked = self.arguments.service.map_or_else(|| "a key distributor".to_owned(), service);
                account.begin("enrolment", &format!("as {}; {asked} is asked", token.name()));
                let identity = self.enrol_by(token)?;
                account.step("enrolment", Outcome::Done, &described(&identity, file));
                identity
            }
        };
        account.fact("name", json!(identity.certificate().name()));
        account.fact("site", json!(identity.site_name()));
        Ok(identity)
    }

    fn enrol_by(&self, token: &Token) -> Result<HostIdentity, Failure> {
        let arguments = self.arguments;
        make_directory_of(&arguments.identity)?;
        let wished = if arguments.ip.is_empty() { takeover::addresses(&self.interface)? } else { arguments.ip.clone() };
        let manner = Manner {
            service: arguments.service,
            ips: wished,
            timeout: arguments.timeout,
            ends_in_silence: true,
            force: arguments.force,
        };
        let (state_dir, out) = (&arguments.places.state_dir, arguments.identity.clone());
        enroll::enrol(Place::at(&self.interface, state_dir, out, Clock::new())?, &manner, token)
    }

    /// What the identity's file holds, if it is there.
    fn installed(&self) -> Result<Option<HostIdentity>, Failure> {
        let file = &self.arguments.identity;
        if !file.exists() {
            return Ok(None);
        }
        let identity = HostIdentity::from_pem(&files::read(file)?);
        identity.map(Some).map_err(|error| Failure::file(file, error, "remove it, or name another with --identity"))
    }

    /// Whether an identity is what the token would bring, on this card.
    fn serves(&self, identity: &HostIdentity, token: Option<&Token>) -> bool {
        let mac = takeover::hardware_address(&self.interface).ok().flatten();
        let certificate = identity.certificate();
        let is_of = |token: &Token| token.name() == certificate.name() && token.is_of(identity.anchor().der());
        mac == Some(certificate.mac()) && token.is_none_or(is_of)
    }

    /// The configuration, which is there already or is written.
    fn configure(&self, identity: &HostIdentity, account: &mut Account) -> Result<Config, Failure> {
        let role = identity.certificate().role();
        if role == Role::Distributor {
            let what =
                format!("this is the identity of a server of the site ({role}), which needs more than `join` writes");
            return Err(Failure::new(format!("{what}; write {} by docs/manual/signed-arp.md", self.config.display())));
        }
        let file = &self.config;
        if file.exists() && !self.arguments.force {
            let config = Config::load(file)?;
            account.step("configuration", Outcome::WasThere, &file.display().to_string());
            return Ok(config);
        }
        let text = self.text(identity)?;
        // What it says is known to be right before it has its place.
        let config = Config::read(file, &text)?;
        make_directory_of(file)?;
        files::write(file, &text, Secrecy::Public, Overwrite::Force)?;
        self.make_usual(file);
        account.step("configuration", Outcome::Done, &file.display().to_string());
        // A daemon that guards already goes by it, too, as far as it can without a restart.
        if let Ok(Answer::Done { lines }) = client::ask(&config.socket(), &Ask::Reload) {
            lines.iter().for_each(|line| account.step("configuration", Outcome::Note, line));
        }
        for note in self.strange_addresses(identity)? {
            account.step("configuration", Outcome::Note, &note);
        }
        for warning in config.warnings() {
            account.step("configuration", Outcome::Note, &warning);
        }
        Ok(config)
    }

    /// Where interface and certificate do not agree about addresses, which makes a host deaf to
    /// others.
    fn strange_addresses(&self, identity: &HostIdentity) -> Result<Vec<String>, Failure> {
        let certified = identity.certificate().addresses();
        if certified.is_empty() {
            return Ok(Vec::new());
        }
        let had = takeover::addresses(&self.interface)?;
        let interface = &self.interface;
        let strange = had.iter().filter(|ip| !certified.contains(ip));
        let strange =
            strange.map(|ip| format!("{interface} has {ip}, which the certificate does not name: nobody believes it"));
        let missing = certified.iter().filter(|ip| !had.contains(ip));
        let missing = missing.map(|ip| format!("the certificate names {ip}, which {interface} does not have"));
        Ok(strange.chain(missing).collect())
    }

    /// Makes this host the one that commands without `--config` mean, unless they mean another. It
    /// only saves typing.
    fn make_usual(&self, file: &Path) {
        let usual = Path::new(config::DEFAULT_FILE);
        if file.parent() == usual.parent() && usual.symlink_metadata().is_err() {
            let _ = file.file_name().map(|name| std::os::unix::fs::symlink(name, usual));
        }
    }

    /// The smallest configuration that does it.
    fn text(&self, identity: &HostIdentity) -> Result<String, Failure> {
        let JoinArguments { identity: file, mode, places, .. } = self.arguments;
        let migration = self.arguments.migration();
        let quoted = |path: &Path| toml::Value::String(path.display().to_string()).to_string();
        let mut text = "# Written by `ringwall join`. Every key: man ringwall.toml\n[host]\n".to_owned();
        text.push_str(&format!("interface = \"{}\"\nidentity = {}\n", self.interface, quoted(file)));
        text.push_str(&format!("mode = \"{}\"\n", mode.word()));
        if places.state_dir != Path::new("/var/lib/ringwall") {
            text.push_str(&format!("state_dir = {}\n", quoted(&places.state_dir)));
        }
        if places.run_dir != config::default_run_dir() {
            text.push_str(&format!("run_dir = {}\n", quoted(&places.run_dir)));
        }
        // The usual place of the policy is that of the host whose configuration is in the usual one.
        if let Some(place) = self.config.parent().filter(|place| *place != Path::new(CONFIG_DIRECTORY)) {
            let policy = std::path::absolute(place.join(config::POLICY_FILE)).map_err(Failure::new)?;
            text.push_str(&format!("policy = {}\n", quoted(&policy)));
        }
        if let Some(section) = of(*mode).first_section(migration) {
            text.push_str(&format!("\n{section}"));
        }
        let certificate = identity.certificate();
        if certificate.role() == Role::DhcpServer {
            text.push_str("\n[dhcp]\nserver = true\n");
        } else if certificate.addresses().is_empty() {
            text.push_str("\n[dhcp]\nclient = true\n");
        }
        if let Some(address) = &self.arguments.service {
            text.push_str(&format!("\n[site]\nservice = \"{address}\"\n"));
        }
        if let Some(file) = &self.arguments.append {
            text.push('\n');
            text.push_str(&files::read(file)?);
        }
        Ok(text)
    }

    /// Guards the interface on trial, looks whether the network is as before, and keeps or takes
    /// back.
    fn try_out(&self, config: &Config, account: &mut Account) -> Result<(), Failure> {
        let arguments = self.arguments;
        let units = Units::of(&self.interface, arguments.places.no_units).with(&self.interface, &self.config);
        let before = Before::of(config, &arguments.name_server, &arguments.peer)?;
        let trial = Trial { file: &self.config, config, units: &units, time: arguments.revert_after };
        account.begin("trial", &format!("{} is taken over", self.interface));
        let began = trial.begin()?;
        let (outcome, text) = match began {
            Began::Anew => (Outcome::Done, "guarded; given back unless the self-check is good"),
            Began::Before => {
                (Outcome::WasThere, "guarded since an earlier run; given back unless the self-check is good")
            }
            Began::IsOver => (Outcome::WasThere, "guarded for good"),
        };
        account.step("trial", outcome, text);
        if let Err(failure) = before.compare(config, account) {
            // What somebody has confirmed is not for this command to take away.
            if began != Began::IsOver {
                trial.take_back()?;
                account.step("trial", Outcome::Failed, &format!("{} is given back, as it was", self.interface));
            }
            before.forget();
            return Err(failure);
        }
        state::confirm(&config.host.state_dir, &config.host.interface)?;
        account.step("confirmed", Outcome::Done, &format!("{} stays guarded", self.interface));
        let enabled = units.enable(&self.config, config.site.service.is_some())?;
        account.step("units", enabled.outcome, &enabled.text);
        before.forget();
        Ok(())
    }
}

fn described(identity: &HostIdentity, file: &Path) -> String {
    let certificate = identity.certificate();
    let until = utc_text(certificate.not_after_unix());
    format!("{} of site {}, in {} until {until}", certificate.name(), identity.site_name(), file.display())
}

fn make_directory_of(file: &Path) -> Result<(), Failure> {
    match file.parent() {
        Some(directory) if !directory.as_os_str().is_empty() && !directory.exists() => {
            units::make_private(directory).map_err(|error| Failure::file(directory, error, "make it, for root alone"))
        }
        _ => Ok(()),
    }
}
