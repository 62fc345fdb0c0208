//! Two gateways in parallel between two switches, and hosts that talk through whichever is active.
//!
//! ```text
//!   untrusted host        switch          gateways a and b       switch         trusted host
//!   u: e0 ------------ outside: brO ==== out0 [program] in0 ==== inside: brI ------------ t: e0
//!                                              sync0 - sync0
//! ```

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ringwall_lab::cleanup::{self, Run};
use ringwall_lab::failure::Failure;
use ringwall_lab::net::{Namespace, Running, process};
use rustix::process::Signal;
use serde_json::Value;

use super::{HOST_INTERFACE, PATIENCE, READY_LIMIT, TRUSTED, UNTRUSTED, raw};
use crate::stage::{Outcome, assert_unhindered, name_of, perform_bare, program};

/// Connections that run through the pair.
const CONNECTIONS: usize = 40;
/// Between two words of one connection.
const PACE: Duration = Duration::from_millis(5);
const PORT: u16 = 5001;

struct Gateway {
    space: Namespace,
    directory: PathBuf,
    process: Option<Running>,
}

struct Pair {
    hosts: [Namespace; 2],
    switches: [Namespace; 2],
    gateways: [Gateway; 2],
}

fn perform_in_pair<T: FnOnce(&mut Pair) -> Outcome>(test: T) {
    let name = name_of(&test);
    perform_bare(name, &[], |run| {
        let mut pair = Pair::lay(run)?;
        pair.start(0)?;
        pair.start(1)?;
        pair.until("one active, the other in sync", |statuses| {
            let roles = statuses.map(|status| (status["pair"]["role"].clone(), status["pair"]["in_sync"].clone()));
            roles[0] == ("active".into(), true.into()) && roles[1] == ("standby".into(), true.into())
        })?;
        test(&mut pair)
    });
}

impl Pair {
    fn lay(run: &'static Run) -> Result<Pair, Failure> {
        let space = |member| Namespace::create(run, member);
        let hosts = [space("t")?, space("u")?];
        let switches = [space("inside")?, space("outside")?];
        for ((switch, host), address) in switches.iter().zip(&hosts).zip([TRUSTED, UNTRUSTED]) {
            switch.ip("link add br0 type bridge mcast_snooping 0")?;
            switch.ip("link set br0 up")?;
            switch.ip(&format!("link add h0 type veth peer name {HOST_INTERFACE} netns {}", host.name()))?;
            switch.ip("link set h0 master br0")?;
            switch.ip("link set h0 up")?;
            host.ip(&format!("address add {address}/24 dev {HOST_INTERFACE}"))?;
            host.ip(&format!("link set {HOST_INTERFACE} up"))?;
        }
        let gateway = |member: &'static str| {
            let directory = run.directory().join(format!("gateway-{member}"));
            std::fs::create_dir_all(&directory).map_err(Failure::file("making", &directory))?;
            Ok::<_, Failure>(Gateway { space: space(member)?, directory, process: None })
        };
        let pair = Pair { hosts, switches, gateways: [gateway("a")?, gateway("b")?] };
        let [a, b] = &pair.gateways;
        a.space.ip(&format!("link add sync0 type veth peer name sync0 netns {}", b.space.name()))?;
        for (number, gateway) in pair.gateways.iter().enumerate() {
            for (switch, card) in pair.switches.iter().zip(["in0", "out0"]) {
                let port = format!("g{number}");
                switch.ip(&format!("link add {port} type veth peer name {card} netns {}", gateway.space.name()))?;
                switch.ip(&format!("link set {port} master br0"))?;
                switch.ip(&format!("link set {port} up"))?;
                gateway.space.ip(&format!("link set {card} up"))?;
            }
            gateway.space.ip(&format!("address add 192.0.2.{}/24 dev sync0", number + 1))?;
            gateway.space.ip("link set sync0 up")?;
            gateway.configure(number)?;
        }
        Ok(pair)
    }

    fn start(&mut self, number: usize) -> Outcome {
        self.gateways[number].start()
    }

    fn until(&self, what: &str, holds: impl Fn([Value; 2]) -> bool) -> Outcome {
        process::until(what, READY_LIMIT, || {
            let [a, b] = &self.gateways;
            Ok(holds([a.status().unwrap_or_default(), b.status().unwrap_or_default()]))
        })
    }

    fn until_role(&self, number: usize, role: &str) -> Outcome {
        process::until(role, READY_LIMIT, || {
            Ok(self.gateways[number].status().is_ok_and(|status| status["pair"]["role"] == role))
        })
    }

    fn until_in_sync(&self) -> Outcome {
        self.until("both in sync", |statuses| statuses.iter().all(|status| status["pair"]["in_sync"] == true))
    }
}

