//! What a host's daemon says of itself in every mode, with the parts that its mode brings.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::config::Profile;
use crate::metrics::books::{Books, SideOf, carrier};
use crate::metrics::family::Families;
use crate::modes::name::Mode;
use crate::modes::part::{Account, Part, count_lines};
use crate::modes::parts::Parts;
use crate::protocol::attacks::Attacks;
use crate::verdict::{Findings, Level, Verdict};

/// The name, among what was found out about the kernel, of whether frames are moved before other
/// programs run.
pub(crate) const REAL_TIME: &str = "real-time priority";
/// Days before its end at which a certificate is pressing.
const PRESSING_DAYS: i64 = 1;

/// How the daemon of a host is.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Status {
    pub(crate) version: String,
    pub(crate) state: String,
    pub(crate) interface: String,
    pub(crate) mode: Mode,
    pub(crate) profile: Profile,
    /// Layers that a laboratory switched off.
    pub(crate) weakened: Vec<String>,
    pub(crate) uptime_s: u64,
    pub(crate) takeover: Takeover,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) identity: Option<Identity>,
    /// How many hosts have proved themselves and are in use.
    pub(crate) peers: usize,
    /// What the mode says of itself.
    #[serde(flatten)]
    pub(crate) parts: Parts,
    /// Certificates that end soon.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<String>,
    pub(crate) frames: Frames,
    pub(crate) drops: BTreeMap<String, u64>,
    pub(crate) ports: BTreeMap<String, u64>,
    pub(crate) clock: String,
    pub(crate) not_carried: Vec<String>,
    #[serde(default)]
    pub(crate) not_protected: Vec<String>,
    #[serde(flatten)]
    pub(crate) attacks: Attacks,
}

/// How the interface is held.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Takeover {
    pub(crate) way: String,
    pub(crate) adopted: bool,
    pub(crate) on_exit: String,
    pub(crate) carrier: bool,
    pub(crate) wire_mtu: u32,
    pub(crate) inner_mtu: u32,
    /// Seconds until the interface is given back unless `host confirm` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reverts_in_s: Option<u64>,
    pub(crate) probes: BTreeMap<String, String>,
    pub(crate) warnings: Vec<String>,
}

/// Who this host is.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Identity {
    pub(crate) name: String,
    pub(crate) site: String,
    pub(crate) mac: String,
    pub(crate) addresses: Vec<String>,
    pub(crate) router: bool,
    pub(crate) certificate_days_left: i64,
    /// Until the certificate of the site's authority ends.
    #[serde(default)]
    pub(crate) authority_days_left: i64,
    /// When both end, in seconds since 1970.
    #[serde(default)]
    pub(crate) certificate_not_after_unix: u64,
    #[serde(default)]
    pub(crate) authority_not_after_unix: u64,
    /// The generation of the keys that this host shares with others.
    #[serde(default)]
    pub(crate) shared_keys: u32,
}

/// The books. Every frame received has one fate.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Frames {
    pub(crate) received_from_stack: u64,
    pub(crate) received_from_wire: u64,
    pub(crate) forwarded_to_wire: u64,
    pub(crate) forwarded_to_stack: u64,
    pub(crate) answered: u64,
    pub(crate) consumed: u64,
    pub(crate) held: u64,
    pub(crate) dropped: u64,
    pub(crate) made_for_wire: u64,
    pub(crate) made_for_stack: u64,
    /// Frames written towards the wire; more than forwarded where large ones were cut.
    pub(crate) emitted_to_wire: u64,
    /// Frames written towards the stack.
    pub(crate) emitted_to_stack: u64,
}

/// When a certificate ends, and whose it is.
#[derive(Clone, Debug)]
pub(crate) struct Certificate {
    pub(crate) of: String,
    pub(crate) not_after_unix: u64,
}

