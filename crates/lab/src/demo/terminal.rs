//! Colours where a person reads, and none where NO_COLOR is set (no-color.org) or a file or a pipe takes it.

use std::io::IsTerminal;

/// Whether text may be coloured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Colours(bool);

impl Colours {
    /// Those of the standard output.
    pub(super) fn of_stdout() -> Colours {
        Colours(std::io::stdout().is_terminal() && is_wanted())
    }

    /// Those of the standard error.
    pub(super) fn of_stderr() -> Colours {
        Colours(std::io::stderr().is_terminal() && is_wanted())
    }

    /// `text` in green, or in bold red. The words alone say it as well.
    pub(super) fn verdict(self, text: &str, is_good: bool) -> String {
        let code = if is_good { "32" } else { "1;31" };
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn is_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_as_it_was_where_nobody_sees_colours() {
        assert_eq!(Colours(false).verdict("blocked", true), "blocked");
        assert_eq!(Colours(true).verdict("blocked", true), "\x1b[32mblocked\x1b[0m");
        assert_eq!(Colours(true).verdict("succeeded", false), "\x1b[1;31msucceeded\x1b[0m");
    }
}
