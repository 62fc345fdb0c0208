//! A small site goes the whole way.

use super::{COMMANDS_MAX, OUTAGE_MAX, stages};

#[test]
fn a_small_site_moves_to_sealed_frames_and_back_and_nobody_is_cut_off() {
    let report = stages::perform(8, |_| {}).expect("a site");
    assert_eq!(report.faults, [""; 0], "{}", report.in_words());
    assert!(report.until_enforced <= COMMANDS_MAX);
    // Each of 8 hosts has one with each of 7 others.
    assert_eq!(report.associations, 8 * 7);
    let all_enforce = report.stages.iter().filter(|stage| stage.guarded == (8, 8)).count();
    assert!(all_enforce >= 3, "{}", report.in_words());
    assert_eq!(report.stages.last().map(|stage| stage.guarded), Some((0, 0)), "all have left");
    assert!(report.stages.iter().all(|stage| stage.gaps.hosts <= OUTAGE_MAX));
    let pairs = 8 * 7 + 2 * 8 * 3;
    let quiet = report.stages.iter().find(|stage| stage.name == "quiet, enforcing").expect("a stage");
    assert!(quiet.gaps.heard >= 9 * pairs, "everybody talks: {}", report.in_words());
}
