//! What commands print, and ask. A reader that went away, such as `head`, ends the command quietly;
//! a full disk is an error.

use std::fmt;
use std::io::{self, BufRead as _, ErrorKind, IsTerminal as _, Write};
use std::process::exit;

use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// Prints a line like `println!`, which would panic where nobody reads.
macro_rules! say {
    ($($text:tt)*) => { $crate::output::line(format_args!($($text)*)) };
}
pub(crate) use say;

/// Writes `text` and a newline to the standard output.
pub(crate) fn line(text: fmt::Arguments<'_>) {
    print(&mut std::io::stdout(), &text);
}

/// Writes `text` and a newline to `out`.
pub(crate) fn print(out: &mut dyn Write, text: &dyn fmt::Display) {
    match writeln!(out, "{text}") {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => exit(0),
        Err(error) => {
            complain(format_args!("the output cannot be written: {error}"));
            exit(1)
        }
    }
}

/// Writes a line to the standard error, whether or not somebody reads it: what follows must happen all the same.
pub(crate) fn complain(text: fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "ringwall: {text}");
}

/// Whether somebody sits at a terminal who can be asked.
pub(crate) fn is_somebody_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks who sits there; whether he agrees.
///
/// # Errors
/// What the operating system says.
pub(crate) fn ask(question: &str) -> io::Result<bool> {
    write!(io::stderr(), "{question} [y/N] ")?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// `text` without what a terminal or its reader could take for more than text: names and addresses come from the wire.
pub(crate) fn clean(text: &str) -> String {
    let is_harmful = |one: char| {
        // Controls of both sets; marks that turn the direction of text; what has no width.
        one.is_control()
            || matches!(one, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    text.chars().map(|one| if is_harmful(one) { '.' } else { one }).collect()
}

/// The standard error for a reader that takes a number in angle brackets for a line's priority (sd-daemon(3)).
pub(crate) struct Prioritised;

/// One line of it.
pub(crate) struct Line {
    prefix: &'static [u8],
}

impl Write for Line {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        // In one piece, so that lines of threads do not mix.
        std::io::stderr().write_all(&[self.prefix, line].concat())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Prioritised {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line { prefix: prefix(&Level::INFO) }
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> Line {
        Line { prefix: prefix(metadata.level()) }
    }
}

fn prefix(level: &Level) -> &'static [u8] {
    match *level {
        Level::ERROR => b"<3>",
        Level::WARN => b"<4>",
        Level::INFO => b"<6>",
        _ => b"<7>",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_a_warning_to_syslog() {
        let numbers = [Level::ERROR, Level::WARN, Level::INFO, Level::DEBUG].map(|level| prefix(&level));
        assert_eq!(numbers, [b"<3>", b"<4>", b"<6>", b"<7>"]);
    }
}
