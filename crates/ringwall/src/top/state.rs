//! What a person sees and has chosen. Keys change it, and nothing here knows a terminal.

use ratatui_crossterm::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::sample::Sample;
use super::table::{Pane, Row};
use crate::output::clean;

/// Longest filter, in letters.
const FILTER_MAX: usize = 64;
/// Rows that a page key goes.
const PAGE: usize = 10;

/// What is to be done because of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Nothing,
    Quit,
    /// Write what is seen to a file.
    Snapshot,
}

/// All of it.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) now: Sample,
    /// The sample before, for rates.
    pub(super) before: Option<Sample>,
    pub(super) pane: Pane,
    /// The row under the cursor, among those that the filter lets through.
    pub(super) cursor: usize,
    pub(super) filter: String,
    /// Whether letters go to the filter.
    pub(super) is_typing: bool,
    pub(super) is_paused: bool,
    /// What a person should hear once.
    pub(super) message: String,
}

impl State {
    pub(super) fn new(now: Sample) -> State {
        State {
            now,
            before: None,
            pane: Pane::Drops,
            cursor: 0,
            filter: String::new(),
            is_typing: false,
            is_paused: false,
            message: String::new(),
        }
    }

    /// Takes a newer sample, unless it is to stand still.
    pub(super) fn renew(&mut self, sample: Sample) {
        if !self.is_paused {
            self.before = Some(std::mem::replace(&mut self.now, sample));
            self.keep_in_rows();
        }
    }

    /// The rows of a pane that the filter lets through.
    pub(super) fn rows(&self, pane: Pane) -> Vec<Row> {
        let text = self.filter.to_lowercase();
        let mut rows = pane.rows(&self.now, self.before.as_ref());
        rows.retain(|row| row.has(&text));
        rows
    }

    fn keep_in_rows(&mut self) {
        self.cursor = self.cursor.min(self.rows(self.pane).len().saturating_sub(1));
    }

    /// What a key does.
    pub(super) fn press(&mut self, key: KeyEvent) -> Act {
        if key.kind == KeyEventKind::Release {
            return Act::Nothing;
        }
        self.message.clear();
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if is_control => return Act::Quit,
            _ if self.is_typing => self.type_filter(key.code),
            KeyCode::Char('q') => return Act::Quit,
            KeyCode::Char('s') => return Act::Snapshot,
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char('p') => self.is_paused = !self.is_paused,
            KeyCode::Esc => self.filter.clear(),
            code => self.go(code),
        }
        self.keep_in_rows();
        Act::Nothing
    }

    fn type_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => _ = self.filter.pop(),
            KeyCode::Char(letter) if self.filter.chars().count() < FILTER_MAX => {
                self.filter.push_str(&clean(&letter.to_string()));
            }
            _ => {}
        }
    }

    fn go(&mut self, code: KeyCode) {
        let at = Pane::ALL.iter().position(|pane| *pane == self.pane).unwrap_or(0);
        let panes = Pane::ALL.len();
        match code {
            KeyCode::Tab | KeyCode::Right => self.show(Pane::ALL[(at + 1) % panes]),
            KeyCode::BackTab | KeyCode::Left => self.show(Pane::ALL[(at + panes - 1) % panes]),
            KeyCode::Char(digit @ '1'..='5') => self.show(Pane::ALL[usize::from(digit as u8 - b'1')]),
            KeyCode::Down | KeyCode::Char('j') => self.cursor = self.cursor.saturating_add(1),
            KeyCode::Up | KeyCode::Char('k') => self.cursor = self.cursor.saturating_sub(1),
            KeyCode::PageDown => self.cursor = self.cursor.saturating_add(PAGE),
            KeyCode::PageUp => self.cursor = self.cursor.saturating_sub(PAGE),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = usize::MAX,
            _ => {}
        }
    }

    fn show(&mut self, pane: Pane) {
        (self.pane, self.cursor) = (pane, 0);
    }
}
