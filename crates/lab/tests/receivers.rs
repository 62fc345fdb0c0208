//! The property that defines the scrubber, at receivers: without it they read different bytes of one attack, behind it all read the
//! same. The short form of `ringwall-lab receivers`.
//!
//! The kernel needs root; gVisor and lwIP need what `packaging/receivers.sh` builds. Who is missing is said by name.

#![allow(clippy::expect_used, reason = "helpers of tests fail like tests")]

use std::path::PathBuf;

use ringwall_lab::cleanup;
use ringwall_lab::receivers::comparison::{self, Row};
use ringwall_lab::receivers::{Carrier, Comparison, Found, Plan};
use ringwall_lab::stacks::receiving;

/// Scripts of each carrier against real receivers and against models alone.
const CASES: u64 = 100;
const CASES_OF_MODELS: u64 = 500;
/// Of the relations, every so-many-th goes to real receivers; models see all.
const RELATIONS_STEP: usize = 23;

fn programs() -> PathBuf {
    let own = std::env::current_exe().expect("this program has a file");
    comparison::programs_beside(&own)
}

/// Real receivers, those that this machine cannot run said by name.
fn found(test: &str) -> Found {
    let run = rustix::process::geteuid().is_root().then(|| cleanup::begin_transient().expect("a run"));
    let found = receiving::find(&programs(), run);
    for missing in &found.missing {
        eprintln!("SKIPPED {test}, receiver {missing}");
    }
    found
}

fn any(comparison: &Comparison, carrier: Carrier) -> &Row {
    comparison.rows_of("any").find(|row| row.carrier == carrier.to_string()).expect("a row")
}

/// Without the scrubber receivers disagree, so the test can fail; behind it they agree, and on something.
fn check(comparison: &Comparison) {
    for carrier in Carrier::ALL {
        let row = any(comparison, carrier);
        assert!(row.without * 10 > row.cases, "without the scrubber hardly anybody disagrees: {row:?}");
        assert_eq!(row.with, 0, "{carrier}: {:#?}", comparison.violations);
    }
    for row in comparison.rows.iter().filter(|row| !row.carrier.contains("IPv6 fragments")) {
        assert!(row.read * 2 > row.cases, "behind the scrubber hardly anything is read: {row:?}");
    }
}

#[test]
fn models_disagree_without_the_scrubber_and_agree_behind_it() {
    let plan = Plan { cases: CASES_OF_MODELS, seed: 0, relations_step: Some(1) };
    let comparison = Comparison::run(&plan, Found::default()).expect("models do not fail");
    check(&comparison);
}

#[test]
fn real_receivers_disagree_without_the_scrubber_and_agree_behind_it() {
    let found = found("real_receivers_disagree_without_the_scrubber_and_agree_behind_it");
    let names: Vec<String> = found.receivers.iter().map(|receiver| receiver.name().to_owned()).collect();
    let plan = Plan { cases: CASES, seed: 1_000_000, relations_step: Some(RELATIONS_STEP) };
    let comparison = Comparison::run(&plan, found).expect("every receiver answers");
    // The receivers are gone with their run; what is left is swept away.
    assert_eq!(cleanup::sweep_own(true), Vec::<String>::new(), "nothing stays behind");
    check(&comparison);
    for name in names {
        let without: u64 = comparison.rows_of(&name).map(|row| row.without).sum();
        assert!(without > 0, "{name} reads what the first model reads, so it shows nothing");
    }
}
