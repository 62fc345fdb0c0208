//! Somebody who reads pages: by plain HTTP, and in Chromium.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::crowd::Crowd;
use crate::bench::stats::Series;
use crate::failure::Failure;
use crate::net::{Namespace, process};

/// Where the console listens.
pub(super) const ADDRESS: &str = "127.0.0.1:9479";
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// A start of the browser that reads more takes longer than a command may.
const PAGES_AT_ONCE: usize = 2;
/// Signs in with the link and says when the first paint of each page was.
const BROWSER: &str = include_str!("../../../browser/console.py");

/// Whether first paints can be measured.
pub(super) fn has_browser() -> bool {
    ["chromium", "chromedriver", "python3"].into_iter().all(process::installed)
}

/// Who is signed in.
pub(super) struct Visitor<'a> {
    program: PathBuf,
    namespace: &'a Namespace,
    run_dir: &'a Path,
    cookie: String,
}

/// One answer.
pub(super) struct Read {
    pub(super) time: Duration,
    pub(super) bytes: usize,
}

impl<'a> Visitor<'a> {
    pub(super) fn sign_in(program: &Path, namespace: &'a Namespace, run_dir: &'a Path) -> Result<Visitor<'a>, Failure> {
        let mut visitor = Visitor { program: program.to_owned(), namespace, run_dir, cookie: String::new() };
        let link = visitor.link()?;
        let (_, token) = link.split_once('?').ok_or_else(|| Failure::Unreadable(link.clone()))?;
        let (_, answer) = visitor.exchange("POST /sign-in", token)?;
        let cookie = answer.lines().find_map(|line| line.strip_prefix("Set-Cookie: ")?.split(';').next());
        visitor.cookie = cookie.ok_or_else(|| Failure::Unreadable(answer.clone()))?.to_owned();
        Ok(visitor)
    }

    /// What `ringwall console login` prints.
    fn link(&self) -> Result<String, Failure> {
        let mut command = self.namespace.command(&self.program.to_string_lossy());
        command.args(["console", "login", "--run-dir"]).arg(self.run_dir);
        Ok(process::must(command)?.trim().to_owned())
    }

    /// Reads a page to its end.
    pub(super) fn read(&mut self, page: &str) -> Result<Read, Failure> {
        let (time, answer) = self.exchange(&format!("GET {page}"), "")?;
        if !answer.starts_with("HTTP/1.1 200 ") {
            return Err(Failure::Unreadable(format!("{page}: {}", answer.lines().next().unwrap_or_default())));
        }
        Ok(Read { time, bytes: answer.len() })
    }

    fn exchange(&self, what: &str, body: &str) -> Result<(Duration, String), Failure> {
        let request = format!(
            "{what} HTTP/1.1\r\nHost: {ADDRESS}\r\nCookie: {}\r\nContent-Length: {}\r\n\r\n{body}",
            self.cookie,
            body.len()
        );
        let ask = || {
            let start = Instant::now();
            let mut stream = TcpStream::connect(ADDRESS)?;
            stream.set_read_timeout(Some(ANSWER_LIMIT))?;
            stream.write_all(request.as_bytes())?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok((start.elapsed(), answer))
        };
        self.namespace.enter(|| ask().map_err(Failure::io("asking the console")))
    }

    /// Milliseconds to the first paint of each page, `runs` times.
    pub(super) fn paints(
        &self,
        crowd: &Crowd,
        pages: &[&'static str],
        runs: u32,
    ) -> Result<Vec<(&'static str, Series)>, Failure> {
        let mut series: Vec<(&'static str, Series)> = pages.iter().map(|page| (*page, Series::new())).collect();
        let script = crowd.file("browser.py");
        std::fs::write(&script, BROWSER).map_err(Failure::file("writing", &script))?;
        // Each start reads its pages twice, in light and in dark colours.
        for pages in (0..runs.div_ceil(2)).flat_map(|_| pages.chunks(PAGES_AT_ONCE)) {
            let mut command = self.namespace.command("python3");
            command.arg(&script).args([&self.link()?, "", ""]).args(pages);
            command.env("HOME", crowd.file("browser"));
            let said = process::ask(command, &[])?;
            if !said.status.success() {
                return Err(Failure::Unreadable(format!("the browser: {}{}", said.stdout, said.stderr)));
            }
            for (page, paints) in &mut series {
                paints.extend(said.stdout.lines().filter_map(|line| paint_of(line, page)).map(Some));
            }
        }
        Ok(series)
    }
}

/// What a line of the browser says of this page: `light /map: 0 violations, first paint 108 ms`.
fn paint_of(line: &str, page: &str) -> Option<f64> {
    let (_, rest) = line.split_once(' ')?;
    let rest = rest.strip_prefix(page)?.strip_prefix(": ")?;
    rest.split_once("first paint ")?.1.strip_suffix(" ms")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paint_is_of_the_page_that_its_line_names() {
        let line = "dark /peers?page=90: 0 violations, first paint 131 ms";
        assert_eq!(paint_of(line, "/peers?page=90"), Some(131.0));
        assert_eq!([paint_of(line, "/peers"), paint_of("the script did not run", "/")], [None, None]);
    }
}
