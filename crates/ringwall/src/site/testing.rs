//! A site in a directory of its own, for the tests of its commands.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

use std::path::Path;
use std::{fs, io};

use authority::Directory;
use clap::Parser;
use identity::HostIdentity;

use super::{EnrollCommand, SiteCommand, Surroundings};

/// 2027-01-15T08:00:00Z.
pub(super) const NOW_UNIX_S: u64 = 1_800_000_000;

#[derive(Parser)]
enum Line {
    #[command(subcommand)]
    Site(SiteCommand),
    #[command(subcommand)]
    Enroll(EnrollCommand),
}

/// Runs one line in a directory of its own; `@` stands for that directory.
pub(super) fn run(place: &Path, line: &str) -> Result<String, String> {
    run_before(None, place, line)
}

/// The same with somebody at the terminal.
pub(super) fn run_before(
    person: Option<fn(&str) -> io::Result<bool>>,
    place: &Path,
    line: &str,
) -> Result<String, String> {
    let line = line.replace('@', &place.display().to_string());
    let parsed = Line::try_parse_from(std::iter::once("ringwall").chain(line.split(' ')));
    let mut generator = bump::Generator::from_seed(identity::hash::sha256(&[line.as_bytes()]));
    let mut random = |bytes: &mut [u8]| bytes.fill_with(|| generator.bytes::<1>()[0]);
    let mut output = Vec::new();
    let actor = super::Actor::new(super::auditing::manager());
    let (random, output_to) = (&mut random, &mut output);
    let mut surroundings = Surroundings { unix_s: NOW_UNIX_S, random, output: output_to, actor, person };
    match parsed.map_err(|error| error.to_string())? {
        Line::Site(command) => command.run_in(&mut surroundings),
        Line::Enroll(command) => command.run_in(&mut surroundings),
    }
    .map_err(|failure| failure.to_string())?;
    Ok(String::from_utf8(output).expect("text").replace(&place.display().to_string(), "@"))
}

pub(super) fn new_site() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("directory");
    let printed = run(place.path(), "site init --dir @/site --name lab").expect("site");
    assert!(printed.starts_with("site lab is in @/site until 2037-01-12T08:00:00Z;"), "{printed}");
    place
}

pub(super) fn load(file: &Path) -> HostIdentity {
    HostIdentity::from_pem(&fs::read_to_string(file).expect("there")).expect("identity")
}

/// One block, which is none of those that an identity is made of.
pub(super) fn assert_sealed(file: &Path) {
    let text = fs::read_to_string(file).expect("there");
    let blocks = identity::pem::blocks(&text).expect("a file");
    let labels: Vec<_> = blocks.iter().map(|block| block.label.as_str()).collect();
    assert_eq!(labels, ["RINGWALL SEALED BUNDLE"]);
}

/// The policy of the site, as its hosts would verify it.
pub(super) fn policy(place: &Path) -> identity::Verified<identity::policy::SitePolicy> {
    let text = fs::read_to_string(place.join("site/policy.pem")).expect("there");
    let bytes = identity::pem::single(&text, identity::pem::SITE_POLICY).expect("one block");
    let site = Directory::open(&place.join("site")).expect("opened");
    site.site().anchor().verify_policy(&bytes).expect("signed by the authority")
}

pub(super) fn order(place: &Path, what: &str) -> Result<String, String> {
    run(
        place,
        &what
            .replacen("policy", "site policy", 1)
            .replace(" show", " show --dir @/site")
            .replace("--ip", "--dir @/site --ip"),
    )
}
