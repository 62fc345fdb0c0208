//! The site keys in force (docs/protocol.md, section 3): which one a message goes out under, and
//! under which ones it is heard.
//!
//! A site key follows another while all hosts work, and some hear of it late or have a clock that
//! is wrong. So an answer goes out under the key of its question, and a question that nobody
//! answers is repeated under the other key.

use std::sync::Arc;
use std::time::Duration;

use bump::Instant;
use identity::site_key::SiteKey;
use identity::{Generation, HostIdentity, Succession};
use shield::kernel::HintKeys;
use wire::cll::SITE_TAG_LEN;

use super::core::Call;
use crate::message::OrderKind;
use crate::settings::Settings;

/// How often the wall clock is asked at least while a change is ahead: it may be set meanwhile.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// The keys that are accepted, the one to send with first.
#[derive(Debug)]
pub(super) struct SiteKeys {
    in_force: Vec<(Generation, SiteKey)>,
    look_at: Option<Instant>,
}

impl SiteKeys {
    pub(super) fn of(keys: &Succession<SiteKey>, unix_s: u64, now: Instant) -> SiteKeys {
        let in_force = keys.accepted(unix_s).map(|(term, key)| (term.generation, key.clone())).collect();
        let wait = |at: u64| Duration::from_secs(at - unix_s).min(LOOK_EVERY);
        SiteKeys { in_force, look_at: keys.changes_after(unix_s).map(|at| now + wait(at)) }
    }

    /// When the wall clock is to be asked next.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.look_at
    }

    fn generations(&self) -> impl Iterator<Item = Generation> {
        self.in_force.iter().map(|(generation, _)| *generation)
    }

    /// The key of this generation while it is in force; otherwise, or if none is wanted, the one to
    /// send with.
    pub(super) fn get(&self, wanted: Option<Generation>) -> Option<&SiteKey> {
        let of = |(generation, _): &&(Generation, SiteKey)| Some(*generation) == wanted;
        self.in_force.iter().find(of).or(self.in_force.first()).map(|(_, key)| key)
    }

    /// Which key comes next after one of this generation found no ear.
    pub(super) fn other_than(&self, used: Option<Generation>) -> Option<Generation> {
        let used = used.or(self.generations().next());
        self.generations().find(|generation| Some(*generation) != used).or(used)
    }

    /// Under which key `tag` is the tag of a frame. Its hint tells which one, so that no more than
    /// one HMAC is computed for it.
    pub(super) fn verify(&self, label: &[u8], parts: &[&[u8]], tag: &[u8; SITE_TAG_LEN]) -> Option<Generation> {
        let fits = |(_, key): &&(Generation, SiteKey)| key.verify_frame(label, parts, tag);
        self.in_force.iter().find(fits).map(|(generation, _)| *generation)
    }

    fn hint_keys(&self) -> HintKeys {
        self.in_force.iter().map(|(_, key)| key.hint_key()).collect()
    }
}

impl Call<'_> {
    /// Goes by the keys that this identity has, as of now.
    pub(super) fn settle_site_keys(&mut self) {
        let (unix_s, now) = (self.certificate_time().unix_s(), self.now.since_boot);
        let before = self.core.site_keys.hint_keys();
        self.core.site_keys = SiteKeys::of(self.core.settings.identity.site_keys(), unix_s, now);
        let hint_keys = self.core.site_keys.hint_keys();
        if hint_keys != before {
            self.order_all(|| OrderKind::SiteKeys(hint_keys.clone()));
        }
    }

    /// Looks whether other keys are in force than a moment ago.
    pub(super) fn follow_site_keys(&mut self) {
        if self.core.site_keys.look_at.is_some_and(|at| at <= self.now.since_boot) {
            self.settle_site_keys();
        }
    }

    /// This host shows this identity from now on, and goes by its site keys.
    pub(super) fn settle_identity(&mut self, identity: Arc<HostIdentity>) {
        self.settle(Settings { identity, ..Settings::clone(&self.core.settings) });
        self.settle_site_keys();
    }
}
