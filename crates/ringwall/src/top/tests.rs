//! Pictures of given states, on ratatui's terminal for tests.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use ratatui_core::backend::TestBackend;
use ratatui_core::layout::Rect;
use ratatui_core::style::Color;
use ratatui_core::terminal::Terminal;
use ratatui_crossterm::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::picture::{Palette, draw, plain};
use super::sample::{Daemon, Sample};
use super::state::{Act, State};
use super::table::{Pane, wrapped};
use crate::metrics::tests::link_layer;
use crate::output::clean;
use crate::protocol::{Answer, Flow, Peer};
use crate::status::Certificate;
use crate::verdict::Level;

const NOW_S: u64 = 1_795_000_000;

fn daemon() -> Daemon {
    let measured = link_layer();
    let (Answer::Status(status), Answer::Peers { peers }) = (*measured.status, *measured.known) else {
        panic!("a host")
    };
    let flow = Flow {
        trusted: "192.0.2.1:40000".parse().expect("it"),
        untrusted: "198.51.100.7:443".parse().expect("it"),
        vlans: 0,
        state: "established".to_owned(),
        idle_s: 2,
        retained_bytes: 0,
        packets_from_trusted: 3,
        packets_from_untrusted: 4,
        bytes_from_trusted: 300,
        bytes_from_untrusted: 4000,
        carried: false,
    };
    Daemon { peers, flows: vec![flow], ..Daemon::of_host(*status) }
}

fn sample(at: Instant, daemons: Vec<Daemon>) -> Sample {
    Sample { at, unix_s: NOW_S, daemons }
}

fn state() -> State {
    State::new(sample(Instant::now(), vec![daemon()]))
}

fn press(state: &mut State, codes: &[KeyCode]) -> Act {
    codes.iter().map(|code| state.press(KeyEvent::new(*code, KeyModifiers::NONE))).last().expect("a key")
}

fn type_in(state: &mut State, text: &str) {
    let codes: Vec<KeyCode> = text.chars().map(KeyCode::Char).collect();
    press(state, &codes);
}

/// The picture, line by line.
fn picture(state: &State, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    let drawn = terminal.draw(|frame| draw(state, Palette::None, frame.area(), frame.buffer_mut()));
    drawn.expect("drawn");
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(line).collect()
}

