//! Every harness without a fuzzer: over its seeds, over inputs that once broke something, over the corpus if there is
//! one, and over some thousand changed copies of them.

#[path = "../src/program.rs"]
mod program;

use std::path::Path;

use bump::Generator;
use program::{config, failure, modes};
use ringwall_fuzz::input::Input;
use ringwall_fuzz::seeds::{mutate, seeds};
use ringwall_fuzz::{Harness, TARGETS};

/// Bytes of choices for one changed copy.
const CHOICES_LEN: usize = 64;

/// Changed copies that a harness is given; those with cryptography in them are slower.
fn rounds(target: &str) -> usize {
    match target {
        "cll_bump" | "faults" | "scrub" => 300,
        "certificate" | "pem" | "capture" | "config" => 2000,
        _ => 5000,
    }
}

/// Every file in `fuzz/<kind>/<target>`; none if there is no such directory.
fn files(kind: &str, target: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(kind).join(target);
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    entries.map(|entry| std::fs::read(entry.expect("an entry").path()).expect("a file")).collect()
}

fn exercise(target: &str, harness: Harness) {
    let mut known = seeds(target);
    assert!(!known.is_empty(), "{target} has seeds");
    known.extend(files("regressions", target));
    known.extend(files("corpus", target));
    known.iter().for_each(|data| harness(data));
    let mut random = Generator::from_seed([7; 32]);
    for _ in 0..rounds(target) {
        let choices: [u8; CHOICES_LEN] = random.bytes();
        harness(&mutate(&known, &mut Input::new(&choices)));
    }
}

#[test]
fn parsers_and_the_null_bump() {
    for (target, harness) in TARGETS.iter().filter(|(target, _)| !["cll_bump", "faults"].contains(target)) {
        exercise(target, *harness);
    }
}

#[test]
fn the_link_layer() {
    let (target, harness) = TARGETS.iter().find(|(target, _)| *target == "cll_bump").expect("a target");
    exercise(target, *harness);
}

#[test]
fn panics_in_the_link_layer() {
    let (target, harness) = TARGETS.iter().find(|(target, _)| *target == "faults").expect("a target");
    exercise(target, *harness);
}

#[test]
fn the_configuration_file() {
    exercise("config", program::config_file);
}