impl Gateway {
    fn configure(&self, number: usize) -> Outcome {
        let directory = self.directory.display();
        let (local, peer) = (number + 1, 2 - number);
        let key = self.directory.join("pair.key");
        std::fs::write(&key, "5a".repeat(32)).map_err(Failure::file("writing", &key))?;
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&key, private).map_err(Failure::file("closing", &key))?;
        let text = format!(
            "[gate]\ntrusted = \"in0\"\nuntrusted = \"out0\"\nrun_dir = \"{directory}/run\"\n\
             state_dir = \"{directory}/state\"\n[pair]\nkey_file = \"{}\"\nlocal = \"192.0.2.{local}:4790\"\n\
             peer = \"192.0.2.{peer}:4790\"\npriority = {}\n",
            key.display(),
            100 - number
        );
        let file = self.directory.join("gate.toml");
        std::fs::write(&file, text).map_err(Failure::file("writing", &file))
    }

    fn command(&self, words: &[&str]) -> std::process::Command {
        let mut command = self.space.command(&program().to_string_lossy());
        command.args(words).arg("--config").arg(self.directory.join("gate.toml"));
        command
    }

    fn status(&self) -> Result<Value, Failure> {
        let mut command = self.command(&["status"]);
        command.arg("--json");
        let text = process::told(command)?;
        serde_json::from_str(&text).map_err(|error| Failure::Unreadable(format!("status: {error}: {text}")))
    }

    /// What a command says that must fail.
    fn refusal(&self, words: &[&str]) -> Result<String, Failure> {
        let answer = process::ask(self.command(words), &[])?;
        assert!(!answer.status.success(), "{words:?} was carried out");
        Ok(answer.stderr)
    }

    fn start(&mut self) -> Outcome {
        let mut process = Running::start(self.command(&["gate", "run"]), &self.directory.join("log"))?;
        let ready = process::until("a gateway of the pair", READY_LIMIT, || {
            process.ensure_alive()?;
            Ok(self.status().is_ok_and(|status| status["state"] == "running"))
        });
        self.process = Some(process);
        ready
    }

    fn signal(&self, signal: Signal) {
        self.process.iter().for_each(|process| process.signal(signal));
    }

    fn stop(&mut self, signal: Signal) {
        if let Some(process) = self.process.take() {
            process.stop(signal);
        }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        if cleanup::permit().is_err() {
            return;
        }
        for gateway in &mut self.gateways {
            gateway.signal(Signal::CONT);
            gateway.stop(Signal::TERM);
            let _never_taken = process::ask(gateway.command(&["gate", "release"]), &[]);
            assert_unhindered(&std::fs::read_to_string(gateway.directory.join("log")).unwrap_or_default());
        }
        let gateways = self.gateways.iter().map(|gateway| &gateway.space);
        for namespace in self.hosts.iter().chain(&self.switches).chain(gateways) {
            let _gone = namespace.delete();
        }
    }
}

/// Connections over which both ends say numbers in turn, each byte of which is looked at.
struct Talks {
    ends: Arc<AtomicBool>,
    /// Words of all connections.
    words: Arc<AtomicU64>,
    threads: Vec<JoinHandle<Result<(), String>>>,
}

fn word(connection: usize, number: u64) -> [u8; 64] {
    std::array::from_fn(|at| (number as u8).wrapping_mul(31).wrapping_add(connection as u8).wrapping_add(at as u8))
}

impl Talks {
    fn start(pair: &Pair) -> Result<Talks, Failure> {
        let address = SocketAddr::from((TRUSTED, PORT));
        let failed = || Failure::io(format!("TCP connections to {address}"));
        let listener = pair.hosts[0].enter(|| TcpListener::bind(address).map_err(failed()))?;
        let mut talks =
            Talks { ends: Arc::new(AtomicBool::new(false)), words: Arc::new(AtomicU64::new(0)), threads: Vec::new() };
        for number in 0..CONNECTIONS {
            let client = pair.hosts[1].enter(|| TcpStream::connect_timeout(&address, PATIENCE).map_err(failed()))?;
            let (server, _) = listener.accept().map_err(failed())?;
            for end in [&client, &server] {
                end.set_nodelay(true).map_err(failed())?;
                end.set_read_timeout(Some(PATIENCE)).map_err(failed())?;
            }
            let (ends, words) = (Arc::clone(&talks.ends), Arc::clone(&talks.words));
            talks.threads.push(std::thread::spawn(move || talk(number, client, server, &ends, &words)));
        }
        Ok(talks)
    }

