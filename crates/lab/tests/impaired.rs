//! Hosts behind our own impairing link: it carries plain traffic unharmed when it is asked for nothing, and guarded
//! hosts live with everything it can do.
//!
//! Needs root, a few tools and the built program; skips by name without.

#![allow(clippy::expect_used, reason = "helpers of tests fail like tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use bump::Generator;
use ringwall_lab::cleanup::{self, Run};
use ringwall_lab::failure::Failure;
use ringwall_lab::guard::{Setting, Site};
use ringwall_lab::net::talk::Mailbox;
use ringwall_lab::net::{Host, ImpairedPort, Impairment, Lan, LanPlan, LinkCounters, Percent, process};
use rustix::process::geteuid;

const LAB: &str = env!("CARGO_BIN_EXE_ringwall-lab");
const PORT: u16 = 9100;
const TRANSFER_BYTES: usize = 5_000_000;
/// How long either end waits for the other before it gives up.
const PATIENCE: Duration = Duration::from_secs(60);
const DATAGRAMS: u32 = 3000;

static TURN: Mutex<()> = Mutex::new(());
static RUN: OnceLock<&'static Run> = OnceLock::new();

/// The turn of `test`, or `None` when it cannot run here, which it says. All share the name of this process's run.
fn turn(test: &str) -> Option<(MutexGuard<'static, ()>, &'static Run)> {
    let missing: Vec<_> = ["ip", "nsenter", "ping", "ethtool"].into_iter().filter(|t| !process::installed(t)).collect();
    let program = program();
    if !geteuid().is_root() || !missing.is_empty() || !program.is_file() {
        eprintln!("SKIPPED {test}: needs root, {} (missing: {missing:?})", program.display());
        return None;
    }
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let run = RUN.get_or_init(|| {
        // Other runs of the lab clear away what belongs to no living lab, and know one by this name.
        std::fs::write("/proc/self/comm", "ringwall-lab-t").expect("a process may name itself");
        cleanup::begin_transient().expect("root can begin a run")
    });
    std::fs::create_dir_all(run.directory()).expect("root writes below /run");
    Some((turn, *run))
}

/// The program of a release build, beside whatever profile this test is built with.
fn program() -> PathBuf {
    Path::new(LAB).ancestors().nth(2).expect("target/profile/program").join("release/ringwall")
}

/// A LAN whose host b is behind a link with `impairment`.
fn lan(run: &Run, impairment: Impairment) -> Lan {
    let impaired = Some(ImpairedPort { host: "b", impairment, seed: 1, program: Some(LAB.into()) });
    Lan::create(run, &LanPlan { hosts: vec!["a", "b"], impaired, ..LanPlan::default() }).expect("a LAN")
}

fn hosts(lan: &Lan) -> (Host, Host) {
    let host = |name| lan.host(name).cloned().expect("the plan has it");
    (host("a"), host("b"))
}

/// Sends `bytes` from `from` to `to` over TCP; returns what arrived.
fn transfer(from: &Host, to: &Host, bytes: &[u8]) -> Vec<u8> {
    let listen = || TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).map_err(Failure::io("listening"));
    let listener = to.namespace.enter(listen).expect("a free port");
    let connect = || TcpStream::connect((to.ip, PORT)).map_err(Failure::io("connecting"));
    let mut sender = from.namespace.enter(connect).expect("a connection");
    let (mut receiver, _) = listener.accept().expect("the connection");
    sender.set_write_timeout(Some(PATIENCE)).expect("a socket has timeouts");
    receiver.set_read_timeout(Some(PATIENCE)).expect("a socket has timeouts");
    let mut arrived = Vec::new();
    thread::scope(|scope| {
        scope.spawn(move || sender.write_all(bytes));
        receiver.read_to_end(&mut arrived).expect("the transfer goes on");
    });
    arrived
}

/// Random bytes, so that no misplaced or altered part can look right.
fn random_bytes() -> Vec<u8> {
    let mut random = Generator::from_seed([3; 32]);
    (0..TRANSFER_BYTES / 4).flat_map(|_| random.number().to_be_bytes()).collect()
}

/// Sends numbered datagrams from `from` to `to`; returns the numbers that arrived, in their order.
fn numbered_datagrams(from: &Host, to: &Host) -> Vec<u32> {
    let outbox = Mailbox::open(from, PORT).expect("a free port");
    let inbox = Mailbox::open(to, PORT).expect("a free port");
    let mut arrived = Vec::new();
    let mut collect = || {
        let taken = inbox.take().expect("a socket");
        arrived.extend(taken.iter().map(|(_, payload)| {
            assert_eq!(payload.len(), 600);
            u32::from_be_bytes(payload[..4].try_into().expect("four bytes"))
        }));
    };
    for number in 0..DATAGRAMS {
        let mut payload = vec![0xd5; 600];
        payload[..4].copy_from_slice(&number.to_be_bytes());
        outbox.send(to, PORT, &payload);
        if number % 20 == 0 {
            thread::sleep(Duration::from_millis(2));
            collect();
        }
    }
    thread::sleep(Duration::from_millis(300));
    collect();
    arrived
}

