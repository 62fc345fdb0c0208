//! The simulator judges signed ARP; these judge the simulator.

use sarp::Weaken;

use super::simulate;
use crate::sim::checks;
use crate::sim::report::Report;

fn run(seed: u64, weaken: Weaken) -> Report {
    simulate(seed, weaken, false).expect("a site")
}

/// The violations of a few runs with this layer switched off, by rule.
fn rules(weaken: Weaken, seeds: std::ops::Range<u64>) -> Vec<&'static str> {
    checks::rules(|seed| run(seed, weaken), seeds)
}

#[test]
fn the_same_seed_gives_the_same_run() {
    checks::the_same_seed_gives_the_same_run(|seed| run(seed, Weaken::default()), &[1, 7]);
}

#[test]
fn a_few_runs_hold_every_invariant_and_deliver() {
    checks::runs_hold_every_invariant_and_deliver(|seed| run(seed, Weaken::default()), 100..106, 300, 300);
}

/// One run in five has a recording of the right moment; these have.
#[test]
fn stamps_that_are_not_looked_at_are_caught() {
    assert!(rules(Weaken { stamps: true, ..Weaken::default() }, 8..12).contains(&"false ARP delivered"));
}

#[test]
fn a_reply_that_nobody_asked_for_is_caught() {
    assert!(rules(Weaken { unasked: true, ..Weaken::default() }, 1..3).contains(&"unasked reply delivered"));
}

#[test]
fn a_distributors_answer_under_any_nonce_is_caught() {
    let weaken = Weaken { distributor_nonce: true, ..Weaken::default() };
    assert!(rules(weaken, 1..3).contains(&"clock that no distributor has"));
}

#[test]
fn a_hardware_address_that_the_site_does_not_bind_is_caught() {
    assert!(rules(Weaken { binding: true, ..Weaken::default() }, 1..3).contains(&"false ARP delivered"));
}

#[test]
fn a_distributor_that_signs_for_strangers_is_caught() {
    let weaken = Weaken { request_tag: true, ..Weaken::default() };
    assert!(rules(weaken, 1..3).contains(&"distributor signed for a stranger"));
}

#[test]
fn a_dhcp_reply_without_a_proof_is_caught() {
    assert!(rules(Weaken { dhcp_proof: true, ..Weaken::default() }, 1..3).contains(&"forged DHCP delivered"));
}
