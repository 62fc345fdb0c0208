//! Section `[lab]`: what a laboratory switches off or sets wrong.

use std::path::Path;

use serde::{Deserialize, Serialize};
use system::clock::Clock;

use super::{Host, Profile};
use crate::failure::Failure;

/// Section `[lab]`, refused outside `profile = "lab"`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Lab {
    pub(crate) weaken: Vec<Switch>,
    pub(crate) lifetime_min_s: Option<u64>,
    pub(crate) rekey_after_frames: Option<u32>,
    pub(crate) rekey_every_s: Option<u64>,
    /// By how much the wall clock that the daemon sees is wrong.
    pub(crate) clock_offset_s: i32,
}

/// A layer of checks, which can be switched off. What it stands for is the mode's to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Switch {
    ReplayWindow,
    CrossLayer,
    Promotion,
    Freshness,
    SiteMac,
    ReplyCheck,
    Budgets,
    Tag,
}

impl Switch {
    /// The word in the configuration and in `status`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Switch::ReplayWindow => "replay-window",
            Switch::CrossLayer => "cross-layer",
            Switch::Promotion => "promotion",
            Switch::Freshness => "freshness",
            Switch::SiteMac => "site-mac",
            Switch::ReplyCheck => "reply-check",
            Switch::Budgets => "budgets",
            Switch::Tag => "tag",
        }
    }
}

impl Lab {
    /// That it is where it belongs.
    pub(crate) fn check(lab: Option<&Lab>, host: &Host, file: &Path) -> Result<(), Failure> {
        if lab.is_some() && host.profile != Profile::Lab {
            let what = "[lab] needs profile = \"lab\"";
            return Err(Failure::file(file, what, "remove the section: it is not for real use"));
        }
        Ok(())
    }

    /// The clock that the daemon goes by.
    pub(crate) fn clock(lab: Option<&Lab>) -> Clock {
        lab.map_or_else(Clock::new, |lab| Clock::wrong_by(lab.clock_offset_s))
    }

    /// What it has switched off or set wrong, in words.
    pub(crate) fn weakened(&self) -> impl Iterator<Item = String> + '_ {
        let offset_s = self.clock_offset_s;
        let clock = (offset_s != 0).then(|| format!("right time (clock_offset_s = {offset_s})"));
        self.weaken.iter().map(|layer| layer.word().to_owned()).chain(clock)
    }
}
