//! Floods of what costs a signature: frames to all, ARP to a host that signs it, and questions to a key distributor. What they take from
//! honest traffic, with the checks in front of the signature (the site's tag, and budgets) and without.
//!
//! - `stage.rs`: a stream between two hosts meanwhile, and where ARP is signed somebody who asks (`asking.rs`); `forgery.rs`: the frames
//! - `questions.rs`: honest questions meanwhile, as many as a distributor can answer

mod asking;
mod forgery;
pub mod questions;
mod stage;

use std::path::Path;

use shield::Hook;

use super::NAME;
use super::flood::Pace;
use super::placement::Receive;
use crate::bench::row::Row;
use crate::bench::stats::{Series, median, present};
use crate::bench::{Schedule, twice};
use crate::cleanup::Run;
use crate::failure::Failure;
use asking::Answered;
pub use forgery::{Forgery, Known};
use stage::{Measured, Stage};

/// What a victim is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It seals frames.
    Sealing,
    /// It signs ARP.
    Signing,
    /// It signs ARP and distributes keys.
    Distributing,
}

impl Role {
    /// The part of a row's name that says it.
    fn word(self) -> &'static str {
        match self {
            Role::Sealing => "cll",
            Role::Signing => "sarp",
            Role::Distributing => "distributor",
        }
    }
}

/// Whom a flood of [`stage`] is for, and which layers are off there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    pub role: Role,
    pub off: &'static [&'static str],
}

impl Victim {
    /// All of them.
    pub const ALL: [Victim; 7] = [
        Victim { role: Role::Sealing, off: &[] },
        Victim { role: Role::Sealing, off: &["site-mac"] },
        Victim { role: Role::Sealing, off: &["site-mac", "budgets"] },
        Victim { role: Role::Signing, off: &[] },
        Victim { role: Role::Signing, off: &["budgets"] },
        Victim { role: Role::Distributing, off: &[] },
        Victim { role: Role::Distributing, off: &["site-mac"] },
    ];

    /// The end of its site's name: each victim has a site of its own.
    fn suffix(self) -> String {
        format!("-floods-{}-{}", self.role.word(), without(self.off))
    }

    /// What it is flooded with.
    pub fn forgeries(self) -> &'static [Forgery] {
        match self.role {
            Role::Sealing => &Forgery::GROUP,
            Role::Signing => &[Forgery::Question, Forgery::QuestionsOfMany, Forgery::Answer],
            Role::Distributing => &Forgery::REQUESTS,
        }
    }
}

/// The part of a row's name that says which layers are off.
fn without(off: &[&str]) -> String {
    if off.is_empty() { "whole".to_owned() } else { format!("without_{}", off.join("_")) }
}

/// A flood and what was seen under it, run by run.
type Found = (Option<(Forgery, Pace)>, Vec<Option<Measured>>);

/// Measures all of them.
///
/// # Errors
/// Hosts cannot be set up, or the lab is interrupted.
pub fn measure(
    run: &Run,
    program: &Path,
    schedule: Schedule,
    (receive, hook): (Receive, Hook),
) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for victim in Victim::ALL {
        rows.extend(on(run, program, victim, schedule, (receive, hook))?);
    }
    rows.extend(questions::measure(run, program, schedule, (receive, hook))?);
    Ok(rows.into_iter().map(|row| row.with_note("hook", hook.word())).collect())
}

/// The line of a configuration that says where in the kernel forged frames end.
fn hook_line(hook: Hook) -> String {
    format!("kernel_hook = \"{}\"\n", hook.word())
}

/// All floods of one victim, beside the stream without any.
fn on(
    run: &Run,
    program: &Path,
    victim: Victim,
    schedule: Schedule,
    (receive, hook): (Receive, Hook),
) -> Result<Vec<Row>, Failure> {
    let stage = Stage::open(run, program, victim, (receive, hook))?;
    let floods = victim.forgeries().iter().flat_map(|&forgery| Pace::ALL.map(|pace| Some((forgery, pace))));
    let mut found: Vec<Found> = std::iter::once(None).chain(floods).map(|flood| (flood, Vec::new())).collect();
    for pair in 0..schedule.pairs {
        eprintln!("ringwall-lab: floods, {}, pair {} of {}", without(victim.off), pair + 1, schedule.pairs);
        for (flood, found) in &mut found {
            found.push(twice(&name(victim, *flood), || stage.measure(*flood, schedule.seconds))?);
        }
    }
    let alone = goodput(&found[0].1);
    Ok(found.iter().filter_map(|(flood, found)| row(&name(victim, *flood), found, &alone)).collect())
}

/// The row of this flood of `victim`, or of the stream alone.
pub fn name(victim: Victim, flood: Option<(Forgery, Pace)>) -> String {
    let (kind, off) = (victim.role.word(), without(victim.off));
    match flood {
        None => format!("floods/{kind}/alone/{off}"),
        Some((forgery, pace)) => format!("floods/{kind}/{}/{off}/{}", forgery.name(), pace.name()),
    }
}

fn goodput(found: &[Option<Measured>]) -> Series {
    found.iter().map(|one| one.as_ref().map(|one| one.goodput_mbit)).collect()
}

/// What is left of the stream, with all that was seen beside it.
fn row(name: &str, found: &[Option<Measured>], alone: &Series) -> Option<Row> {
    let mbit = goodput(found);
    let row = Row::new(NAME, name, "Mbit/s", &mbit)?.against_plain(&mbit, alone);
    let of = |quantity: fn(&Measured) -> f64| {
        median(&present(&found.iter().map(|one| one.as_ref().map(quantity)).collect::<Series>()))
    };
    let row = row.with_stat("forged_per_second_on_wire", of(|one| one.forged_per_second));
    let row = row.with_stat("delay_median_ms", of(|one| one.delay_median_ms));
    let row = row.with_stat("delay_p99_ms", of(|one| one.delay_p99_ms));
    let row = row.with_stat("memory_mib", of(|one| one.memory_mib));
    let row = row.with_stat("daemon_load", of(|one| one.daemon_load));
    Some(with_answers(row, &found.iter().flatten().filter_map(|one| one.answered.as_ref()).collect::<Vec<_>>()))
}

/// With what came of honest questions, where somebody asked.
fn with_answers(row: Row, answered: &[&Answered]) -> Row {
    if answered.is_empty() {
        return row;
    }
    let taken: Vec<f64> = answered.iter().flat_map(|one| one.after_ms.iter().copied()).collect();
    let asked: usize = answered.iter().map(|one| one.asked).sum();
    let row = row.with_stat("answer_median_ms", median(&taken)).with_stat("questions", Some(asked as f64));
    row.with_stat("answered_in_time", Some(taken.len() as f64 / asked.max(1) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_what_was_off_and_is_compared_with_the_same_stream_alone() {
        let victim = Victim::ALL[2];
        let flood = Some((Forgery::GroupByInsider, Pace::Steady));
        assert_eq!(name(victim, flood), "floods/cll/group_by_insider/without_site-mac_budgets/200k");
        assert_eq!(name(Victim::ALL[3], None), "floods/sarp/alone/whole");
        let measured = |goodput_mbit| Some(Measured { goodput_mbit, ..Measured::default() });
        let row = row("x", &[measured(50.0), None], &vec![Some(200.0), Some(200.0)]).expect("a run");
        assert_eq!((row.ratio, row.runs), (Some(0.25), 1));
    }
}