#[test]
fn the_first_line_is_the_verdict_and_the_last_names_the_keys() {
    let lines = picture(&state(), 120, 24);
    assert!(lines[0].starts_with("WARNING e0: ATTACKED (arp-spoofing): s; a"), "{lines:#?}");
    assert!(lines[1].starts_with("[1 Drops 1]  2 Peers 1   3 Attacks 1   4 Flows 1   5 Certificates 2"), "{lines:#?}");
    assert!(lines[3].starts_with("> e0         plain-arp  0.0         200"), "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("do:   If `ringwall status` names an attack")), "{lines:#?}");
    assert!(lines[23].contains("q quit"), "{lines:#?}");
}

#[test]
fn rates_are_those_between_two_samples_and_none_across_a_start() {
    let start = Instant::now();
    let mut state = State::new(sample(start, vec![daemon()]));
    let mut later = daemon();
    later.uptime_s += 4;
    later.drops.insert("plain-arp".to_owned(), 210);
    later.drops.insert("replayed".to_owned(), 100);
    state.renew(sample(start + Duration::from_secs(4), vec![later.clone()]));
    let cells: Vec<_> = state.rows(Pane::Drops).iter().map(|row| row.cells[1..].join(" ")).collect();
    assert_eq!(cells, ["replayed 25.0 100", "plain-arp 2.5 210"]);
    later.uptime_s = 0;
    state.renew(sample(start + Duration::from_secs(8), vec![later]));
    assert!(state.rows(Pane::Drops).iter().all(|row| row.cells[2] == "0.0"));
}

#[test]
fn keys_choose_tables_rows_and_what_is_filtered() {
    let mut state = state();
    let peer = |name: &str| Peer { name: name.to_owned(), ..daemon().peers[0].clone() };
    state.now.daemons[0].peers = vec![peer("desk-1"), peer("desk-2"), peer("printer")];
    press(&mut state, &[KeyCode::Tab, KeyCode::Down, KeyCode::Down, KeyCode::Down, KeyCode::Down]);
    assert_eq!((state.pane, state.cursor), (Pane::Peers, 2), "it stays in the table");
    press(&mut state, &[KeyCode::Char('/')]);
    type_in(&mut state, "DESKq");
    press(&mut state, &[KeyCode::Backspace, KeyCode::Enter]);
    assert_eq!(
        (state.rows(Pane::Peers).len(), state.cursor, state.filter.as_str()),
        (2, 0, "DESK"),
        "for a moment none fitted"
    );
    assert!(picture(&state, 80, 24).iter().any(|line| line.starts_with("> e0         desk-1")));
    press(&mut state, &[KeyCode::Esc, KeyCode::End]);
    assert_eq!(state.cursor, 2);
    assert_eq!(press(&mut state, &[KeyCode::Char('s')]), Act::Snapshot);
    assert_eq!(press(&mut state, &[KeyCode::BackTab, KeyCode::Char('q')]), Act::Quit);
    assert_eq!(state.pane, Pane::Drops);
    assert_eq!(state.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Act::Quit);
}

#[test]
fn a_pause_holds_the_picture_until_it_ends() {
    let mut state = state();
    press(&mut state, &[KeyCode::Char('p')]);
    state.renew(sample(Instant::now(), Vec::new()));
    assert_eq!(state.now.daemons.len(), 1);
    assert!(picture(&state, 80, 24)[23].starts_with("PAUSED"));
    press(&mut state, &[KeyCode::Char('p')]);
    state.renew(sample(Instant::now(), Vec::new()));
    assert_eq!((state.now.daemons.len(), state.now.level()), (0, Level::Unknown));
}

#[test]
fn nothing_from_the_wire_reaches_the_terminal_as_an_order() {
    let mut state = state();
    let evil = "a\u{1b}]0;x\u{7}\u{9b}2J\u{202e}b\u{200b}\r\n";
    state.now.daemons[0].peers[0].name = evil.to_owned();
    state.now.daemons[0].certificates.push(Certificate { of: evil.to_owned(), not_after_unix: NOW_S - 1 });
    state.now.daemons[0].verdict = evil.to_owned();
    let harmful = |text: &str| text.chars().any(|one| one != '\n' && clean(&one.to_string()) != one.to_string());
    assert!(harmful(evil) && !harmful(&plain(&state)), "{}", plain(&state));
    press(&mut state, &[KeyCode::Char('2')]);
    let text = picture(&state, 100, 30).join("\n");
    assert!(!harmful(&text) && text.contains("a.]0;x..2J.b..."), "{text}");
}

#[test]
fn what_is_wrong_stands_in_words_and_colours_are_left_out_where_they_are_unwanted() {
    let area = Rect::new(0, 0, 80, 24);
    let colours = |palette| {
        let mut buffer = ratatui_core::buffer::Buffer::empty(area);
        draw(&state(), palette, area, &mut buffer);
        buffer.content().iter().filter(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset).count()
    };
    assert!(colours(Palette::Colours) > 0);
    assert_eq!(colours(Palette::None), 0);
}

#[test]
fn the_plain_text_has_every_table_with_its_rows() {
    let text = plain(&state());
    assert!(text.starts_with("2026-11-18T"), "{text}");
    for line in ["WARNING e0: ", "Drops: 1\n", "Peers: 1\n", "Attacks: 1\n", "Flows: 1\n", "Certificates: 2\n"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(text.contains("192.0.2.1:40000  198.51.100.7:443  established  2 s   300        4000"), "{text}");
    assert!(text.contains("e0         a (this host)"), "{text}");
}

proptest! {
    #[test]
    fn any_size_and_any_keys_have_a_picture(
        (width, height) in (0_u16..200, 0_u16..60),
        keys in ".{0,40}",
        many in 0_usize..300,
    ) {
        let mut state = state();
        let peer = daemon().peers[0].clone();
        state.now.daemons[0].peers = vec![peer; many];
        type_in(&mut state, &format!("2{keys}"));
        press(&mut state, &[KeyCode::End]);
        let area = Rect::new(0, 0, width, height);
        let mut buffer = ratatui_core::buffer::Buffer::empty(area);
        draw(&state, Palette::Colours, area, &mut buffer);
        prop_assert!(state.cursor <= many.max(2));
    }

    #[test]
    fn wrapping_loses_no_letter_and_keeps_the_width(text in "[a-z ]{0,80}", width in 1_usize..40) {
        let lines = wrapped(&text, width);
        prop_assert!(lines.iter().all(|line| line.chars().count() <= width));
        let letters = |text: &str| text.chars().filter(|one| *one != ' ').collect::<String>();
        prop_assert_eq!(letters(&lines.concat()), letters(&text));
    }
}
