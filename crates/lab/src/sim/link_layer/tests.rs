//! The simulator judges the link layer; these judge the simulator.

use std::time::Duration;

use cll::Weaken;

use super::world::{World, generator};
use super::{rollover, simulate, simulate_post_quantum, simulate_site_key, site};
use crate::sim::report::Report;
use crate::sim::{checks, course};

fn run(seed: u64, weaken: Weaken) -> Report {
    simulate(seed, weaken, false).expect("a site")
}

/// The violations of a few runs with this layer switched off, by rule.
fn rules(weaken: Weaken, seeds: std::ops::Range<u64>) -> Vec<&'static str> {
    checks::rules(|seed| run(seed, weaken), seeds)
}

#[test]
fn the_same_seed_gives_the_same_run() {
    checks::the_same_seed_gives_the_same_run(|seed| run(seed, Weaken::default()), &[1, 7, 11]);
}

#[test]
fn a_few_runs_hold_every_invariant_and_deliver() {
    checks::runs_hold_every_invariant_and_deliver(|seed| run(seed, Weaken::default()), 100..112, 30, 1000);
}

#[test]
fn a_replay_window_that_is_off_is_caught() {
    assert!(rules(Weaken { replay_window: true, ..Weaken::default() }, 1..12).contains(&"frame delivered twice"));
}

#[test]
fn a_candidate_that_is_promoted_too_early_is_caught() {
    assert!(
        rules(Weaken { promotion: true, ..Weaken::default() }, 1..12)
            .contains(&"responder sent before it opened a frame")
    );
}

#[test]
fn a_missing_cross_layer_check_is_caught() {
    assert!(rules(Weaken { cross_layer: true, ..Weaken::default() }, 1..12).contains(&"lie delivered"));
}

#[test]
fn a_few_runs_with_ml_kem_hold_every_invariant_and_deliver() {
    let run = |seed| simulate_post_quantum(seed, Weaken::default(), false).expect("a site");
    checks::runs_hold_every_invariant_and_deliver(run, 100..112, 30, 1000);
}

#[test]
fn layers_that_are_off_are_caught_with_ml_kem_too() {
    let rules =
        |weaken: Weaken| checks::rules(|seed| simulate_post_quantum(seed, weaken, false).expect("a site"), 1..12);
    assert!(rules(Weaken { replay_window: true, ..Weaken::default() }).contains(&"frame delivered twice"));
}

/// Broke `retire` by forgetting replaced keys at once: datagrams were lost in every minute.
#[test]
fn keys_are_replaced_under_load_without_a_loss() {
    let scenario = rollover::scenario(Duration::from_secs(120));
    let world = World::of(scenario, generator(1), site::pool().expect("a site"), Weaken::default(), false);
    let report = course::run(world);
    let violations: Vec<String> = report.violations.kept.iter().map(ToString::to_string).collect();
    assert_eq!(report.violations.count, 0, "{violations:?}");
    assert!(report.renewals > 80 && report.deliveries > 50_000, "{} {}", report.renewals, report.deliveries);
}

#[test]
fn a_site_key_changes_under_load_and_the_old_one_is_worth_nothing() {
    let run = |seed| simulate_site_key(seed, Weaken::default(), false).expect("a site");
    checks::the_same_seed_gives_the_same_run(run, &[3]);
    checks::runs_hold_every_invariant_and_deliver(run, 100..112, 30, 1000);
    let refused = |seed| run(seed).ledger.drops(bump::DropReason::HandshakeSiteMac);
    let refused = (100..130).map(refused).sum::<u64>();
    assert!(refused > 100, "the attacker goes on with the old key: {refused}");
}
