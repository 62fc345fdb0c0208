//! Pictures of things beside each other: the map of hosts, and the time line of attacks.

use std::collections::BTreeMap;

use super::super::http::encode;
use super::frame::{span, time};
use super::hosts::Seen;
use crate::recorder::history::Row;

/// Hosts that have a place around the centre; more are a matrix.
const AROUND_MAX: usize = 150;
/// Those of the matrix that are links; more are a picture.
const LINKS_MAX: usize = 1000;
/// Hosts that are named in the picture.
const NAMED_MAX: usize = 24;
/// Letters of such a name.
const NAME_CHARS_MAX: usize = 14;
/// Cells beside each other in a matrix, and their size.
const COLUMNS: usize = 50;
const CELL: usize = 14;
/// The middle of the map.
const MIDDLE: f64 = 320.0;

/// A host in the picture.
pub(super) struct Place {
    pub(super) x: String,
    pub(super) y: String,
    pub(super) group: &'static str,
    /// What it is called for who does not see it.
    pub(super) label: String,
    /// Its name in the picture, and where that begins.
    pub(super) name: Option<(String, String, &'static str)>,
    pub(super) link: String,
}

/// The cells of one group, as a path around all of them.
pub(super) struct Cells {
    pub(super) group: &'static str,
    pub(super) path: String,
}

/// All hosts, around this one or beside each other.
pub(super) struct Scene {
    pub(super) around: Vec<Place>,
    pub(super) matrix: Vec<Place>,
    pub(super) cells: Vec<Cells>,
    /// Of the matrix, in its own units; a cell without the gap around it.
    pub(super) height: usize,
    pub(super) square: usize,
    pub(super) cell: usize,
}

pub(super) fn link(seen: &Seen<'_>) -> String {
    format!("/host?who={}", encode(&seen.id()))
}

fn label(seen: &Seen<'_>) -> String {
    format!("{}, {}, {} on {}", seen.name(), seen.addresses(), seen.group.word(), seen.interface)
}

impl Scene {
    /// Of these hosts, groups beside each other.
    pub(super) fn new(mut seen: Vec<Seen<'_>>) -> Scene {
        seen.sort_by_key(|one| one.group);
        let count = seen.len();
        let mut scene = Scene {
            around: Vec::new(),
            matrix: Vec::new(),
            cells: Vec::new(),
            height: count.div_ceil(COLUMNS).max(1) * CELL,
            square: CELL - 2,
            cell: CELL,
        };
        match count {
            0..=AROUND_MAX => scene.around = seen.iter().enumerate().map(|(at, one)| around(at, count, one)).collect(),
            _ if count <= LINKS_MAX => scene.matrix = seen.iter().enumerate().map(|(at, one)| cell(at, one)).collect(),
            _ => scene.cells = cells(&seen),
        }
        scene
    }
}

/// The place of one of `count` around the middle: on rings of up to 30, the outer ones first.
fn around(at: usize, count: usize, seen: &Seen<'_>) -> Place {
    let rings = count.div_ceil(30).max(1);
    let (ring, of_ring) = (at % rings, count.div_ceil(rings).max(1));
    let part = |value: usize| f64::from(u32::try_from(value).unwrap_or(u32::MAX));
    let radius = 220.0 - 35.0 * part(ring);
    let turn = std::f64::consts::TAU * (part(at / rings) / part(of_ring) + part(ring) / part(of_ring * rings)) - 1.57;
    let (x, y) = (MIDDLE + radius * turn.cos(), MIDDLE - 60.0 + radius * turn.sin());
    let name = (count <= NAMED_MAX).then(|| {
        let is_right = turn.cos() >= -0.01;
        let begin = if is_right { x + 14.0 } else { x - 14.0 };
        let name: String = if seen.name() == "no name" { seen.addresses() } else { seen.name() };
        let name = if name == "-" { seen.mac().to_owned() } else { name };
        let anchor = if is_right { "start" } else { "end" };
        (name.chars().take(NAME_CHARS_MAX).collect(), format!("{begin:.1}"), anchor)
    });
    Place {
        x: format!("{x:.1}"),
        y: format!("{y:.1}"),
        group: seen.group.word(),
        label: label(seen),
        name,
        link: link(seen),
    }
}

fn corner(at: usize) -> (usize, usize) {
    (at % COLUMNS * CELL + 1, at / COLUMNS * CELL + 1)
}

fn cell(at: usize, seen: &Seen<'_>) -> Place {
    let (x, y) = corner(at);
    Place {
        x: x.to_string(),
        y: y.to_string(),
        group: seen.group.word(),
        label: label(seen),
        name: None,
        link: link(seen),
    }
}

/// One path for each group, whose cells a pattern draws: a browser took 300 ms to paint 10,000 cells
/// that had a path each.
fn cells(seen: &[Seen<'_>]) -> Vec<Cells> {
    let mut first = 0;
    let region = |of_group: &[Seen<'_>]| {
        let behind = first + of_group.len();
        let path = region(first, behind);
        first = behind;
        Some(Cells { group: of_group.first()?.group.word(), path })
    };
    seen.chunk_by(|one, other| one.group == other.group).filter_map(region).collect()
}

/// Around the cells from `first` until before `behind`: the rest of a row, whole rows, and the
/// beginning of one.
fn region(first: usize, behind: usize) -> String {
    let (mut at, mut path) = (first, String::new());
    while at < behind {
        let (column, row) = (at % COLUMNS, at / COLUMNS);
        let (columns, rows) = match (column, (behind - at) / COLUMNS) {
            (0, rows @ 1..) => (COLUMNS, rows),
            _ => ((COLUMNS - column).min(behind - at), 1),
        };
        let (x, y, width, height) = (column * CELL, row * CELL, columns * CELL, rows * CELL);
        path.push_str(&format!("M{x} {y}h{width}v{height}h-{width}z"));
        at += columns * rows;
    }
    path
}

/// The time line, in its own units.
const LINE_WIDTH: u64 = 560;
const LINE_ROW: usize = 26;
/// Least time that it shows.
const LEAST_MS: u64 = 600_000;

/// All attacks of one kind.
pub(super) struct Lane {
    pub(super) kind: String,
    pub(super) y: usize,
    pub(super) bars: Vec<(u64, u64)>,
}

/// Attacks by kind, from left to right as time goes on.
pub(super) struct Line {
    pub(super) lanes: Vec<Lane>,
    pub(super) height: usize,
    pub(super) first: String,
    pub(super) last: String,
    pub(super) span: String,
}

/// Of these rows, until now.
pub(super) fn time_line(rows: &[Row], now_ms: u64) -> Line {
    let first = rows.iter().map(|row| row.first_unix_ms).min().unwrap_or(now_ms).min(now_ms.saturating_sub(LEAST_MS));
    let last = rows.iter().map(|row| row.last_unix_ms).max().unwrap_or(now_ms).max(now_ms);
    let whole = last.saturating_sub(first).max(1);
    let place = |at: u64| {
        let part = u128::from(at.saturating_sub(first)) * u128::from(LINE_WIDTH) / u128::from(whole);
        u64::try_from(part).unwrap_or(LINE_WIDTH)
    };
    let mut kinds: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    for row in rows {
        let from = place(row.first_unix_ms).min(LINE_WIDTH - 4);
        let to = if row.is_open { LINE_WIDTH } else { place(row.last_unix_ms) };
        kinds.entry(&row.kind).or_default().push((from, to.saturating_sub(from).max(4)));
    }
    let lane = |at: usize, kind, bars| Lane { kind: crate::output::clean(kind), y: at * LINE_ROW, bars };
    let lanes: Vec<Lane> = kinds.into_iter().enumerate().map(|(at, (kind, bars))| lane(at, kind, bars)).collect();
    let height = lanes.len() * LINE_ROW + 24;
    Line { height, lanes, first: time(first), last: time(last), span: span(whole / 1000) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Cells inside a path of rectangles.
    fn inside(path: &str) -> Vec<usize> {
        let rectangles = path.split_terminator('z').map(|one| {
            let numbers = one.split(|letter: char| !letter.is_ascii_digit()).filter(|digits| !digits.is_empty());
            numbers.map(|digits| digits.parse::<usize>().expect("digits") / CELL).collect::<Vec<_>>()
        });
        let cells = rectangles.flat_map(|one| {
            let [x, y, width, height, back] = one[..] else { panic!("{path}") };
            assert_eq!(width, back);
            (y..y + height).flat_map(move |row| (x..x + width).map(move |column| row * COLUMNS + column))
        });
        cells.collect()
    }

    proptest! {
        #[test]
        fn a_path_goes_around_the_cells_of_its_group_and_no_others(first in 0_usize..300, count in 0_usize..500) {
            let path = region(first, first + count);
            let cells = inside(&path);
            prop_assert_eq!(cells.len(), count, "one twice: {}", path);
            prop_assert_eq!(cells.into_iter().collect::<BTreeSet<_>>(), (first..first + count).collect());
            prop_assert!(path.matches('z').count() <= 3);
        }
    }
}
