//! A stream under one flood after the other, of data frames, handshakes and frames to all, for as long as is wanted: what is left of it may
//! not fall, the receiver's memory may not grow, each frame that came over its wire must be found in one of its counters, and at
//! any moment each that it took must have had one fate.

use std::path::Path;
use std::time::{Duration, Instant};

use shield::{Hook, Layers};

use super::NAME;
use super::flood::{Attack, Pace};
use super::placement::Receive;
use super::stage::{Books, Measured, Stage};
use super::{floods, handshakes};
use crate::bench::row::Row;
use crate::bench::stats::Series;
use crate::bench::twice;
use crate::cleanup::Run;
use crate::failure::Failure;

/// Seconds of each flood.
const TURN_SECONDS: u32 = 10;
/// Frames of a turn that counters need not know of: honest hosts speak while they are read one after the other.
const MEANWHILE: f64 = 50.0;

/// What comes beside the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Alone,
    Data(Attack),
    Handshake(handshakes::Forgery),
    Group(floods::Forgery),
}

impl Turn {
    fn all() -> impl Iterator<Item = Turn> {
        let group = floods::Forgery::GROUP.into_iter().map(Turn::Group);
        let handshakes = handshakes::Forgery::ALL.into_iter().map(Turn::Handshake).chain(group);
        std::iter::once(Turn::Alone).chain(Attack::ALL.map(Turn::Data)).chain(handshakes)
    }

    fn name(self) -> String {
        match self {
            Turn::Alone => "alone".to_owned(),
            Turn::Data(attack) => attack.name().to_owned(),
            Turn::Handshake(forgery) => format!("handshake_{}", forgery.name()),
            Turn::Group(forgery) => forgery.name().to_owned(),
        }
    }
}

/// What was seen in the turns of one kind.
struct Seen {
    turn: Turn,
    goodput: Series,
    memory: Series,
    offered: f64,
    unaccounted: f64,
}

/// Runs for `minutes`, at least once with each flood.
///
/// # Errors
/// The hosts cannot be set up, the receiver's books do not add up, or the lab is interrupted.
pub fn measure(run: &Run, program: &Path, minutes: u32, (receive, hook): (Receive, Hook)) -> Result<Vec<Row>, Failure> {
    let mut stage = Stage::open(run, program, (Layers::Kernel, hook), receive)?;
    let seen = |turn| Seen { turn, goodput: Series::new(), memory: Series::new(), offered: 0.0, unaccounted: 0.0 };
    let mut found: Vec<Seen> = Turn::all().map(seen).collect();
    let (start, length) = (Instant::now(), Duration::from_secs(60 * u64::from(minutes)));
    while found[0].goodput.is_empty() || start.elapsed() < length {
        eprintln!("ringwall-lab: soak, {} of {minutes} minutes", start.elapsed().as_secs() / 60);
        for seen in &mut found {
            take_turn(&stage, seen)?;
        }
        // Keys change meanwhile, and forged frames are to be of those in force.
        stage.retake()?;
    }
    Ok(rows(&found))
}

/// One turn, and what the receiver's books say of it.
fn take_turn(stage: &Stage, seen: &mut Seen) -> Result<(), Failure> {
    let before = stage.books()?;
    let measured = twice(&seen.turn.name(), || play(stage, seen.turn))?;
    seen.goodput.push(measured.map(|one| one.goodput_mbit));
    seen.memory.push(measured.map(|one| one.memory_mib));
    let (offered, unaccounted) = since(stage.books()?, before);
    if unaccounted.abs() > MEANWHILE {
        let what =
            format!("{}: {unaccounted} of {offered} frames of the receiver's wire are in no counter", seen.turn.name());
        return Err(Failure::Unreadable(what));
    }
    seen.offered += offered;
    seen.unaccounted += unaccounted;
    stage.audit()
}

fn since(after: Books, before: Books) -> (f64, f64) {
    let offered = after.offered - before.offered;
    (offered, offered - (after.accounted - before.accounted))
}

fn play(stage: &Stage, turn: Turn) -> Result<Measured, Failure> {
    let forged = match turn {
        Turn::Alone => None,
        Turn::Data(attack) => return stage.measure(Some((attack, Pace::Steady)), TURN_SECONDS),
        Turn::Handshake(forgery) => Some(stage.forged_handshakes(forgery)?),
        Turn::Group(forgery) => {
            let known = floods::Known { heard: Some(stage.said_to_all()?), master: None };
            Some(forgery.forge(stage.receiver(), &known))
        }
    };
    stage.measure_under(forged.map(|forged| (forged, Pace::Steady)), TURN_SECONDS)
}

/// What is left of the stream under each flood, beside the stream alone in the same round, how the memory went, and what came over the wire.
fn rows(found: &[Seen]) -> Vec<Row> {
    let alone = &found[0].goodput;
    let row = |seen: &Seen| {
        let row = Row::new(NAME, format!("soak/{}", seen.turn.name()), "Mbit/s", &seen.goodput)?;
        let row = row.against_plain(&seen.goodput, alone);
        let mut known = seen.memory.iter().flatten().copied();
        let (first, last) = (known.next(), known.next_back());
        let row = row.with_stat("memory_first_mib", first).with_stat("memory_last_mib", last.or(first));
        Some(
            row.with_stat("frames_offered", Some(seen.offered)).with_stat("frames_unaccounted", Some(seen.unaccounted)),
        )
    };
    found.iter().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_tells_where_the_memory_began_and_ended() {
        let goodput = vec![Some(200.0), None, Some(190.0)];
        let seen = |turn, memory| Seen { turn, goodput: goodput.clone(), memory, offered: 1000.0, unaccounted: 2.0 };
        let found =
            [seen(Turn::Alone, vec![Some(10.0), None, Some(12.0)]), seen(Turn::Data(Attack::Replayed), vec![None; 3])];
        let rows = rows(&found);
        assert_eq!(
            (rows[0].stats["memory_first_mib"].as_f64(), rows[0].stats["memory_last_mib"].as_f64()),
            (Some(10.0), Some(12.0))
        );
        assert_eq!(
            (rows[1].row.as_str(), rows[1].ratio, rows[1].stats.get("memory_last_mib")),
            ("soak/replayed", Some(1.0), None)
        );
        assert_eq!(rows[1].stats["frames_offered"].as_f64(), Some(1000.0));
    }

    #[test]
    fn what_no_counter_knows_is_seen() {
        let books = |offered, accounted| Books { offered, accounted };
        assert_eq!(since(books(500.0, 480.0), books(100.0, 90.0)), (400.0, 10.0));
    }
}
