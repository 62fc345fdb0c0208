//! The laws of the scrubber as a whole, over random scripts. The fuzz target `scrub` runs the same.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

#[path = "whole/laws.rs"]
mod laws;

use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, any, proptest};

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn what_leaves_is_right_means_one_thing_and_would_leave_again(script in vec(any::<u8>(), 0..2000)) {
        laws::run(&script);
    }

    #[test]
    fn no_rules_and_no_limits_make_it_panic_or_lose_count(script in vec(any::<u8>(), 0..2000)) {
        laws::run_any(&script);
    }
}
