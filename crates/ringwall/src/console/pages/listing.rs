//! Lists that go on over pages.

use super::super::http::{encode, value};

/// Rows on one page.
pub(super) const ROWS: usize = 100;
/// Longest text that is looked for.
const FILTER_CHARS_MAX: usize = 80;

/// Where in a list a page is.
pub(super) struct Pager {
    /// From one.
    pub(super) page: usize,
    pub(super) pages: usize,
    pub(super) total: usize,
    /// Where the pages before and after this one are.
    pub(super) previous: Option<String>,
    pub(super) next: Option<String>,
}

impl Pager {
    /// Of a list of `total` rows at `path`, whose filter is `fields`.
    pub(super) fn new(path: &str, query: &str, fields: &[(&str, &str)], total: usize) -> Pager {
        let pages = total.div_ceil(ROWS).max(1);
        let page = asked(query).min(pages);
        let kept: String = fields
            .iter()
            .filter(|(_, text)| !text.is_empty())
            .fold(String::new(), |kept, (name, text)| format!("{kept}{name}={}&", encode(text)));
        let link = |page: usize| format!("{path}?{kept}page={page}");
        let previous = (page > 1).then(|| link(page - 1));
        let next = (page < pages).then(|| link(page + 1));
        Pager { page, pages, total, previous, next }
    }

    /// The rows of this page, as places in the list.
    pub(super) fn skip(&self) -> usize {
        (self.page - 1) * ROWS
    }
}

/// The page that is asked for.
pub(super) fn asked(query: &str) -> usize {
    value(query, "page").and_then(|text| text.parse().ok()).filter(|page| *page > 0).unwrap_or(1)
}

/// What is looked for in the field `name`.
pub(super) fn filter(query: &str, name: &str) -> String {
    value(query, name).unwrap_or_default().trim().chars().take(FILTER_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever stands in a query, the page is one of the list, and its links keep the filter.
        #[test]
        fn every_page_is_one_of_the_list(page in "\\PC{0,20}", text in "\\PC{0,20}", total in 0_usize..100_000) {
            let pager = Pager::new("/peers", &format!("page={page}"), &[("q", &text)], total);
            prop_assert!(pager.page >= 1 && pager.page <= pager.pages);
            prop_assert!(pager.skip() <= total);
            prop_assert_eq!(pager.next.is_some(), pager.skip() + ROWS < total);
            for link in pager.next.iter().chain(&pager.previous) {
                let query = link.split_once('?').expect("a query").1;
                prop_assert_eq!(value(query, "q").unwrap_or_default(), text.as_str());
                prop_assert!(link.is_ascii() && !link.contains(['"', '<', '\'']));
            }
        }
    }
}
