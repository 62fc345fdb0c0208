//! Table 3 of the paper, upper half: TCP throughput both ways with the loads of sender and receiver, and the CPU time
//! per gigabyte.

use std::collections::BTreeMap;

use super::mode::NAME;
use super::mode::{Arena, Mode};
use super::rate::Rate;
use super::row::{Row, rounded};
use super::stats::{Series, median, present};
use super::tcp::{Direction, Sample};
use super::{Schedule, paper, twice};
use crate::failure::Failure;

/// What is varied, apart from the mode.
type Setting = (Rate, Direction);
/// All runs: per setting and mode one per pair, missing where it failed.
type Runs = BTreeMap<(Setting, Mode), Vec<Option<Sample>>>;

/// Runs streams through every track in turn, at every rate, both ways.
///
/// # Errors
/// `tc` fails, or the lab is interrupted.
pub fn measure(arena: &Arena, schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let mut runs = Runs::new();
    for rate in Rate::ALL {
        arena.limit(rate)?;
        for pair in 0..schedule.pairs {
            eprintln!("ringwall-lab: TCP at {}, pair {} of {}", rate.name(), pair + 1, schedule.pairs);
            for direction in Direction::ALL {
                measure_modes(arena, (rate, direction), schedule.seconds, &mut runs)?;
            }
        }
    }
    arena.limit(Rate::Unlimited)?;
    Ok(rows(&runs))
}

fn measure_modes(arena: &Arena, setting: Setting, seconds: u32, runs: &mut Runs) -> Result<(), Failure> {
    for track in &arena.tracks {
        let what = format!("TCP at {}, {}", setting.0.name(), track.mode.name());
        let sample = twice(&what, || track.stream(setting.1, seconds))?;
        runs.entry((setting, track.mode)).or_default().push(sample);
    }
    Ok(())
}

fn rows(runs: &Runs) -> Vec<Row> {
    let mut rows = Vec::new();
    for rate in Rate::ALL {
        for direction in Direction::ALL {
            for mode in Mode::ALL {
                let view = View { runs, setting: (rate, direction), mode };
                rows.extend(view.throughput());
                rows.extend(view.cpu_of_daemons());
                rows.extend(view.cpu_of_machine());
            }
        }
    }
    rows
}

/// The runs of one mode in one setting, with those of its yardsticks.
struct View<'a> {
    runs: &'a Runs,
    setting: Setting,
    mode: Mode,
}

impl View<'_> {
    fn series(&self, mode: Mode, quantity: fn(&Sample) -> f64) -> Series {
        let runs = self.runs.get(&(self.setting, mode)).map(Vec::as_slice).unwrap_or_default();
        runs.iter().map(|run| run.as_ref().map(quantity)).collect()
    }

    /// A row of one quantity beside the plain path and the null bump.
    fn row(&self, kind: &str, unit: &'static str, quantity: fn(&Sample) -> f64) -> Option<Row> {
        let (rate, direction) = self.setting;
        let name = format!("{kind}/{}/{}{}", rate.name(), self.mode.name(), direction.suffix());
        let ours = self.series(self.mode, quantity);
        let plain = self.series(Mode::Plain, quantity);
        let null = self.series(Mode::Null, quantity);
        let row = Row::new(NAME, name, unit, &ours)?.against_plain(&ours, &plain);
        Some(if self.mode == Mode::Plain { row } else { row.against_null(&ours, &null) })
    }

    fn throughput(&self) -> Option<Row> {
        let (rate, direction) = self.setting;
        let mut row = self.row("tcp", "Mbit/s", |sample| sample.goodput_mbit)?;
        row.vs_arithmetic = rate.attainable_mbit(self.mode.overhead()).map(|limit| rounded(row.median / limit));
        let load = |quantity| median(&present(&self.series(self.mode, quantity)));
        row = row.with_stat("sender_cpu_percent", load(|sample| sample.sender_percent));
        row = row.with_stat("receiver_cpu_percent", load(|sample| sample.receiver_percent));
        let Some(paper) = paper::tcp(rate, self.mode, direction) else { return Some(row) };
        let plain = paper::tcp(rate, Mode::Plain, direction).map(|plain| paper.goodput_mbit / plain.goodput_mbit);
        row = row.with_paper(Some(rounded(paper.goodput_mbit))).with_stat("paper_ratio", plain);
        row = row.with_stat("paper_sender_cpu_percent", Some(paper.sender_percent));
        Some(row.with_stat("paper_receiver_cpu_percent", Some(paper.receiver_percent)))
    }

    /// CPU time of both daemons; the plain path has none.
    fn cpu_of_daemons(&self) -> Option<Row> {
        if self.mode == Mode::Plain {
            return None;
        }
        let mut row = self.row("cpu", "s/GB", |sample| sample.daemons_per_gigabyte)?;
        (row.plain, row.ratio) = (None, None);
        Some(row)
    }

    /// CPU time of everything, the kernel's forwarding and the two ends included.
    fn cpu_of_machine(&self) -> Option<Row> {
        self.row("cpu_machine", "s/GB", |sample| sample.machine_per_gigabyte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(goodput_mbit: f64, daemons_per_gigabyte: f64) -> Option<Sample> {
        Some(Sample {
            goodput_mbit,
            sender_percent: 50.0,
            receiver_percent: 40.0,
            daemons_per_gigabyte,
            machine_per_gigabyte: 1.0,
        })
    }

    #[test]
    fn rows_carry_names_yardsticks_and_arithmetic() {
        let setting = (Rate::Mbit100, Direction::Forward);
        let mut runs = Runs::new();
        runs.insert((setting, Mode::Plain), vec![sample(95.0, 0.0), sample(96.0, 0.0)]);
        runs.insert((setting, Mode::Null), vec![sample(90.0, 2.0), None]);
        runs.insert((setting, Mode::Encrypted), vec![sample(45.0, 3.0), sample(48.0, 4.0)]);
        let rows = rows(&runs);
        let find = |name: &str| rows.iter().find(|row| row.row == name).unwrap();
        let tcp = find("tcp/100M/encrypted");
        assert_eq!((tcp.ratio, tcp.vs_null, tcp.runs), (Some(rounded(0.486_84)), Some(0.5), 2));
        assert!(tcp.vs_arithmetic.unwrap() > 0.48 && tcp.paper.is_some());
        let cpu = find("cpu/100M/encrypted");
        assert_eq!((cpu.median, cpu.vs_null, cpu.plain), (3.5, Some(1.5), None));
        assert!(rows.iter().all(|row| row.row != "cpu/100M/plain" && !row.row.contains("reverse")));
    }
}
