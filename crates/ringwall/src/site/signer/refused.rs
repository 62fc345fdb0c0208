//! Orders that are refused are counted, in the place that the site has for each operator's.

use authority::directory::put_down_refused;
use authority::{Directory, Error};

use super::super::orders::{Heard, NotHeard};

/// Puts down that `heard` is refused.
pub(super) fn put_down(site: &Directory, heard: &Heard, why: NotHeard, unix_s: u64) -> Result<(), Error> {
    let role = heard.operator.role();
    let why = match why {
        NotHeard::Elsewhere => format!("done at the authority's machine alone, is {role}"),
        _ => format!("needs {}, is {role}", heard.needs),
    };
    let detail = format!("{why}: {}", heard.in_words());
    put_down_refused(site, &heard.operator, (&heard.command_name(), &detail), unix_s)
}
