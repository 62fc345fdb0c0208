//! A router of a guarded LAN that scrubs towards the outside: what the two guards are together.
//!
//! ```text
//!   a: e0 ~~~ guarded ~~~ e0 :b: wan ---- gin [gate] out0 ---- e0 :o
//!      host a             the router's own machine             outside
//! ```
//! The router forwards between its guarded interface and `wan`, one end of a pair whose other end is the gateway's trusted
//! interface. So frames are opened before they are scrubbed, and scrubbed before they are sealed. On a LAN under signed ARP
//! there is nothing to open, and a distributor `k` beside the two.

use std::net::Ipv4Addr;

use ringwall_lab::cleanup;
use ringwall_lab::failure::Failure;
use ringwall_lab::net::{Direction, Frame, Host, Namespace, Watch, process};
use wire::EtherType;
use wire::tcp::flag;

use super::beside::{Beside, EVADED, EVASION, read_of_evasion};
use super::raw::{packet_of, put, raw, segment};
use super::{HOST_INTERFACE, PATIENCE};
use crate::sarp::{assert_apart, forget, sign};
use crate::stage::{Guarded, Outcome, Plan, SOON, Stage, perform};
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
    gateway: Option<Beside>,
}

impl WayOut {
    fn lay(stage: &Stage, router: &Host) -> Result<WayOut, Failure> {
        let (outside, inner) = (Namespace::create(stage.run, "o")?, router.namespace.clone());
        let mut way_out = WayOut { router: inner, outside, gateway: None };
        way_out.wire()?;
        way_out.gateway = Some(Beside::start(stage, &way_out.router, ["gin", "out0"])?);
        Ok(way_out)
    }

    fn wire(&self) -> Outcome {
        let WayOut { router, outside, .. } = self;
        router.ip("link add wan type veth peer name gin")?;
        router.ip(&format!("link add out0 type veth peer name {HOST_INTERFACE} netns {}", outside.name()))?;
        ["wan", "gin", "out0"].iter().try_for_each(|name| router.ip(&format!("link set {name} up")).map(drop))?;
        router.ip(&format!("address add {WAN}/24 dev wan"))?;
        router.set_kernel_parameter("ipv4/ip_forward", "1")?;
        outside.ip(&format!("address add {OUTSIDE}/24 dev {HOST_INTERFACE}"))?;
        outside.ip(&format!("link set {HOST_INTERFACE} up"))?;
        outside.ip(&format!("route add {LAN} via {WAN}")).map(drop)
    }

    /// How many packets the gateway dropped for the reason `word`.
    fn drops(&self, word: &str) -> Result<u64, Failure> {
        let status = self.gateway.as_ref().expect("it was laid").status()?;
        Ok(status["drops"][word].as_u64().expect("a reason"))
    }
}

impl Drop for WayOut {
    fn drop(&mut self) {
        // After an interrupt or a failed assertion the sweep has done it already.
        if cleanup::permit().is_ok() {
            self.gateway = None;
            let _gone = self.outside.delete();
        }
    }
}

/// Host `a` and the router `b` under CLL, and the router's way out with a gateway in it.
fn sealed(stage: &Stage) -> Result<(WayOut, Vec<Guarded>), Failure> {
    let (a, b) = (stage.host("a"), stage.host("b"));
    let identity = stage.site.issue("b", &format!("--mac {} --ip {} --role router", b.mac, b.ip))?;
    let guarded = [stage.guard("a", Plan::default())?, stage.guard("b", Plan::default().identity(identity))?];
    let way_out = WayOut::lay(stage, b)?;
    a.namespace.ip(&format!("route add default via {}", b.ip))?;
    Ok((way_out, guarded.into()))
}

/// The same under signed ARP, with a distributor `k`.
fn signed(stage: &Stage) -> Result<(WayOut, Vec<Guarded>), Failure> {
    let (a, b) = (stage.host("a"), stage.host("b"));
    let guarded =
        [sign(stage, "k", Plan::distributor())?, sign(stage, "a", Plan::sarp())?, sign(stage, "b", Plan::sarp())?];
    let way_out = WayOut::lay(stage, b)?;
    a.namespace.ip(&format!("route add default via {}", b.ip))?;
    Ok((way_out, guarded.into()))
}

