//! A router of a LAN under CLL that scrubs towards the outside: what the two guards are together.
//!
//! ```text
//!   a: e0 ~~~ sealed ~~~ e0 :b: wan ---- gin [gate] out0 ---- e0 :o
//!      host a            the router's own machine             outside
//! ```
//! The router forwards between its guarded interface and `wan`, one end of a pair whose other end is the gateway's trusted
//! interface. So frames are opened before they are scrubbed, and scrubbed before they are sealed.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Command;

use ringwall_lab::cleanup;
use ringwall_lab::failure::Failure;
use ringwall_lab::net::{Direction, Host, Namespace, Running, Watch, process};
use rustix::process::Signal;
use serde_json::Value;
use wire::EtherType;
use wire::tcp::flag;

use super::raw::{packet_of, put, raw, segment};
use super::{HOST_INTERFACE, PATIENCE, READY_LIMIT};
use crate::stage::{Guarded, Outcome, Plan, SOON, Stage, perform, program};
use crate::wire::{Stream, pings, watch_sent_in_clear, watch_stack};

/// The router on its outer side, and the host there.
const WAN: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
const LAN: &str = "10.77.0.0/24";
const BULK: u64 = 4 << 20;

/// What a router adds to its LAN: the way out with the gateway in it, and somebody outside. Dropping it removes both.
struct WayOut {
    router: Namespace,
    outside: Namespace,
    directory: PathBuf,
    process: Option<Running>,
}

impl WayOut {
    fn lay(stage: &Stage, router: &Host) -> Result<WayOut, Failure> {
        let directory = stage.file("way-out");
        std::fs::create_dir_all(&directory).map_err(Failure::file("making", &directory))?;
        let (outside, inner) = (Namespace::create(stage.run, "o")?, router.namespace.clone());
        inner.ip("link add wan type veth peer name gin")?;
        inner.ip(&format!("link add out0 type veth peer name {HOST_INTERFACE} netns {}", outside.name()))?;
        ["wan", "gin", "out0"].iter().try_for_each(|name| inner.ip(&format!("link set {name} up")).map(drop))?;
        inner.ip(&format!("address add {WAN}/24 dev wan"))?;
        inner.set_kernel_parameter("ipv4/ip_forward", "1")?;
        outside.ip(&format!("address add {OUTSIDE}/24 dev {HOST_INTERFACE}"))?;
        outside.ip(&format!("link set {HOST_INTERFACE} up"))?;
        outside.ip(&format!("route add {LAN} via {WAN}"))?;
        Ok(WayOut { router: inner, outside, directory, process: None })
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.router.command(&program().to_string_lossy());
        command.args(words).arg("--config").arg(self.directory.join("gate.toml"));
        command
    }

    fn guard(&mut self) -> Outcome {
        let (file, directory) = (self.directory.join("gate.toml"), self.directory.display());
        let text = format!(
            "[gate]\ntrusted = \"gin\"\nuntrusted = \"out0\"\nrun_dir = \"{directory}/run\"\nstate_dir = \"{directory}/state\"\n"
        );
        std::fs::write(&file, text).map_err(Failure::file("writing", &file))?;
        let mut process = Running::start(self.command(&["gate", "run"]), &self.directory.join("log"))?;
        let ready = process::until("the gateway at the router", READY_LIMIT, || {
            process.ensure_alive()?;
            Ok(self.status().is_ok_and(|status| status["state"] == "running"))
        });
        self.process = Some(process);
        ready
    }

    fn status(&self) -> Result<Value, Failure> {
        let text = process::must(self.command(&["status", "--json"]))?;
        serde_json::from_str(&text).map_err(|error| Failure::Unreadable(format!("{error}: {text}")))
    }
}

impl Drop for WayOut {
    fn drop(&mut self) {
        // After an interrupt or a failed assertion the sweep has done it already.
        if cleanup::permit().is_err() || !self.directory.exists() {
            return;
        }
        if let Some(process) = self.process.take() {
            process.stop(Signal::TERM);
        }
        let _never_taken = process::ask(self.command(&["gate", "release"]), &[]);
        let _gone = self.outside.delete();
    }
}