impl Status {
    /// Of this host, its authority, and the distributors of its keys.
    pub(crate) fn certificates(&self) -> Vec<Certificate> {
        let mut all = Vec::new();
        if let Some(own) = &self.identity {
            let (of, authority) = (format!("{} (this host)", own.name), format!("authority of {}", own.site));
            all.push(Certificate { of, not_after_unix: own.certificate_not_after_unix });
            all.push(Certificate { of: authority, not_after_unix: own.authority_not_after_unix });
        }
        for one in self.parts.sarp.iter().flat_map(|sarp| &sarp.distributors) {
            let of = format!("{} (distributor)", one.name);
            all.push(Certificate { of, not_after_unix: one.certificate_not_after_unix });
        }
        all
    }

    /// Whether it has a layer less than a host of its mode should have.
    fn is_weak(&self) -> bool {
        !self.weakened.is_empty() || !self.mode.protects() || self.profile == Profile::Paper
    }

    /// Layers that are switched off; a mode, a profile or a part without protection are one
    /// together.
    fn weakened_layers(&self) -> u64 {
        let is_open = !self.mode.protects() || self.profile == Profile::Paper;
        let weakens = is_open || self.parts.in_order().any(Part::weakens);
        self.weakened.len() as u64 + u64::from(weakens)
    }

    fn head_lines(&self) -> Vec<String> {
        let Status { interface, state, uptime_s, version, .. } = self;
        let mode = self.mode.word();
        let mut lines = vec![format!("{interface} {state}: mode {mode}, up {uptime_s} s, ringwall {version}")];
        if !self.weakened.is_empty() || !self.mode.protects() {
            let (profile, weakened) = (self.profile.word(), self.weakened.join(", "));
            lines.push(format!("NOT PROTECTED: profile {profile}, switched off: {weakened}"));
        }
        if self.profile == Profile::Paper {
            lines.push(format!("NOT PROTECTED: {}", self.mode.paper_warning()));
        }
        lines
    }

    fn tail_lines(&self) -> Vec<String> {
        let mut lines = self.frames.lines().to_vec();
        lines.extend(count_lines(&self.drops));
        let lists = [("not carried in this version", &self.not_carried), ("not protected", &self.not_protected)];
        let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
        lines.extend(lists.map(|(title, list)| format!("{title}: {}", list.join("; "))));
        lines
    }
}

impl Takeover {
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "taken over by {} ({}), carrier {}, MTU {} of {}, on exit {}",
            self.way,
            if self.adopted { "adopted" } else { "new" },
            if self.carrier { "on" } else { "off" },
            self.inner_mtu,
            self.wire_mtu,
            self.on_exit
        )];
        let revert = |seconds: u64| format!("GIVEN BACK in {seconds} s unless you run `ringwall host confirm`");
        lines.extend(self.reverts_in_s.map(revert));
        lines
    }

    fn judge(&self, found: &mut Findings) {
        if let Some(seconds) = self.reverts_in_s {
            let what = format!("on trial, given back in {seconds} s");
            found.enter(true, Level::Warning, &what, "keep it with `ringwall host confirm`");
        }
        found.enter(!self.carrier, Level::Warning, "the card has no carrier", "look at cable and switch");
    }
}

impl Identity {
    fn lines(&self, clock: &str) -> [String; 2] {
        let Identity { name, site, mac, certificate_days_left: days, .. } = self;
        [
            format!("this host: {name} of site {site} ({mac}, {})", self.addresses.join(", ")),
            format!("certificate: {days} days left; clock: {clock}"),
        ]
    }

    fn judge(&self, found: &mut Findings) {
        let days = self.certificate_days_left.min(self.authority_days_left);
        let what = format!("a certificate ends in {days} days");
        found.enter(days < PRESSING_DAYS, Level::Critical, &what, "renew it: `ringwall host renew`");
    }

    fn measure(&self, families: &mut Families) {
        let help = "When this host's certificate ends, in seconds since 1970.";
        let ends = self.certificate_not_after_unix;
        families.gauge("ringwall_certificate_not_after_timestamp_seconds", help, &[], ends);
        let help = "When the certificate of the site's authority ends, in seconds since 1970.";
        let ends = self.authority_not_after_unix;
        families.gauge("ringwall_authority_not_after_timestamp_seconds", help, &[], ends);
    }
}

