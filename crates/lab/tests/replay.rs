//! `ringwall gate replay` over captures: of honest traffic no stream changes; of evasive traffic every published policy reads the
//! same afterwards.
//!
//! Needs the built program; honest traffic needs root and tcpdump. Who is missing is said by name.

#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ringwall_lab::cleanup;
use ringwall_lab::failure::Failure;
use ringwall_lab::net::lan::set_offloads;
use ringwall_lab::net::{Frame, Namespace, Running, pcap, process};
use ringwall_lab::receivers::packet::{ATTACKER_V4, ATTACKER_V6, PORT, RECEIVER_V4, RECEIVER_V6, Version};
use ringwall_lab::receivers::{Attack, Carrier, Model, Reading, Receiver, transcript};
use rustix::process::{Signal, geteuid};
use wire::layer::{self, protocol::TCP};
use wire::{EtherType, MacAddress, ipv4, ipv6, tcp};

/// Scripts in a capture of each carrier.
const SCRIPTS: u64 = 200;
/// Bytes of a stream, and of datagrams; the longer ones come in fragments.
const STREAM_LEN: usize = 300_000;
const DATAGRAM_LENS: [usize; 4] = [20, 1400, 4000, 9000];
const SOON: Duration = Duration::from_secs(30);

/// The program as it is built beside this test, if it is.
fn program(test: &str) -> Option<PathBuf> {
    let own = std::env::current_exe().expect("this program has a file");
    let target = own.ancestors().nth(3).expect("target/profile/deps/test");
    let built = ["release", "debug"].map(|profile| target.join(profile).join("ringwall"));
    let program = built.into_iter().find(|file| file.is_file());
    if program.is_none() {
        eprintln!("SKIPPED {test}: build the program first: cargo build --release -p ringwall");
    }
    program
}

/// The frames of `read` after `gate replay`, and its report.
fn replay(program: &Path, read: &Path) -> Result<(Vec<Frame>, serde_json::Value), Failure> {
    let write = read.with_extension("out.pcap");
    let mut replay = Command::new(program);
    replay.args(["gate", "replay", "--json", "--trusted", &format!("{RECEIVER_V4}/32,{RECEIVER_V6}/128")]);
    replay.arg("--read").arg(read).arg("--write").arg(&write);
    let report = serde_json::from_str(&process::must(replay)?).expect("JSON");
    Ok((pcap::read(&write)?, report))
}

/// What each model reads of a capture: of every connection its stream, and in the end all datagrams.
fn readings(frames: &[Frame]) -> Vec<Vec<Reading>> {
    let read_all = |mut model: Model| {
        let mut readings = Vec::new();
        for frame in frames.iter().filter(|frame| is_to_receiver(&frame.0)) {
            if is_syn(&frame.0) {
                readings.push(model.read().expect("a model reads"));
                model.begin_anew().expect("a model begins anew");
            }
            model.take(&frame.0).expect("a model takes every frame");
        }
        readings.push(model.read().expect("a model reads"));
        readings
    };
    Model::all().into_iter().map(read_all).collect()
}

fn is_to_receiver(frame: &[u8]) -> bool {
    addresses(frame).is_some_and(|(_, to)| [IpAddr::V4(RECEIVER_V4), IpAddr::V6(RECEIVER_V6)].contains(&to))
}

/// Whether it is a SYN alone: with ACK or data beside it it opens nothing.
fn is_syn(frame: &[u8]) -> bool {
    segment(frame).is_some_and(|(_, segment)| segment.flags() == tcp::flag::SYN && segment.payload().is_empty())
}

fn addresses(frame: &[u8]) -> Option<(IpAddr, IpAddr)> {
    match layer::network_layer(frame)? {
        (EtherType::IPV4, at) => {
            let header = ipv4::View::new(&frame[at..]).ok()?;
            Some((header.source().into(), header.destination().into()))
        }
        (EtherType::IPV6, at) => {
            let header = ipv6::View::new(&frame[at..]).ok()?;
            Some((header.source().into(), header.destination().into()))
        }
        _ => None,
    }
}

/// A segment that is no fragment, and its addresses; padding of the frame is cut off.
fn segment(frame: &[u8]) -> Option<((IpAddr, IpAddr), tcp::View<'_>)> {
    let (ethertype, at) = layer::network_layer(frame)?;
    let (_, start) = layer::transport_of(frame, ethertype, at).filter(|(protocol, _)| *protocol == TCP)?;
    let end = if ethertype == EtherType::IPV4 {
        at + usize::from(ipv4::View::new(&frame[at..]).ok().filter(|header| !header.is_fragment())?.total_len())
    } else {
        at + ipv6::HEADER_LEN + usize::from(ipv6::View::new(&frame[at..]).ok()?.payload_len())
    };
    Some((addresses(frame)?, tcp::View::new(frame.get(start..end)?).ok()?))
}

