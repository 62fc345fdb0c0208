//! What stands between the LAN and its attackers: nothing, Ringwall, or Ringwall with one layer switched off.
//!
//! The lab runs the real program and knows it only by its commands, its configuration file and its `--json` output.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use authority::directory::Sharing;
use authority::repository::NewHost;
use clap::ValueEnum;
use identity::HostIdentity;
use identity::certificate::Role;
use identity::distributor::{DistributorKey, RequestMaster};
use rustix::process::Signal;
use serde::Serialize;
use serde_json::Value;
use wire::MacAddress;

use crate::cleanup::{self, Run};
use crate::failure::Failure;
use crate::net::lan::{INTERFACE, address_of};
use crate::net::{Host, Lan, Running, process};

/// How hosts of mode `cll` keep their cards away from the stack, if this run wants it otherwise than the program.
static TAKEOVER: OnceLock<String> = OnceLock::new();

/// Has all hosts of mode `cll` keep their cards away from the stack in this way.
pub fn take_over(way: String) {
    // The first word counts.
    let _ = TAKEOVER.set(way);
}

/// Whether the cards of hosts in mode `cll` stay in place, as they do unless this run wants it
/// otherwise.
#[must_use]
pub fn is_in_place() -> bool {
    TAKEOVER.get().is_none_or(|way| ["auto", "in-place"].contains(&way.as_str()))
}

/// A configuration that says so, unless it says something else.
fn with_takeover(text: String) -> String {
    match TAKEOVER.get() {
        Some(way) if text.contains("mode = \"cll\"") && !text.contains("takeover = ") => {
            text.replacen("[host]\n", &format!("[host]\ntakeover = \"{way}\"\n"), 1)
        }
        _ => text,
    }
}

/// How long a daemon may take until it guards its interface.
const READY_LIMIT: Duration = Duration::from_secs(60);

/// What guards the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Guard {
    /// The bare LAN.
    None,
    /// Ringwall on every honest host, with the layer that the attack is about switched off.
    Weakened,
    /// Ringwall on every honest host, in mode `cll`.
    Cll,
    /// Ringwall on every honest host, in mode `sarp`, and a key distributor.
    Sarp,
}

impl Guard {
    /// Whether it is meant to stop attacks.
    #[must_use]
    pub fn is_whole(self) -> bool {
        matches!(self, Guard::Cll | Guard::Sarp)
    }
}

/// The host that distributes keys under [`Guard::Sarp`].
pub const DISTRIBUTOR: &str = "k";
/// The host that gives addresses by DHCP.
pub const DHCP_SERVER: &str = "d";
/// The host that has no address but by DHCP.
pub const DHCP_CLIENT: &str = "e";
/// The host whose certificate says that it is a router.
pub const ROUTER: &str = "f";
/// Where it may be given one: the addresses of every LAN here.
const DHCP_SUBNET: &str = "10.77.0.0/24";
/// Where [`DHCP_SERVER`] may make certificates with its leases.
const DHCP_SERVED: &str = "10.77.0.0/26";

/// How a host is guarded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setting<'a> {
    /// Whether ARP is signed and the rest passes as it is; otherwise every frame is sealed.
    pub sarp: bool,
    /// Layers to switch off.
    pub weaken: &'a [&'a str],
    /// Further lines of section `[cll]`.
    pub cll_lines: &'a str,
    /// Whether payloads are authenticated and left readable, instead of sealed.
    pub readable: bool,
    /// Further lines of section `[sarp]`.
    pub sarp_lines: &'a str,
    /// Lines of section `[dhcp]`; none on a host that neither gives nor gets addresses.
    pub dhcp_lines: &'a str,
    /// Whether the keys of its site are those of the paper profile.
    pub paper: bool,
    /// Whether its daemon writes attacks to [`Daemon::eve_file`].
    pub eve: bool,
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Guard::None => "none",
            Guard::Weakened => "weakened",
            Guard::Cll => "cll",
            Guard::Sarp => "sarp",
        })
    }
}

/// Finds the `ringwall` program: `wanted`, or the one beside this program.
///
/// # Errors
/// There is none.
pub fn find_program(wanted: Option<&Path>) -> Result<PathBuf, Failure> {
    let program = match wanted {
        Some(path) => path.to_owned(),
        None => {
            let own = std::env::current_exe().map_err(Failure::io("finding this program"))?;
            own.with_file_name("ringwall")
        }
    };
    if program.is_file() {
        return program.canonicalize().map_err(Failure::file("resolving", &program));
    }
    let said = format!("there is no program {}: build it, or name it with --ringwall PATH", program.display());
    Err(Failure::Usage(said))
}

