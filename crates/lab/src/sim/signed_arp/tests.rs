//! The simulator judges signed ARP; these judge the simulator.

use sarp::Weaken;

use super::simulate;

/// The violations of a few runs with a layer switched off, by rule.
fn rules(weaken: Weaken, seeds: std::ops::Range<u64>) -> Vec<&'static str> {
    let violations = seeds.flat_map(|seed| simulate(seed, weaken, false).expect("a site").violations.kept);
    violations.map(|violation| violation.rule).collect()
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| simulate(seed, Weaken::default(), false).expect("a site");
    for seed in [1, 7] {
        assert_eq!(run(seed).hash, run(seed).hash, "seed {seed}");
    }
    assert_ne!(run(1).hash, run(2).hash);
}

#[test]
fn a_few_runs_hold_every_invariant_and_deliver() {
    for seed in 100..106 {
        let report = simulate(seed, Weaken::default(), false).expect("a site");
        let violations: Vec<String> = report.violations.kept.iter().map(ToString::to_string).collect();
        assert_eq!(report.violations.count, 0, "seed {seed}: {violations:?}");
        assert!(report.deliveries > 300, "seed {seed} ({}): {} deliveries", report.summary, report.deliveries);
    }
}

#[test]
fn stamps_that_are_not_looked_at_are_caught() {
    assert!(rules(Weaken { stamps: true, ..Weaken::default() }, 1..3).contains(&"false ARP delivered"));
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
