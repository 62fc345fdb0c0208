//! Compression between real stacks: text takes fewer bytes of the wire, noise no more, and every byte arrives as it was sent.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use bump::Generator;
use ringwall_lab::failure::Failure;
use ringwall_lab::net::talk::reach;
use ringwall_lab::net::{Host, Lan};
use serde_json::Value;

use crate::stage::{Guarded, Plan, SOON, Stage, perform};
use crate::wire::Stream;

const BYTES: usize = 4 << 20;

fn text() -> Vec<u8> {
    let line = |at: u32| {
        format!(
            "Nov 22 14:{:02}:{:02} desk-{} sshd[{at}]: Accepted publickey for operator\n",
            at / 60 % 60,
            at % 60,
            at % 7
        )
    };
    (0..).map(line).flat_map(String::into_bytes).take(BYTES).collect()
}

fn noise() -> Vec<u8> {
    let mut random = Generator::from_seed([3; 32]);
    (0..BYTES / 1024).flat_map(|_| random.bytes::<1024>()).collect()
}

/// Sends `bytes` over TCP; what arrived, and how many bytes `from` put on the wire meanwhile.
fn transfer(stage: &Stage, from: &Host, to: &Host, port: u16, bytes: Vec<u8>) -> Result<(Vec<u8>, u64), Failure> {
    let address = SocketAddr::from((to.ip, port));
    let failed = || Failure::io(format!("a TCP connection to {address}"));
    let before = bytes_from(stage, from)?;
    let listener = to.namespace.enter(|| TcpListener::bind(address).map_err(failed()))?;
    let mut sender = from.namespace.enter(|| TcpStream::connect_timeout(&address, SOON).map_err(failed()))?;
    let (mut receiver, _) = listener.accept().map_err(failed())?;
    let writer = std::thread::spawn(move || sender.write_all(&bytes));
    let mut arrived = Vec::new();
    receiver.read_to_end(&mut arrived).map_err(failed())?;
    writer.join().expect("the writer ends").map_err(failed())?;
    Ok((arrived, bytes_from(stage, from)? - before))
}

/// What the switch has had of `host`.
fn bytes_from(stage: &Stage, host: &Host) -> Result<u64, Failure> {
    let text = stage.lan.bridge.ip(&format!("-json -statistics link show dev {}", Lan::port(host)))?;
    let links: Value = serde_json::from_str(&text).expect("JSON");
    Ok(links[0]["stats64"]["rx"]["bytes"].as_u64().expect("a counter"))
}

fn compression(guarded: &Guarded) -> Result<Value, Failure> {
    Ok(guarded.status()?["compression"].clone())
}

#[test]
fn text_takes_fewer_bytes_of_the_wire_and_noise_no_more() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let near = stage.guard("a", Plan::default().cll("compress = \"lz4\""))?;
        let far = stage.guard("b", Plan::default().cll("decompress = true"))?;
        reach(&a.namespace, b.ip, SOON)?;
        assert!(
            near.log().contains("cll.compress") && !far.log().contains("cll.compress"),
            "a warning to who compresses"
        );

        let (arrived, on_wire) = transfer(stage, a, b, 5001, text())?;
        assert!(arrived == text(), "other bytes than were sent");
        let text_counts = compression(&near)?;
        eprintln!("{BYTES} bytes of text took {on_wire} of the wire; {text_counts}");
        assert!(on_wire < BYTES as u64 * 7 / 10, "{on_wire} bytes on the wire");
        assert!(
            text_counts["bytes_after"].as_u64() < text_counts["bytes_before"].as_u64().map(|before| before * 7 / 10)
        );

        let (arrived, on_wire) = transfer(stage, a, b, 5002, noise())?;
        assert!(arrived == noise(), "other bytes than were sent");
        eprintln!("{BYTES} bytes of noise took {on_wire} of the wire");
        assert!(on_wire > BYTES as u64);
        let counts = compression(&near)?;
        let grown = |name: &str| counts[name].as_u64().unwrap_or(0) - text_counts[name].as_u64().unwrap_or(0);
        assert!(grown("left_frames") > 2000, "{counts}");
        assert!(grown("bytes_before") - grown("bytes_after") < BYTES as u64 / 100, "{counts}");

        // The other direction was not wanted.
        let (arrived, on_wire) = transfer(stage, b, a, 5003, text())?;
        assert!(arrived == text() && on_wire > BYTES as u64, "{on_wire} bytes on the wire");
        let counts = compression(&far)?;
        assert!(counts["compressed_frames"] == 0 && counts["expanded_frames"].as_u64() > Some(1000), "{counts}");
        let peers = far.json(&["peers"])?;
        let said = ["sends", "receives"].map(|way| peers[0][way].as_str().is_some_and(|text| text.ends_with(", lz4")));
        assert_eq!(said, [false, true], "{peers}");
        for word in ["compressed", "compressed-too-long", "compressed-malformed"] {
            assert_eq!((near.drops(word)?, far.drops(word)?), (0, 0), "{word}");
        }
        Ok(())
    });
}

#[test]
fn streams_both_ways_in_trains_keep_their_bytes() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let plan = || Plan::default().cll("compress = \"lz4\"").cll("trains = \"always\"");
        let guarded = [stage.guard("a", plan())?, stage.guard("b", plan())?];
        reach(&a.namespace, b.ip, SOON)?;
        let up = Stream::start(&a.namespace, &b.namespace, b.ip, 5001)?;
        let down = Stream::start(&b.namespace, &a.namespace, a.ip, 5002)?;
        up.await_progress(8 << 20, SOON)?;
        down.await_progress(8 << 20, SOON)?;
        for one in &guarded {
            let ports = &one.status()?["ports"];
            assert_eq!(
                (&ports["wire_send_errors"], &ports["wire_received_unreadable"]),
                (&0.into(), &0.into()),
                "{ports}"
            );
            eprintln!("{}: {}", one.host.name, compression(one)?);
        }
        Ok(())
    });
}