/// The end of what is entered by [`Site::fill_repository`]: in the year 2096.
const FILLED_UNTIL_UNIX_S: u64 = 4_000_000_000;

/// The address of the made-up host with this number.
#[must_use]
pub fn filled_address(number: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from_be_bytes([10, 128, 0, 0]) + number)
}

/// The public key of the made-up host with this number, which nobody can sign with.
#[must_use]
pub fn filled_key(number: u32) -> [u8; 32] {
    identity::hash::sha256(&[&number.to_be_bytes()])
}

/// The second keys of the hosts of a site of the paper profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaperKeys {
    /// DSA keys of this length in bits, for S-ARP.
    Dsa(u16),
    /// RSA keys of this length in bits with SHA-1, for CLL.
    Rsa(u16),
}

impl PaperKeys {
    /// What `ringwall site issue` is told.
    fn options(self) -> [String; 2] {
        match self {
            PaperKeys::Dsa(bits) => ["--dsa-bits".to_owned(), bits.to_string()],
            PaperKeys::Rsa(bits) => ["--rsa-bits".to_owned(), bits.to_string()],
        }
    }
}

/// A site with its authority and an identity for each honest host of a LAN.
#[derive(Debug)]
pub struct Site {
    program: PathBuf,
    run: Run,
    directory: PathBuf,
    authority: PathBuf,
    /// Its hosts' second keys, in a site of the paper profile.
    paper_keys: Option<PaperKeys>,
}

impl Site {
    /// Founds a site in the directory of `run`.
    ///
    /// # Errors
    /// `ringwall site init` fails.
    pub fn found(run: &Run, program: &Path) -> Result<Site, Failure> {
        Site::found_as(run, program, "", None)
    }

    /// As [`found`](Site::found), beside other sites of the run that end in something else than `suffix`; with `paper_keys` of
    /// the paper profile.
    ///
    /// # Errors
    /// As [`found`](Site::found).
    pub fn found_as(run: &Run, program: &Path, suffix: &str, paper_keys: Option<PaperKeys>) -> Result<Site, Failure> {
        let [directory, authority] = ["identities", "site"].map(|name| run.directory().join(format!("{name}{suffix}")));
        std::fs::create_dir_all(&directory).map_err(Failure::file("making", &directory))?;
        let site = Site { program: program.to_owned(), run: run.clone(), directory, authority, paper_keys };
        let mut init = site.command();
        init.args(["site", "init", "--name", "lab", "--dir"]).arg(&site.authority);
        init.args(["--profile", if paper_keys.is_some() { "paper" } else { "modern" }]);
        process::must(init)?;
        // Before all others, because their identities name them.
        // The paper profile has no leases under the link layer, and so no authority for them.
        let served: &[&str] = if site.is_paper() { &[] } else { &["--serves", DHCP_SERVED] };
        for (name, role, more) in [(DISTRIBUTOR, "akd", &[][..]), (DHCP_SERVER, "dhcp", served)] {
            let (ip, mac) = address_of(name);
            site.issue(name, mac, &[&["--ip", &ip.to_string(), "--role", role], more].concat())?;
        }
        Ok(site)
    }

    /// Whether it is of the paper profile.
    #[must_use]
    pub fn is_paper(&self) -> bool {
        self.paper_keys.is_some()
    }

