//! Whatever a stranger sends, as fast as he can: memory stays flat, and connections that were there go on.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bump::{Generator, Meta};
use ringwall_lab::failure::Failure;
use ringwall_lab::net::{Direction, Frame, Namespace, Watch, process};
use system::port::{PacketPort, Sender};

use super::raw::{packet_of, raw, segment};
use super::{
    HOST_INTERFACE, PATIENCE, Path, TRUSTED, TRUSTED_V6, UNTRUSTED, perform_alone_with, perform_between,
    perform_between_alone,
};
use crate::hostile::resident_kib;
use crate::stage::{Outcome, SOON, span};
use crate::wire::Stream;

/// Memory that the gateway may keep connections' data and fragments in.
const MEMORY_MAX_BYTES: u64 = 16 << 20;
/// Small tables, so that they are full soon and what grows afterwards grows without a limit.
const SMALL_TABLES: &str = "memory_max_bytes = 16777216\nflows_max = 4096\nexchanges_max = 4096";
/// What memory may grow by once all tables are full, beside what the gateway says that it keeps of connections' data: a share
/// of what it was, and a constant in KiB.
const GROWTH_MAX_PERCENT: u64 = 10;
const GROWTH_MAX_KIB: u64 = 2048;
/// Frames that are handed to the kernel together.
const AT_ONCE: usize = 64;
/// What an established connection must carry, again and again, while a flood lasts.
const PROGRESS: u64 = 256 << 10;
/// Frames that are made before a flood, which sends them again and again with one bit changed.
const FRAMES: u64 = 20_000;
/// Frames sent in earnest that are kept from the beginning, and from the end.
const FRAMES_OF_EITHER_END: usize = 20;
const SEED: [u8; 32] = [0x6a; 32];

