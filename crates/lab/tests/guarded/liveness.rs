//! Hosts find each other at once and again after anything that happens to either of them.

use std::time::Duration;

use ringwall_lab::net::talk::{Mailbox, reach};
use rustix::process::Signal;

use crate::stage::{Outcome, Plan, SOON, Stage, perform};
use crate::wire::*;

/// After a restart of either side, traffic from either side flows again within this.
const HEALED_MAX: Duration = Duration::from_secs(15);
/// A first answer that took longer than this waited for a repetition.
const FIRST_ANSWER_MAX: Duration = Duration::from_secs(1);

#[test]
fn a_first_ping_is_answered_at_once() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let (mut near, mut far) = (stage.guard("a", Plan::default())?, stage.guard("b", Plan::default())?);
        let mut times = Vec::new();
        // A loaded machine may be late once, but not each time.
        for _ in 0..3 {
            times.push(reach(&a.namespace, b.ip, SOON)?);
            for guarded in [&mut near, &mut far] {
                guarded.stop(Signal::TERM);
                guarded.start(&[])?;
            }
        }
        assert!(times.iter().any(|time| *time < FIRST_ANSWER_MAX), "first answers took {times:?}");
        Ok(())
    });
}

#[test]
fn traffic_of_one_side_flows_again_after_a_restart_of_the_receiver() {
    perform(&["a", "b"], |stage| traffic_of_one_side_flows_again(stage, "b"));
}

#[test]
fn traffic_of_one_side_flows_again_after_a_restart_of_the_sender() {
    perform(&["a", "b"], |stage| traffic_of_one_side_flows_again(stage, "a"));
}

/// Only `a` ever sends; `who` is restarted, told so and not.
fn traffic_of_one_side_flows_again(stage: &Stage, who: &str) -> Outcome {
    let (a, b) = (stage.host("a"), stage.host("b"));
    let mut guarded = [stage.guard("a", Plan::default())?, stage.guard("b", Plan::default())?];
    let (sender, receiver) = (Mailbox::open(a, PORT)?, Mailbox::open(b, PORT)?);
    await_datagram(&sender, b, &receiver, SOON)?;
    let restarted = guarded.iter_mut().find(|guarded| guarded.host.name == who).expect("a or b");
    for signal in [Signal::TERM, Signal::KILL, Signal::KILL] {
        restarted.stop(signal);
        restarted.start(&[])?;
        let healed = await_datagram(&sender, b, &receiver, HEALED_MAX)?;
        eprintln!("{who} ended by {signal:?}: healed within {healed:?}");
    }
    Ok(())
}

#[test]
fn both_sides_heal_after_both_were_killed() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let (mut near, mut far) = (stage.guard("a", Plan::default())?, stage.guard("b", Plan::default())?);
        let stream = Stream::start(&b.namespace, &a.namespace, a.ip, 5001)?;
        stream.await_progress(1 << 20, SOON)?;
        near.stop(Signal::KILL);
        far.stop(Signal::KILL);
        near.start(&[])?;
        far.start(&[])?;
        stream.await_progress(1 << 20, HEALED_MAX)
    });
}

#[test]
fn three_hosts_reach_each_other() {
    perform(&["a", "b", "c"], |stage| {
        let guarded: Vec<_> =
            ["a", "b", "c"].map(|name| stage.guard(name, Plan::default())).into_iter().collect::<Result<_, _>>()?;
        for from in &stage.lan.hosts {
            for to in stage.lan.hosts.iter().filter(|to| to.name != from.name) {
                reach(&from.namespace, to.ip, SOON)?;
            }
        }
        for one in &guarded {
            let peers = one.json(&["peers"])?;
            let in_use = |peer: &&serde_json::Value| peer["state"] == "established";
            assert_eq!(peers.as_array().expect("a list").iter().filter(in_use).count(), 2, "{peers}");
        }
        Ok(())
    });
}

#[test]
fn a_host_that_comes_late_is_found_by_who_waits_for_it() {
    perform(&["a", "b"], |stage| {
        let (a, b) = (stage.host("a"), stage.host("b"));
        let _near = stage.guard("a", Plan::default())?;
        assert!(!pings(&a.namespace, b.ip, "-W 1")?, "a plain host is not a peer");
        let _far = stage.guard("b", Plan::default())?;
        reach(&a.namespace, b.ip, HEALED_MAX).map(drop)
    });
}
