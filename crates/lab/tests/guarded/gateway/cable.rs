//! A gateway in the cable of a host that signs ARP: what is signed passes whole, what is not signed is scrubbed.
//!
//! ```text
//!   k, a: e0 ------ br0 [bridge] up0 ---- up1 [gate] port of b ------ e0 :b
//! ```

use ringwall_lab::failure::Failure;
use ringwall_lab::net::{Host, Lan};

use super::beside::{Beside, EVADED, EVASION, read_of_evasion};
use crate::sarp::{FOLLOWED, await_time, resolve_anew, sign};
use crate::stage::{Outcome, Plan, Stage, perform};
use crate::wire::Stream;

const BULK: u64 = 4 << 20;

/// Puts a gateway into the cable of `host`, which is the trusted side.
fn cut_in(stage: &Stage, host: &Host) -> Result<Beside, Failure> {
    let (bridge, port) = (&stage.lan.bridge, Lan::port(host));
    bridge.ip("link add up0 type veth peer name up1")?;
    for words in [&format!("link set {port} nomaster"), "link set up0 master br0", "link set up0 up", "link set up1 up"]
    {
        bridge.ip(words)?;
    }
    Beside::start(stage, bridge, [&port, "up1"])
}

#[test]
fn signed_arp_passes_a_gateway_in_the_cable_and_streams_are_scrubbed_there() {
    perform(&["k", "a", "b"], |stage| {
        let [k, a, b] = ["k", "a", "b"].map(|name| stage.host(name));
        let _distributor = sign(stage, "k", Plan::distributor())?;
        let _near = sign(stage, "a", Plan::sarp())?;
        let far = stage.guard("b", Plan::sarp())?;
        resolve_anew(a, b)?;
        assert_eq!(read_of_evasion(&a.namespace, &b.namespace, b.ip, 5001)?, EVADED, "without a gateway");
        let gateway = cut_in(stage, b)?;
        await_time(&far)?;
        for (one, other) in [(a, b), (b, a), (b, k)] {
            resolve_anew(one, other)?;
        }
        assert_eq!(read_of_evasion(&a.namespace, &b.namespace, b.ip, 5002)?, EVASION);
        bulk_both_ways(a, b)?;
        assert_eq!(far.drops("sarp-signature")?, 0);
        assert_eq!(gateway.status()?["drops"]["ethertype-not-listed"].as_u64(), Some(0));
        Ok(())
    });
}

fn bulk_both_ways(a: &Host, b: &Host) -> Outcome {
    let streams = [
        Stream::start(&a.namespace, &b.namespace, b.ip, 5003)?,
        Stream::start(&b.namespace, &a.namespace, a.ip, 5004)?,
    ];
    streams.iter().try_for_each(|stream| stream.await_progress(BULK, FOLLOWED))
}