/// Host `a` and the router `b` under CLL, and the router's way out with a gateway in it.
fn site(stage: &Stage) -> Result<(WayOut, [Guarded; 2]), Failure> {
    let (a, b) = (stage.host("a"), stage.host("b"));
    let identity = stage.site.issue("b", &format!("--mac {} --ip {} --role router", b.mac, b.ip))?;
    let mut way_out = WayOut::lay(stage, b)?;
    let guarded = [stage.guard("a", Plan::default())?, stage.guard("b", Plan::default().identity(identity))?];
    way_out.guard()?;
    a.namespace.ip(&format!("route add default via {}", b.ip))?;
    Ok((way_out, guarded))
}

#[test]
fn hosts_behind_a_router_are_sealed_inside_and_scrubbed_outside() {
    perform(&["a", "b"], |stage| {
        let (way_out, _guarded) = site(stage)?;
        let a = stage.host("a");
        let clear = [watch_sent_in_clear(stage, a)?, watch_sent_in_clear(stage, stage.host("b"))?];
        let directory = stage.run.directory();
        let outside =
            Watch::start_matching(&way_out.outside, HOST_INTERFACE, Direction::In, &directory, "outside", "icmp")?;
        process::until("the outside", SOON, || pings(&a.namespace, OUTSIDE, ""))?;
        let up = Stream::start(&way_out.outside, &a.namespace, a.ip, 5001)?;
        let down = Stream::start(&a.namespace, &way_out.outside, OUTSIDE, 5002)?;
        up.await_progress(BULK, PATIENCE)?;
        down.await_progress(BULK, PATIENCE)?;
        // Outside nobody sees how far away host a is, nor its identifications: 64 less one hop became 56, and zero.
        let seen = outside.await_frame("a ping of host a", SOON, |frame| frame.ipv4_source() == Some(a.ip))?;
        assert_eq!((seen.0[22], &seen.0[18..20]), (56, &[0, 0][..]));
        for watch in clear {
            let in_clear = watch.stop()?.iter().filter(|frame| frame.is(EtherType::IPV4)).count();
            assert_eq!(in_clear, 0, "packets in clear on the LAN");
        }
        outside.stop().map(drop)
    });
}

/// Blocked is positive: the attack is dropped at the router by name, and an honest packet of the same moment arrives.
#[test]
fn what_a_stranger_sends_is_judged_before_it_is_sealed() {
    perform(&["a", "b"], |stage| {
        let (way_out, _guarded) = site(stage)?;
        let a = stage.host("a");
        process::until("the way in", SOON, || pings(&way_out.outside, a.ip, ""))?;
        let arriving = watch_stack(stage, a)?;
        let text = way_out.router.ip("-br link show dev wan")?;
        let mac: wire::MacAddress = text.split_whitespace().nth(2).and_then(|mac| mac.parse().ok()).expect("a MAC");
        let mut sender = raw(&way_out.outside)?;
        let to_router = |mut frame: Vec<u8>| {
            frame[..6].copy_from_slice(&mac.0);
            frame
        };
        let ends = [OUTSIDE, a.ip];
        put(&mut sender, &to_router(segment(ends, [40_000, 22], flag::SYN | flag::FIN)));
        put(&mut sender, &to_router(packet_of(ends, 17, [0, 7, 0x20, 0], b"short")));
        let datagram = [&[0x9c, 0x41, 0, 53, 0, 24, 0, 0][..], b"an honest packet"].concat();
        put(&mut sender, &to_router(packet_of(ends, 17, [0, 0, 0x40, 0], &datagram)));
        arriving.await_frame("the honest packet", SOON, |frame| frame.contains(b"an honest packet"))?;
        let drops = way_out.status()?["drops"].clone();
        assert_eq!((&drops["tcp-flags"], &drops["fragment-malformed"]), (&1.into(), &1.into()), "{drops}");
        let port = 40_000_u16.to_be_bytes();
        let is_attack = |frame: &ringwall_lab::net::Frame| {
            frame.ipv4_source() == Some(OUTSIDE) && (frame.0.get(34..36) == Some(&port[..]) || frame.contains(b"short"))
        };
        assert_eq!(arriving.stop()?.iter().filter(|frame| is_attack(frame)).count(), 0);
        Ok(())
    });
}
