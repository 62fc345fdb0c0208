//! The picture: lines of text, from a state and a size alone; and the same without a size, for
//! scripts and screen readers.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};

use super::sample::Daemon;
use super::state::State;
use super::table::{Pane, Row, aligned, wrapped};
use crate::output::clean;
use crate::verdict::Level;

/// Lines of the explanation below, at most.
const EXPLAINED_MAX: usize = 9;
/// Daemons whose verdict is shown; a machine has few.
const VERDICTS_MAX: usize = 4;
/// Lines of each.
const VERDICT_LINES_MAX: usize = 2;
const KEYS: &str = "q quit  Tab 1-5 table  arrows row  / filter  p pause  s snapshot";

/// Whether colours may be used (no-color.org).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Palette {
    Colours,
    None,
}

impl Palette {
    /// As the environment wants it.
    pub(super) fn of_environment() -> Palette {
        let is_unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if is_unwanted { Palette::None } else { Palette::Colours }
    }

    fn of(self, level: Level) -> Style {
        let colour = match level {
            Level::Good => Color::Green,
            Level::Warning => Color::Yellow,
            Level::Critical | Level::Unknown => Color::Red,
        };
        let bold = Style::new().add_modifier(Modifier::BOLD);
        if self == Palette::Colours { bold.fg(colour) } else { bold }
    }
}

/// A line, and how it looks. That something is wrong stands in words, never in a colour alone.
type Line = (String, Style);

/// Draws `state` on all of `area`.
pub(super) fn draw(state: &State, palette: Palette, area: Rect, buffer: &mut Buffer) {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    for ((text, style), y) in lines(state, palette, width, height).into_iter().zip(area.y..area.bottom()) {
        let text = if style.add_modifier.contains(Modifier::REVERSED) { format!("{text:<width$}") } else { text };
        buffer.set_stringn(area.x, y, text, width, style);
    }
}

/// At most `height` lines.
fn lines(state: &State, palette: Palette, width: usize, height: usize) -> Vec<Line> {
    let rows = state.rows(state.pane);
    let mut all = head(state, palette, width);
    let explained = explained(&rows, state.cursor, width);
    // The table has what the head, its own head, a gap, the explanation and the last line leave.
    let room = height.saturating_sub(all.len() + explained.len() + 3);
    all.extend(table(state, &rows, room));
    all.truncate(height.saturating_sub(1));
    let below = height.saturating_sub(1 + explained.len());
    if all.len() <= below {
        all.resize(below, (String::new(), Style::new()));
        all.extend(explained.into_iter().map(|text| (text, Style::new())));
    }
    all.push((foot(state), Style::new().add_modifier(Modifier::DIM)));
    all
}

/// How it is, and which tables there are.
fn head(state: &State, palette: Palette, width: usize) -> Vec<Line> {
    let daemons = &state.now.daemons;
    let shown = daemons.iter().take(VERDICTS_MAX);
    let verdict = |one: &Daemon| {
        let lines = wrapped(&clean(&one.verdict), width).into_iter().take(VERDICT_LINES_MAX);
        lines.map(|text| (text, palette.of(one.level))).collect::<Vec<_>>()
    };
    let mut lines: Vec<Line> = shown.flat_map(verdict).collect();
    if daemons.len() > VERDICTS_MAX {
        lines.push((format!("and {} more daemons: see `ringwall status`", daemons.len() - VERDICTS_MAX), Style::new()));
    }
    let title = |(pane, number): (&Pane, usize)| {
        let count = state.rows(*pane).len();
        let text = format!("{number} {} {count}", pane.title());
        if *pane == state.pane { format!("[{text}]") } else { format!(" {text} ") }
    };
    let titles: Vec<String> = Pane::ALL.iter().zip(1..).map(title).collect();
    lines.push((titles.join(" "), Style::new().add_modifier(Modifier::BOLD)));
    lines
}

/// The head of a table, and those of its rows among which the cursor is.
fn table(state: &State, rows: &[Row], room: usize) -> Vec<Line> {
    let first = (state.cursor + 1).saturating_sub(room.max(1));
    let shown: Vec<&Row> = rows.iter().skip(first).take(room).collect();
    let texts = aligned(state.pane.columns(), &shown);
    let style = |at: usize| match at {
        0 => Style::new().add_modifier(Modifier::UNDERLINED),
        _ if first + at - 1 == state.cursor => Style::new().add_modifier(Modifier::REVERSED),
        _ => Style::new(),
    };
    let mut lines: Vec<Line> =
        texts.into_iter().enumerate().map(|(at, text)| (mark(at, first, state, text), style(at))).collect();
    if rows.is_empty() {
        lines.push((nothing(state), Style::new()));
    }
    lines
}

/// The cursor is a letter, too: not every terminal shows reversed lines.
fn mark(at: usize, first: usize, state: &State, text: String) -> String {
    let is_there = at > 0 && first + at - 1 == state.cursor;
    format!("{} {text}", if is_there { '>' } else { ' ' })
}

fn nothing(state: &State) -> String {
    match state.filter.is_empty() {
        true => "  none".to_owned(),
        false => format!("  none with \"{}\"", state.filter),
    }
}

/// What is said of the row under the cursor.
fn explained(rows: &[Row], cursor: usize, width: usize) -> Vec<String> {
    let Some(row) = rows.get(cursor) else { return Vec::new() };
    let mut lines: Vec<String> = row.explained.iter().flat_map(|text| wrapped(text, width)).collect();
    lines.truncate(EXPLAINED_MAX);
    lines
}

fn foot(state: &State) -> String {
    let paused = if state.is_paused { "PAUSED  " } else { "" };
    match (state.is_typing, state.message.is_empty(), state.filter.is_empty()) {
        (true, ..) => format!("filter: {}_  Enter keeps it, Esc removes it", state.filter),
        (false, false, _) => clean(&state.message),
        (false, true, false) => format!("{paused}filter: {}  Esc removes it  {KEYS}", state.filter),
        (false, true, true) => format!("{paused}{}  {KEYS}", state.now.time()),
    }
}

/// Everything, table after table, without a size: for `--plain` and snapshots.
pub(super) fn plain(state: &State) -> String {
    let mut lines = vec![state.now.time()];
    lines.extend(state.now.daemons.iter().map(|daemon| clean(&daemon.verdict)));
    for pane in Pane::ALL {
        let rows = state.rows(pane);
        lines.push(String::new());
        lines.push(format!("{}: {}", pane.title(), rows.len()));
        if !rows.is_empty() {
            lines.extend(aligned(pane.columns(), &rows.iter().collect::<Vec<_>>()));
        }
    }
    lines.join("\n")
}
