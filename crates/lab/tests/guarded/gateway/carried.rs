//! Clean segments that the kernel carries: with the hosts' own stacks, as fast as they go.

use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::time::Duration;

use ringwall_lab::failure::Failure;
use ringwall_lab::net::{Namespace, process};
use rustix::process::Signal;

use super::{HOST_INTERFACE, PATIENCE, Path, TRUSTED, UNTRUSTED, perform_between, perform_with};
use crate::stage::{Outcome, perform_bare};
use crate::wire::Stream;

const CARRY: &str = "[kernel]\ncarry = true";
/// What a stream must bring while the kernel carries it.
const BULK: u64 = 64 << 20;
/// How long a busy connection may take until it is carried: several attempts.
const UNTIL_CARRIED: Duration = Duration::from_secs(60);
/// How many packets each host is to lose.
const LOST_MIN: u64 = 60;
/// What a gateway says on older kernels.
const TOO_OLD: &str = "no: Linux 6.11 or newer is needed";

impl Path {
    fn carries(&self) -> Result<String, Failure> {
        Ok(self.status()?["probes"]["carries"].as_str().unwrap_or_default().to_owned())
    }

    /// Whether the kernel is new enough; if not, it is said.
    fn can_carry(&self) -> Result<bool, Failure> {
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
    fn written(&self) -> Result<u64, Failure> {
        Ok(self.status()?["rules"]["hop-limit-uniform"].as_u64().expect("a count"))
    }
}

/// A host that loses some of what a stream to port 5001 sends, at random.
struct Lossy<'a>(&'a Namespace);

impl Lossy<'_> {
    /// Loses two packets in a thousand as they come (`ingress`) or go (`egress`).
    fn begin<'a>(host: &'a Namespace, hook: &str) -> Result<Lossy<'a>, Failure> {
        let rules = format!(
            "table netdev lossy {{ chain lose {{ type filter hook {hook} device {HOST_INTERFACE} priority 0; \
             tcp dport 5001 numgen random mod 1000 < 2 counter drop; }}; }}"
        );
        let mut nft = host.command("nft");
        nft.arg(rules);
        process::must(nft).map(|_| Lossy(host))
    }

    /// How many it has lost.
    fn lost(&self) -> Result<u64, Failure> {
        let mut nft = self.0.command("nft");
        nft.args(["list", "table", "netdev", "lossy"]);
        let listed = process::must(nft)?;
        let number = |rest: &str| rest.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
        Ok(listed.split("counter packets ").skip(1).filter_map(number).sum())
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

/// Losses before the gateway leave holes, those behind it bring retransmissions of what it has
/// passed on, both selective acknowledgements.
#[test]
fn a_carried_stream_stays_in_the_kernel_where_segments_are_lost() {
    perform_with(&["nft"], CARRY, |path| {
        if !path.can_carry()? {
            return Ok(());
        }
        let stream = Stream::start(&path.untrusted, &path.trusted, TRUSTED, 5001)?;
        path.await_carried()?;
        let handed_over = || Ok::<_, Failure>(path.status()?["flows_handed_to_kernel"].as_u64().expect("a count"));
        let before = handed_over()?;
        let hops = [Lossy::begin(&path.untrusted, "egress")?, Lossy::begin(&path.trusted, "ingress")?];
        for hop in &hops {
            process::until("lost segments", UNTIL_CARRIED, || Ok(hop.lost()? >= LOST_MIN))?;
        }
        let lost = hops[0].lost()? + hops[1].lost()?;
        let again = handed_over()? - before;
        assert!(again < lost / 2, "it was handed over {again} times again, and {lost} segments were lost");
        stream.await_progress(1, PATIENCE)
    });
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
        let carries = path.carries()?;
        assert!(carries.ends_with("is a virtual device; kernel.carry = true if nobody on this machine sends into it"));
        assert_eq!(path.status()?["warnings"].as_array().map(Vec::len), Some(0), "nobody asked for it");
        Ok(())
    });
    perform_between("[kernel]\ncarry = false", |path| {
        assert_eq!(path.carries()?, "no: kernel.carry is false");
        Ok(())
    });
    perform_between("preset = \"paper\"\n[kernel]\ncarry = true", |path| {
        if !path.carries()?.starts_with(TOO_OLD) {
            assert_eq!(path.carries()?, "no: by these rules the daemon has to see each segment");
            let warnings = path.status()?["warnings"].to_string();
            assert!(warnings.contains("though kernel.carry is true"), "{warnings}");
        }
        Ok(())
    });
}

/// Its segments would leave with the trusted host's own numbers, but the first of each list.
#[test]
fn nothing_is_carried_between_cards_that_join_segments_in_lists() {
    let name = "nothing_is_carried_between_cards_that_join_segments_in_lists";
    perform_bare(name, &["ethtool"], |run| {
        let mut path = Path::lay(run, CARRY)?;
        let mut ethtool = path.gate.command("ethtool");
        ethtool.args(["-K", "in0", "rx-gro-list", "on"]);
        process::must(ethtool)?;
        path.start()?;
        let carries = path.carries()?;
        if !carries.starts_with(TOO_OLD) {
            assert!(carries.starts_with("no: in0 joins segments by rx-gro-list; switch it off"), "{carries}");
            let warnings = path.status()?["warnings"].to_string();
            assert!(warnings.contains("ethtool -K in0 rx-gro-list off"), "{warnings}");
        }
        Ok(())
    });
}
