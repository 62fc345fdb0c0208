//! The suite without a tag, to measure what nonces alone are worth: only where the file says in
//! every key that goes with it that this is what is wanted, so that no host comes to it by
//! negotiation or by mistake.

use std::path::Path;

use super::Cll;
use super::names::{NO_TAG, NONCE_ONLY, SendSuite, SuiteName, USE_ANOTHER};
use crate::config::Profile;
use crate::failure::Failure;

/// What an operator reads of it wherever it is in force.
const WARNING: &str = "cll.send_suite = \"nonce-only\": frames are neither authenticated nor encrypted: who sees one on its way can \
    change it: for measurements, NOT for real use";

fn is_it(name: &SuiteName) -> bool {
    name.0.name() == NONCE_ONLY
}

impl Cll {
    fn wants_nonce_only(&self) -> bool {
        matches!(&self.send_suite, SendSuite::Named(name) if is_it(name))
    }

    /// That frames without a tag are said to be wanted wherever something is said about frames, or
    /// nowhere.
    pub(super) fn check_nonce_only(&self, profile: Profile, file: &Path) -> Result<(), Failure> {
        if !self.wants_nonce_only() && !self.require_suites.iter().any(is_it) {
            return Ok(());
        }
        let refuse = |what: &str, remedy: &str| Err(Failure::file(file, what.to_owned(), remedy));
        if profile != Profile::Paper {
            return refuse(NO_TAG, USE_ANOTHER);
        }
        if !self.wants_nonce_only() || !matches!(&self.require_suites[..], [only] if is_it(only)) {
            let what = "cll: suite \"nonce-only\" beside others would let frames that prove nothing pass for others";
            return refuse(
                what,
                "set both send_suite = \"nonce-only\" and require_suites = [\"nonce-only\"], or neither",
            );
        }
        if self.confidentiality || self.require_confidentiality {
            let what = "cll: suite \"nonce-only\" encrypts nothing";
            return refuse(what, "set confidentiality = false, and require_confidentiality not at all");
        }
        Ok(())
    }

    /// One line while it is in force.
    pub(crate) fn nonce_only_warning(&self) -> Option<String> {
        self.wants_nonce_only().then(|| WARNING.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use identity::profile::HAS_PAPER;

    use super::*;
    use crate::modes::file::tests;

    fn text(profile: &str, cll: &str) -> String {
        format!("[host]\ninterface = \"eth0\"\nprofile = \"{profile}\"\n[cll]\n{cll}\n")
    }

    const WHOLE: &str = "send_suite = \"nonce-only\"\nrequire_suites = [\"nonce-only\"]\nconfidentiality = false";

    #[test]
    fn it_is_in_force_where_every_key_says_so_and_is_called_what_it_is() {
        let whole = tests::load(&text("paper", WHOLE));
        if !HAS_PAPER {
            assert!(whole.expect_err("no such profile").contains("not in this build"));
            return;
        }
        assert!(whole.expect("valid").warnings().contains(&WARNING.to_owned()));
        assert!(tests::load(&text("paper", "")).expect("valid").cll.nonce_only_warning().is_none());
    }

    #[test]
    fn whatever_does_not_go_with_it_is_refused() {
        let cases = [
            ("modern", WHOLE, "needs profile = \"paper\""),
            ("lab", WHOLE, "needs profile = \"paper\""),
            ("modern", "require_suites = [\"aes-256-gcm\", \"nonce-only\"]", "needs profile = \"paper\""),
            ("paper", "send_suite = \"nonce-only\"\nconfidentiality = false", "or neither"),
            ("paper", "require_suites = [\"nonce-only\"]\nconfidentiality = false", "or neither"),
            (
                "paper",
                "send_suite = \"nonce-only\"\nrequire_suites = [\"nonce-only\", \"aes-128-hmac-md5\"]",
                "or neither",
            ),
            ("paper", "send_suite = \"nonce-only\"\nrequire_suites = [\"nonce-only\"]", "encrypts nothing"),
        ];
        for (profile, cll, word) in cases {
            let text = text(profile, cll);
            let word = tests::mistake_of(&text, word);
            let line = tests::load(&text).expect_err("a mistake");
            assert!(line.contains("host.toml:") && line.contains(word) && !line.contains('\n'), "{line}");
        }
    }
}
