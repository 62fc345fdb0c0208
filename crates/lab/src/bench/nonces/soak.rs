//! A stream under one flood after the other for as long as is wanted: what is left of it may not fall, the receiver's memory may not
//! grow, and at any moment each frame that it took must have had one fate.

use std::path::Path;
use std::time::{Duration, Instant};

use shield::Layers;

use super::NAME;
use super::flood::{Attack, Pace};
use super::stage::{Receive, Stage};
use crate::bench::row::Row;
use crate::bench::stats::Series;
use crate::bench::twice;
use crate::cleanup::Run;
use crate::failure::Failure;

/// Seconds of each flood.
const TURN_SECONDS: u32 = 10;

/// Runs for `minutes`, at least once with each flood.
///
/// # Errors
/// The hosts cannot be set up, the receiver's books do not add up, or the lab is interrupted.
pub fn measure(run: &Run, program: &Path, minutes: u32, receive: Receive) -> Result<Vec<Row>, Failure> {
    let mut stage = Stage::open(run, program, Layers::Kernel, receive)?;
    let attacks = || std::iter::once(None).chain(Attack::ALL.map(Some));
    let mut found: Vec<(Option<Attack>, Series, Series)> =
        attacks().map(|attack| (attack, Series::new(), Series::new())).collect();
    let (start, length) = (Instant::now(), Duration::from_secs(60 * u64::from(minutes)));
    while found[0].1.is_empty() || start.elapsed() < length {
        eprintln!("ringwall-lab: soak, {} of {minutes} minutes", start.elapsed().as_secs() / 60);
        for (attack, goodput, memory) in &mut found {
            let flood = attack.map(|attack| (attack, Pace::Steady));
            let measured = twice(name(*attack), || stage.measure(flood, TURN_SECONDS))?;
            goodput.push(measured.map(|one| one.goodput_mbit));
            memory.push(measured.map(|one| one.memory_mib));
            stage.audit()?;
        }
        // Keys change meanwhile, and forged frames are to be of those in force.
        stage.retake()?;
    }
    Ok(rows(&found))
}

fn name(attack: Option<Attack>) -> &'static str {
    attack.map_or("alone", Attack::name)
}

/// What is left of the stream under each flood, beside the stream alone in the same round, and how the memory went.
fn rows(found: &[(Option<Attack>, Series, Series)]) -> Vec<Row> {
    let alone = &found[0].1;
    let row = |(attack, goodput, memory): &(Option<Attack>, Series, Series)| {
        let row = Row::new(NAME, format!("soak/{}", name(*attack)), "Mbit/s", goodput)?.against_plain(goodput, alone);
        let mut known = memory.iter().flatten().copied();
        let (first, last) = (known.next(), known.next_back());
        Some(row.with_stat("memory_first_mib", first).with_stat("memory_last_mib", last.or(first)))
    };
    found.iter().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_tells_where_the_memory_began_and_ended() {
        let goodput = vec![Some(200.0), None, Some(190.0)];
        let found = [
            (None, goodput.clone(), vec![Some(10.0), None, Some(12.0)]),
            (Some(Attack::Replayed), goodput, vec![None; 3]),
        ];
        let rows = rows(&found);
        assert_eq!(
            (rows[0].stats["memory_first_mib"].as_f64(), rows[0].stats["memory_last_mib"].as_f64()),
            (Some(10.0), Some(12.0))
        );
        assert_eq!(
            (rows[1].row.as_str(), rows[1].ratio, rows[1].stats.get("memory_last_mib")),
            ("soak/replayed", Some(1.0), None)
        );
    }
}