    /// The program, to be run outside of every host.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        self.run.mark(&mut command);
        command
    }

    /// The identity file of `host`, issued at first need.
    ///
    /// # Errors
    /// `ringwall site issue` fails.
    pub fn identity(&self, host: &Host) -> Result<PathBuf, Failure> {
        let file = self.directory.join(format!("{}.pem", host.name));
        if file.exists() {
            return Ok(file);
        }
        let ip = host.ip.to_string();
        let place = if host.name == DHCP_CLIENT { ["--subnet", DHCP_SUBNET] } else { ["--ip", &ip] };
        let role: &[&str] = if host.name == ROUTER { &["--role", "router"] } else { &[] };
        self.issue(host.name, host.mac, &[&place, role].concat())?;
        Ok(file)
    }

    /// Issues an identity to `host` in place of what it had; `more` are options of `ringwall site issue`.
    ///
    /// # Errors
    /// It fails.
    pub fn issue_anew(&self, host: &Host, more: &[&str]) -> Result<(), Failure> {
        let more: Vec<&str> = more.iter().copied().chain(["--force"]).collect();
        self.issue(host.name, host.mac, &more)
    }

    fn issue(&self, name: &str, mac: MacAddress, more: &[&str]) -> Result<(), Failure> {
        let mut issue = self.command();
        issue.args(["site", "issue", "--name", name, "--mac", &mac.to_string()]);
        issue.args(more).arg("--dir").arg(&self.authority);
        // Who serves S-ARP needs a key that signs it.
        let fits = |keys: &PaperKeys| matches!(keys, PaperKeys::Dsa(_)) || !more.contains(&"--role");
        issue.args(self.paper_keys.filter(fits).into_iter().flat_map(PaperKeys::options));
        issue.arg("--out").arg(self.directory.join(format!("{name}.pem")));
        process::must(issue).map(drop)
    }

    /// Enters `count` made-up hosts into the site's repository, as a large site has; see [`filled_address`].
    ///
    /// # Errors
    /// The repository refuses.
    pub fn fill_repository(&self, count: u32) -> Result<(), Failure> {
        let refused = |error: authority::Error| Failure::Unreadable(format!("the repository: {error}"));
        let directory = authority::Directory::open(&self.authority).map_err(refused)?;
        let store = directory.repository().map_err(refused)?;
        for number in 0..count {
            let key = filled_key(number).to_vec();
            let host = NewHost {
                name: format!("filled-{number}"),
                role: Role::Host,
                mac: None,
                addresses: vec![filled_address(number)],
                algorithm: 1,
                key,
                not_before_unix: 0,
                not_after_unix: FILLED_UNTIL_UNIX_S,
                subnets: Vec::new(),
            };
            store.add(&host, Sharing::Allowed, 0).map_err(|error| refused(error.into()))?;
        }
        Ok(())
    }

    /// The secret from which all request keys of the site follow.
    ///
    /// # Errors
    /// Its file cannot be read.
    pub fn request_master(&self) -> Result<RequestMaster, Failure> {
        let file = self.authority.join("request.key.pem");
        let text = std::fs::read_to_string(&file).map_err(Failure::file("reading", &file))?;
        RequestMaster::from_pem(&text).map_err(|error| Failure::Unreadable(format!("{}: {error}", file.display())))
    }

    /// The key with which `host` signs its answers as a distributor.
    ///
    /// # Errors
    /// Its identity is not that of a distributor.
    pub fn distributor_key(&self, host: &Host) -> Result<DistributorKey, Failure> {
        let key = DistributorKey::of(self.host_identity(host)?.certificate());
        key.ok_or_else(|| Failure::Unreadable(format!("{} is no distributor", host.name)))
    }

    /// The identity of `host` itself, issued at first need.
    ///
    /// # Errors
    /// It cannot be issued or read.
    pub fn host_identity(&self, host: &Host) -> Result<HostIdentity, Failure> {
        let file = self.identity(host)?;
        let text = std::fs::read_to_string(&file).map_err(Failure::file("reading", &file))?;
        HostIdentity::from_pem(&text).map_err(|error| Failure::Unreadable(format!("{}: {error}", file.display())))
    }

    /// Runs `ringwall site` with these words on this site.
    ///
    /// # Errors
    /// It fails.
    pub fn order(&self, words: &[&str]) -> Result<String, Failure> {
        let mut command = self.command();
        command.arg("site").args(words).arg("--dir").arg(&self.authority);
        process::must(command)
    }

    /// Writes the configuration of `host` below the LAN's directory and starts its daemon, which need not be ready yet.
    ///
    /// # Errors
    /// No identity, or the program cannot be started.
    pub fn guard(&self, lan: &Lan, host: &Host, setting: &Setting<'_>) -> Result<Daemon, Failure> {
        let repository = (setting.sarp && host.name == DISTRIBUTOR).then(|| self.authority.join("hosts.db"));
        let write = |identity: &Path, directory: &Path| {
            let mut text = configuration(identity, directory, setting);
            if let Some(repository) = &repository {
                text.push_str(&format!("\n[akd]\nrepository = \"{}\"\n", repository.display()));
            }
            text
        };
        let task = if repository.is_some() { "akd" } else { "host" };
        self.launch_as(task, lan, host, write)
    }

    /// As [`guard`](Site::guard), with the configuration that `write` makes of the identity file and the directory for
    /// the daemon's own files.
    ///
    /// # Errors
    /// As [`guard`](Site::guard).
    pub fn launch(
        &self,
        lan: &Lan,
        host: &Host,
        write: impl FnOnce(&Path, &Path) -> String,
    ) -> Result<Daemon, Failure> {
        self.launch_as("host", lan, host, write)
    }

    fn launch_as(
        &self,
        task: &'static str,
        lan: &Lan,
        host: &Host,
        write: impl FnOnce(&Path, &Path) -> String,
    ) -> Result<Daemon, Failure> {
        let identity = self.identity(host)?;
        let directory = lan.directory.join(format!("host-{}", host.name));
        // Each LAN is new: what a daemon of an earlier one stored about its interface must not lead this one astray.
        if directory.exists() {
            std::fs::remove_dir_all(&directory).map_err(Failure::file("emptying", &directory))?;
        }
        std::fs::create_dir_all(&directory).map_err(Failure::file("making", &directory))?;
        let config = directory.join("ringwall.toml");
        std::fs::write(&config, with_takeover(write(&identity, &directory)))
            .map_err(Failure::file("writing", &config))?;
        let mut daemon = Daemon {
            program: self.program.clone(),
            task,
            host: host.clone(),
            config,
            log: directory.join("log"),
            process: None,
        };
        daemon.start()?;
        Ok(daemon)
    }
}

