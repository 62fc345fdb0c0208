//! An hour of link layers under load that replace their keys all the time: every 10 s, and those that carry much by frame count
//! before that. On the wire frames overtake each other and arrive twice, but none gets lost. So nothing may be lost at all, nothing
//! may arrive twice, and no handshake may be needed (paper, section 5.4: data goes on under the old keys).

use std::time::Duration;

use cll::PostQuantum;
use identity::aead::Suite;

use super::datagram::Shape;
use super::scenario::{Flow, HostPlan, Part, Scenario};
use crate::sim::agenda::START;
use crate::sim::clock::Clock;
use crate::sim::fabric::{Harm, Kind};
use crate::sim::faults::Faults;

/// How long there is traffic, in virtual time.
pub const SPAN: Duration = Duration::from_secs(60 * 60);
/// The laboratory's override; outside of it keys live for 24 minutes.
const REKEY_EVERY: Duration = Duration::from_secs(10);
/// The flow of super-frames sends as many in five seconds.
const REKEY_AFTER_FRAMES: u32 = 2_000;

/// Many frames arrive that much later than those behind them, under keys that are replaced by then.
const LATE_BY_MAX: Duration = Duration::from_millis(40);

/// Three hosts with several lanes, all of which talk to each other for so long, two of them much.
pub fn scenario(span: Duration) -> Scenario {
    let hosts: Vec<HostPlan> = (0..3).map(host).collect();
    let mut flows = Vec::new();
    for from in 0..3 {
        for to in (0..3).filter(|&to| to != from) {
            flows.push(flow(from, to, flows.len() as u64));
        }
    }
    let harm = Harm { doubled_one_in: 10, late_one_in: 5, late_by_max: LATE_BY_MAX, ..Harm::default() };
    Scenario {
        hosts,
        fabric: Kind::Switch,
        flows,
        steps: Vec::new(),
        attack_every: None,
        lifetime: None,
        rekey_after_frames: Some(REKEY_AFTER_FRAMES),
        rekey_every: Some(REKEY_EVERY),
        resumes: true,
        changes_site_key: false,
        faults: Faults { harm, ..Faults::none(Duration::from_millis(20)) },
        passes: false,
        clean: true,
        faults_stop: START + span,
    }
}

fn host(number: usize) -> HostPlan {
    HostPlan {
        identity: number,
        part: Part::Honest,
        clock: Clock::Off(0),
        lanes: 1 + number as u8,
        suite: Suite::ALL[number],
        confidential: number != 1,
        slow_nonce: number == 1,
        post_quantum: PostQuantum::Off,
        lifetime_more: Duration::ZERO,
    }
}

fn flow(from: usize, to: usize, number: u64) -> Flow {
    let is_much = (from, to) == (0, 2);
    let shape = match is_much {
        true => Shape::TcpSuper { size: 100, count: 8 },
        false => Shape::Udp { payload_len: 60 + number as usize, partial: number.is_multiple_of(2) },
    };
    let every = Duration::from_millis(if is_much { 20 } else { 41 + 7 * number });
    Flow { from, to, first: START + Duration::from_millis(100 * number), every, burst: 1, shape, forwarded: false }
}
