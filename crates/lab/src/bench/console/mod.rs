//! `bench console`: the pages of a machine that knows ten thousand hosts and remembers a hundred
//! thousand records.
//!
//! Each figure is of a page that nobody asked for lately, so daemons and history are asked anew.

mod crowd;
mod visitor;

use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use super::gate::{Bound, Gate, Quantity};
use super::row::Row;
use super::{Found, cpu};
use crate::cleanup::Run;
use crate::failure::Failure;
use crate::net::{Namespace, Running, process};
use crowd::Crowd;
use visitor::Visitor;

const NAME: &str = "console";
const START_LIMIT: Duration = Duration::from_secs(15);
/// What a person reads there.
const PAGES: [&str; 12] = [
    "/",
    "/peers",
    "/peers?page=90",
    "/peers?q=nobody",
    "/host?who=02:10:00:00:00:07",
    "/map",
    "/attacks",
    "/drops",
    "/history",
    "/history?page=900",
    "/certificates",
    "/about",
];
/// Longer than the console remembers what a daemon said.
const STALE: Duration = Duration::from_millis(2500);
/// Milliseconds to the first paint, and MiB of all its processes.
const PAINT_MAX: f64 = 300.0;
const MEMORY_MAX: f64 = 60.0;

/// How much there is to show.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Plan {
    /// Hosts that the machine's ten daemons know.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(10..=10_240))]
    peers: u32,
    /// Records in the history.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    records: u32,
    /// How often each page is read.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
}

impl Plan {
    /// What must hold; first paints are measured where Chromium is installed.
    pub fn gates() -> Vec<Gate> {
        let paints = PAGES.into_iter().filter(|_| visitor::has_browser());
        let paints = paints
            .map(|page| Gate::on_row(format!("paint{page}"), Quantity::Statistic("max"), Bound::AtMost(PAINT_MAX)));
        let memory = Gate::on_row("memory".to_owned(), Quantity::Statistic("peak"), Bound::AtMost(MEMORY_MAX));
        paints.chain([memory]).collect()
    }
}

/// Measures; returns the rows.
///
/// # Errors
/// The hosts cannot be guarded, the console does not start, or the lab is interrupted.
pub fn run(run: &Run, program: &Path, plan: Plan) -> Found {
    let crowd = Crowd::gather(run, program, plan.peers, plan.records)?;
    let console = Console::start(program, &crowd)?;
    let mut visitor = Visitor::sign_in(program, crowd.namespace(), crowd.run_dir())?;
    let mut rows = Vec::new();
    for page in PAGES {
        let (mut times_ms, mut bytes) = (Vec::new(), 0);
        for _ in 0..plan.runs {
            process::pause(STALE)?;
            let read = visitor.read(page)?;
            times_ms.push(Some(read.time.as_secs_f64() * 1e3));
            bytes = read.bytes;
        }
        let row = Row::new(NAME, format!("answer{page}"), "ms", &times_ms);
        rows.extend(row.map(|row| row.with_stat("bytes", Some(bytes as f64))));
    }
    if visitor::has_browser() {
        for (page, paints_ms) in visitor.paints(&crowd, &PAGES, plan.runs)? {
            rows.extend(Row::new(NAME, format!("paint{page}"), "ms", &paints_ms));
        }
    } else {
        eprintln!("ringwall-lab: SKIPPED first paints: needs chromium, chromedriver and python3");
    }
    rows.extend(console.memory()?);
    Ok(rows)
}

/// The console, as it runs.
struct Console {
    running: Running,
}

impl Console {
    fn start(program: &Path, crowd: &Crowd) -> Result<Console, Failure> {
        let namespace: &Namespace = crowd.namespace();
        let mut command = namespace.command(&program.to_string_lossy());
        command.args(["console", "--listen", visitor::ADDRESS, "--run-dir"]).arg(crowd.run_dir());
        command.arg("--history").arg(crowd.history());
        let mut running = Running::start(command, &crowd.file("console.log"))?;
        running.await_output("the console is at", START_LIMIT)?;
        Ok(Console { running })
    }

    /// MiB of all its processes together: now, and if each were at its largest at once.
    fn memory(&self) -> Result<Option<Row>, Failure> {
        let reader = self.running.id();
        let ids: Vec<u32> = std::iter::once(reader).chain(cpu::children(reader)?).collect();
        let all = |of: fn(u32) -> Result<f64, Failure>| -> Result<f64, Failure> {
            let bytes: f64 = ids.iter().map(|id| of(*id)).sum::<Result<f64, Failure>>()?;
            Ok(bytes / f64::from(1 << 20))
        };
        let (now, peak) = (all(cpu::resident_bytes)?, all(cpu::peak_bytes)?);
        Ok(Row::new(NAME, "memory", "MiB", &vec![Some(now)]).map(|row| row.with_stat("peak", Some(peak))))
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.running.signal(Signal::TERM);
    }
}
