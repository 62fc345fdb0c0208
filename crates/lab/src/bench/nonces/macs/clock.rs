//! How fast the processor's clock runs at this moment, from a chain of operations whose length in clocks is known.

use std::hint::black_box;
use std::time::Instant;

/// Links of the chain in one batch, and batches, of which the fastest counts.
const LINKS: u32 = 200_000;
const BATCHES: u32 = 25;
/// A 64-bit multiplication takes three clocks and a rotation one, on every x86-64 processor since 2008 and on current ARM ones
/// (Fog, "Instruction tables"). Each waits for the one before.
const CLOCKS_PER_LINK: f64 = 4.0;

/// Clocks in a nanosecond: the core's own clock with whatever boost it has, which a time stamp counter does not show.
pub fn per_ns() -> f64 {
    let fastest = (0..BATCHES).map(|_| chain_ns()).fold(f64::INFINITY, f64::min);
    f64::from(LINKS) * CLOCKS_PER_LINK / fastest
}

fn chain_ns() -> f64 {
    let factor = black_box(0x9e37_79b9_7f4a_7c15_u64);
    let start = Instant::now();
    let mut value = black_box(1_u64);
    for _ in 0..LINKS {
        value = value.wrapping_mul(factor).rotate_left(7);
    }
    black_box(value);
    start.elapsed().as_secs_f64() * 1e9
}

#[cfg(test)]
mod tests {
    /// No processor that this is built for runs at less than a quarter of a gigahertz or at more than ten.
    #[test]
    fn the_clock_is_that_of_a_processor() {
        let found = super::per_ns();
        assert!((0.25..10.0).contains(&found), "{found} GHz");
    }
}
