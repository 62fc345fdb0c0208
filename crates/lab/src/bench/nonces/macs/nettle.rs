//! The algorithms of nettle, in a program that is built from the source beside this crate when it is wanted: with the processor's
//! own instructions for AES, SHA and multiplication without carry, and without.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Cost;
use crate::cleanup::Run;
use crate::failure::Failure;
use crate::net::process;

const SOURCE: &str = include_str!("../../../../programs/macs.c");
/// Where Debian's nettle-dev has its headers.
const HEADER: &str = "/usr/include/nettle/umac.h";
/// The variable by which nettle is told what processor it runs on, and one that has no such instructions.
const OVERRIDE: (&str, &str) = ("NETTLE_FAT_OVERRIDE", "vendor:intel");
/// Its MD5 has one form, in the instructions that every x86-64 processor has.
const ONE_FORM: &str = "hmac-md5";

/// Which instructions it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Build {
    Optimised,
    Plain,
}

/// The program, built.
#[derive(Debug)]
pub struct Nettle {
    program: PathBuf,
}

impl Nettle {
    /// Builds it below the directory of `run`; `None`, said aloud, where compiler or library is missing.
    ///
    /// # Errors
    /// The compiler fails.
    pub fn build(run: &Run) -> Result<Option<Nettle>, Failure> {
        if !process::installed("cc") || !Path::new(HEADER).is_file() {
            eprintln!("ringwall-lab: no rows for nettle: needs cc and nettle-dev");
            return Ok(None);
        }
        let (source, program) = (run.directory().join("macs.c"), run.directory().join("macs"));
        std::fs::write(&source, SOURCE).map_err(Failure::file("writing", &source))?;
        let mut compile = Command::new("cc");
        compile.args(["-O2", "-o"]).arg(&program).arg(&source).arg("-lnettle");
        process::must(compile)?;
        Ok(Some(Nettle { program }))
    }

    /// Nanoseconds for a message, for each algorithm, build and size.
    ///
    /// # Errors
    /// An algorithm is not what its RFC says.
    pub fn measure(&self, sizes: &[usize]) -> Result<Vec<Cost>, Failure> {
        let mut costs = self.run(sizes, Build::Optimised)?;
        costs.extend(self.run(sizes, Build::Plain)?);
        Ok(costs)
    }

    fn run(&self, sizes: &[usize], build: Build) -> Result<Vec<Cost>, Failure> {
        let mut command = Command::new(&self.program);
        command.args(sizes.iter().map(usize::to_string));
        if build == Build::Plain {
            command.env(OVERRIDE.0, OVERRIDE.1);
        }
        let text = process::must(command)?;
        let costs = text.lines().map(|line| parse(line, build));
        let costs: Option<Vec<Option<Cost>>> = costs.collect();
        Ok(costs.ok_or(Failure::Unreadable(text))?.into_iter().flatten().collect())
    }
}

/// Reads a line "NAME SIZE NANOSECONDS"; `Some(None)` is a line that says nothing new.
fn parse(line: &str, build: Build) -> Option<Option<Cost>> {
    let mut words = line.split(' ');
    let (name, size, ns) = (words.next()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let form = match build {
        Build::Optimised => "optimised",
        Build::Plain if name == ONE_FORM => return Some(None),
        Build::Plain => "plain",
    };
    Some(Some(Cost { line: format!("{name}/{form}"), size, ns }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_with_their_build() {
        let read = |line, build| parse(line, build).map(|cost| cost.map(|cost| (cost.line, cost.size, cost.ns)));
        let optimised = Some(Some(("umac-64/optimised".to_owned(), 44, 49.432)));
        assert_eq!(read("umac-64 44 49.432", Build::Optimised), optimised);
        assert_eq!(read("hmac-md5 44 289.018", Build::Plain), Some(None));
        assert_eq!(read("umac-64 44", Build::Plain), None);
    }
}