    /// The longest time in which no connection had a word back, while `work` was done and for a while after.
    fn outage(&self, work: impl FnOnce() -> Outcome) -> Result<Duration, Failure> {
        let (ends, words) = (Arc::new(AtomicBool::new(false)), Arc::clone(&self.words));
        let stop = Arc::clone(&ends);
        let watch = std::thread::spawn(move || {
            let (mut longest, mut since, mut last) = (Duration::ZERO, Instant::now(), words.load(Ordering::Relaxed));
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
                let now = words.load(Ordering::Relaxed);
                longest = longest.max(since.elapsed());
                if now != last {
                    (since, last) = (Instant::now(), now);
                }
            }
            longest
        });
        let done = work().and_then(|()| self.go_on());
        ends.store(true, Ordering::Relaxed);
        let longest = watch.join().expect("the watch");
        done.map(|()| longest)
    }

    /// Waits until all connections have gone on.
    fn go_on(&self) -> Outcome {
        let wanted = self.words.load(Ordering::Relaxed) + 30 * CONNECTIONS as u64;
        process::until("words of all connections", PATIENCE, || Ok(self.words.load(Ordering::Relaxed) >= wanted))
    }

    /// Ends them; how many broke, and how.
    fn end(self) -> Vec<String> {
        self.ends.store(true, Ordering::Relaxed);
        self.threads.into_iter().filter_map(|thread| thread.join().expect("a talk").err()).collect()
    }
}

fn talk(
    connection: usize,
    mut client: TcpStream,
    mut server: TcpStream,
    ends: &AtomicBool,
    words: &AtomicU64,
) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("connection {connection}: {error}");
    for number in 0.. {
        if ends.load(Ordering::Relaxed) {
            break;
        }
        let said = word(connection, number);
        for (from, to) in [(0, 1), (1, 0)] {
            let pair = [&mut client, &mut server];
            pair[from].write_all(&said).map_err(failed)?;
            let mut heard = [0; 64];
            pair[to].read_exact(&mut heard).map_err(failed)?;
            if heard != said {
                return Err(format!("connection {connection}: wrong bytes in word {number}"));
            }
        }
        words.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(PACE);
    }
    Ok(())
}

/// A failure of the active gateway, and what mends it.
type Fault = fn(&mut Pair, usize) -> Outcome;

