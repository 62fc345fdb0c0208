//! The sandbox of a running daemon, seen from outside: who it is, what it may do, and that its work
//! goes on in there. What it cannot do is tried from inside, in the tests of `system`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use ringwall_lab::failure::Failure;
use ringwall_lab::net::talk::reach;
use ringwall_lab::net::{LanPlan, Running, process};
use rustix::process::Signal;

use crate::stage::{Guarded, Outcome, Plan, SOON, Stage, perform, perform_alone, program};

/// CAP_NET_ADMIN, from linux/capability.h.
pub const NET_ADMIN: u64 = 1 << 12;
/// Supervisor, data path and who checks signatures beside it.
pub const WITH_WORKER: usize = 3;
/// Supervisor and data path: a gateway and a shield have no slow work.
pub const WITHOUT_WORKER: usize = 2;
/// CAP_IPC_LOCK, which stands in for a limit of locked memory that could not be lifted.
const IPC_LOCK: u64 = 1 << 14;

/// The lines of a thread's status, by name.
fn status(thread: &Path) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(thread.join("status")).expect("it runs");
    let line = |line: &str| line.split_once(':').map(|(name, value)| (name.to_owned(), value.trim().to_owned()));
    text.lines().filter_map(line).collect()
}

/// Every thread of process `id` is another user than root, in no group but its own, behind the
/// filters, and has these capabilities exactly; it has so many threads at `least`.
pub fn assert_inside(id: u32, wanted: u64, least: usize) {
    let limits = std::fs::read_to_string(format!("/proc/{id}/limits")).expect("it runs");
    let is_unlimited = limits.lines().any(|line| line.starts_with("Max locked memory         unlimited"));
    let wanted = if is_unlimited { wanted } else { wanted | IPC_LOCK };
    let threads: Vec<_> = std::fs::read_dir(format!("/proc/{id}/task")).expect("it runs").flatten().collect();
    assert!(threads.len() >= least, "{} threads", threads.len());
    for thread in threads {
        let status = status(&thread.path());
        let field = |name: &str| status.get(name).unwrap_or_else(|| panic!("no {name} in {status:?}")).as_str();
        let ids = |name: &str| field(name).split_whitespace().map(|id| id.parse::<u32>().expect("a number"));
        assert!(ids("Uid").chain(ids("Gid")).all(|id| id != 0), "{status:?}");
        let set = |name: &str| u64::from_str_radix(field(name), 16).expect("a number");
        assert_eq!((set("CapEff"), set("CapPrm"), set("CapBnd")), (wanted, wanted, wanted), "{status:?}");
        assert_eq!((set("CapInh"), set("CapAmb")), (0, 0));
        assert_eq!((field("Groups"), field("NoNewPrivs"), field("Seccomp")), ("", "1", "2"));
        assert!(!field("VmLck").starts_with("0 "), "{}", field("VmLck"));
        println!(
            "{}: Uid {} CapEff {} NoNewPrivs {} Seccomp {} ({} filters) VmLck {}",
            field("Name"),
            field("Uid").replace('\t', " "),
            field("CapEff"),
            field("NoNewPrivs"),
            field("Seccomp"),
            field("Seccomp_filters"),
            field("VmLck"),
        );
    }
    assert!(
        limits.lines().any(|line| line.starts_with("Max core file size        0                    0 ")),
        "{limits}"
    );
}

/// The daemon's log and events name no system call that was refused.
pub fn assert_unhindered(guarded: &Guarded) -> Outcome {
    assert!(guarded.log().contains("in its sandbox"), "{}", guarded.log());
    let events = process::must(guarded.command(&["events"]))?;
    assert!(!events.contains("the sandbox refuses"), "{events}");
    Ok(())
}

#[test]
fn a_host_of_each_mode_is_inside() {
    perform(&["a", "b", "k"], |stage| {
        for on_exit in ["closed", "restore"] {
            let line = format!("on_exit = \"{on_exit}\"");
            let guarded = stage.guard("a", Plan::default().host(&line))?;
            assert_inside(guarded.id(), NET_ADMIN, WITH_WORKER);
            assert_unhindered(&guarded)?;
        }
        let distributor = stage.guard("k", Plan::distributor())?;
        let signing = stage.guard("b", Plan::sarp())?;
        reach(&stage.host("b").namespace, stage.host("k").ip, SOON)?;
        for guarded in [&distributor, &signing] {
            assert_inside(guarded.id(), NET_ADMIN, WITH_WORKER);
            assert_unhindered(guarded)?;
        }
        Ok(())
    });
}

#[test]
fn a_shield_is_inside_and_takes_new_keys() {
    perform(&["a", "b"], |stage| {
        let files = ["a.keys", "b.keys"].map(|name| stage.file(name));
        let mut make = stage.host("a").namespace.command(&program().to_string_lossy());
        make.args(["shield", "keys", "make"]).args(&files);
        process::must(make)?;
        let (peer, keys) = (stage.host("b").ip, files[0].display());
        let section = format!("[shield]\n[[shield.peers]]\naddress = \"{peer}\"\nkeys = \"{keys}\"\n");
        let mut guarded = stage.prepare("a", Plan::default().host("mode = \"shield\"").tail(&section))?;
        guarded.task = "shield";
        guarded.start(&[])?;
        assert_inside(guarded.id(), NET_ADMIN, WITHOUT_WORKER);
        let mut rotate = stage.host("a").namespace.command(&program().to_string_lossy());
        rotate.args(["shield", "keys", "next"]).args(&files);
        process::must(rotate)?;
        process::until("the keys", SOON, || Ok(process::must(guarded.command(&["events"]))?.contains("keys-read")))?;
        assert_unhindered(&guarded)
    });
}

