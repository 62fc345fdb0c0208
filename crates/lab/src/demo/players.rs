//! Plays rows beside each other: most of a row is waiting. Each player has a run of its own, whose
//! names no other has, and a site in it.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::terminal::Colours;
use crate::attack::Attack;
use crate::attack::scene::{self, Outcome, Row};
use crate::cleanup::{self, Run};
use crate::failure::Failure;
use crate::guard::{Guard, Site};

/// An attack under a guard.
pub(super) type Play = (&'static Attack, Guard);

/// What all players share.
pub(super) struct Players<'a> {
    pub(super) plays: &'a [Play],
    /// The program under test; none where no row needs it.
    pub(super) program: Option<&'a Path>,
    pub(super) seed: u64,
    pub(super) colours: Colours,
}

/// Removes a player's run, also when the player has panicked. After a signal the clean-up removes all.
struct Own(&'static Run);

impl Own {
    /// # Errors
    /// Something could not be removed.
    fn removed(self) -> Result<(), Failure> {
        let left = self.sweep();
        if left.is_empty() {
            return Ok(());
        }
        Err(Failure::Command { command: "the clean-up".to_owned(), said: format!("left behind: {}", left.join(", ")) })
    }

    fn sweep(&self) -> Vec<String> {
        if cleanup::permit().is_ok() { cleanup::sweep(self.0) } else { Vec::new() }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        cleanup::report(&self.sweep());
    }
}

impl Players<'_> {
    /// All rows, in their order: `jobs` of them at a time, and floods alone. An attack without a guard
    /// that could not be proved beside other rows is tried again alone; nothing behind a guard is.
    pub(super) fn play_all(&self, run: &'static Run, jobs: usize) -> Result<Vec<Row>, Failure> {
        let (mut alone, beside): (Vec<usize>, Vec<usize>) =
            (0..self.plays.len()).partition(|&at| jobs == 1 || self.plays[at].0.is_flood());
        let rows = Mutex::new(vec![None; self.plays.len()]);
        let count = jobs.min(beside.len());
        let beside = Mutex::new(beside.into_iter());
        let failures: Vec<Failure> = thread::scope(|scope| {
            let player = || scope.spawn(|| self.play_beside(&beside, &rows));
            let players: Vec<_> = (0..count).map(|_| player()).collect();
            let outcome = |player: thread::ScopedJoinHandle<'_, Result<(), Failure>>| {
                player.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            players.into_iter().filter_map(|player| outcome(player).err()).collect()
        });
        if let Some(failure) = failures.into_iter().next() {
            return Err(failure);
        }
        let is_unproved = |row: &Option<Row>| {
            row.as_ref().is_some_and(|row| row.outcome == Outcome::Unproved && !row.guard.is_whole())
        };
        let played = rows.lock().unwrap_or_else(PoisonError::into_inner);
        alone.extend((0..self.plays.len()).filter(|&at| is_unproved(&played[at])));
        drop(played);
        let site = if alone.is_empty() { None } else { self.site(run)? };
        for at in alone {
            self.play(at, run, site.as_ref(), &rows)?;
        }
        Ok(rows.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect())
    }

    /// One row after the other until none is left.
    fn play_beside(
        &self,
        left: &Mutex<impl Iterator<Item = usize>>,
        rows: &Mutex<Vec<Option<Row>>>,
    ) -> Result<(), Failure> {
        let Some(run) = cleanup::begin_beside()? else { return Ok(()) };
        let own = Own(run);
        let site = self.site(own.0)?;
        let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
        while let Some(at) = next() {
            let played = self.play(at, own.0, site.as_ref(), rows);
            if played.is_err() {
                // The others end with their rows.
                while next().is_some() {}
                return played;
            }
        }
        own.removed()
    }

    fn site(&self, run: &Run) -> Result<Option<Site>, Failure> {
        self.program.map(|program| Site::found(run, program)).transpose()
    }

    fn play(&self, at: usize, run: &Run, site: Option<&Site>, rows: &Mutex<Vec<Option<Row>>>) -> Result<(), Failure> {
        let (attack, guard) = self.plays[at];
        let row = scene::play(attack, guard, run, site, self.seed)?;
        let is_good = row.is_as_it_must_be();
        let word = self.colours.verdict(row.outcome.word(), is_good);
        let evidence = if is_good { String::new() } else { format!("\n        {}", row.evidence) };
        let (number, all) = (at + 1, self.plays.len());
        eprintln!("[{number:>3}/{all}] {} {}, guard {guard}: {word}{evidence}", attack.number, attack.name);
        rows.lock().unwrap_or_else(PoisonError::into_inner)[at] = Some(row);
        Ok(())
    }
}