#[test]
fn of_evasive_captures_every_model_reads_the_same_afterwards() {
    let Some(program) = program("of_evasive_captures_every_model_reads_the_same_afterwards") else { return };
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (number, carrier) in (0_u64..).zip(Carrier::ALL) {
        let seeds = (0..SCRIPTS).map(|script| number * SCRIPTS + script);
        let frames: Vec<Frame> = seeds
            .flat_map(|seed| transcript(carrier, Attack::Script(seed), seed).expect("a model answers"))
            .map(Frame)
            .collect();
        let file = directory.path().join(format!("{number}.pcap"));
        pcap::write(&file, &frames).expect("a capture");
        let before = readings(&frames);
        let told_apart = before.iter().filter(|reading| **reading != before[0]).count();
        assert!(told_apart > 5, "{carrier}: without the scrubber only {told_apart} models disagree with the first");
        let (scrubbed, report) = replay(&program, &file).expect("the replay ends well");
        let after = readings(&scrubbed);
        for (model, reading) in Model::all().iter().zip(&after) {
            assert!(*reading == after[0], "{carrier}: {} reads something else: {report}", model.name());
        }
        let read: usize = after[0].iter().map(|reading| reading.stream.len() + reading.datagrams.len()).sum();
        assert!(read as u64 > SCRIPTS, "{carrier}: hardly anything is left: {report}");
        if matches!(carrier, Carrier::Segments(_)) {
            assert_eq!(after[0].len(), before[0].len(), "{carrier}: every connection is still there: {report}");
        }
    }
}

/// Two hosts on one link, and a capture at the untrusted one.
struct Link {
    client: Namespace,
    server: Namespace,
    directory: PathBuf,
}

impl Link {
    fn create() -> Result<Link, Failure> {
        let run = cleanup::begin_transient()?;
        let (client, server) = (Namespace::create(run, "replay-a")?, Namespace::create(run, "replay-b")?);
        let link = Link { client, server, directory: run.directory() };
        std::fs::create_dir_all(&link.directory).map_err(Failure::file("making", &link.directory))?;
        link.client.ip(&format!("link add e0 type veth peer name e0 netns {}", link.server.name()))?;
        link.furnish(&link.client, 7, ATTACKER_V4.into(), ATTACKER_V6.into())?;
        link.furnish(&link.server, 0x10, RECEIVER_V4.into(), RECEIVER_V6.into())?;
        // What the client sends is captured with its checksums complete, so that models can judge it; what the server sends is not.
        set_offloads(&link.client, "e0", &["tx", "off"])?;
        process::until("the link up", SOON, || Ok(link.client.ip("-o link show e0")?.contains("state UP")))?;
        Ok(link)
    }

    fn furnish(&self, there: &Namespace, last: u8, v4: IpAddr, v6: IpAddr) -> Result<(), Failure> {
        there.set_kernel_parameter("ipv6/conf/e0/disable_ipv6", "0")?;
        let mac = MacAddress([2, 0, 0, 0, 0, last]);
        for command in [
            format!("link set e0 address {mac} up"),
            format!("address add {v4}/24 dev e0"),
            format!("address add {v6}/64 dev e0 nodad"),
        ] {
            there.ip(&command)?;
        }
        Ok(())
    }

    /// A stream to `to` and one back.
    fn converse(&self, to: IpAddr) -> Result<(), Failure> {
        let any = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), PORT);
        let listener = self.server.enter(|| TcpListener::bind(any).map_err(Failure::io("listening")))?;
        let mut client = self.client.enter(|| TcpStream::connect((to, PORT)).map_err(Failure::io("connecting")))?;
        let serving = std::thread::spawn(move || {
            let (mut server, _) = listener.accept()?;
            let mut heard = vec![0; STREAM_LEN];
            server.read_exact(&mut heard)?;
            server.write_all(&pattern(STREAM_LEN, 5)).map(|()| heard)
        });
        client.write_all(&pattern(STREAM_LEN, 3)).map_err(Failure::io("asking"))?;
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).map_err(Failure::io("hearing the answer"))?;
        let asked = serving.join().expect("the server ends well").map_err(Failure::io("answering"))?;
        assert!(asked == pattern(STREAM_LEN, 3) && heard == pattern(STREAM_LEN, 5), "the streams themselves");
        Ok(())
    }

    /// Datagrams of several lengths to `to`.
    fn send_datagrams(&self, to: IpAddr) -> Result<(), Failure> {
        let open = |there: &Namespace, port| {
            let any = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port);
            there.enter(|| UdpSocket::bind(any).map_err(Failure::io("opening a socket")))
        };
        // Somebody listens, or errors come back, of which the scrubber lets only so many out.
        let (socket, _listener) = (open(&self.client, 0)?, open(&self.server, PORT)?);
        // Such a socket sends to IPv4 under an IPv6 address.
        let to = match to {
            IpAddr::V4(four) => IpAddr::V6(four.to_ipv6_mapped()),
            six @ IpAddr::V6(_) => six,
        };
        for len in DATAGRAM_LENS {
            socket.send_to(&pattern(len, 7), (to, PORT)).map_err(Failure::io("sending a datagram"))?;
        }
        Ok(())
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        for namespace in [&self.client, &self.server] {
            let _swept_later = namespace.delete();
        }
    }
}

