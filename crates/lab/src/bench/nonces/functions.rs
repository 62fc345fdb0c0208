//! What it costs to tell one forged frame by its nonce, with each of the functions.

use std::hint::black_box;
use std::time::Instant;

use shield::limits::TABLE_REACH;
use shield::spin::{KEY_LEN, SlowSpin, Spin, SpinTable};

use super::NAME;
use crate::bench::Schedule;
use crate::bench::row::Row;
use crate::bench::stats::Series;

/// Nonces in one run.
const NONCES: u32 = 4_000_000;
const NONCES_QUICKLY: u32 = 400_000;
const KEY: [u8; KEY_LEN] = [0x37; KEY_LEN];
/// The newest sequence number of a receiver.
const NEWEST: u32 = 1_000_000_000;
/// As far as forged frames scatter around it; a power of two.
const SCATTER: u32 = 4096;
/// Keys in turn, as many peers at once have them.
const KEYS_MANY: usize = 512;

/// Runs each function; the unit is nanoseconds for a frame.
pub fn measure(schedule: Schedule) -> Vec<Row> {
    let (spin, slow) = (Spin::new(&KEY), SlowSpin::new(&KEY));
    let table = SpinTable::new(&KEY, NEWEST);
    let many: Vec<_> = (0..KEYS_MANY).map(|_| SpinTable::new(&KEY, NEWEST)).collect();
    let one_of_many = |number: u32| &many[number.wrapping_mul(40_503) as usize % KEYS_MANY];
    let mut moving = SpinTable::new(&KEY, NEWEST);
    let rows = [
        ("function/keyed", series(schedule, |number| Some(spin.at(near(number))))),
        ("function/slow", series(schedule, |number| Some(slow.at(NEWEST + number)))),
        ("function/table/forged", series(schedule, |number| table.at(near(number)))),
        ("function/table/forged/512_keys", series(schedule, |number| one_of_many(number).at(near(number)))),
        (
            "function/table/honest",
            series(schedule, |_| {
                let newest = moving.first() + TABLE_REACH + 1;
                moving.advance(newest);
                moving.at(newest)
            }),
        ),
    ];
    rows.iter().filter_map(|(name, series)| Row::new(NAME, *name, "ns", series)).collect()
}

/// Sequence numbers as forged frames scatter them.
fn near(number: u32) -> u32 {
    NEWEST + (number.wrapping_mul(2_654_435_761) & (SCATTER - 1))
}

/// Nanoseconds for a call, once for each pair.
fn series<F: FnMut(u32) -> Option<u32>>(schedule: Schedule, mut function: F) -> Series {
    let count = if schedule.quick { NONCES_QUICKLY } else { NONCES };
    let mut time = || {
        let start = Instant::now();
        (0..count).for_each(|number| {
            black_box(function(black_box(number)));
        });
        start.elapsed().as_secs_f64() * 1e9 / f64::from(count)
    };
    (0..schedule.pairs).map(|_| Some(time())).collect()
}
