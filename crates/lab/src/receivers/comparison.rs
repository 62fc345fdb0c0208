//! Many attacks at all receivers, without the scrubber and behind it: who reads something else than the others?

use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;

use super::attack::{Attack, Carrier};
use super::trial::{Case, Trial};
use super::{Found, Model, Reading, Receiver};
use crate::failure::Failure;

/// Cases of which something is told.
const TOLD_MAX: usize = 10;

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Scripts of each carrier.
    pub cases: u64,
    /// The seed of the first script; the next has the next.
    pub seed: u64,
    /// Of all relations of up to three chunks every so-many-th, or none of them.
    pub relations_step: Option<usize>,
}

/// How often one receiver disagreed, of attacks by one carrier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Who; `any` for cases in which not all read the same.
    pub receiver: String,
    /// What carried the attacks.
    pub carrier: String,
    /// Cases in which it took part.
    pub cases: u64,
    /// Cases without the scrubber in which it read something else than the first model.
    pub without: u64,
    /// The same behind the scrubber, or in which a model beside it read something else than it did.
    pub with: u64,
    /// Cases behind the scrubber in which it read anything.
    pub read: u64,
}

/// What a run came to.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// The seed of the first script.
    pub seed: u64,
    /// All trials of a case counted once.
    pub cases: u64,
    /// One row for each receiver and carrier.
    pub rows: Vec<Row>,
    /// Cases behind the scrubber in which somebody disagreed, as far as they are told: what, and who read what.
    pub violations: Vec<String>,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Receivers that did not run, and why.
    pub missing: Vec<String>,
    /// What receivers that ran could not take part in, and why.
    pub cannot: Vec<String>,
}

impl Comparison {
    /// Runs `plan` against the models and whatever was `found`.
    ///
    /// # Errors
    /// A receiver is gone, or does not answer a handshake.
    pub fn run(plan: &Plan, found: Found) -> Result<Comparison, Failure> {
        let begun = Instant::now();
        let pairs = found.receivers.iter().flat_map(|receiver| Carrier::ALL.map(|carrier| (receiver, carrier)));
        let refusals = pairs.filter_map(|(receiver, carrier)| receiver.cannot(carrier));
        let cannot = refusals.map(str::to_owned).collect();
        let mut table = Table::new(found.receivers);
        let mut number = 0;
        for carrier in Carrier::ALL {
            for attack in plan.attacks() {
                table.compare(&Case { carrier, attack, number })?;
                number += 1;
            }
        }
        let seconds = begun.elapsed().as_secs_f64();
        let Table { rows, violations, .. } = table;
        Ok(Comparison { seed: plan.seed, cases: number, rows, violations, seconds, missing: found.missing, cannot })
    }

    /// Rows of `receiver`.
    pub fn rows_of(&self, receiver: &str) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.receiver == receiver)
    }
}

impl Plan {
    fn attacks(&self) -> impl Iterator<Item = Attack> + use<> {
        let relations = self.relations_step.map(|step| Attack::relations().step_by(step)).into_iter().flatten();
        relations.chain((self.seed..self.seed.saturating_add(self.cases)).map(Attack::Script))
    }
}

/// Where the programs of `packaging/receivers.sh` are, seen from this one.
#[must_use]
pub fn programs_beside(program: &std::path::Path) -> PathBuf {
    // target/release/ringwall-lab and target/debug/deps/… both have them in target/receivers.
    let target = program.ancestors().find(|above| above.join("receivers").is_dir());
    target.unwrap_or(program).join("receivers")
}

/// All receivers of a run and how often each disagreed.
struct Table {
    real: Vec<Box<dyn Receiver>>,
    host: Model,
    models: Vec<Model>,
    rows: Vec<Row>,
    violations: Vec<String>,
}

/// Who read what in one case: the first is the first model.
type Readings = Vec<(String, Reading)>;

impl Table {
    fn new(real: Vec<Box<dyn Receiver>>) -> Table {
        let mut models = Model::all();
        let host = models.remove(0);
        Table { real, host, models, rows: Vec::new(), violations: Vec::new() }
    }

    fn compare(&mut self, case: &Case) -> Result<(), Failure> {
        let (without, _) = self.readings(case, false)?;
        let (with, beside) = self.readings(case, true)?;
        let mut any = (false, false);
        for ((name, unscrubbed), (_, scrubbed)) in without.iter().zip(&with) {
            let without_differs = *unscrubbed != without[0].1;
            let with_differs = *scrubbed != with[0].1 || beside.contains(name);
            any = (any.0 || without_differs, any.1 || with_differs);
            let is_something = *scrubbed != Reading::default();
            self.row(name, case.carrier).count(without_differs, with_differs, is_something);
        }
        self.row("any", case.carrier).count(any.0, any.1, true);
        if any.1 && self.violations.len() < TOLD_MAX {
            self.violations.push(tell(case, &with, &beside));
        }
        Ok(())
    }

    /// What everybody read, and beside whom a model read something else behind the scrubber.
    fn readings(&mut self, case: &Case, is_scrubbed: bool) -> Result<(Readings, Vec<String>), Failure> {
        let (first, others) = Trial::new(&mut self.host, &mut self.models, is_scrubbed)?.run(case)?;
        let mut readings = vec![(self.host.name().to_owned(), first)];
        readings.extend(self.models.iter().map(|model| model.name().to_owned()).zip(others));
        let mut disagree = Vec::new();
        for receiver in &mut self.real {
            if receiver.cannot(case.carrier).is_some() {
                continue;
            }
            let name = receiver.name().to_owned();
            let (read, others) = Trial::new(receiver.as_mut(), &mut self.models, is_scrubbed)?.run(case)?;
            if others.iter().any(|other| *other != read) {
                disagree.push(name.clone());
            }
            readings.push((name, read));
        }
        Ok((readings, disagree))
    }

    fn row(&mut self, receiver: &str, carrier: Carrier) -> &mut Row {
        let carrier = carrier.to_string();
        let place = self.rows.iter().position(|row| row.receiver == receiver && row.carrier == carrier);
        let place = place.unwrap_or_else(|| {
            let receiver = receiver.to_owned();
            self.rows.push(Row { receiver, carrier, cases: 0, without: 0, with: 0, read: 0 });
            self.rows.len() - 1
        });
        &mut self.rows[place]
    }
}

impl Row {
    fn count(&mut self, without: bool, with: bool, read: bool) {
        self.cases += 1;
        self.without += u64::from(without);
        self.with += u64::from(with);
        self.read += u64::from(read);
    }
}

fn tell(case: &Case, with: &Readings, beside: &[String]) -> String {
    let show = |reading: &Reading| {
        let text = |bytes: &Vec<u8>| bytes.escape_ascii().to_string();
        let datagrams: Vec<String> = reading.datagrams.iter().map(text).collect();
        format!("\"{}\" [{}]", text(&reading.stream), datagrams.join(", "))
    };
    let differ = with.iter().filter(|(name, reading)| *reading != with[0].1 || beside.contains(name));
    let differ: Vec<String> = differ.map(|(name, reading)| format!("{name} read {}", show(reading))).collect();
    let what = format!("{} {:?}", case.carrier, case.attack);
    format!("{what}: the first model read {}; {}", show(&with[0].1), differ.join("; "))
}
