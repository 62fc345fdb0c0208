//! What a ticket saves after a reboot of both hosts.

use std::collections::BTreeMap;
use std::time::Duration;

use super::first_ping::first;
use super::mode::NAME;
use super::mode::{Arena, Mode};
use super::row::Row;
use super::stats::Series;
use super::{Schedule, twice};
use crate::failure::Failure;
use crate::net::process;

/// First pings per pair and mode.
const ROUNDS: u32 = 3;
/// After this a host that has been spoken to has given a ticket, and the other has written it.
const TICKETS_WRITTEN: Duration = Duration::from_secs(4);

/// Everything seen, one entry per round, in microseconds.
#[derive(Default)]
struct Found {
    pings: BTreeMap<Mode, Series>,
}

/// Pings hosts whose daemons have just been restarted, with tickets and without.
///
/// # Errors
/// The lab is interrupted.
pub fn measure(arena: &mut Arena, schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let mut found = Found::default();
    for pair in 0..schedule.pairs {
        eprintln!("ringwall-lab: resumptions, pair {} of {}", pair + 1, schedule.pairs);
        for _ in 0..ROUNDS {
            process::pause(TICKETS_WRITTEN)?;
            for track in &mut arena.tracks {
                let time = twice(&format!("first ping after a restart, {}", track.mode.name()), || first(track))?;
                found.pings.entry(track.mode).or_default().push(time);
            }
        }
    }
    Ok(found.rows())
}

impl Found {
    fn rows(&self) -> Vec<Row> {
        let pings = [(Mode::Resuming, "resumption/first_ping"), (Mode::Encrypted, "resumption/first_ping/handshake")];
        pings.into_iter().filter_map(|(mode, name)| self.ping(mode, name)).collect()
    }

    fn ping(&self, mode: Mode, name: &str) -> Option<Row> {
        let ours = self.pings.get(&mode)?;
        let mut row = Row::new(NAME, name, "us", ours)?;
        if let Some(plain) = self.pings.get(&Mode::Plain) {
            row = row.against_plain(ours, plain);
        }
        if let Some(null) = self.pings.get(&Mode::Null) {
            row = row.against_null(ours, null);
        }
        Some(row)
    }
}
