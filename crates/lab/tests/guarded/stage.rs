//! The stage of one test: a LAN of its own, a site, and the real program on the hosts that the test wants guarded.
//!
//! Tests run beside each other, as many as the test program has threads: they wait for daemons and
//! the network more than they load the machine. Each has a run of its own. Those that load the
//! machine run alone. Whatever way a test ends, its daemons are ended, its interfaces given back
//! and its namespaces removed.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use authority::directory::{Delivery, Sharing};
use authority::files::Overwrite;
use authority::{Directory, Request};
use identity::certificate::Role;
use ringwall_lab::cleanup::{self, Run};
use ringwall_lab::failure::Failure;
use ringwall_lab::hindrance::refused_calls;
use ringwall_lab::net::lan::INTERFACE;
use ringwall_lab::net::process::{self, Answer};
use ringwall_lab::net::{Host, Lan, LanPlan, Running};
use rustix::process::{Pid, Signal, geteuid};
use serde_json::Value;

use crate::lent::Borrowed;

/// What a test's body returns.
pub type Outcome = Result<(), Failure>;

/// Names another program than the one that was built last.
const PROGRAM_VARIABLE: &str = "RINGWALL_PROGRAM";
/// Set for the long form of the tests that run for a time.
const LONG_VARIABLE: &str = "RINGWALL_LONG";
/// How long a daemon may take until it guards its interface, with room for a loaded machine.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// How long things may take that have no limit of their own.
pub const SOON: Duration = Duration::from_secs(30);
/// The tools that the tests cannot do without.
const TOOLS: [&str; 6] = ["ip", "nsenter", "ping", "arping", "tcpdump", "nft"];

/// Held for reading by tests beside each other, for writing by one that runs alone.
static MACHINE: RwLock<()> = RwLock::new(());

/// Runs `test` on a LAN of `hosts`, or says by name that it cannot.
///
/// # Panics
/// The test fails, or leaves something behind.
pub fn perform<T: FnOnce(&Stage) -> Outcome>(hosts: &[&'static str], test: T) {
    perform_on(&LanPlan { hosts: hosts.to_vec(), ..LanPlan::default() }, test);
}

/// As [`perform`], on any LAN.
///
/// # Panics
/// The test fails, or leaves something behind.
pub fn perform_on<T: FnOnce(&Stage) -> Outcome>(plan: &LanPlan, test: T) {
    perform_bare(name_of(&test), &[], |run| Stage::set(run, plan).and_then(|stage| test(&stage)));
}

/// As [`perform_on`], while no other test runs; see [`perform_alone`].
///
/// # Panics
/// The test fails, or leaves something behind.
pub fn perform_on_alone<T: FnOnce(&Stage) -> Outcome>(plan: &LanPlan, test: T) {
    perform_alone(name_of(&test), &[], |run| Stage::set(run, plan).and_then(|stage| test(&stage)));
}

/// What a test that is a closure of its own function is called.
pub fn name_of<T>(_test: &T) -> &'static str {
    std::any::type_name::<T>().trim_end_matches("::{{closure}}")
}