/// A flood of what it is told to make, from the untrusted host, until it is dropped.
struct Flood {
    sent: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Flood {
    fn start(path: &Path, make: impl FnMut(&mut Generator, &mut Vec<u8>) + Send + 'static) -> Result<Flood, Failure> {
        let port = raw(&path.untrusted)?;
        let (sent, stop) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (counted, told) = (sent.clone(), stop.clone());
        let thread = std::thread::spawn(move || pour(port, make, &counted, &told));
        Ok(Flood { sent, stop, thread: Some(thread) })
    }

    fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

fn pour(mut port: PacketPort, mut make: impl FnMut(&mut Generator, &mut Vec<u8>), sent: &AtomicU64, stop: &AtomicBool) {
    let (mut random, mut frame) = (Generator::from_seed(SEED), Vec::new());
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..AT_ONCE {
            frame.clear();
            make(&mut random, &mut frame);
            if let Some(room) = port.sender.reserve(frame.len()) {
                room[..frame.len()].copy_from_slice(&frame);
                port.sender.commit(frame.len(), Meta::plain());
                sent.fetch_add(1, Ordering::Relaxed);
            }
        }
        if port.sender.flush().waits() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

/// No frame of a flood may tell either host where the other one is.
fn pin_neighbours(path: &Path) -> Outcome {
    for (one, other, at) in [(&path.trusted, &path.untrusted, UNTRUSTED), (&path.untrusted, &path.trusted, TRUSTED)] {
        let text = other.ip(&format!("-br link show dev {HOST_INTERFACE}"))?;
        let mac = text.split_whitespace().nth(2).expect("name, state, address");
        one.ip(&format!("neigh replace {at} lladdr {mac} dev {HOST_INTERFACE} nud permanent"))?;
    }
    Ok(())
}

/// Frames that the untrusted host sends in earnest.
fn honest_frames(path: &Path) -> Result<Vec<Frame>, Failure> {
    let watch = Watch::start(&path.untrusted, HOST_INTERFACE, Direction::Out, &path.run.directory(), "honest")?;
    assert!(path.pings("")?);
    // Of trusted hosts' messages one in 50 ms goes out.
    process::pause(Duration::from_millis(100))?;
    assert!(path.pings("-s 4000")?);
    let mut six = path.untrusted.command("ping");
    six.args(["-6", "-n", "-c", "1", "-W", "2", "-s", "3000", TRUSTED_V6]);
    assert!(process::ask(six, &[])?.status.success());
    Stream::start(&path.trusted, &path.untrusted, UNTRUSTED, 5009)?.await_progress(1 << 16, PATIENCE)?;
    let [client, server] = path.connect(&path.untrusted, &path.trusted, TRUSTED, 5008)?;
    drop((client, server));
    let mut frames = watch.stop()?;
    assert!(frames.len() > 10, "{} frames", frames.len());
    // In between is the stream, which makes thousands of like frames on a busy machine; the few others would drown in them.
    if frames.len() > FRAMES_OF_EITHER_END * 2 {
        frames.drain(FRAMES_OF_EITHER_END..frames.len() - FRAMES_OF_EITHER_END);
    }
    Ok(frames)
}

/// Random bytes, truncations, flipped bits, splices, longer ones, and replays.
fn mutated(honest: &[Frame], random: &mut Generator, frame: &mut Vec<u8>) {
    let mut below = |bound: usize| random.below(bound.max(1) as u64) as usize;
    let (one, other) = (&honest[below(honest.len())].0, &honest[below(honest.len())].0);
    frame.extend_from_slice(&one[..one.len().min(1514)]);
    match below(6) {
        0 => {
            frame.truncate(14 + below(4));
            (0..below(1400)).for_each(|_| frame.push(below(256) as u8));
        }
        1 => frame.truncate(14 + below(frame.len() - 14)),
        2 => (0..=below(8)).for_each(|_| {
            let at = 12 + below(frame.len().min(78) - 12);
            frame[at] ^= 1 << below(8);
        }),
        3 => {
            frame.truncate(14 + below(60));
            frame.extend_from_slice(&other[(14 + below(60)).min(other.len())..]);
        }
        4 => (0..below(60)).for_each(|_| frame.push(0xaa)),
        _ => {}
    }
    frame.resize(frame.len().clamp(14, 1514), 0);
}

/// What is kept of connections' data, in KiB. It follows how far the connections' ends are behind each other, so it grows with
/// their windows for minutes; what an operator allowed is its limit.
fn kept_kib(path: &Path) -> Result<u64, Failure> {
    let status = path.status()?;
    let bytes = |name: &str| status[name].as_u64().expect("a number");
    let (held, idle) = (bytes("memory_bytes"), bytes("memory_idle_bytes"));
    assert!(held + idle <= MEMORY_MAX_BYTES, "{held} bytes held, {idle} idle");
    Ok((held + idle) / 1024)
}

/// As many frames came in as have a fate.
fn assert_books(path: &Path) -> Outcome {
    let status = path.status()?;
    let frames = |name: &str| status["frames"][name].as_u64().expect("a number");
    let taken = frames("received_from_trusted") + frames("received_from_untrusted");
    let fates = ["forwarded_to_untrusted", "forwarded_to_trusted", "answered", "consumed", "held", "dropped"];
    assert_eq!(taken, fates.map(frames).iter().sum::<u64>(), "{}", status["frames"]);
    Ok(())
}

/// Connections go on while it rains, for `time`.
fn live(streams: &[Stream], time: Duration) -> Outcome {
    let end = Instant::now() + time;
    while Instant::now() < end {
        for stream in streams {
            stream.await_progress(PROGRESS, PATIENCE)?;
        }
        process::pause(Duration::from_millis(200))?;
    }
    Ok(())
}

/// Lets connections live under `make` for a warm-up and then for `time`, and compares the memory after both.
fn endure(path: &mut Path, time: Duration, make: impl FnMut(&mut Generator, &mut Vec<u8>) + Send + 'static) -> Outcome {
    let streams = [
        Stream::start(&path.untrusted, &path.trusted, TRUSTED, 5001)?,
        Stream::start(&path.trusted, &path.untrusted, UNTRUSTED, 5002)?,
    ];
    let id = path.process.as_ref().expect("it runs").id();
    let flood = Flood::start(path, make)?;
    live(&streams, (time / 4).max(Duration::from_secs(3)))?;
    let (before, kept_before, sent_before) = (resident_kib(id)?, kept_kib(path)?, flood.sent());
    live(&streams, time)?;
    // Before the memory is looked at: what is taken in between must not excuse anything.
    let kept = kept_kib(path)?;
    let (after, sent) = (resident_kib(id)?, flood.sent() - sent_before);
    drop(flood);
    path.process.as_mut().expect("it runs").ensure_alive()?;
    eprintln!(
        "{sent} frames in {} s; memory {before} to {after} KiB, {kept_before} and {kept} of it kept",
        time.as_secs()
    );
    // Of the buffers that were there before, half may not have been touched, for each is the next power of two.
    let kept_more = kept.saturating_sub(kept_before / 2);
    let allowed = before + kept_more + before * GROWTH_MAX_PERCENT / 100 + GROWTH_MAX_KIB;
    assert!(after <= allowed, "memory grew from {before} to {after} KiB, {kept} KiB of it kept");
    assert!(sent > 10_000, "only {sent} frames");
    live(&streams, Duration::ZERO)?;
    process::until("a ping after the flood", SOON, || path.pings(""))?;
    assert_books(path)
}

#[test]
fn random_and_mutated_frames_at_full_rate_change_nothing() {
    perform_between_alone(SMALL_TABLES, |path| {
        pin_neighbours(path)?;
        let honest = honest_frames(path)?;
        let time = span(Duration::from_secs(5), Duration::from_secs(600));
        let mut random = Generator::from_seed(SEED);
        let make = |_| {
            let mut frame = Vec::new();
            mutated(&honest, &mut random, &mut frame);
            frame
        };
        let made: Vec<Vec<u8>> = (0..FRAMES).map(make).collect();
        endure(path, time, move |random, frame| {
            frame.extend_from_slice(&made[random.below(FRAMES) as usize]);
            // None is quite like any before.
            let bit = random.number() as usize % (frame.len() * 8);
            frame[bit / 8] ^= 1 << (bit % 8);
        })?;
        let status = path.status()?;
        for word in ["ip-header", "ip-checksum", "fragment-malformed", "tcp-checksum", "icmp-malformed"] {
            assert!(status["drops"][word].as_u64() > Some(0), "{word}: {}", status["drops"]);
        }
        Ok(())
    });
}

/// An address out of a billion, none of them the hosts'.
fn anybody(random: &mut Generator) -> Ipv4Addr {
    Ipv4Addr::from_bits(0xc000_0000 | random.number() >> 4)
}

#[test]
fn a_flood_of_syns_leaves_established_connections_going() {
    perform_between_alone(SMALL_TABLES, |path| {
        pin_neighbours(path)?;
        let time = span(Duration::from_secs(4), Duration::from_secs(60));
        endure(path, time, |random, frame| {
            let ports = [1024 | random.number() as u16, 22];
            frame.extend(segment([anybody(random), TRUSTED], ports, wire::tcp::flag::SYN));
        })?;
        assert!(path.status()?["flows"].as_u64() <= Some(4096));
        Ok(())
    });
}

/// Half-open connections with which addresses are validated.
const VALIDATED_FROM: usize = 64;
const HONEST: usize = 10;

#[test]
fn a_flood_of_syns_ends_at_the_gateway_and_hosts_that_answer_get_through() {
    perform_alone_with(&["nft"], &format!("[shares]\nhalf_open = {VALIDATED_FROM}"), |path| {
        pin_neighbours(path)?;
        let address = SocketAddr::from((TRUSTED, 5011));
        let listener = path.trusted.enter(|| TcpListener::bind(address).map_err(Failure::io("listening")))?;
        let behind = hide_a_client(path)?;
        let syns = "tcp[tcpflags] == tcp-syn";
        let directory = path.run.directory();
        let watch = Watch::start_matching(&path.trusted, HOST_INTERFACE, Direction::In, &directory, "syns", syns)?;
        let flood = Flood::start(path, |random, frame| {
            let ports = [1024 | random.number() as u16, 5011];
            frame.extend(segment([anybody(random), TRUSTED], ports, wire::tcp::flag::SYN));
        })?;
        process::until("ten thousand of them", PATIENCE, || {
            Ok(path.status()?["drops"]["address-not-validated"].as_u64() > Some(10_000))
        })?;
        assert_eq!(path.status()?["validates_addresses"], true);
        for client in [&path.untrusted, &behind] {
            let open = || client.enter(|| Ok::<_, Failure>(TcpStream::connect_timeout(&address, PATIENCE).ok()));
            for _ in 0..HONEST {
                let began = Instant::now();
                assert!(open()?.is_some(), "from {}", client.name());
                eprintln!("connected after {} us", began.elapsed().as_micros());
            }
        }
        process::until("the attack", SOON, || {
            Ok(path.status()?["attacks"].as_array().is_some_and(|all| {
                all.iter().any(|one| one["kind"] == "syn-flood" && one["target"]["ip"] == TRUSTED.to_string())
            }))
        })?;
        drop((flood, listener));
        let frames = path.status()?["frames"].clone();
        assert!(frames["consumed"].as_u64() > Some(0), "{frames}");
        let reached = watch.stop()?.len();
        // Beside what it takes to be a flood, those of honest hosts, each perhaps twice.
        assert!((2 * HONEST..=VALIDATED_FROM + 4 * HONEST).contains(&reached), "{reached} came to the host");
        assert_books(path)?;
        behind.delete()
    });
}

/// A client behind a router that translates addresses and drops whatever fits no connection.
fn hide_a_client(path: &Path) -> Result<Namespace, Failure> {
    let client = Namespace::create(path.run, "n")?;
    let router = &path.untrusted;
    router.ip(&format!("link add inner type veth peer name {HOST_INTERFACE} netns {}", client.name()))?;
    router.ip("address add 10.7.0.1/24 dev inner")?;
    router.ip("link set inner up")?;
    client.ip(&format!("address add 10.7.0.2/24 dev {HOST_INTERFACE}"))?;
    client.ip(&format!("link set {HOST_INTERFACE} up"))?;
    client.ip("route add default via 10.7.0.1")?;
    router.set_kernel_parameter("ipv4/ip_forward", "1")?;
    let rules = "table ip n {\nchain p { type nat hook postrouting priority 100; oif e0 masquerade\n}\n\
                 chain f { type filter hook forward priority 0; ct state invalid drop\n}\n}";
    let mut nft = router.command("nft");
    nft.args(["-f", "-"]);
    let answer = process::ask(nft, rules.as_bytes())?;
    assert!(answer.status.success(), "{}", answer.stderr);
    Ok(client)
}

#[test]
fn a_flood_of_fragments_leaves_established_connections_going() {
    perform_between_alone(SMALL_TABLES, |path| {
        pin_neighbours(path)?;
        let time = span(Duration::from_secs(4), Duration::from_secs(60));
        endure(path, time, |random, frame| {
            let [a, b] = random.bytes();
            // More will follow, it says; a first or a later one.
            let offset = random.below(100) as u8;
            frame.extend(packet_of([anybody(random), TRUSTED], 17, [a, b, 0x20, offset], &[0x5a; 1024]));
        })?;
        let drops = path.status()?["drops"].clone();
        assert!(drops["fragments-full"].as_u64() > Some(0), "{drops}");
        Ok(())
    });
}

/// Another address that the untrusted host takes.
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 6, 0, 3);
/// A SYN that is refused comes again after a second.
const TWO_SYNS: Duration = Duration::from_secs(2);
/// A sixteenth of what is left of 512 places then.
const SHARE: usize = 30;

#[test]
fn one_host_that_opens_all_it_may_shuts_nobody_out() {
    perform_between("flows_max = 512", |path| {
        let address = SocketAddr::from((TRUSTED, 5010));
        let listen = || path.trusted.enter(|| TcpListener::bind(address).map_err(Failure::io("listening")));
        let open = || path.untrusted.enter(|| Ok::<_, Failure>(TcpStream::connect_timeout(&address, TWO_SYNS).ok()));
        let listener = listen()?;
        let mut opened = Vec::new();
        while let Some(stream) = open()? {
            opened.push(stream);
        }
        assert_eq!(opened.len(), SHARE);
        assert!(open()?.is_none() && open()?.is_none(), "no more");
        process::until("the attack", SOON, || {
            let attack = path.status()?["attacks"][0].clone();
            Ok(attack["kind"] == "connection-flood" && attack["claimed"]["ip"] == UNTRUSTED.to_string())
        })?;
        let to_trusted = format!("{TRUSTED}/32 dev {HOST_INTERFACE}");
        path.untrusted.ip(&format!("address add {OTHER}/24 dev {HOST_INTERFACE}"))?;
        path.untrusted.ip(&format!("route add {to_trusted} src {OTHER}"))?;
        assert!(open()?.is_some(), "another host");
        path.untrusted.ip(&format!("route delete {to_trusted}"))?;
        drop((listener, opened));
        let _listener = listen()?;
        process::until("a place of its own again", PATIENCE, || Ok(open()?.is_some()))
    });
}