/// docs/manual/sandbox.md lists what a daemon of mode `cll` calls; a traced one calls nothing else.
#[test]
fn a_running_daemon_makes_the_calls_that_are_listed_and_no_others() {
    let plan = LanPlan { hosts: vec!["a", "b"], ..LanPlan::default() };
    let name = "a_running_daemon_makes_the_calls_that_are_listed_and_no_others";
    perform_alone(name, &["strace"], |run| trace_a_daemon(&Stage::set(run, &plan)?));
}

fn trace_a_daemon(stage: &Stage) -> Outcome {
    let mut guarded = stage.guard("a", Plan::default())?;
    let _peer = stage.guard("b", Plan::default())?;
    let trace = stage.file("calls");
    let mut command = std::process::Command::new("strace");
    command.args(["-f", "-p", &guarded.id().to_string(), "-o"]).arg(&trace);
    let mut tracer = Running::start(command, &stage.file("strace.log"))?;
    tracer.await_output("attached", SOON)?;
    reach(&stage.host("a").namespace, stage.host("b").ip, SOON)?;
    for words in [&["status"][..], &["peers"], &["events"], &["host", "reload"]] {
        process::must(guarded.command(words))?;
    }
    guarded.stop(Signal::TERM);
    tracer.stop(Signal::TERM);
    let text = std::fs::read_to_string(&trace).map_err(Failure::file("reading", &trace))?;
    let seen: BTreeSet<_> = text.lines().filter_map(called).collect();
    println!("{} calls: {seen:?}", seen.len());
    assert!(["sendmmsg", "exit_group"].iter().all(|call| seen.contains(call)), "no work: {text}");
    let unlisted: Vec<_> = seen.difference(&listed()).copied().collect();
    assert!(unlisted.is_empty(), "{unlisted:?} are not in docs/manual/sandbox.md");
    Ok(())
}

/// The name of the call in a line of strace, where one begins: a number of a thread, a name, and
/// arguments in brackets. What strace itself interrupted begins anew under another name.
fn called(line: &str) -> Option<&str> {
    let (name, _) = line.split_once(' ')?.1.trim_start().split_once('(')?;
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (name.bytes().all(is_name) && name != "restart_syscall").then_some(name)
}

/// What docs/manual/sandbox.md lists of mode `cll`: names in backquotes.
fn listed() -> BTreeSet<&'static str> {
    let page = include_str!("../../../../docs/manual/sandbox.md");
    let (_, list) = page.split_once("of mode `cll` makes these system calls:").expect("the list");
    let (list, _) = list.split_once(". ").expect("its end");
    list.split('`').skip(1).step_by(2).collect()
}

/// The monitor is root, has nothing but its files, and ends with the daemon, whatever ends that.
#[test]
fn the_monitor_ends_with_its_daemon() {
    perform(&["a"], |stage| {
        for signal in [Signal::TERM, Signal::KILL] {
            let mut guarded = stage.guard("a", Plan::default())?;
            let monitor = monitor_of(guarded.id());
            let own = status(Path::new(&format!("/proc/{monitor}")));
            assert_eq!((own["CapEff"].as_str(), own["CapBnd"].as_str()), ("0000000000000000", "0000000000000000"));
            assert_eq!((own["NoNewPrivs"].as_str(), own["Seccomp"].as_str()), ("1", "2"));
            // Ctrl-C and service managers may signal all of a service.
            let id = rustix::process::Pid::from_raw(i32::try_from(monitor).expect("a number")).expect("a process");
            rustix::process::kill_process(id, Signal::TERM).expect("root may");
            assert!(process::must(guarded.command(&["host", "reload"]))?.contains("mode "));
            guarded.stop(signal);
            let gone = || Ok(!Path::new(&format!("/proc/{monitor}/status")).exists() || is_dead(monitor));
            process::until("the end of the monitor", Duration::from_secs(5), gone)?;
            let socket = guarded.directory.join("run/e0.sock");
            assert_eq!(socket.exists(), signal == Signal::KILL, "an orderly end removes the socket");
        }
        Ok(())
    });
}

/// Whether it has ended and only its entry is left, until whoever inherited it asks.
fn is_dead(process: u32) -> bool {
    status(Path::new(&format!("/proc/{process}")))["State"].starts_with('Z')
}

fn monitor_of(daemon: u32) -> u32 {
    let children = std::fs::read_to_string(format!("/proc/{daemon}/task/{daemon}/children")).expect("it runs");
    children.split_whitespace().next().and_then(|id| id.parse().ok()).expect("a daemon has a monitor")
}
