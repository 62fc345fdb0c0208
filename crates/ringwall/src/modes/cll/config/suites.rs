//! The keys of section `[cll]` for algorithms: what this host sends with, and what it accepts.

use std::path::Path;

use cll::Requirement;
use identity::aead::Suite;

use super::Cll;
use super::names::{SendSuite, SuiteName};
use crate::config::Profile;
use crate::failure::Failure;

impl Cll {
    /// That all suites are of the host's profile, and that there are some.
    pub(super) fn check_suites(&self, profile: Profile, file: &Path) -> Result<(), Failure> {
        if let SendSuite::Named(name) = self.send_suite {
            check_profile(file, "cll.send_suite", name, profile)?;
        }
        if self.accepts_the_papers(profile) {
            return Ok(());
        }
        self.require_suites.iter().try_for_each(|name| check_profile(file, "cll.require_suites", *name, profile))?;
        if self.require_suites.is_empty() {
            let remedy = "list at least one suite, or remove the key";
            return Err(Failure::file(file, "cll.require_suites is empty", remedy));
        }
        Ok(())
    }

    /// Whether the paper profile's own suites stand for those that nobody has named.
    fn accepts_the_papers(&self, profile: Profile) -> bool {
        profile == Profile::Paper && self.require_suites == SuiteName::all()
    }

    /// What others' frames must have.
    pub(crate) fn requirement(&self, profile: Profile) -> Requirement {
        let suites = match self.accepts_the_papers(profile) {
            true => Suite::of_profile(identity::Profile::Paper),
            false => self.require_suites.iter().map(|name| name.0).collect(),
        };
        Requirement { suites, confidential: self.require_confidentiality }
    }

    /// What this host sends with.
    pub(crate) fn send_suite(&self, profile: Profile) -> Suite {
        if let SendSuite::Named(SuiteName(suite)) = self.send_suite {
            return suite;
        }
        let paper = Suite::of_profile(identity::Profile::Paper).first().copied();
        let fastest = paper.filter(|_| profile == Profile::Paper).unwrap_or_else(Suite::fastest_here);
        self.requirement(profile).choose(fastest)
    }
}

fn check_profile(file: &Path, key: &str, SuiteName(suite): SuiteName, profile: Profile) -> Result<(), Failure> {
    if suite.profile() == profile.of_keys() {
        return Ok(());
    }
    let name = suite.name();
    let what = format!("{key}: \"{name}\" is of the {} profile, and host.profile is another", suite.profile());
    let known = Suite::of_profile(profile.of_keys());
    let first = known.first().map_or("none", |suite| suite.name());
    Err(Failure::file(file, what, &format!("use a suite of the host's profile, such as {first}")))
}
