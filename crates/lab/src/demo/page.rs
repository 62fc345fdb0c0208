//! The rows as one page for a browser: nothing from elsewhere, no script, and every colour has its word beside it.

use std::fmt::Write;

use super::verdict;
use crate::attack::scene::Row;

const HEAD: &str = "<!doctype html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<title>Ringwall: attacks without and with their guard</title>
<style>
:root { color-scheme: light dark; --good: #0a6b2d; --bad: #b00020; }
@media (prefers-color-scheme: dark) { :root { --good: #6fdc8c; --bad: #ff8389; } }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 75rem; margin: 0 auto; padding: 1rem; }
table { border-collapse: collapse; width: 100%; }
caption { text-align: left; padding: 0.5rem 0; }
th, td { text-align: left; vertical-align: top; padding: 0.4rem 0.6rem; border-bottom: 1px solid; }
.good { color: var(--good); font-weight: 600; }
.bad { color: var(--bad); font-weight: 600; }
</style>
</head>
<body>
<main>
<h1>Attacks without and with their guard</h1>
";

const TABLE: &str = "<table>
<caption>Guard <em>none</em> is the bare network, <em>weakened</em> is Ringwall without the layer that the attack is
about; <em>cll</em> and <em>sarp</em> are its modes. Each attack was carried out by the tool that is named, in network
namespaces of one machine.</caption>
<thead><tr><th scope=\"col\">Attack</th><th scope=\"col\">Tool</th><th scope=\"col\">Guard</th>\
<th scope=\"col\">Outcome</th><th scope=\"col\">What was seen</th></tr></thead>
";

/// The whole page.
pub(super) fn page(rows: &[Row]) -> String {
    let is_good = rows.iter().all(Row::is_as_it_must_be);
    let mut page = HEAD.to_owned();
    let _ = writeln!(page, "<p class=\"{}\">{}</p>", class(is_good), escaped(&verdict(rows)));
    page.push_str(TABLE);
    for of_one in rows.chunk_by(|one, next| one.attack == next.attack) {
        page.push_str("<tbody>\n");
        for (at, row) in of_one.iter().enumerate() {
            page.push_str(&line(row, (at == 0).then_some(of_one.len())));
        }
        page.push_str("</tbody>\n");
    }
    page + "</table>\n</main>\n</body>\n</html>\n"
}

/// One row; the first of an attack also has its name and tool, for as many rows as it has.
fn line(row: &Row, first_of: Option<usize>) -> String {
    let mut text = "<tr>".to_owned();
    if let Some(rows) = first_of {
        let (attack, tool) = (escaped(&row.attack), escaped(&row.tool));
        let _ =
            write!(text, "<th scope=\"rowgroup\" rowspan=\"{rows}\">{attack}</th><td rowspan=\"{rows}\">{tool}</td>");
    }
    let word = row.outcome.word();
    let judged = if row.is_as_it_must_be() { word.to_owned() } else { format!("{word} (must not be)") };
    let class = class(row.is_as_it_must_be());
    let evidence = escaped(&row.evidence);
    let _ = writeln!(text, "<td>{}</td><td class=\"{class}\">{judged}</td><td>{evidence}</td></tr>", row.guard);
    text
}

fn class(is_good: bool) -> &'static str {
    if is_good { "good" } else { "bad" }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attack::scene::Outcome;
    use crate::guard::Guard;

    #[test]
    fn every_row_is_there_and_nothing_in_it_is_markup() {
        let row = |guard, outcome, evidence: &str| Row {
            attack: "1 x".to_owned(),
            tool: "a & b".to_owned(),
            guard,
            outcome,
            evidence: evidence.to_owned(),
            eve: String::new(),
        };
        let rows = [row(Guard::None, Outcome::Succeeded, "<b>"), row(Guard::Cll, Outcome::Unproved, "\"")];
        let page = page(&rows);
        assert!(page.contains("rowspan=\"2\">1 x</th>") && page.contains("a &amp; b") && page.contains("&lt;b&gt;"));
        assert!(page.contains("<p class=\"bad\">") && page.contains("unproved (must not be)"), "{page}");
        assert!(!page.contains("<script") && !page.contains("http"), "nothing from elsewhere");
    }
}
