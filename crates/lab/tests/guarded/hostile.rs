//! A stranger on the wire sends whatever he likes as fast as he can: the daemon lives, its memory stays flat, honest hosts
//! talk, and every frame has a name in the books.

use std::path::PathBuf;
use std::time::Duration;

use bump::Generator;
use ringwall_lab::failure::Failure;
use ringwall_lab::net::lan::INTERFACE;
use ringwall_lab::net::talk::{Mailbox, Ping, reach};
use ringwall_lab::net::{Forwarding, Frame, Host, LanPlan, Running, pcap, process};
use rustix::process::{Signal, kill_process_group};
use wire::{EtherType, MacAddress};

use crate::stage::{Guarded, Outcome, Plan, SOON, Stage, perform_on_alone, span};
use crate::takeover::{assert_nothing_left, assert_same, picture};
use crate::wire::*;

/// Different frames of a flood; it repeats them.
const FRAMES: usize = 20_000;
const SEED: [u8; 32] = [0x5e; 32];
/// What memory may grow by: a share of what it was, and a constant in KiB.
const GROWTH_MAX_PERCENT: u64 = 10;
const GROWTH_MAX_KIB: u64 = 2048;

/// A hub, because the flood carries honest addresses and would lead a switch astray, guarded or not.
fn hub() -> LanPlan {
    LanPlan { hosts: vec!["a", "b", "c"], forwarding: Forwarding::Hub, ..LanPlan::default() }
}

/// What is dropped by name whoever looks first.
const BY_ALL: [&str; 8] = [
    "unsealed",
    "plain-arp",
    "malformed",
    "bad-version",
    "unknown-index",
    "not-for-us",
    "own-source",
    "handshake-site-mac",
];

#[test]
fn a_flood_leaves_the_daemon_up_its_memory_flat_and_a_ping_alive() {
    is_lived_through("kernel", &["repeated"]);
}

/// What the kernel would keep from the daemon comes to it.
#[test]
fn a_flood_leaves_the_daemon_up_also_without_the_kernels_checks() {
    is_lived_through("twin", &["handshake-source", "handshake-unasked"]);
}

fn is_lived_through(layers: &str, reasons: &[&str]) {
    perform_on_alone(&hub(), |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let plan = Plan::default().cll(&format!("layers = \"{layers}\""));
        let (mut near, _far) = (stage.guard("a", plan)?, stage.guard("b", Plan::default())?);
        let real = capture_real_frames(stage)?;
        // Buffers are as large as they will ever be after bulk traffic.
        let stream = Stream::start(&b.namespace, &a.namespace, a.ip, 5001)?;
        stream.await_progress(16 << 20, SOON)?;
        drop(stream);
        let (frames_before, memory_before) = (received(&near)?, resident_kib(near.id())?);

        let ping = Ping::start(b, a, &stage.run.directory())?;
        let time = span(Duration::from_secs(5), Duration::from_secs(60));
        let flood = start_flood(stage, &mutations(&real, a, b), time)?;
        let sent = await_end(flood, time)?;
        let tally = ping.stop()?;

        near.ensure_alive()?;
        let memory_after = resident_kib(near.id())?;
        let received = received(&near)? - frames_before;
        let loss = tally.sent.saturating_sub(tally.received);
        eprintln!("{sent} frames sent, {received} received; memory {memory_before} to {memory_after} KiB; {tally:?}");
        let allowed = memory_before + memory_before * GROWTH_MAX_PERCENT / 100 + GROWTH_MAX_KIB;
        assert!(memory_after <= allowed, "memory grew from {memory_before} to {memory_after} KiB");
        assert!(tally.lived(), "{loss} of {} pings were lost", tally.sent);
        assert!(received > 10_000, "only {received} frames of the flood arrived");
        assert_named(&near, reasons)?;
        reach(&a.namespace, b.ip, SOON)?;
        reach(&b.namespace, a.ip, SOON).map(drop)
    });
}

/// Each kind of bad frame was counted by its name, and the books add up.
fn assert_named(guarded: &Guarded, reasons: &[&str]) -> Outcome {
    let status = guarded.status()?;
    let drops = |word: &str| status["drops"][word].as_u64().expect("a number");
    for word in BY_ALL.iter().chain(reasons) {
        assert!(drops(word) > 0, "no frame was dropped as {word}: {}", status["drops"]);
    }
    // Which of these it is hangs on how often the hosts have changed their keys meanwhile.
    assert!(["bad-tag", "too-old", "replayed"].map(drops).iter().sum::<u64>() > 0, "{}", status["drops"]);
    let frames = |name: &str| status["frames"][name].as_u64().expect("a number");
    let taken = frames("received_from_stack") + frames("received_from_wire");
    let fates = ["forwarded_to_wire", "forwarded_to_stack", "answered", "consumed", "held", "dropped"];
    assert_eq!(taken, fates.map(frames).iter().sum::<u64>(), "{}", status["frames"]);
    Ok(())
}

#[test]
fn what_the_daemon_has_no_time_for_is_in_its_books() {
    perform_on_alone(&hub(), |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let (near, _far) = (stage.guard("a", Plan::default())?, stage.guard("b", Plan::default())?);
        let real = capture_real_frames(stage)?;
        let overflowed = || Ok::<_, Failure>(near.status()?["ports"]["wire_kernel_drops"].as_u64().expect("a number"));
        assert_eq!(overflowed()?, 0);
        kill_process_group(near.pid(), Signal::STOP).expect("it runs");
        let time = Duration::from_secs(2);
        let sent = start_flood(stage, &mutations(&real, a, b), time).and_then(|flood| await_end(flood, time));
        kill_process_group(near.pid(), Signal::CONT).expect("it runs");
        assert!(sent? > 50_000, "more than a port holds");
        assert!(overflowed()? > 1000, "{}", near.status()?["ports"]);
        reach(&a.namespace, b.ip, SOON).map(drop)
    });
}

