//! The simulator judges the bumps; these judge the simulator, the same for each world.

use super::report::Report;

/// The violations of a few runs, by rule.
pub fn rules(simulate: impl Fn(u64) -> Report, seeds: std::ops::Range<u64>) -> Vec<&'static str> {
    seeds.flat_map(|seed| simulate(seed).violations.kept).map(|violation| violation.rule).collect()
}

/// Two runs of one seed are the same, and another seed gives another run.
pub fn the_same_seed_gives_the_same_run(simulate: impl Fn(u64) -> Report, seeds: &[u64]) {
    for &seed in seeds {
        let [first, second] = [seed, seed].map(&simulate);
        assert_eq!(first.hash, second.hash, "seed {seed}");
        assert_eq!(first.events, second.events);
        assert_ne!(first.hash, simulate(seed + 1).hash);
    }
}

/// With every layer on, no invariant is hurt, more than `each_min` frames arrive in each run, of which some draw little traffic, and
/// more than `mean_min` on the average.
pub fn runs_hold_every_invariant_and_deliver(
    simulate: impl Fn(u64) -> Report,
    seeds: std::ops::Range<u64>,
    each_min: u64,
    mean_min: u64,
) {
    let runs = seeds.end - seeds.start;
    let mut all = 0;
    for seed in seeds {
        let report = simulate(seed);
        let violations: Vec<String> = report.violations.kept.iter().map(ToString::to_string).collect();
        assert_eq!(report.violations.count, 0, "seed {seed}: {violations:?}");
        let deliveries = report.deliveries;
        assert!(deliveries > each_min, "seed {seed} ({}): {deliveries} deliveries", report.summary);
        all += deliveries;
    }
    assert!(all > mean_min * runs, "{all} deliveries in {runs} runs");
}