/// A daemon's file of attacks, in its directory.
const EVE: &str = "eve.json";

/// The configuration file of a lab host.
fn configuration(identity: &Path, directory: &Path, setting: &Setting<'_>) -> String {
    let (identity, directory, weaken) = (identity.display(), directory.display(), setting.weaken);
    let profile = match (setting.paper, weaken) {
        (true, _) => "paper",
        (false, []) => "modern",
        (false, _) => "lab",
    };
    let mode = if setting.sarp { "sarp" } else { "cll" };
    let mut text = format!(
        "[host]\ninterface = \"{INTERFACE}\"\nmode = \"{mode}\"\nidentity = \"{identity}\"\nprofile = \"{profile}\"\n\
         on_exit = \"closed\"\nrun_dir = \"{directory}/run\"\nstate_dir = \"{directory}/state\"\n\n\
         [cll]\nconfidentiality = {}\n{}\n\n[sarp]\n{}\n",
        !setting.readable, setting.cll_lines, setting.sarp_lines
    );
    if setting.eve {
        text.push_str(&format!("\n[records]\neve_file = \"{directory}/{EVE}\"\n"));
    }
    if !setting.dhcp_lines.is_empty() {
        text.push_str(&format!("\n[dhcp]\n{}\n", setting.dhcp_lines));
    }
    if !weaken.is_empty() {
        text.push_str(&format!("\n[lab]\nweaken = {weaken:?}\n"));
    }
    text
}

/// The counter of frames that a daemon answers in its host's place, beside the reasons for dropping.
pub const ANSWERED: &str = "answered";

fn drops_in(status: &Value) -> Result<BTreeMap<String, u64>, Failure> {
    let table = status["drops"].as_object();
    let table = table.ok_or_else(|| Failure::Unreadable("`ringwall status --json` has no drops".to_owned()))?;
    Ok(table.iter().map(|(word, count)| (word.clone(), count.as_u64().unwrap_or(0))).collect())
}

/// The daemon of one host. Dropping it ends it and releases the interface.
#[derive(Debug)]
pub struct Daemon {
    program: PathBuf,
    /// `host` or `akd`.
    task: &'static str,
    /// Whose daemon.
    pub host: Host,
    config: PathBuf,
    log: PathBuf,
    process: Option<Running>,
}

