//! A gateway between two hosts with the kernel's own stacks, and the real program in it.
//!
//! ```text
//!   untrusted host            gateway              trusted host
//!   u: e0 ------------- out0 [program] in0 ------------- t: e0        (a mirror: g: seen0 ---- seen, where the IDS is)
//! ```

mod asymmetric;
mod beside;
mod big;
mod cable;
mod captures;
mod carried;
mod disguise;
mod floods;
mod flow_records;
mod life;
mod mirror;
mod pair;
mod raw;
mod restart;
mod router;
mod sandbox;
mod scans;
mod traffic;
mod tunnels;
mod watchdog;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use ringwall_lab::cleanup::{self, Run};
use ringwall_lab::failure::Failure;
use ringwall_lab::net::process::{self, Answer};
use ringwall_lab::net::{Namespace, Running};
use rustix::process::Signal;
use serde_json::Value;

use crate::stage::{Outcome, assert_unhindered, name_of, perform_alone, perform_bare, program};

/// The host that is protected.
const TRUSTED: Ipv4Addr = Ipv4Addr::new(10, 6, 0, 1);
/// The host that is not trusted.
const UNTRUSTED: Ipv4Addr = Ipv4Addr::new(10, 6, 0, 2);
/// The same in IPv6.
const TRUSTED_V6: &str = "fd00:6::1";
/// The interface of either host.
const HOST_INTERFACE: &str = "e0";
/// How long the gateway may take until it carries frames, with room for a loaded machine.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// How long either end of a connection waits for the other.
const PATIENCE: Duration = Duration::from_secs(60);

/// Two hosts and a gateway. Dropping it removes all of it.
struct Path {
    run: &'static Run,
    trusted: Namespace,
    untrusted: Namespace,
    gate: Namespace,
    directory: PathBuf,
    process: Option<Running>,
}

/// Runs `test` on two hosts with a gateway between them that has `lines` in its configuration.
fn perform_between<T: FnOnce(&mut Path) -> Outcome>(lines: &str, test: T) {
    perform_with(&[], lines, test);
}

/// As [`perform_between`], where further `tools` are needed.
fn perform_with<T: FnOnce(&mut Path) -> Outcome>(tools: &[&str], lines: &str, test: T) {
    perform_bare(name_of(&test), tools, |run| Path::lay_and_start(run, lines, test));
}

/// As [`perform_between`], while no other test runs.
fn perform_between_alone<T: FnOnce(&mut Path) -> Outcome>(lines: &str, test: T) {
    perform_alone_with(&[], lines, test);
}

/// As [`perform_between_alone`], where further `tools` are needed.
fn perform_alone_with<T: FnOnce(&mut Path) -> Outcome>(tools: &[&str], lines: &str, test: T) {
    perform_alone(name_of(&test), tools, |run| Path::lay_and_start(run, lines, test));
}

impl Path {
    fn lay_and_start(run: &'static Run, lines: &str, test: impl FnOnce(&mut Path) -> Outcome) -> Outcome {
        let mut path = Path::lay(run, lines)?;
        path.start()?;
        test(&mut path)
    }

    fn lay(run: &'static Run, lines: &str) -> Result<Path, Failure> {
        let directory = run.directory().join("gateway");
        std::fs::create_dir_all(&directory).map_err(Failure::file("making", &directory))?;
        let [trusted, untrusted, gate] = ["t", "u", "g"].map(|member| Namespace::create(run, member));
        let path = Path { run, trusted: trusted?, untrusted: untrusted?, gate: gate?, directory, process: None };
        for (host, card, four) in [(&path.trusted, "in0", TRUSTED), (&path.untrusted, "out0", UNTRUSTED)] {
            host.set_kernel_parameter("ipv6/conf/all/disable_ipv6", "0")?;
            host.set_kernel_parameter("ipv6/conf/default/disable_ipv6", "0")?;
            path.gate.ip(&format!("link add {card} type veth peer name {HOST_INTERFACE} netns {}", host.name()))?;
            path.gate.ip(&format!("link set {card} up"))?;
            host.ip(&format!("address add {four}/24 dev {HOST_INTERFACE}"))?;
            let last = four.octets()[3];
            host.ip(&format!("address add fd00:6::{last}/64 dev {HOST_INTERFACE} nodad"))?;
            host.ip(&format!("link set {HOST_INTERFACE} up"))?;
        }
        let directory = path.directory.display();
        let text = format!(
            "[gate]\ntrusted = \"in0\"\nuntrusted = \"out0\"\nrun_dir = \"{directory}/run\"\n\
             state_dir = \"{directory}/state\"\n{lines}\n"
        );
        std::fs::write(path.config(), text).map_err(Failure::file("writing", &path.config()))?;
        Ok(path)
    }

