//! The paper's section 5: what algorithms for authentication cost for each byte, and how much faster they are than HMAC-MD5 without
//! assembler, over the size of the message; beside them a nonce, which costs the same for every size.
//!
//! The paper has figures 7 and 9 for one processor and 8 and 10 for another; here is one processor. Clocks are nanoseconds times the
//! clock that `clock.rs` finds in the same seconds. `library.rs` has what this program is linked with, `nettle.rs` the rest.

mod clock;
mod library;
mod nettle;

use super::NAME;
use crate::bench::plot::Figure;
use crate::bench::row::Row;
use crate::bench::stats::{Series, median, present};
use crate::bench::{Schedule, cpu, twice};
use crate::cleanup::Run;
use crate::failure::Failure;
use nettle::Nettle;

/// Bytes of a message, from the paper's shortest to its longest.
const SIZES: [usize; 8] = [44, 64, 128, 256, 512, 1024, 1500, 2048];
/// To which the others are compared, the paper's `hmac-md5c`.
const BASE: &str = "hmac-md5/portable";

/// Figures 7 and 8, and 9 and 10, which are of two processors in the paper.
pub const FIGURES: [Figure<'static>; 2] = [
    Figure {
        name: "figure7",
        rows: "figure7",
        title: "Authentication on this processor",
        x: "message, bytes",
        y: "clocks/byte",
        is_logarithmic: true,
        is_logarithmic_up: true,
    },
    Figure {
        name: "figure9",
        rows: "figure9",
        title: "Speed-up over HMAC-MD5 without assembler",
        x: "message, bytes",
        y: "times",
        is_logarithmic: true,
        is_logarithmic_up: true,
    },
];

/// What a message costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// The algorithm and its build.
    pub line: String,
    /// Bytes of the message.
    pub size: usize,
    pub ns: f64,
}

/// An algorithm at one size, run by run.
struct Found {
    line: String,
    size: usize,
    ns: Series,
    clocks_per_byte: Series,
    speed_up: Series,
}

/// Times every algorithm at every size.
///
/// # Errors
/// The program for nettle cannot be built, or the lab is interrupted.
pub fn measure(run: &Run, schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let nettle = Nettle::build(run)?;
    let (mut found, mut clocks) = (Vec::new(), Series::new());
    for pair in 0..schedule.pairs {
        eprintln!("ringwall-lab: authentication, pair {} of {}", pair + 1, schedule.pairs);
        cpu::settle()?;
        let clocks_per_ns = clock::per_ns();
        let costs = twice("authentication", || once(nettle.as_ref()))?.unwrap_or_default();
        clocks.push(Some(clocks_per_ns));
        costs.iter().for_each(|cost| enter(&mut found, cost, &costs, clocks_per_ns));
    }
    Ok(found.iter().flat_map(|found| found.rows(median(&present(&clocks)))).collect())
}

fn once(nettle: Option<&Nettle>) -> Result<Vec<Cost>, Failure> {
    let mut costs = library::measure(&SIZES)?;
    costs.extend(nettle.map_or(Ok(Vec::new()), |nettle| nettle.measure(&SIZES))?);
    Ok(costs)
}

/// Adds a run to what was found before.
fn enter(found: &mut Vec<Found>, cost: &Cost, costs: &[Cost], clocks_per_ns: f64) {
    let at = found.iter().position(|one| one.line == cost.line && one.size == cost.size).unwrap_or_else(|| {
        let (line, size) = (cost.line.clone(), cost.size);
        found.push(Found { line, size, ns: Vec::new(), clocks_per_byte: Vec::new(), speed_up: Vec::new() });
        found.len() - 1
    });
    let base = costs.iter().find(|base| base.line == BASE && base.size == cost.size);
    found[at].ns.push(Some(cost.ns));
    found[at].clocks_per_byte.push(Some(cost.ns * clocks_per_ns / cost.size as f64));
    found[at].speed_up.push(base.map(|base| base.ns / cost.ns));
}

impl Found {
    /// Its points in figures 7 and 9.
    fn rows(&self, clocks_per_ns: Option<f64>) -> impl Iterator<Item = Row> {
        let name = |figure: &str| format!("{figure}/{}/{}", self.size, self.line);
        let clocks = Row::new(NAME, name("figure7"), "clocks/byte", &self.clocks_per_byte);
        let clocks =
            clocks.map(|row| row.with_stat("ns", median(&present(&self.ns))).with_stat("clock_ghz", clocks_per_ns));
        let speed_up = Row::new(NAME, name("figure9"), "ratio", &self.speed_up).filter(|_| self.line != BASE);
        [clocks, speed_up].into_iter().flatten().map(|row| row.with_stat("x", Some(self.size as f64)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_up_is_that_over_the_same_size_in_the_same_run() {
        let cost = |line: &str, size, ns| Cost { line: line.to_owned(), size, ns };
        let costs = [cost(BASE, 50, 100.0), cost(BASE, 100, 900.0), cost("x/optimised", 100, 300.0)];
        let mut found = Vec::new();
        costs.iter().for_each(|one| enter(&mut found, one, &costs, 2.0));
        let rows: Vec<Row> = found.iter().flat_map(|found| found.rows(Some(2.0))).collect();
        let values: Vec<_> = rows.iter().map(|row| (row.row.as_str(), row.median)).collect();
        let expected = [
            ("figure7/50/hmac-md5/portable", 4.0),
            ("figure7/100/hmac-md5/portable", 18.0),
            ("figure7/100/x/optimised", 6.0),
            ("figure9/100/x/optimised", 3.0),
        ];
        assert_eq!(values, expected);
        assert_eq!(rows[2].stats["x"], 100.0);
    }
}