/// Runs the test called `name` on nothing that is there before, or says by name that it cannot, for
/// want of `tools` beside the usual ones or of root.
///
/// # Panics
/// The test fails, or leaves something behind.
pub fn perform_bare(name: &str, tools: &[&str], test: impl FnOnce(&'static Run) -> Outcome) {
    let _beside = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
    perform_in_a_run(name, tools, test);
}

/// As [`perform_bare`], while no other test runs: for tests that load the machine or change what
/// all of it shares.
///
/// # Panics
/// As [`perform_bare`].
pub fn perform_alone(name: &str, tools: &[&str], test: impl FnOnce(&'static Run) -> Outcome) {
    let _alone = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
    perform_in_a_run(name, tools, test);
}

fn perform_in_a_run(name: &str, tools: &[&str], test: impl FnOnce(&'static Run) -> Outcome) {
    if let Some(reason) = impossible(tools) {
        eprintln!("SKIPPED {name}: {reason}");
        return;
    }
    let borrowed = Borrowed::take();
    if let Err(failure) = test(borrowed.run) {
        panic!("{name}: {failure}");
    }
    let left = leftovers(borrowed.run);
    assert!(left.is_empty(), "{name} left behind: {left:?}");
    assert_eq!(cleanup::sweep(borrowed.run), Vec::<String>::new(), "{name}");
}

fn impossible(tools: &[&str]) -> Option<String> {
    if !geteuid().is_root() {
        return Some("needs root".to_owned());
    }
    let wanted = TOOLS.into_iter().chain(tools.iter().copied());
    let missing: Vec<_> = wanted.filter(|tool| !process::installed(tool)).collect();
    (!missing.is_empty()).then(|| format!("needs {}", missing.join(", ")))
}

/// Namespaces and mounts of `run` that are still there.
fn leftovers(run: &Run) -> Vec<String> {
    let prefix = run.namespace("");
    let entries = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let mut left: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    left.retain(|name| name.starts_with(&prefix));
    left.extend(mounts_below(&run.directory()).iter().map(|point| point.display().to_string()));
    left
}

/// Mounts below `directory`, in this program's mount tree and in that of process 1.
pub fn mounts_below(directory: &Path) -> Vec<PathBuf> {
    ["self", "1"].iter().flat_map(|process| mounts(process)).filter(|point| point.starts_with(directory)).collect()
}

fn is_mounted(point: &Path, process: &str) -> bool {
    mounts(process).iter().any(|mounted| mounted == point)
}

fn mounts(process: &str) -> Vec<PathBuf> {
    let table = std::fs::read_to_string(format!("/proc/{process}/mountinfo")).unwrap_or_default();
    table.lines().filter_map(|line| line.split(' ').nth(4)).map(PathBuf::from).collect()
}

/// The program under test: the one that is named, or the one that was built last for this test's target directory.
///
/// # Panics
/// There is none.
pub fn program() -> PathBuf {
    if let Some(named) = std::env::var_os(PROGRAM_VARIABLE) {
        return named.into();
    }
    let test = std::env::current_exe().expect("this program has a file");
    let target = test.ancestors().nth(3).expect("target/profile/deps/test").to_owned();
    let built = ["release", "debug"].map(|profile| target.join(profile).join("ringwall"));
    let age = |file: &PathBuf| file.metadata().and_then(|data| data.modified()).ok();
    let newest = built.iter().filter(|file| file.is_file()).max_by_key(|file| age(file));
    newest.expect("build the program first: cargo build --release -p ringwall").clone()
}

/// How long a test that watches for a time does so: `short`, or `long` with `RINGWALL_LONG=1`.
pub fn span(short: Duration, long: Duration) -> Duration {
    if std::env::var_os(LONG_VARIABLE).is_some() { long } else { short }
}

/// A LAN with a site.
pub struct Stage {
    pub run: &'static Run,
    pub lan: Lan,
    pub site: Site,
}

impl Stage {
    /// A LAN by `plan`, and a site.
    pub fn set(run: &'static Run, plan: &LanPlan) -> Result<Stage, Failure> {
        let lan = Lan::create(run, plan)?;
        Ok(Stage { run, lan, site: Site::found(run, "site")? })
    }

    pub fn host(&self, name: &str) -> &Host {
        self.lan.host(name).expect("the test asked for this host")
    }

    /// Where files of this test go.
    pub fn file(&self, name: &str) -> PathBuf {
        self.run.directory().join(name)
    }

    /// Writes the configuration of host `name`, which gets an identity of the stage's site unless the plan has one.
    pub fn prepare(&self, name: &str, plan: Plan) -> Result<Guarded, Failure> {
        let host = self.host(name).clone();
        let role = if plan.distributes { "akd" } else { "host" };
        let identity = match &plan.identity {
            Some(file) => file.clone(),
            None => self.site.issue(host.name, &format!("--mac {} --ip {} --role {role}", host.mac, host.ip))?,
        };
        let directory = self.file(&format!("host-{name}"));
        std::fs::create_dir_all(&directory).map_err(Failure::file("making", &directory))?;
        let config = directory.join("host.toml");
        let mut text = plan.text(&identity, &directory);
        if plan.distributes {
            text.push_str(&format!("[akd]\nrepository = \"{}\"\n", self.site.repository().display()));
        }
        std::fs::write(&config, text).map_err(Failure::file("writing", &config))?;
        let task = if plan.distributes { "akd" } else { "host" };
        Ok(Guarded { host, directory, config, task, process: None })
    }

    /// Guards host `name` and waits until it is.
    pub fn guard(&self, name: &str, plan: Plan) -> Result<Guarded, Failure> {
        let mut guarded = self.prepare(name, plan)?;
        guarded.start(&[])?;
        Ok(guarded)
    }
}

/// An authority of its own.
pub struct Site {
    run: &'static Run,
    directory: PathBuf,
    environment: Vec<(&'static str, PathBuf)>,
}

impl Site {
    /// Founds a site in the directory `name` of the run.
    pub fn found(run: &'static Run, name: &str) -> Result<Site, Failure> {
        Site::found_with(run, name, &[])
    }

    /// The same with further options.
    pub fn found_with(run: &'static Run, name: &str, options: &[&str]) -> Result<Site, Failure> {
        Site::found_among(run, name, options, Vec::new())
    }

    /// The same, whose commands have these variables.
    pub fn found_among(
        run: &'static Run,
        name: &str,
        options: &[&str],
        environment: Vec<(&'static str, PathBuf)>,
    ) -> Result<Site, Failure> {
        let site = Site { run, directory: run.directory().join(name), environment };
        let mut init = site.command("init");
        init.args(["--name", "lab"]).args(options);
        process::must(init)?;
        Ok(site)
    }

    fn command(&self, word: &str) -> Command {
        let mut command = self.program();
        command.args(["site", word, "--dir"]).arg(&self.directory);
        command
    }

    /// The program, as commands of the site are started.
    pub fn program(&self) -> Command {
        let mut command = Command::new(program());
        self.run.mark(&mut command);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Runs `ringwall site` with these words, separated by blanks; what it says.
    pub fn order(&self, words: &str) -> Result<String, Failure> {
        let mut command = self.program();
        // Behind all words, since some commands have commands of their own.
        command.arg("site").args(words.split(' ')).arg("--dir").arg(&self.directory);
        process::must(command)
    }

    /// What the site's key distributors answer from.
    pub fn repository(&self) -> PathBuf {
        self.directory.join("hosts.db")
    }

    /// Takes the host called `name` out of S-ARP.
    pub fn revoke(&self, name: &str) -> Outcome {
        let mut revoke = self.command("revoke");
        revoke.args(["--name", name]);
        process::must(revoke).map(drop)
    }

    /// The file in which the site keeps the certificate that it issued last to the host called `name`.
    pub fn certificate(&self, name: &str) -> Result<PathBuf, Failure> {
        let mut list = self.command("list");
        list.arg("--json");
        let text = process::must(list)?;
        let listed: Value = serde_json::from_str(&text).expect("JSON");
        let of_host = listed.as_array().into_iter().flatten().rfind(|entry| entry["name"] == name);
        let serial = of_host.and_then(|entry| entry["serial"].as_str()).expect("the test has issued it");
        Ok(self.directory.join(format!("issued/{serial}.pem")))
    }

    /// Issues an identity to the host called `name`; `options` are separated by blanks. Returns its file.
    pub fn issue(&self, name: &str, options: &str) -> Result<PathBuf, Failure> {
        let file = self.directory.with_extension(format!("{name}.pem"));
        let mut issue = self.command("issue");
        issue.args(["--force", "--allow-shared-addresses", "--name", name]).args(options.split(' '));
        issue.arg("--out").arg(&file);
        process::must(issue)?;
        Ok(file)
    }

    /// Issues an identity for `host` that ends after `validity`, which is shorter than the program lets a manager choose.
    pub fn issue_for(&self, host: &Host, role: Role, validity: Duration) -> Result<PathBuf, Failure> {
        self.issue_ago(host, role, validity, Duration::ZERO)
    }

    /// The same, as it was issued so long `ago`.
    pub fn issue_ago(&self, host: &Host, role: Role, validity: Duration, ago: Duration) -> Result<PathBuf, Failure> {
        let file = self.directory.with_extension(format!("{}.short.pem", host.name));
        let delivery = Delivery { output: &file, overwrite: Overwrite::Force, sharing: Sharing::Allowed };
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
        let then = since_epoch.saturating_sub(ago);
        let mut generator = bump::Generator::from_seed([host.mac.0[5]; 32]);
        let mut random = |bytes: &mut [u8]| bytes.fill_with(|| generator.bytes::<1>()[0]);
        let issued = Request::new(host.name, host.mac, vec![host.ip])
            .and_then(|request| request.with_role(role).with_validity(validity))
            .and_then(|request| {
                let directory = Directory::open(&self.directory)?;
                directory.issue_identity(&request, &delivery, &mut random, then.as_secs())
            });
        issued.map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(file)
    }
}

/// What differs from the shortest configuration.
#[derive(Default)]
pub struct Plan {
    identity: Option<PathBuf>,
    host: String,
    cll: String,
    sarp: String,
    tail: String,
    distributes: bool,
}

impl Plan {
    /// With a line in `[host]`.
    pub fn host(mut self, line: &str) -> Plan {
        self.host.push_str(&format!("{line}\n"));
        self
    }

    /// With a line in `[cll]`.
    pub fn cll(mut self, line: &str) -> Plan {
        self.cll.push_str(&format!("{line}\n"));
        self
    }

    /// In mode `sarp`.
    pub fn sarp() -> Plan {
        Plan::default().host("mode = \"sarp\"")
    }

    /// As a key distributor of the stage's site.
    pub fn distributor() -> Plan {
        Plan { distributes: true, ..Plan::sarp() }
    }

    /// With a line in `[sarp]`.
    pub fn sarp_line(mut self, line: &str) -> Plan {
        self.sarp.push_str(&format!("{line}\n"));
        self
    }

    /// With `host` among those whose plain ARP is believed.
    pub fn knowing(self, host: &Host) -> Plan {
        self.tail(&format!("[[sarp.known_hosts]]\nip = \"{}\"\nmac = \"{}\"\n", host.ip, host.mac))
    }

    /// With a wall clock that is wrong by so many seconds.
    pub fn clock_offset_s(self, offset_s: i32) -> Plan {
        self.host("profile = \"lab\"").tail(&format!("[lab]\nclock_offset_s = {offset_s}\n"))
    }

    /// With sections at the end.
    pub fn tail(mut self, text: &str) -> Plan {
        self.tail.push_str(text);
        self
    }

    /// With this identity file.
    pub fn identity(mut self, file: PathBuf) -> Plan {
        self.identity = Some(file);
        self
    }

    /// With the card kept away from the stack in this way.
    pub fn way(way: &str) -> Plan {
        Plan::default().host(&format!("takeover = \"{way}\""))
    }

    fn text(&self, identity: &Path, directory: &Path) -> String {
        let (identity, directory) = (identity.display(), directory.display());
        let Plan { host, cll, sarp, tail, .. } = self;
        format!(
            "[host]\ninterface = \"{INTERFACE}\"\nidentity = \"{identity}\"\nrun_dir = \"{directory}/run\"\n\
             state_dir = \"{directory}/state\"\n{host}\n[cll]\n{cll}\n[sarp]\n{sarp}\n{tail}\n"
        )
    }
}

/// A host with the program. Dropping it ends the daemon and gives the interface back.
pub struct Guarded {
    pub host: Host,
    pub directory: PathBuf,
    pub config: PathBuf,
    /// What it is run for: `host` or `akd`.
    pub task: &'static str,
    process: Option<Running>,
}

impl Guarded {
    /// The program with `words`, in this host's namespace, with this host's configuration.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = self.host.namespace.command(&program().to_string_lossy());
        command.args(words).arg("--config").arg(&self.config);
        command
    }

    /// Runs the program to its end.
    pub fn ask(&self, words: &[&str]) -> Result<Answer, Failure> {
        process::ask(self.command(words), &[])
    }

    /// Starts the daemon, with these further options; it need not be ready yet. An older log goes.
    pub fn launch(&mut self, options: &[&str]) -> Result<(), Failure> {
        let mut command = self.command(&[self.task, "run"]);
        command.args(options).env("RINGWALL_LOG", "debug");
        self.launch_command(command)
    }

    /// Starts the daemon by `command`.
    pub fn launch_command(&mut self, command: Command) -> Result<(), Failure> {
        self.process = Some(Running::start(command, &self.directory.join("log"))?);
        Ok(())
    }

    /// Starts the daemon and waits until it guards the interface.
    pub fn start(&mut self, options: &[&str]) -> Result<(), Failure> {
        self.launch(options)?;
        self.await_ready()
    }

    /// Waits until the daemon guards the interface.
    pub fn await_ready(&mut self) -> Result<(), Failure> {
        let mut process = self.process.take().expect("the test has started it");
        let ready = process::until(&format!("the daemon of host {}", self.host.name), READY_LIMIT, || {
            process.ensure_alive()?;
            Ok(self.status().is_ok_and(|status| status["state"] == "running"))
        });
        self.process = Some(process);
        ready
    }

    /// The daemon's process id.
    pub fn id(&self) -> u32 {
        self.process.as_ref().expect("the test has started it").id()
    }

    /// The daemon's process id, for signals; its process group has the same number.
    pub fn pid(&self) -> Pid {
        i32::try_from(self.id()).ok().and_then(Pid::from_raw).expect("a process id")
    }

    /// Ends the daemon with `signal` and waits until it is gone.
    pub fn stop(&mut self, signal: Signal) {
        if let Some(process) = self.process.take() {
            process.stop(signal);
        }
    }

    /// Checks that the daemon runs.
    pub fn ensure_alive(&mut self) -> Result<(), Failure> {
        self.process.as_mut().expect("the test has started it").ensure_alive()
    }

    /// Gives the interface back.
    pub fn release(&mut self) -> Result<(), Failure> {
        process::must(self.command(&["host", "release"])).map(drop)
    }

    /// What a command says in JSON.
    pub fn json(&self, words: &[&str]) -> Result<Value, Failure> {
        let mut command = self.command(words);
        command.arg("--json");
        let text = if words == ["status"] { process::told(command)? } else { process::must(command)? };
        serde_json::from_str(&text).map_err(|error| Failure::Unreadable(format!("{words:?}: {error}: {text}")))
    }

    pub fn status(&self) -> Result<Value, Failure> {
        self.json(&["status"])
    }

    /// How many frames were dropped for the reason `word`.
    pub fn drops(&self, word: &str) -> Result<u64, Failure> {
        let status = self.status()?;
        status["drops"][word].as_u64().ok_or_else(|| Failure::Unreadable(format!("no drop reason {word}: {status}")))
    }

    /// Waits until at least `count` frames were dropped for the reason `word`.
    pub fn await_drops(&self, word: &str, count: u64) -> Outcome {
        process::until(&format!("{count} frames dropped as {word} by {}", self.host.name), SOON, || {
            Ok(self.drops(word)? >= count)
        })
    }

    /// What the daemon wrote, and the events it remembers.
    pub fn events(&self) -> Result<String, Failure> {
        Ok(self.ask(&["events"])?.stdout)
    }

    /// Waits until an event contains `text`.
    pub fn await_event(&self, text: &str, limit: Duration) -> Outcome {
        process::until(&format!("the event \"{text}\" on {}", self.host.name), limit, || {
            Ok(self.events()?.contains(text))
        })
    }

    /// The daemon's log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    /// Runs `ip` where the card is; `CARD` stands for its name there.
    pub fn on_card(&self, arguments: &str) -> Result<String, Failure> {
        let pin = self.directory.join(format!("run/{INTERFACE}.netns"));
        if !pin.exists() {
            return self.host.namespace.ip(&arguments.replace("CARD", INTERFACE));
        }
        let mut command = Command::new("nsenter");
        if !is_mounted(&pin, "self") {
            // The pin is in the mount tree of process 1.
            command.args(["--mount=/proc/1/ns/mnt", "--", "nsenter"]);
        }
        command.arg(format!("--net={}", pin.display()));
        command.args(["--", "ip"]).args(arguments.replace("CARD", INTERFACE).split(' '));
        process::must(command)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // After an interrupt or a failed assertion the sweep has done it already.
        if cleanup::permit().is_err() || !self.config.exists() {
            return;
        }
        self.stop(Signal::TERM);
        let _never_taken = self.ask(&["host", "release"]);
        assert_unhindered(&self.log());
    }
}

/// No system call was refused to the daemon with this log, whatever else the test was about.
pub fn assert_unhindered(log: &str) {
    let refused = refused_calls(log);
    assert!(std::thread::panicking() || refused.is_empty(), "{refused:?}");
}

/// The addresses that plain hosts and tests name.
pub fn ip(text: &str) -> Ipv4Addr {
    text.parse().expect("a test writes addresses right")
}