/// How often each fault is tried, the gateways taking turns.
fn rounds() -> usize {
    std::env::var("RINGWALL_PAIR_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(4)
}

fn fail_over(name: &str, fault: Fault, mend: Fault) {
    perform_in_pair(|pair| {
        let talks = Talks::start(pair)?;
        talks.go_on()?;
        let mut outages = Vec::new();
        for round in 0..rounds() {
            let active = round % 2;
            pair.until_role(active, "active")?;
            pair.until_in_sync()?;
            outages.push(talks.outage(|| fault(pair, active))?);
            pair.until_role(1 - active, "active")?;
            mend(pair, active)?;
            pair.until_role(active, "standby")?;
        }
        let broken = talks.end();
        assert!(broken.is_empty(), "{broken:?}");
        outages.sort();
        println!(
            "failover by {name}: {CONNECTIONS} connections, {} runs, outage median {:?}, worst {:?}, lost 0",
            outages.len(),
            outages[outages.len() / 2],
            outages[outages.len() - 1]
        );
        Ok(())
    });
}

fn nothing(_: &mut Pair, _: usize) -> Outcome {
    Ok(())
}

#[test]
fn connections_outlive_a_killed_gateway() {
    let kill: Fault = |pair, active| {
        pair.gateways[active].stop(Signal::KILL);
        Ok(())
    };
    fail_over("kill", kill, Pair::start);
}

#[test]
fn connections_outlive_a_gateway_that_hangs() {
    let stop: Fault = |pair, active| {
        pair.gateways[active].signal(Signal::STOP);
        Ok(())
    };
    let go_on: Fault = |pair, active| {
        pair.gateways[active].signal(Signal::CONT);
        Ok(())
    };
    fail_over("hang", stop, go_on);
}

#[test]
fn connections_outlive_a_cable() {
    let cut: Fault = |pair, active| pair.switches[1].ip(&format!("link set g{active} down")).map(drop);
    let mend: Fault = |pair, active| pair.switches[1].ip(&format!("link set g{active} up")).map(drop);
    fail_over("cable", cut, mend);
}

#[test]
fn connections_outlive_a_handover() {
    let hand_over: Fault = |pair, active| process::must(pair.gateways[active].command(&["gate", "handover"])).map(drop);
    fail_over("handover", hand_over, nothing);
}

/// The segments carry heartbeats, too: nobody takes over, and no frame passes twice.
#[test]
fn a_cut_sync_link_makes_no_split() {
    perform_in_pair(|pair| {
        let talks = Talks::start(pair)?;
        pair.gateways[0].space.ip("link set sync0 down")?;
        talks.go_on()?;
        assert_eq!(duplicates(pair)?, 0);
        pair.until_role(0, "active")?;
        pair.until_role(1, "standby")?;
        let forwarded = pair.gateways[1].status()?["frames"]["forwarded_to_trusted"].clone();
        assert_eq!(forwarded, 0, "the standby forwards nothing");
        pair.until("both say that the sync link is silent", |statuses| {
            statuses.iter().all(|status| {
                let pair = &status["pair"];
                pair["in_sync"] == false && pair["sync_link_silent"] == true
            })
        })?;
        let refused = pair.gateways[0].refusal(&["gate", "handover"])?;
        assert!(refused.contains("does not know all flows"), "{refused}");
        pair.gateways[0].space.ip("link set sync0 up")?;
        pair.until_in_sync()?;
        let broken = talks.end();
        assert!(broken.is_empty(), "{broken:?}");
        Ok(())
    });
}

/// It hears first what the active one said meanwhile, so no frame passes twice.
#[test]
fn a_standby_that_hung_does_not_take_over() {
    perform_in_pair(|pair| {
        pair.gateways[1].signal(Signal::STOP);
        std::thread::sleep(Duration::from_secs(1));
        pair.gateways[1].signal(Signal::CONT);
        assert_eq!(duplicates(pair)?, 0);
        pair.until_in_sync()?;
        pair.until_role(0, "active")?;
        pair.until_role(1, "standby")?;
        let log = std::fs::read_to_string(pair.gateways[1].directory.join("log")).unwrap_or_default();
        assert!(!log.contains("this gateway forwards from now on"), "{log}");
        Ok(())
    });
}

/// Nothing is blocked there while the active one goes on.
#[test]
fn a_standby_blocks_nothing_and_says_whom_to_ask() {
    perform_in_pair(|pair| {
        let block = ["gate", "block", &format!("{TRUSTED}:{PORT}"), &format!("{UNTRUSTED}:40000")];
        let refused = pair.gateways[1].refusal(&block)?;
        assert!(refused.contains("ask the active gateway"), "{refused}");
        process::must(pair.gateways[0].command(&block)).map(drop)
    });
}

/// Whoever makes up addresses must have his frames pass.
#[test]
fn frames_that_are_refused_teach_no_stations() {
    const STRANGERS: u8 = 50;
    perform_in_pair(|pair| {
        let stations = |pair: &Pair| Ok::<_, Failure>(pair.gateways[0].status()?["pair"]["stations"].as_u64());
        let before = stations(pair)?.expect("a number");
        let mut port = raw::raw(&pair.hosts[1])?;
        let mut send = |kind: u8, frame: &[u8]| {
            for number in 0..STRANGERS {
                let mut frame = frame.to_vec();
                frame[6..12].copy_from_slice(&[2, 0, 0, 9, kind, number]);
                raw::put(&mut port, &frame);
            }
        };
        let passes = raw::segment([UNTRUSTED, TRUSTED], [4000, PORT], 2);
        let mut refused = passes.clone();
        refused[14] = 0x4f;
        send(1, &refused);
        send(2, &passes);
        let after = before + u64::from(STRANGERS);
        process::until("those that pass", PATIENCE, || Ok(stations(pair)? >= Some(after)))?;
        // The hosts and the switches may have said something, too.
        let known = stations(pair)?;
        assert!(known < Some(after + 10), "{before} before, {known:?} now");
        Ok(())
    });
}

/// Answers to pings that came twice.
fn duplicates(pair: &Pair) -> Result<usize, Failure> {
    let mut command = pair.hosts[1].command("ping");
    command.args(["-c", "20", "-i", "0.05", "-w", "10", &Ipv4Addr::to_string(&TRUSTED)]);
    let said = process::must(command)?;
    Ok(said.matches("DUP!").count())
}
