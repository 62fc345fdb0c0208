//! `ringwall top`: how the daemons of this machine are, again and again (docs/decisions/0094-why-and-top.md).
//!
//! - `sample.rs`: what is asked of the daemons; `table.rs`: the tables made from it, with all text
//!   from the wire made harmless; `state.rs`: what a person has chosen.
//! - `picture.rs`: the picture, from a state and a size alone; `screen.rs`: the loop around it.

mod picture;
mod sample;
mod screen;
mod state;
mod table;
#[cfg(test)]
mod tests;

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use crate::client::DaemonArgs;
use crate::failure::Failure;
use crate::output::say;
use crate::verdict::Level;
use sample::Sample;
use state::State;

/// Options of `ringwall top`
#[derive(Args, Debug)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// Tells it once, after one interval for the rates, and ends; implies --plain.
    #[arg(long)]
    once: bool,
    /// Lines of text one after the other, without drawing: for screen readers and scripts.
    #[arg(long)]
    plain: bool,
    /// Seconds between two looks.
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
}

/// `ringwall top`: the exit status says how it was at last.
pub(crate) fn top(args: &TopArgs) -> Result<ExitCode, Failure> {
    let sockets = args.daemon.sockets()?;
    let interval = Duration::from_secs(args.interval);
    if !args.once && !args.plain {
        if !std::io::stdout().is_terminal() {
            return Err(Failure::new("the output is no terminal; use --plain, or --once"));
        }
        return screen::run(sockets, interval).map(exit);
    }
    let mut state = State::new(Sample::take(&sockets));
    loop {
        std::thread::sleep(interval);
        state.renew(Sample::take(&sockets));
        say!("{}", picture::plain(&state));
        if args.once {
            return Ok(exit(state.now.level()));
        }
        say!("");
    }
}

fn exit(level: Level) -> ExitCode {
    ExitCode::from(level as u8)
}