#[test]
fn an_interrupt_in_the_middle_of_a_flood_leaves_nothing() {
    perform_on_alone(&hub(), |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let before = picture(a)?;
        let mut near = stage.guard("a", Plan::default().host("on_exit = \"restore\""))?;
        let _far = stage.guard("b", Plan::default())?;
        let real = capture_real_frames(stage)?;
        let unflooded = received(&near)?;
        let flood = start_flood(stage, &mutations(&real, a, b), Duration::from_secs(30))?;
        process::until("the flood", SOON, || Ok(received(&near)? > unflooded + 5000))?;
        near.stop(Signal::INT);
        assert_same(&before, &picture(a)?, "after an interrupt");
        assert_nothing_left(&near)?;
        flood.stop(Signal::INT);
        Ok(())
    });
}

/// Handshakes and sealed frames between `a` and `b`, and plain ones of a stranger.
fn capture_real_frames(stage: &Stage) -> Result<Vec<Frame>, Failure> {
    let (a, b, c) = (stage.host("a"), stage.host("b"), stage.host("c"));
    let (arriving, sent) = (watch_arriving(stage, a)?, watch_sent(stage, a)?);
    reach(&b.namespace, a.ip, SOON)?;
    let mailbox = (Mailbox::open(b, PORT)?, Mailbox::open(a, PORT)?);
    await_datagram(&mailbox.0, a, &mailbox.1, SOON)?;
    c.pin_neighbour(a)?;
    Mailbox::open(c, PORT)?.send(a, PORT, &[0x55; 300]);
    assert!(!answers_arp(c, a.ip)?);
    let is_handshake = |frame: &Frame| frame.cll_type().is_some_and(|kind| kind != wire::cll::PacketType::Unicast);
    let mut frames = arriving.stop()?;
    frames.extend(sent.stop()?);
    assert!(frames.iter().any(is_handshake) && frames.iter().any(|frame| frame.cll_type().is_some()));
    Ok(frames)
}

/// Random bytes, truncations, flipped bits, splices and replays, most of them addressed to `victim`.
fn mutations(real: &[Frame], victim: &Host, peer: &Host) -> Vec<Frame> {
    let mut random = Generator::from_seed(SEED);
    let mut below = move |limit: usize| random.number() as usize % limit.max(1);
    let mut frames = Vec::with_capacity(FRAMES);
    for number in 0..FRAMES {
        let mut bytes = real[below(real.len())].0.clone();
        let other = &real[below(real.len())].0;
        match number % 6 {
            0 => bytes = (0..14 + below(1400)).map(|_| below(256) as u8).collect(),
            1 => bytes.truncate(14 + below(bytes.len() - 14)),
            2 => (0..1 + below(8)).for_each(|_| {
                let at = 14 + below(bytes.len().min(60) - 14);
                bytes[at] ^= 1 << below(8)
            }),
            3 => bytes.splice(14 + below(20).., other[14 + below(other.len() - 14)..].iter().copied()).for_each(drop),
            4 => bytes.extend((0..below(60)).map(|_| 0xaa)),
            _ => {}
        }
        bytes.resize(bytes.len().clamp(14, 1514), 0);
        let sources =
            [peer.mac, peer.mac, victim.mac, MacAddress([0xff; 6]), MacAddress([2, 9, 9, 9, 9, below(256) as u8])];
        let destinations = [victim.mac, victim.mac, victim.mac, MacAddress([0xff; 6]), peer.mac];
        let mut frame = Frame(bytes);
        if number % 3 != 0 {
            frame = frame.with_addresses(sources[below(sources.len())], destinations[below(destinations.len())]);
        }
        if number % 12 == 0 {
            frame = frame.with_addresses(peer.mac, victim.mac);
            frame.0[12..14].copy_from_slice(&EtherType::CLL.0.to_be_bytes());
        }
        frames.push(frame);
    }
    frames
}

fn start_flood(stage: &Stage, frames: &[Frame], time: Duration) -> Result<Running, Failure> {
    let file: PathBuf = stage.file("flood.pcap");
    pcap::write(&file, frames)?;
    let mut command = stage.host("c").namespace.command("tcpreplay");
    command.args(["--preload-pcap", "--topspeed", "--loop=100000000", "-i", INTERFACE]);
    command.arg(format!("--duration={}", time.as_secs())).arg(&file);
    Running::start(command, &stage.file("flood.log"))
}

/// Waits until the flood is over; how many frames it was.
fn await_end(mut flood: Running, time: Duration) -> Result<u64, Failure> {
    process::until("the end of the flood", time + SOON, || Ok(flood.ensure_alive().is_err()))?;
    let output = flood.output();
    let count = output.lines().find_map(|line| line.trim().strip_prefix("Successful packets:")?.trim().parse().ok());
    count.ok_or(Failure::Unreadable(format!("tcpreplay's summary: {output}")))
}

fn received(guarded: &Guarded) -> Result<u64, Failure> {
    Ok(guarded.status()?["frames"]["received_from_wire"].as_u64().expect("a number"))
}

/// Memory that the process `id` takes.
pub fn resident_kib(id: u32) -> Result<u64, Failure> {
    let text =
        std::fs::read_to_string(format!("/proc/{id}/status")).map_err(Failure::io("reading a process's status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    kib.ok_or(Failure::Unreadable("VmRSS".to_owned()))
}
