//! Clean segments that the kernel carries: with the hosts' own stacks, as fast as they go.

use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::time::Duration;

use ringwall_lab::net::{Namespace, process};
use rustix::process::Signal;

use super::{HOST_INTERFACE, PATIENCE, Path, TRUSTED, UNTRUSTED, perform_between, perform_with};
use crate::stage::Outcome;
use crate::wire::Stream;

const CARRY: &str = "[kernel]\ncarry = true";
/// What a stream must bring while the kernel carries it.
const BULK: u64 = 64 << 20;
/// How long a busy connection may take until it is carried: several attempts.
const UNTIL_CARRIED: Duration = Duration::from_secs(60);
/// What a gateway says on older kernels.
const TOO_OLD: &str = "no: Linux 6.11 or newer is needed";

impl Path {
    fn carries(&self) -> Result<String, ringwall_lab::failure::Failure> {
        Ok(self.status()?["probes"]["carries"].as_str().unwrap_or_default().to_owned())
    }

    /// Whether the kernel is new enough; if not, it is said.
    fn can_carry(&self) -> Result<bool, ringwall_lab::failure::Failure> {
        let carries = self.carries()?;
        let can = !carries.starts_with(TOO_OLD);
        if can {
            assert!(carries.starts_with("yes"), "{carries}");
        } else {
            eprintln!("SKIPPED: {carries}");
        }
        Ok(can)
    }

    /// Has the untrusted host make whole checksums, as a card hands them up, in the place of leaving them
    /// to be made.
    fn sum_whole(&self) -> Outcome {
        let mut ethtool = self.untrusted.command("ethtool");
        ethtool.args(["-K", HOST_INTERFACE, "tx", "off"]);
        process::must(ethtool).map(drop)
    }

    fn await_carried(&self) -> Outcome {
        process::until("a carried connection", UNTIL_CARRIED, || Ok(self.status()?["flows_carried"] == 1))
    }

    /// Packets that the daemon itself has written to the untrusted side: of each it lowers the hop
    /// limit.
    fn written(&self) -> Result<u64, ringwall_lab::failure::Failure> {
        Ok(self.status()?["rules"]["hop-limit-uniform"].as_u64().expect("a count"))
    }
}

/// A stream from one host to the other, carried.
fn carried(path: &Path, from: &Namespace, to: &Namespace, at: Ipv4Addr) -> Outcome {
    if !path.can_carry()? {
        return Ok(());
    }
    let stream = Stream::start(from, to, at, 5001)?;
    path.await_carried()?;
    stream.await_progress(BULK, PATIENCE)
}

#[test]
fn the_kernel_carries_a_stream_to_the_trusted_host() {
    perform_between(CARRY, |path| carried(path, &path.untrusted, &path.trusted, TRUSTED));
}

#[test]
fn the_kernel_carries_a_stream_from_the_trusted_host() {
    perform_between(CARRY, |path| carried(path, &path.trusted, &path.untrusted, UNTRUSTED));
}

#[test]
fn the_kernel_carries_questions_and_answers_and_the_daemon_their_end() {
    perform_with(&["ethtool"], CARRY, |path| {
        if !path.can_carry()? {
            return Ok(());
        }
        let addresses: [std::net::IpAddr; 2] = [TRUSTED.into(), super::TRUSTED_V6.parse().expect("an address")];
        for (number, at) in addresses.into_iter().cycle().take(4).enumerate() {
            if number == 2 {
                path.sum_whole()?;
            }
            let [mut client, mut server] = path.connect(&path.untrusted, &path.trusted, at, 5001 + number as u16)?;
            let mut heard = [0; 200];
            for round in 0..200_u8 {
                client.write_all(&[round; 200]).expect("asked");
                server.read_exact(&mut heard).expect("heard");
                assert_eq!(heard, [round; 200]);
                server.write_all(&[!round; 200]).expect("answered");
                client.read_exact(&mut heard).expect("heard");
                assert_eq!(heard, [!round; 200]);
            }
            assert_eq!(path.status()?["flows_carried"], 1, "round {number}");
            drop(client);
            assert_eq!(server.read(&mut heard).expect("the end"), 0);
            drop(server);
            process::until("the end of the connection", PATIENCE, || Ok(path.status()?["flows_carried"] == 0))?;
        }
        let (written, status) = (path.written()?, path.status()?);
        let received = status["frames"]["received_from_trusted"].as_u64().expect("a count");
        assert!(received > 800 && written < received / 2, "{written} of {received}");
        Ok(())
    });
}

#[test]
fn nothing_is_carried_without_the_daemon() {
    perform_between(CARRY, |path| {
        if !path.can_carry()? {
            return Ok(());
        }
        let stream = Stream::start(&path.untrusted, &path.trusted, TRUSTED, 5001)?;
        path.await_carried()?;
        stream.await_progress(BULK, PATIENCE)?;
        path.stop(Signal::KILL);
        // What the receiver has of it is read within this time.
        std::thread::sleep(Duration::from_millis(500));
        let delivered = stream.delivered();
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(stream.delivered(), delivered);
        path.start()
    });
}

#[test]
fn a_gateway_says_why_the_kernel_carries_nothing() {
    perform_between("", |path| {
        assert_eq!(path.carries()?, "no: kernel.carry is not set");
        Ok(())
    });
    perform_between("preset = \"paper\"\n[kernel]\ncarry = true", |path| {
        if !path.carries()?.starts_with(TOO_OLD) {
            assert_eq!(path.carries()?, "no: by these rules the daemon has to see each segment");
            let warnings = path.status()?["warnings"].to_string();
            assert!(warnings.contains("though kernel.carry is set"), "{warnings}");
        }
        Ok(())
    });
}