impl Frames {
    fn lines(&self) -> [String; 2] {
        [
            format!(
                "to the wire: {} received, {} forwarded in {} frames; to the stack: {} received, {} forwarded",
                self.received_from_stack,
                self.forwarded_to_wire,
                self.emitted_to_wire,
                self.received_from_wire,
                self.forwarded_to_stack
            ),
            format!(
                "answered {}, consumed {}, held {}, dropped {}",
                self.answered, self.consumed, self.held, self.dropped
            ),
        ]
    }

    fn measure(&self, families: &mut Families, drops: &BTreeMap<String, u64>) {
        let stack = SideOf {
            name: "stack",
            received: self.received_from_stack,
            forwarded: self.forwarded_to_stack,
            made: self.made_for_stack,
        };
        let wire = SideOf {
            name: "wire",
            received: self.received_from_wire,
            forwarded: self.forwarded_to_wire,
            made: self.made_for_wire,
        };
        let (answered, consumed, held) = (self.answered, self.consumed, self.held);
        Books { sides: [stack, wire], answered, consumed, held, drops }.measure(families);
        let (emitted, help) = ("ringwall_emitted_frames", "Frames that were written, by the side that they went to.");
        families.count(emitted, help, &[("side", "stack")], self.emitted_to_stack);
        families.count(emitted, help, &[("side", "wire")], self.emitted_to_wire);
    }
}

impl Account for Status {
    fn interface(&self) -> &str {
        &self.interface
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn mode(&self) -> &'static str {
        self.mode.word()
    }

    fn attacks(&self) -> &Attacks {
        &self.attacks
    }

    fn ports(&self) -> &BTreeMap<String, u64> {
        &self.ports
    }

    fn lines(&self) -> Vec<String> {
        let (first, rest): (Vec<_>, Vec<_>) = self.parts.in_order().partition(|part| part.comes_first());
        let mut lines = self.head_lines();
        lines.extend(first.into_iter().flat_map(Part::lines));
        lines.extend(self.identity.iter().flat_map(|identity| identity.lines(&self.clock)));
        lines.extend(self.takeover.lines());
        let warnings = self.takeover.warnings.iter().chain(&self.warnings);
        lines.extend(warnings.map(|warning| format!("warning: {warning}")));
        lines.push(format!("peers: {}", self.peers));
        lines.extend(self.takeover.probes.get(REAL_TIME).map(|outcome| format!("{REAL_TIME}: {outcome}")));
        lines.extend(rest.into_iter().flat_map(Part::lines));
        lines.extend(self.tail_lines());
        lines
    }

    fn verdict(&self) -> Verdict {
        let mut found = Findings::default();
        let what = "NOT PROTECTED: layers are switched off";
        found.enter(self.is_weak(), Level::Critical, what, "remove [lab] and host.profile");
        self.identity.iter().for_each(|identity| identity.judge(&mut found));
        self.parts.in_order().for_each(|part| part.judge(&mut found));
        found.attacked(&self.attacks);
        self.takeover.judge(&mut found);
        for warning in self.takeover.warnings.iter().chain(&self.warnings) {
            found.enter(true, Level::Warning, warning, "see docs/manual/troubleshooting.md");
        }
        found.untold(&self.attacks);
        found.verdict()
    }

    fn measure(&self, families: &mut Families) {
        self.frames.measure(families, &self.drops);
        carrier(families, "wire", self.takeover.carrier);
        families.gauge("ringwall_peers", "Associations in use.", &[], self.peers as u64);
        let help = "Layers switched off by a laboratory; mode null, the paper profile and mode observe are one each.";
        families.gauge("ringwall_weakened_layers", help, &[], self.weakened_layers());
        self.identity.iter().for_each(|identity| identity.measure(families));
        self.parts.in_order().for_each(|part| part.measure(families));
    }

    fn json(&self) -> serde_json::Result<serde_json::Value> {
        serde_json::to_value(self)
    }
}