    fn config(&self) -> PathBuf {
        self.directory.join("gate.toml")
    }

    /// The program with `words` in the gateway's namespace, with the gateway's configuration.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.gate.command(&program().to_string_lossy());
        command.args(words).arg("--config").arg(self.config());
        command
    }

    fn ask(&self, words: &[&str]) -> Result<Answer, Failure> {
        process::ask(self.command(words), &[])
    }

    fn start(&mut self) -> Outcome {
        let log = self.directory.join("log");
        let mut process = Running::start(self.command(&["gate", "run"]), &log)?;
        let ready = process::until("the gateway", READY_LIMIT, || {
            process.ensure_alive()?;
            Ok(self.status().is_ok_and(|status| status["state"] == "running"))
        });
        self.process = Some(process);
        ready
    }

    fn stop(&mut self, signal: Signal) {
        if let Some(process) = self.process.take() {
            process.stop(signal);
        }
    }

    /// Sends a hangup and waits until the log has `text`.
    fn hang_up(&self, text: &str) -> Outcome {
        if let Some(process) = &self.process {
            process.signal(Signal::HUP);
        }
        process::until("the answer to a hangup", READY_LIMIT, || {
            Ok(std::fs::read_to_string(self.directory.join("log")).is_ok_and(|log| log.contains(text)))
        })
    }

    fn json(&self, words: &[&str]) -> Result<Value, Failure> {
        let mut command = self.command(words);
        command.arg("--json");
        let text = if words == ["status"] { process::told(command)? } else { process::must(command)? };
        serde_json::from_str(&text).map_err(|error| Failure::Unreadable(format!("{words:?}: {error}: {text}")))
    }

    /// What a command says in JSON, line by line.
    fn json_lines(&self, words: &[&str]) -> Result<Vec<Value>, Failure> {
        let mut command = self.command(words);
        command.arg("--json");
        let read = |line: &str| serde_json::from_str(line);
        let lines: Result<Vec<Value>, _> = process::must(command)?.lines().map(read).collect();
        lines.map_err(|error| Failure::Unreadable(format!("{words:?}: {error}")))
    }

    fn status(&self) -> Result<Value, Failure> {
        self.json(&["status"])
    }

    /// Pings the trusted host once from the other, with these options, separated by blanks; whether an answer came.
    fn pings(&self, options: &str) -> Result<bool, Failure> {
        crate::wire::pings(&self.untrusted, TRUSTED, options)
    }

    /// A TCP connection from one host to the other: the client's end and the server's.
    fn connect(
        &self,
        from: &Namespace,
        to: &Namespace,
        at: impl Into<IpAddr>,
        port: u16,
    ) -> Result<[TcpStream; 2], Failure> {
        let address = SocketAddr::from((at.into(), port));
        let failed = || Failure::io(format!("a TCP connection to {address}"));
        let listener = to.enter(|| TcpListener::bind(address).map_err(failed()))?;
        let client = from.enter(|| TcpStream::connect_timeout(&address, PATIENCE).map_err(failed()))?;
        let (server, _) = listener.accept().map_err(failed())?;
        for end in [&client, &server] {
            end.set_read_timeout(Some(PATIENCE)).map_err(failed())?;
            end.set_write_timeout(Some(PATIENCE)).map_err(failed())?;
        }
        Ok([client, server])
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        // After an interrupt or a failed assertion the sweep has done it already.
        if cleanup::permit().is_err() || !self.config().exists() {
            return;
        }
        self.stop(Signal::TERM);
        let _never_taken = self.ask(&["gate", "release"]);
        assert_unhindered(&std::fs::read_to_string(self.directory.join("log")).unwrap_or_default());
        for namespace in [&self.trusted, &self.untrusted, &self.gate] {
            let _gone = namespace.delete();
        }
    }
}
