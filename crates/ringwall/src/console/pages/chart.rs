//! Drops over time, as bars that stand on each other.

use std::collections::BTreeMap;

use super::super::trend::{Drops, STEP_S};
use super::frame::number;

/// The picture, in its own units.
const WIDTH: u64 = 720;
const HEIGHT: u64 = 160;
/// Bars in it.
pub(super) const BARS: usize = 60;
/// Reasons with a colour of their own; all others are one.
const SERIES_MAX: usize = 5;
const OTHERS: &str = "others";

/// A part of a bar.
pub(super) struct Block {
    pub(super) series: usize,
    pub(super) x: u64,
    pub(super) y: String,
    pub(super) width: u64,
    pub(super) height: String,
}

/// What a colour stands for.
pub(super) struct Series {
    pub(super) number: usize,
    pub(super) reason: String,
    pub(super) total: String,
}

/// One row of the table that says the same.
pub(super) struct Step {
    pub(super) ago: String,
    pub(super) cells: Vec<String>,
}

/// The picture, its legend, and its table.
pub(super) struct Chart {
    pub(super) blocks: Vec<Block>,
    pub(super) series: Vec<Series>,
    pub(super) steps: Vec<Step>,
    /// How much the highest bar is.
    pub(super) most: String,
    pub(super) total: String,
    /// How long a bar is, and all.
    pub(super) bar: String,
    pub(super) span: String,
}

impl Chart {
    /// Of spans of so many steps each.
    pub(super) fn new(spans: &[Drops], steps: u64) -> Chart {
        let reasons = most_common(spans);
        let rows: Vec<Vec<u64>> = spans.iter().map(|span| row(span, &reasons)).collect();
        let most = rows.iter().map(|row| row.iter().sum::<u64>()).max().unwrap_or(0);
        let total: u64 = rows.iter().flatten().sum();
        let bar_s = steps * STEP_S;
        let of = |at: usize| rows.iter().filter_map(|row| row.get(at)).sum::<u64>();
        let named = reasons.iter().map(String::as_str).chain([OTHERS]);
        let series = named.enumerate().filter(|(at, _)| of(*at) > 0).map(|(at, reason)| Series {
            number: at,
            reason: reason.to_owned(),
            total: number(of(at)),
        });
        let series: Vec<Series> = series.collect();
        Chart {
            blocks: rows.iter().enumerate().flat_map(|(at, row)| bar(at, row, most)).collect(),
            steps: table(&rows, &series, bar_s),
            series,
            most: number(most),
            total: number(total),
            bar: super::frame::span(bar_s),
            span: super::frame::span(bar_s * spans.len() as u64),
        }
    }
}

/// Reasons by how much they counted, the most common first.
fn most_common(spans: &[Drops]) -> Vec<String> {
    let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
    for (reason, count) in spans.iter().flatten() {
        *totals.entry(reason).or_default() += count;
    }
    let mut totals: Vec<(&str, u64)> = totals.into_iter().collect();
    totals.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
    totals.into_iter().take(SERIES_MAX).map(|(reason, _)| reason.to_owned()).collect()
}

/// The counts of these reasons, and of all others together.
fn row(span: &Drops, reasons: &[String]) -> Vec<u64> {
    let named = reasons.iter().map(|reason| span.get(reason).copied().unwrap_or(0));
    let others = span.iter().filter(|(reason, _)| !reasons.contains(reason)).map(|(_, count)| count).sum();
    named.chain([others]).collect()
}

/// The blocks of one bar, from below.
fn bar(at: usize, row: &[u64], most: u64) -> Vec<Block> {
    let width = WIDTH / BARS as u64;
    let (mut blocks, mut below) = (Vec::new(), 0);
    for (series, count) in row.iter().enumerate().filter(|(_, count)| **count > 0) {
        let (from, to) = (height(below, most), height(below + count, most));
        blocks.push(Block {
            series,
            x: at as u64 * width + 1,
            y: tenths(HEIGHT * 10 - to),
            width: width - 2,
            height: tenths(to - from),
        });
        below += count;
    }
    blocks
}

/// So much of the highest bar, in tenths of a unit.
fn height(count: u64, most: u64) -> u64 {
    let part = u128::from(count) * u128::from(HEIGHT * 10) / u128::from(most.max(1));
    u64::try_from(part).unwrap_or(HEIGHT * 10)
}

fn tenths(value: u64) -> String {
    format!("{}.{}", value / 10, value % 10)
}

/// Bars in which something was dropped, the newest first.
fn table(rows: &[Vec<u64>], series: &[Series], bar_s: u64) -> Vec<Step> {
    let step = |(at, row): (usize, &Vec<u64>)| Step {
        ago: super::frame::span((rows.len() - at) as u64 * bar_s),
        cells: series.iter().map(|one| number(row.get(one.number).copied().unwrap_or(0))).collect(),
    };
    rows.iter().enumerate().rev().filter(|(_, row)| row.iter().any(|count| *count > 0)).map(step).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever was dropped, every block is inside the picture and the legend adds up.
        #[test]
        fn the_picture_is_whole(
            spans in proptest::collection::vec(
                proptest::collection::btree_map("[a-h]", 0_u64..1_000_000_000_000, 0..8), BARS..=BARS),
        ) {
            let chart = Chart::new(&spans, 1);
            let value = |text: &str| text.parse::<f64>().expect("a number");
            for block in &chart.blocks {
                prop_assert!(block.x + block.width <= WIDTH && block.series <= SERIES_MAX);
                prop_assert!(value(&block.y) >= 0.0 && value(&block.y) + value(&block.height) <= 160.05);
            }
            let plain = |text: &str| text.replace('\u{202f}', "").parse::<u64>().expect("a number");
            let expected: u64 = spans.iter().flat_map(|span| span.values()).sum();
            prop_assert_eq!(plain(&chart.total), expected);
            prop_assert_eq!(chart.series.iter().map(|one| plain(&one.total)).sum::<u64>(), expected);
            let in_table: u64 = chart.steps.iter().flat_map(|step| &step.cells).map(|cell| plain(cell)).sum();
            prop_assert_eq!(in_table, expected);
        }
    }
}
