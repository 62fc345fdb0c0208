//! The lab on the real kernel: an attack succeeds on a bare LAN, and nothing stays behind however the lab ends.
//!
//! Needs root and the tools of the attacks; skips by name without.

#![allow(clippy::expect_used, reason = "helpers of tests fail like tests")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};

const LAB: &str = env!("CARGO_BIN_EXE_ringwall-lab");
const LIMIT: Duration = Duration::from_secs(60);

/// Whether these tests can run; says so if not.
fn possible(test: &str) -> bool {
    let ready = geteuid().is_root() && Path::new("/usr/sbin/tcpdump").exists() | Path::new("/usr/bin/tcpdump").exists();
    if !ready {
        eprintln!("SKIPPED {test}: needs root and tcpdump");
    }
    ready
}

/// Names of namespaces and directories of the run of process `pid`.
fn left_of(pid: u32) -> Vec<String> {
    let prefix = format!("rl{pid}-");
    let entries =
        ["/run/netns", "/run"].into_iter().filter_map(|directory| std::fs::read_dir(directory).ok()).flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.starts_with(&prefix)).collect()
}

/// Ids of processes that carry the mark of the run of process `pid`.
fn processes_of(pid: u32) -> Vec<String> {
    let mark = format!("RINGWALL_LAB=rl{pid}");
    let ids = std::fs::read_dir("/proc").expect("/proc").filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let marked = |id: &String| {
        let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|entry| entry == mark.as_bytes())
    };
    ids.filter(|id| id.bytes().all(|byte| byte.is_ascii_digit())).filter(marked).collect()
}

fn start(arguments: &[&str]) -> Child {
    Command::new(LAB).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the lab starts")
}

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(child.id().cast_signed()).expect("a process id");
    kill_process(pid, signal).expect("the lab still runs");
}

/// Waits until the run has processes on its hosts, that is, until an attack is under way.
fn await_attack(child: &Child) {
    let deadline = Instant::now() + LIMIT;
    while processes_of(child.id()).len() < 3 {
        assert!(Instant::now() < deadline, "the attack never began");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_spoofed_request_succeeds_on_a_bare_lan() {
    if !possible("a_spoofed_request_succeeds_on_a_bare_lan") {
        return;
    }
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("rows.json");
    let mut lab = Command::new(LAB);
    lab.args(["demo", "--only", "4", "--guard", "none", "--json"]).arg(&file);
    let mut child = lab.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the lab starts");
    let status = child.wait().expect("the lab ends");
    let rows: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).expect("rows")).expect("JSON");
    let row = &rows[0];
    if row["outcome"] == "skipped" {
        eprintln!("SKIPPED a_spoofed_request_succeeds_on_a_bare_lan: {}", row["evidence"]);
        return;
    }
    assert_eq!((&row["guard"], &row["outcome"]), (&"none".into(), &"succeeded".into()), "{row}");
    assert!(status.success());
    assert_eq!(left_of(child.id()), Vec::<String>::new());
}

#[test]
fn nothing_stays_after_an_interrupt() {
    if !possible("nothing_stays_after_an_interrupt") {
        return;
    }
    for ending in [Signal::INT, Signal::TERM] {
        let mut child = start(&["attack", "46"]);
        await_attack(&child);
        signal(&child, ending);
        let status = child.wait().expect("the lab ends");
        assert_eq!(status.code(), Some(128 + ending.as_raw()));
        assert_eq!(left_of(child.id()), Vec::<String>::new());
        assert_eq!(processes_of(child.id()), Vec::<String>::new());
    }
}

#[test]
fn what_a_killed_lab_left_is_removed_by_down() {
    if !possible("what_a_killed_lab_left_is_removed_by_down") {
        return;
    }
    if Path::new("/run/rlup-lab").exists() {
        eprintln!("SKIPPED what_a_killed_lab_left_is_removed_by_down: it would remove the LAN that is up");
        return;
    }
    let mut child = start(&["attack", "46"]);
    await_attack(&child);
    signal(&child, Signal::KILL);
    child.wait().expect("the lab is gone");
    assert!(!left_of(child.id()).is_empty(), "a killed lab cannot clean up; this test would show nothing");
    let status = Command::new(LAB).arg("down").stdout(Stdio::null()).status().expect("the lab starts");
    assert!(status.success());
    assert_eq!(left_of(child.id()), Vec::<String>::new());
    assert_eq!(processes_of(child.id()), Vec::<String>::new());
}
