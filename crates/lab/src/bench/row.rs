//! A row of a result table: what `--json` writes and what the terminal shows.

use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Value};

use super::stats::{Series, Summary, paired, present};
use crate::failure::Failure;

/// One measured quantity with its yardsticks. Comparisons are medians over pairs, not quotients of medians.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The experiment: `cll` or `peers`.
    pub experiment: &'static str,
    /// What was measured, for example `tcp/1G/encrypted`.
    pub row: String,
    /// The unit of all values but the ratios.
    pub unit: &'static str,
    /// The median over the runs.
    pub median: f64,
    /// The lower quartile.
    pub q1: f64,
    /// The upper quartile.
    pub q3: f64,
    /// The number of runs that ended well.
    pub runs: usize,
    /// The plain path's median in the same minutes.
    pub plain: Option<f64>,
    /// This row over the plain path, run by run.
    pub ratio: Option<f64>,
    /// The null bump's median in the same minutes.
    pub null: Option<f64>,
    /// This row over the null bump, run by run.
    pub vs_null: Option<f64>,
    /// The share of what header arithmetic allows, where a rate limit makes it known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vs_arithmetic: Option<f64>,
    /// The paper's own value in the same unit.
    pub paper: Option<f64>,
    /// Whatever else was seen: minimum, mean, maximum, deviation, CPU loads, versions.
    pub stats: Map<String, Value>,
}

impl Row {
    /// A row about `series`; `None` when no run ended well.
    pub fn new(experiment: &'static str, row: impl Into<String>, unit: &'static str, series: &Series) -> Option<Row> {
        let summary = Summary::of(&present(series))?;
        let mut stats = Map::new();
        for (name, value) in
            [("min", summary.min), ("mean", summary.mean), ("max", summary.max), ("deviation", summary.deviation)]
        {
            stats.insert(name.to_owned(), number(value));
        }
        Some(Row {
            experiment,
            row: row.into(),
            unit,
            median: rounded(summary.median),
            q1: rounded(summary.q1),
            q3: rounded(summary.q3),
            runs: summary.runs,
            plain: None,
            ratio: None,
            null: None,
            vs_null: None,
            vs_arithmetic: None,
            paper: None,
            stats,
        })
    }

    /// Compares with the plain path, pair by pair.
    pub fn against_plain(mut self, ours: &Series, plain: &Series) -> Row {
        self.plain = super::stats::median(&present(plain)).map(rounded);
        self.ratio = paired(ours, plain, |one, other| one / other).map(rounded);
        self
    }

    /// Compares with the null bump, pair by pair.
    pub fn against_null(mut self, ours: &Series, null: &Series) -> Row {
        self.null = super::stats::median(&present(null)).map(rounded);
        self.vs_null = paired(ours, null, |one, other| one / other).map(rounded);
        self
    }

    /// Sets the paper's value, in the row's unit.
    pub fn with_paper(mut self, paper: Option<f64>) -> Row {
        self.paper = paper;
        self
    }

    /// Adds a named number, when there is one.
    pub fn with_stat(mut self, name: &str, value: Option<f64>) -> Row {
        if let Some(value) = value {
            self.stats.insert(name.to_owned(), number(value));
        }
        self
    }

    /// Adds a named word.
    pub fn with_note(mut self, name: &str, value: &str) -> Row {
        self.stats.insert(name.to_owned(), Value::from(value));
        self
    }
}

/// Five significant digits: more would pretend.
pub fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10f64.powf(4.0 - value.abs().log10().floor());
    (value * scale).round() / scale
}

fn number(value: f64) -> Value {
    Value::from(rounded(value))
}

/// Writes the rows as one JSON list.
///
/// # Errors
/// The file cannot be written.
pub fn write_json(rows: &[Row], path: &Path) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(rows).map_err(|error| Failure::Unreadable(error.to_string()))?;
    text.push('\n');
    std::fs::write(path, text).map_err(Failure::file("writing", path))
}

/// The rows as a table for people.
pub fn table(rows: &[Row]) -> String {
    let head = ["row", "unit", "median", "q1", "q3", "runs", "plain", "ratio", "null", "/null", "/arithm.", "paper"];
    let mut lines = vec![head.map(str::to_owned)];
    for row in rows {
        lines.push([
            row.row.clone(),
            row.unit.to_owned(),
            short(Some(row.median)),
            short(Some(row.q1)),
            short(Some(row.q3)),
            row.runs.to_string(),
            short(row.plain),
            short(row.ratio),
            short(row.null),
            short(row.vs_null),
            short(row.vs_arithmetic),
            short(row.paper),
        ]);
    }
    render(&lines)
}

/// Pads columns; names to the left, numbers to the right.
fn render<const COLUMNS: usize>(lines: &[[String; COLUMNS]]) -> String {
    let mut out = String::new();
    for line in lines {
        for (column, cell) in line.iter().enumerate() {
            let width = lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
            let padded = if column < 2 { format!("{cell:<width$}  ") } else { format!("{cell:>width$}  ") };
            out.push_str(&padded);
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    out
}

/// Few digits for the eye.
fn short(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value.abs() >= 100.0 => format!("{value:.0}"),
        Some(value) if value.abs() >= 10.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_exactly_the_fields_that_readers_expect() {
        let series = vec![Some(2.0), None, Some(4.0)];
        let plain = vec![Some(4.0), Some(1.0), Some(4.0)];
        let row = Row::new("cll", "tcp/1G/encrypted", "Mbit/s", &series).unwrap().against_plain(&series, &plain);
        let value = serde_json::to_value(&row).unwrap();
        let names: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
        let mut expected = vec![
            "experiment",
            "row",
            "unit",
            "median",
            "q1",
            "q3",
            "runs",
            "plain",
            "ratio",
            "null",
            "vs_null",
            "paper",
            "stats",
        ];
        expected.sort_unstable();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, expected);
        assert_eq!((row.median, row.runs, row.plain, row.ratio), (3.0, 2, Some(4.0), Some(0.75)));
        assert!(value["null"].is_null());
    }

    #[test]
    fn no_run_makes_no_row() {
        assert!(Row::new("cll", "x", "us", &vec![None]).is_none());
    }

    #[test]
    fn rounding_keeps_five_digits() {
        assert_eq!(rounded(123_456.0), 123_460.0);
        assert_eq!(rounded(0.012_345_67), 0.012_346);
        assert_eq!(rounded(f64::NAN), 0.0);
    }
}