impl Daemon {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.host.namespace.command(&self.program.to_string_lossy());
        command.args(words).arg("--config").arg(&self.config);
        command
    }

    fn start(&mut self) -> Result<(), Failure> {
        self.process = Some(Running::start(self.command(&[self.task, "run"]), &self.log)?);
        Ok(())
    }

    /// Waits until it guards the interface.
    ///
    /// # Errors
    /// It ends early, or is not ready within a minute.
    pub fn await_ready(&mut self) -> Result<(), Failure> {
        let what = format!("the daemon of host {}", self.host.name);
        let mut process = self.process.take().ok_or_else(|| Failure::Usage(format!("{what} was not started")))?;
        let ready = process::until(&what, READY_LIMIT, || {
            process.ensure_alive()?;
            // Under S-ARP a host says nothing before it has the time.
            let has_time = |status: &Value| status["sarp"].is_null() || !status["sarp"]["clock_unix_s"].is_null();
            Ok(self.status().is_ok_and(|status| status["state"] == "running" && has_time(&status)))
        });
        self.process = Some(process);
        ready
    }

    /// Waits until it takes orders, right before its first frame. Unlike [`await_ready`](Daemon::await_ready) this asks no program,
    /// of which a dozen at once would be more work than what they ask about.
    ///
    /// # Errors
    /// It ends early, or does not listen within a minute.
    pub fn await_socket(&mut self) -> Result<(), Failure> {
        let socket = self.log.with_file_name("run").join(format!("{INTERFACE}.sock"));
        let what = format!("the socket of the daemon of host {}", self.host.name);
        process::until(&what, READY_LIMIT, || {
            self.process.as_mut().map_or(Ok(()), Running::ensure_alive)?;
            Ok(socket.exists())
        })
    }

    /// Ends the daemon and starts it again, as an update would.
    ///
    /// # Errors
    /// As [`await_ready`](Daemon::await_ready).
    pub fn restart(&mut self) -> Result<(), Failure> {
        if let Some(process) = self.process.take() {
            process.stop(Signal::TERM);
        }
        self.start()?;
        self.await_ready()
    }

    /// Its process id, while it runs.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.process.as_ref().map(Running::id)
    }

    /// What the daemon says about itself.
    ///
    /// # Errors
    /// It does not answer, or not in JSON.
    pub fn status(&self) -> Result<Value, Failure> {
        let text = process::told(self.command(&["status", "--json"]))?;
        serde_json::from_str(&text).map_err(|error| Failure::Unreadable(format!("`ringwall status --json`: {error}")))
    }

    /// Its associations, as `ringwall peers --json` lists them.
    ///
    /// # Errors
    /// As [`status`](Daemon::status).
    pub fn peers(&self) -> Result<Value, Failure> {
        let text = process::must(self.command(&["peers", "--json"]))?;
        serde_json::from_str(&text).map_err(|error| Failure::Unreadable(format!("`ringwall peers --json`: {error}")))
    }

    /// How many frames it has dropped, by reason.
    ///
    /// # Errors
    /// As [`status`](Daemon::status), or there is no such table in it.
    pub fn drops(&self) -> Result<BTreeMap<String, u64>, Failure> {
        drops_in(&self.status()?)
    }

    /// Signatures that it has made and checked since its start.
    ///
    /// # Errors
    /// As [`status`](Daemon::status), or it signs nothing.
    pub fn signatures(&self) -> Result<[u64; 2], Failure> {
        let status = self.status()?;
        let missing = || Failure::Unreadable("`ringwall status --json` counts no signatures".to_owned());
        let count = |name: &str| status["sarp"][name].as_u64().ok_or_else(missing);
        Ok([count("signatures")?, count("verifications")?])
    }

    /// As [`drops`](Daemon::drops), and under [`ANSWERED`] how many it answered in the host's place.
    ///
    /// # Errors
    /// As [`drops`](Daemon::drops).
    pub fn counters(&self) -> Result<BTreeMap<String, u64>, Failure> {
        let status = self.status()?;
        let mut counters = drops_in(&status)?;
        counters.insert(ANSWERED.to_owned(), status["frames"]["answered"].as_u64().unwrap_or(0));
        Ok(counters)
    }

    /// Where it writes its attacks as lines of EVE, if [`Setting::eve`] says so.
    #[must_use]
    pub fn eve_file(&self) -> PathBuf {
        self.log.with_file_name(EVE)
    }

    /// What it wrote since its last start.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Lets it run on after this program has ended.
    pub fn leave_standing(mut self) {
        if let Some(process) = self.process.take() {
            process.release();
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let Some(process) = self.process.take() else { return };
        if cleanup::permit().is_err() {
            return;
        }
        process.stop(Signal::TERM);
        // A daemon that never took the interface over has nothing to release; the sweep reports what stays.
        let _released = process::ask(self.command(&["host", "release"]), &[]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_weakened_host_has_the_lab_profile() {
        let with = |weaken| Setting { weaken, ..Setting::default() };
        let strong = configuration(Path::new("/x/a.pem"), Path::new("/x"), &with(&[]));
        assert!(strong.contains("profile = \"modern\"") && !strong.contains("[lab]"), "{strong}");
        let weak = configuration(Path::new("/x/a.pem"), Path::new("/x"), &with(&["cross-layer", "freshness"]));
        assert!(weak.contains("profile = \"lab\""), "{weak}");
        assert!(weak.ends_with("[lab]\nweaken = [\"cross-layer\", \"freshness\"]\n"), "{weak}");
    }

    #[test]
    fn a_missing_program_is_named_with_the_remedy() {
        let failure = find_program(Some(Path::new("/no/such/ringwall"))).expect_err("missing");
        assert!(failure.to_string().contains("--ringwall"), "{failure}");
    }
}