/// Streams pass both ways, and outside nobody sees how far away host a is, nor its identifications: 64 less one hop became 56,
/// and zero.
fn talk_across(stage: &Stage, way_out: &WayOut) -> Outcome {
    let (a, outside) = (stage.host("a"), &way_out.outside);
    let directory = stage.run.directory();
    let seen = Watch::start_matching(outside, HOST_INTERFACE, Direction::In, &directory, "outside", "icmp")?;
    process::until("the outside", SOON, || pings(&a.namespace, OUTSIDE, ""))?;
    let up = Stream::start(outside, &a.namespace, a.ip, 5001)?;
    let down = Stream::start(&a.namespace, outside, OUTSIDE, 5002)?;
    up.await_progress(BULK, PATIENCE)?;
    down.await_progress(BULK, PATIENCE)?;
    let ping = seen.await_frame("a ping of host a", SOON, |frame| frame.ipv4_source() == Some(a.ip))?;
    assert_eq!((ping.0[22], &ping.0[18..20]), (56, &[0, 0][..]));
    seen.stop().map(drop)
}

/// The evasion succeeds from the router itself, which nothing scrubs, and fails from outside.
fn evade(stage: &Stage, way_out: &WayOut) -> Outcome {
    let a = stage.host("a");
    assert_eq!(read_of_evasion(&way_out.router, &a.namespace, a.ip, 5003)?, EVADED, "unscrubbed");
    assert_eq!(read_of_evasion(&way_out.outside, &a.namespace, a.ip, 5004)?, EVASION, "scrubbed");
    Ok(())
}

#[test]
fn hosts_behind_a_router_are_sealed_inside_and_scrubbed_outside() {
    perform(&["a", "b"], |stage| {
        let (way_out, _guarded) = sealed(stage)?;
        let clear = [watch_sent_in_clear(stage, stage.host("a"))?, watch_sent_in_clear(stage, stage.host("b"))?];
        talk_across(stage, &way_out)?;
        evade(stage, &way_out)?;
        for watch in clear {
            let in_clear = watch.stop()?.iter().filter(|frame| frame.is(EtherType::IPV4)).count();
            assert_eq!(in_clear, 0, "packets in clear on the LAN");
        }
        Ok(())
    });
}

/// Besides, the router is found by its signature only: a host without one is not.
#[test]
fn hosts_behind_a_router_sign_inside_and_are_scrubbed_outside() {
    perform(&["k", "a", "b", "c"], |stage| {
        let (way_out, guarded) = signed(stage)?;
        talk_across(stage, &way_out)?;
        evade(stage, &way_out)?;
        let a = stage.host("a");
        forget(a)?;
        process::until("the outside, by a router that was forgotten", SOON, || pings(&a.namespace, OUTSIDE, ""))?;
        assert_apart(a, stage.host("c"))?;
        guarded[1].await_drops("plain-arp", 1)
    });
}

/// Blocked is positive: the attack is dropped at the router by name, and an honest packet of the same moment arrives.
#[test]
fn what_a_stranger_sends_is_judged_before_it_is_sealed() {
    perform(&["a", "b"], |stage| {
        let (way_out, _guarded) = sealed(stage)?;
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
        assert_eq!((way_out.drops("tcp-flags")?, way_out.drops("fragment-malformed")?), (1, 1));
        let port = 40_000_u16.to_be_bytes();
        let is_attack = |frame: &Frame| {
            frame.ipv4_source() == Some(OUTSIDE) && (frame.0.get(34..36) == Some(&port[..]) || frame.contains(b"short"))
        };
        assert_eq!(arriving.stop()?.iter().filter(|frame| is_attack(frame)).count(), 0);
        Ok(())
    });
}
