//! Orders that are put down as refused. An operator may order without end what is not his to order;
//! the record keeps one entry a minute of it, with how many there were.

use std::collections::BTreeMap;

use authority::audit::Act;
use authority::directory::note;
use authority::{Directory, Error};

use super::super::orders::{Heard, NotHeard};

/// Seconds between two entries of one operator.
const EVERY_S: u64 = 60;

/// When each operator was put down last, and how many more were refused since. There are few of
/// them (`MAX_OPERATORS`), and all are of the site.
#[derive(Debug, Default)]
pub(super) struct Refused(BTreeMap<String, (u64, u64)>);

impl Refused {
    /// Puts down that `heard` is refused, or counts it.
    pub(super) fn note(&mut self, site: &Directory, heard: &Heard, why: NotHeard, unix_s: u64) -> Result<(), Error> {
        let name = heard.operator.name();
        let (last, more) = self.0.get(name).copied().unwrap_or_default();
        if unix_s.abs_diff(last) < EVERY_S {
            self.0.insert(name.to_owned(), (last, more + 1));
            return Ok(());
        }
        self.0.insert(name.to_owned(), (unix_s, 0));
        let more = if more == 0 { String::new() } else { format!("; {more} more before") };
        let role = heard.operator.role();
        let why = match why {
            NotHeard::Elsewhere => format!("done at the authority's machine alone, is {role}"),
            _ => format!("needs {}, is {role}", heard.needs),
        };
        let detail = format!("{why}: {}{more}", heard.in_words());
        note(site, Act::OrderRefused, name, &detail, unix_s)
    }
}
