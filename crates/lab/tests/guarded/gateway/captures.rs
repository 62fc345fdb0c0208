//! A capture of honest traffic goes through `gate replay` without a change of any stream.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::IpAddr;
use std::path::Path as FilePath;
use std::time::Duration;

use ringwall_lab::failure::Failure;
use ringwall_lab::net::{Running, pcap, process};
use rustix::process::Signal;
use wire::{ipv4, layer, tcp};

use super::{HOST_INTERFACE, Path, TRUSTED, perform_with};
use crate::stage::program;

const ASKED_LEN: usize = 200_000;
const ANSWERED_LEN: usize = 500_000;

/// Addresses and ports of one direction of a connection.
type Flow = (IpAddr, IpAddr, u16, u16);

/// What each direction of each connection in the capture `file` carried, counted from its SYN.
fn streams(file: &FilePath) -> Result<BTreeMap<Flow, Vec<u8>>, Failure> {
    let mut streams: BTreeMap<Flow, (u32, Vec<u8>)> = BTreeMap::new();
    for frame in pcap::read(file)? {
        let Some((layer::protocol::TCP, start)) = layer::transport_layer(&frame.0) else { continue };
        let (Ok(ip), Ok(segment)) = (ipv4::View::new(&frame.0[14..]), tcp::View::new(&frame.0[start..])) else {
            continue;
        };
        let flow = (ip.source().into(), ip.destination().into(), segment.source_port(), segment.destination_port());
        if segment.flags() & tcp::flag::SYN != 0 {
            streams.entry(flow).or_insert((segment.sequence().wrapping_add(1), Vec::new()));
        }
        let Some((began, bytes)) = streams.get_mut(&flow) else { continue };
        let payload = &segment.payload()[..usize::from(ip.total_len()) - ip.header_len() - segment.header_len()];
        let at = segment.sequence().wrapping_sub(*began) as usize;
        if payload.is_empty() || at > ANSWERED_LEN {
            continue;
        }
        bytes.resize(bytes.len().max(at + payload.len()), 0);
        bytes[at..at + payload.len()].copy_from_slice(payload);
    }
    Ok(streams.into_iter().map(|(flow, (_, bytes))| (flow, bytes)).collect())
}

/// A question and an answer over TCP.
fn converse(path: &Path) -> Result<(), Failure> {
    let [mut client, mut server] = path.connect(&path.untrusted, &path.trusted, TRUSTED, 5001)?;
    let (asked, answered) = (pattern(ASKED_LEN, 3), pattern(ANSWERED_LEN, 5));
    let answer = answered.clone();
    let serving = std::thread::spawn(move || {
        let mut heard = vec![0; ASKED_LEN];
        server.read_exact(&mut heard).and_then(|()| server.write_all(&answer)).map(|()| heard)
    });
    client.write_all(&asked).map_err(Failure::io("asking"))?;
    let mut heard = Vec::new();
    client.read_to_end(&mut heard).map_err(Failure::io("hearing the answer"))?;
    let question = serving.join().expect("the server ends well").map_err(Failure::io("answering"))?;
    assert!(question == asked && heard == answered, "the stream itself");
    Ok(())
}

fn pattern(len: usize, factor: usize) -> Vec<u8> {
    (0..len).map(|at| (at.wrapping_mul(2_654_435_761 * factor) >> 9) as u8).collect()
}

#[test]
fn a_capture_by_tcpdump_keeps_its_streams() {
    perform_with(&["tcpdump"], "", |path| {
        let (captured, scrubbed) = (path.directory.join("in.pcap"), path.directory.join("out.pcap"));
        let mut tcpdump = path.untrusted.command("tcpdump");
        tcpdump.args(["-i", HOST_INTERFACE, "-U", "-B", "16384", "-w"]).arg(&captured);
        let mut tcpdump = Running::start(tcpdump, &path.directory.join("tcpdump.log"))?;
        tcpdump.await_output("listening on", Duration::from_secs(10))?;
        converse(path)?;
        assert!(path.pings("")?);
        process::until("the last frame in the capture", Duration::from_secs(10), || {
            Ok(streams(&captured)?.values().any(|bytes| bytes.len() == ANSWERED_LEN))
        })?;
        tcpdump.stop(Signal::INT);
        let mut replay = std::process::Command::new(program());
        replay.args(["gate", "replay", "--json", "--trusted", &TRUSTED.to_string(), "--read"]).arg(&captured);
        replay.arg("--write").arg(&scrubbed);
        let report: serde_json::Value = serde_json::from_str(&process::must(replay)?).expect("JSON");
        let (before, after) = (streams(&captured)?, streams(&scrubbed)?);
        assert_eq!(before.len(), 2, "one connection");
        let lens: Vec<usize> = before.values().map(Vec::len).collect();
        assert!(lens.contains(&ASKED_LEN) && lens.contains(&ANSWERED_LEN), "{lens:?}");
        assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
        assert!(before == after, "a stream has changed: {report}");
        assert_eq!(report["dropped"], 0, "{report}");
        assert!(report["begun_checksums"].as_u64() > Some(0), "offloads were in use: {report}");
        Ok(())
    });
}
