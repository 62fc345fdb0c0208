//! The loop: samples come from a thread of their own, keys from the terminal, which is given back as it was.

use std::io::{self, Stdout, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::Duration;

use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::event::{self, Event};
use ratatui_crossterm::crossterm::execute;
use ratatui_crossterm::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use signal_hook::consts::{SIGHUP, SIGTERM};

use super::picture::{Palette, draw, plain};
use super::sample::Sample;
use super::state::{Act, State};
use crate::failure::Failure;
use crate::verdict::Level;

/// How long a key is waited for before it is looked whether a sample or a signal came.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// A terminal in raw mode on its other screen, until it is dropped.
struct Screen(Terminal<CrosstermBackend<Stdout>>);

impl Screen {
    fn take() -> io::Result<Screen> {
        enable_raw_mode()?;
        let taken = execute!(io::stdout(), EnterAlternateScreen);
        let terminal = taken.and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())));
        terminal.map(Screen).inspect_err(|_| give_back())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.0.show_cursor();
        give_back();
    }
}

/// What fails here is a terminal that is gone.
fn give_back() {
    let _ = execute!(io::stdout(), LeaveAlternateScreen);
    let _ = disable_raw_mode();
}

/// Shows how the daemons on `sockets` are until somebody has seen enough; how it was at last.
pub(super) fn run(sockets: Vec<PathBuf>, interval: Duration) -> Result<Level, Failure> {
    let failed = |error: io::Error| Failure::new(format!("the terminal: {error}; use --plain without one"));
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&ended)).map_err(failed)?;
    }
    let mut state = State::new(Sample::take(&sockets));
    let samples = samples(sockets, interval);
    let mut screen = Screen::take().map_err(failed)?;
    let palette = Palette::of_environment();
    while !ended.load(Ordering::Relaxed) {
        screen.0.draw(|frame| draw(&state, palette, frame.area(), frame.buffer_mut())).map_err(failed)?;
        if event::poll(LOOK_INTERVAL).map_err(failed)? {
            match hear(&mut state, &event::read().map_err(failed)?) {
                Act::Quit => break,
                Act::Snapshot => state.message = snapshot(&state),
                Act::Nothing => {}
            }
        }
        match samples.try_recv() {
            Ok(sample) => state.renew(sample),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => break,
        }
    }
    Ok(state.now.level())
}

fn hear(state: &mut State, event: &Event) -> Act {
    match event {
        Event::Key(key) => state.press(*key),
        _ => Act::Nothing,
    }
}

/// A daemon may take seconds to answer; keys are not to wait for that. One sample waits at most.
fn samples(sockets: Vec<PathBuf>, interval: Duration) -> Receiver<Sample> {
    let (sender, receiver) = sync_channel(1);
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(interval);
            if sender.send(Sample::take(&sockets)).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Writes all tables to a new file in the working directory; what is to be said of it.
fn snapshot(state: &State) -> String {
    let name = format!("ringwall-top-{}.txt", state.now.time().replace(':', ""));
    let mut options = std::fs::OpenOptions::new();
    // Names and addresses of a site are for whoever may ask its daemons.
    let file = options.write(true).create_new(true).mode(0o600).open(&name);
    match file.and_then(|mut file| writeln!(file, "{}", plain(state))) {
        Ok(()) => format!("written: {name}"),
        Err(error) => format!("{name}: {error}"),
    }
}
