//! The simulator judges migration; these judge the simulator: each property has a world in which it is broken on purpose.

use super::{Plant, simulate, simulate_with};
use crate::sim::checks;

fn rules(plant: Plant, seeds: std::ops::Range<u64>) -> Vec<&'static str> {
    checks::rules(|seed| simulate_with(seed, Some(plant), false).expect("a site"), seeds)
}

#[test]
fn the_same_seed_gives_the_same_run() {
    checks::the_same_seed_gives_the_same_run(|seed| simulate(seed, false).expect("a site"), &[1, 5]);
}

#[test]
fn a_few_runs_hold_every_invariant_and_deliver() {
    checks::runs_hold_every_invariant_and_deliver(|seed| simulate(seed, false).expect("a site"), 1..25, 100, 500);
}

#[test]
fn a_host_that_forgets_who_proved_himself_is_caught() {
    assert!(rules(Plant::ForgetfulDisk, 1..25).contains(&"proved host fell back"));
}

#[test]
fn a_host_that_never_finishes_a_handshake_is_caught() {
    let found = rules(Plant::IdleWorker, 1..25);
    assert!(found.contains(&"cut for too long") && found.contains(&"nothing delivered in the calm"), "{found:?}");
}

#[test]
fn a_host_that_does_not_enforce_what_it_was_told_to_is_caught() {
    assert!(rules(Plant::LostOrder, 1..25).contains(&"clear frame delivered in mode enforce"));
}

#[test]
fn a_way_past_the_link_layer_is_caught() {
    assert!(rules(Plant::SideDoor, 1..6).contains(&"sent in clear to a proved host"));
}

#[test]
fn a_printer_that_nobody_reaches_is_caught() {
    assert!(rules(Plant::DeafPrinter, 1..12).contains(&"nothing delivered in the calm"));
}
