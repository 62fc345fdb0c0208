//! What commands print. A reader that went away, such as `head`, ends the command quietly; a full disk is an error.

use std::fmt;
use std::io::{ErrorKind, Write};
use std::process::exit;

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
