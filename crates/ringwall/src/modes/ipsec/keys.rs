//! `ringwall shield keys …`: making the files of a pair, and changing epochs without a gap.
//!
//! An end takes every epoch in its file and sends under one. So a change has three steps, each at
//! both ends in any order: the new epoch is there (`next`), it is sent under (`send`), the old one
//! is gone (`retire`).

use std::path::PathBuf;

use clap::{Args, Subcommand};
use shield::ipsec::limits::EPOCHS_MAX;

use super::key_file::{Epoch, KeyFile};
use crate::failure::Failure;
use crate::output::say;
use crate::randomness;

/// `ringwall shield keys …`
#[derive(Subcommand, Debug)]
pub(crate) enum KeysCommand {
    /// Makes the two files of a new pair, one for each end.
    #[command(after_help = "Example:\n  ringwall shield keys make left.keys right.keys\n\nBring each to its end in \
        secret; only root may read it there.")]
    Make(Both),
    /// Adds one new epoch to both files of a pair; it is not sent under yet.
    #[command(
        after_help = "Bring both files to their ends, in any order: a running daemon takes them within seconds. \
        Then `keys send` at both ends, then `keys retire`."
    )]
    Next(Both),
    /// Sends under the newest epoch from now on, once the other end has it in its file.
    Send(One),
    /// Forgets the epochs before the one that is sent under, once the other end sends under it,
    /// too.
    Retire(One),
}

/// The files of both ends.
#[derive(Args, Debug)]
pub(crate) struct Both {
    /// The file of the one end.
    first: PathBuf,
    /// The file of the other.
    second: PathBuf,
}

/// The file of this end.
#[derive(Args, Debug)]
pub(crate) struct One {
    /// The file.
    file: PathBuf,
}

impl KeysCommand {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            KeysCommand::Make(both) => both.make(),
            KeysCommand::Next(both) => both.next(),
            KeysCommand::Send(one) => one.send(),
            KeysCommand::Retire(one) => one.retire(),
        }
    }
}

impl Both {
    fn make(&self) -> Result<(), Failure> {
        let [a, b] = KeyFile::pair(&mut randomness::secrets()?);
        a.write(&self.first, false)?;
        b.write(&self.second, false).inspect_err(|_| {
            // Half a pair is of no use and in the way of the next attempt.
            let _ = std::fs::remove_file(&self.first);
        })?;
        say!("{} and {} are the two ends of a new pair", self.first.display(), self.second.display());
        Ok(())
    }

    fn next(&self) -> Result<(), Failure> {
        let [mut first, mut second] = [KeyFile::read(&self.first)?, KeyFile::read(&self.second)?];
        if !first.fits(&second) {
            let what = format!("it is not the other end of {}, or has other epochs", self.first.display());
            return Err(Failure::file(&self.second, what, "name the two files of one pair"));
        }
        if first.epochs.len() >= EPOCHS_MAX {
            let what = format!("it has {EPOCHS_MAX} epochs already");
            return Err(Failure::file(
                &self.first,
                what,
                "finish the last change first (`ringwall shield keys retire`)",
            ));
        }
        let number = first.epochs.last().map_or(1, |epoch| epoch.number.saturating_add(1));
        let epoch = Epoch::fresh(number, &mut randomness::secrets()?);
        for (end, file) in [(&mut first, &self.first), (&mut second, &self.second)] {
            end.epochs.push(epoch.clone());
            end.write(file, true)?;
        }
        say!("epoch {number} is in both files; `ringwall shield keys send` comes next, at both ends");
        Ok(())
    }
}

impl One {
    fn send(&self) -> Result<(), Failure> {
        let mut end = KeyFile::read(&self.file)?;
        end.send = end.epochs.last().map_or(end.send, |epoch| epoch.number);
        end.write(&self.file, true)?;
        say!("{}: sends under epoch {}", self.file.display(), end.send);
        Ok(())
    }

    fn retire(&self) -> Result<(), Failure> {
        let mut end = KeyFile::read(&self.file)?;
        let send = end.send;
        end.epochs.retain(|epoch| epoch.number >= send);
        end.write(&self.file, true)?;
        say!(
            "{}: takes {} epoch{}",
            self.file.display(),
            end.epochs.len(),
            if end.epochs.len() == 1 { "" } else { "s" }
        );
        Ok(())
    }
}