fn pattern(len: usize, factor: usize) -> Vec<u8> {
    (0..len).map(|at| (at.wrapping_mul(2_654_435_761 * factor) >> 9) as u8).collect()
}

/// Addresses and ports of one direction of a connection.
type Flow = (IpAddr, IpAddr, u16, u16);

/// What each direction of each connection carried, counted from its SYN.
fn streams(frames: &[Frame]) -> BTreeMap<Flow, Vec<u8>> {
    let mut streams: BTreeMap<Flow, (u32, Vec<u8>)> = BTreeMap::new();
    for ((source, destination), segment) in frames.iter().filter_map(|frame| segment(&frame.0)) {
        let flow = (source, destination, segment.source_port(), segment.destination_port());
        if segment.flags() & tcp::flag::SYN != 0 {
            streams.entry(flow).or_insert((segment.sequence().wrapping_add(1), Vec::new()));
        }
        let Some((began, bytes)) = streams.get_mut(&flow) else { continue };
        let (at, payload) = (segment.sequence().wrapping_sub(*began) as usize, segment.payload());
        if at <= STREAM_LEN && !payload.is_empty() {
            bytes.resize(bytes.len().max(at + payload.len()), 0);
            bytes[at..at + payload.len()].copy_from_slice(payload);
        }
    }
    streams.into_iter().map(|(flow, (_, bytes))| (flow, bytes)).collect()
}

/// The datagrams to the server, whole.
fn datagrams(frames: &[Frame]) -> Vec<Vec<u8>> {
    let mut model = Model::all().remove(0);
    for frame in frames.iter().filter(|frame| is_to_receiver(&frame.0)) {
        model.take(&frame.0).expect("a model takes every frame");
    }
    model.read().expect("a model reads").datagrams
}

fn honest_traffic(program: &Path) -> Result<(), Failure> {
    let link = Link::create()?;
    let captured = link.directory.join("honest.pcap");
    let mut tcpdump = link.client.command("tcpdump");
    tcpdump.args(["-Z", "root", "-i", "e0", "-s", "0", "-U", "-B", "16384", "-w"]).arg(&captured);
    let mut tcpdump = Running::start(tcpdump, &link.directory.join("tcpdump.log"))?;
    tcpdump.await_output("listening on", SOON)?;
    for to in [IpAddr::V4(RECEIVER_V4), IpAddr::V6(RECEIVER_V6)] {
        link.converse(to)?;
        link.send_datagrams(to)?;
    }
    let expected = Version::ALL.len() * DATAGRAM_LENS.len();
    process::until("all in the capture", SOON, || Ok(datagrams(&pcap::read(&captured)?).len() == expected))?;
    tcpdump.stop(Signal::INT);
    let before = pcap::read(&captured)?;
    let (after, report) = replay(program, &captured)?;
    let of = streams(&before);
    assert_eq!(of.values().map(Vec::len).collect::<Vec<_>>(), [STREAM_LEN; 4], "two connections, both ways");
    assert!(of == streams(&after), "a stream has changed: {report}");
    assert!(datagrams(&before) == datagrams(&after), "a datagram has changed: {report}");
    assert_eq!(report["dropped"], 0, "{report}");
    Ok(())
}

#[test]
fn of_honest_captures_over_both_versions_no_stream_changes() {
    let test = "of_honest_captures_over_both_versions_no_stream_changes";
    if !geteuid().is_root() || !process::installed("tcpdump") {
        eprintln!("SKIPPED {test}: needs root and tcpdump");
        return;
    }
    let Some(program) = program(test) else { return };
    honest_traffic(&program).expect("honest traffic, captured and replayed");
    assert_eq!(cleanup::sweep_own(true), Vec::<String>::new(), "nothing stays behind");
}