#[test]
fn a_link_without_faults_is_a_wire() {
    let Some((_turn, run)) = turn("a_link_without_faults_is_a_wire") else { return };
    let mut lan = lan(run, Impairment::default());
    let (a, b) = hosts(&lan);
    lan.acquaint(&a, &b).expect("they can talk");
    let bytes = random_bytes();
    assert!(transfer(&a, &b, &bytes) == bytes && transfer(&b, &a, &bytes) == bytes);
    let LinkCounters { left, right, missed, refused } = lan.end_link().expect("it counts");
    for line in [left, right] {
        // A frame of 1500 bytes carries 1448: more than this many frames means that no super-frame came in.
        assert!(line.taken as usize > TRANSFER_BYTES / 1500, "{line:?}");
        assert_eq!((line.lost, line.duplicated, line.corrupted, line.overflowed, line.offloaded), (0, 0, 0, 0, 0));
        assert_eq!(line.taken, line.delivered);
    }
    assert_eq!((missed, refused), (0, 0));
    drop(lan);
    assert_eq!(cleanup::sweep(run), Vec::<String>::new());
}

#[test]
fn guarded_hosts_live_with_a_bad_line() {
    let Some((_turn, run)) = turn("guarded_hosts_live_with_a_bad_line") else { return };
    let mut lan = lan(run, bad_line());
    let (a, b) = hosts(&lan);
    let site = Site::found(run, &program()).expect("a site");
    let mut daemons = [&a, &b].map(|host| site.guard(&lan, host, &Setting::default()).expect("a daemon"));
    daemons.iter_mut().for_each(|daemon| daemon.await_ready().expect("it guards"));
    lan.acquaint(&b, &a).expect("the handshake survives the line");

    ping_through(&a, &b);
    let bytes = random_bytes();
    assert!(transfer(&b, &a, &bytes) == bytes, "the transfer was altered");
    let arrived = numbered_datagrams(&b, &a);
    let drops = daemons[0].drops().expect("it still answers");
    let counters = lan.end_link().expect("it counts");
    eprintln!("{} of {DATAGRAMS} datagrams, {counters:?}", arrived.len());

    let distinct: BTreeSet<u32> = arrived.iter().copied().collect();
    assert_eq!(distinct.len(), arrived.len(), "a datagram was delivered twice");
    // 5 % lost and 1 % corrupted leave 94 %.
    assert!(arrived.len() as u32 > DATAGRAMS * 9 / 10, "{} of {DATAGRAMS}", arrived.len());
    assert_faults_are_named(&drops, &counters);
    drop((daemons, lan));
    assert_eq!(cleanup::sweep(run), Vec::<String>::new());
}

fn bad_line() -> Impairment {
    Impairment {
        loss: Percent::whole(5),
        duplicate: Percent::whole(2),
        reorder: Percent::whole(5),
        corrupt: Percent::whole(1),
        delay: Duration::from_millis(2),
        ..Impairment::default()
    }
}

/// Pings that cross the line twice: 88 % come back, and none twice.
fn ping_through(from: &Host, to: &Host) {
    let mut ping = from.namespace.command("ping");
    ping.args(["-n", "-q", "-c", "300", "-i", "0.01", "-W", "1", &to.ip.to_string()]);
    let said = process::ask(ping, &[]).expect("ping ends").stdout;
    let received = said.split(" received").next().and_then(|before| before.rsplit(' ').next()?.parse::<u32>().ok());
    // 88 % of 300 is 264 with a standard deviation of 6.
    assert!(received.is_some_and(|received| received >= 234), "{said}");
    assert!(!said.contains("duplicates"), "{said}");
}

/// What the link did to b's frames is what a's counters name.
fn assert_faults_are_named(drops: &BTreeMap<String, u64>, counters: &LinkCounters) {
    let left = counters.left;
    assert!(left.lost > 0 && left.reordered > 0, "{left:?}");
    let of = |word: &str| drops.get(word).copied().unwrap_or(0);
    // A copy of a handshake's frame is dropped for another reason, and a flipped bit can make a number an old one.
    let replayed = left.duplicated * 8 / 10..=left.duplicated + left.corrupted;
    assert!(left.duplicated > 0 && replayed.contains(&of("replayed")), "{drops:?} {left:?}");
    // Of a full frame's 1514 bytes, 28 are headers, in which a flipped bit may be noticed otherwise.
    let bad_tag = left.corrupted * 7 / 10..=left.corrupted;
    assert!(left.corrupted > 0 && bad_tag.contains(&of("bad-tag")), "{drops:?} {left:?}");
}
