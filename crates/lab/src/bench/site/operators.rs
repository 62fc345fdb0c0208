//! Operators who look and order while others have something signed: by the real command, as people
//! and the console do.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{NAME, PORT, SERVICE, Stage};
use crate::bench::row::Row;
use crate::bench::stats::Series;
use crate::cleanup;
use crate::failure::Failure;
use crate::net::process;

/// How often each operator wants something.
const EVERY: Duration = Duration::from_secs(5);
/// What the console asks for, which looks at every certificate.
const LOOK: [&str; 3] = ["hosts", "--brief", "--json"];
/// Something that the signer writes down, and that leaves the site as it was but for one token.
const ORDER: [&str; 5] = ["token", "ordered", "--ip", "10.0.2.1", "--by-service"];

/// Two of them, each with a file of the site.
pub(super) struct Operators<'a> {
    stage: &'a Stage,
}

/// How long each command took, in milliseconds; nothing for one that failed.
#[derive(Default)]
pub(super) struct Waited {
    looked: Vec<Option<f64>>,
    ordered: Vec<Option<f64>>,
}

impl<'a> Operators<'a> {
    /// Enters both into the site.
    pub(super) fn enter(stage: &'a Stage) -> Result<Operators<'a>, Failure> {
        for role in ["viewer", "operator"] {
            stage.order(&["operator", "add", role, "--role", role, "--out", &stage.file(role)])?;
        }
        Ok(Operators { stage })
    }

    /// Has both ask for as long as `goes_on` holds.
    pub(super) fn ask_while(&self, goes_on: &AtomicBool) -> Waited {
        let mut waited = Waited::default();
        while goes_on.load(Ordering::Relaxed) && cleanup::permit().is_ok() {
            let pass = Instant::now();
            waited.looked.push(self.ask("viewer", &LOOK));
            waited.ordered.push(self.ask("operator", &ORDER));
            sleep(EVERY.saturating_sub(pass.elapsed()));
        }
        waited
    }

    fn ask(&self, who: &str, words: &[&str]) -> Option<f64> {
        let mut command = self.stage.hosts.command(&self.stage.program.to_string_lossy());
        command.args(["operate", "--service", &format!("{SERVICE}:{PORT}"), "--as", &self.stage.file(who)]);
        command.args(words);
        self.stage.run.mark(&mut command);
        let began = Instant::now();
        let failed = |failure: &Failure| eprintln!("ringwall-lab: an order of the {who} failed: {failure}");
        process::must(command).inspect_err(failed).ok()?;
        Some(began.elapsed().as_secs_f64() * 1000.0)
    }
}

impl Waited {
    /// A row for each operator.
    pub(super) fn rows(self, what: &str) -> impl Iterator<Item = Row> {
        [("look", self.looked), ("order", self.ordered)].into_iter().filter_map(move |(kind, waited)| {
            let failed = waited.iter().filter(|one| one.is_none()).count();
            let series: Series = waited.into_iter().flatten().map(Some).collect();
            let row = Row::new(NAME, format!("{what}/operator_{kind}"), "ms", &series)?;
            Some(row.with_stat("failed", Some(failed as f64)))
        })
    }
}
