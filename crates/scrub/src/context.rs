//! What a stage is given beside the packet, and how it says that a rule applied.

use bump::{DropReason, Instant, Side};

use crate::rule::{Action, Counters, Rule};
use crate::settings::Settings;

/// One packet's way through the stages.
pub(crate) struct Context<'a> {
    pub(crate) now: Instant,
    /// Where the packet came from.
    pub(crate) from: Side,
    pub(crate) settings: &'a Settings,
    counters: &'a mut Counters,
    /// The rule that applied and whose action is to end the flow.
    severed_by: Option<Rule>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(now: Instant, from: Side, settings: &'a Settings, counters: &'a mut Counters) -> Context<'a> {
        Context { now, from, settings, counters, severed_by: None }
    }

    /// Whether `rule` is switched on.
    pub(crate) fn on(&self, rule: Rule) -> bool {
        self.settings.rules.action(rule) != Action::Off
    }

    /// Whether the sender's half of a connection is scrubbed for content (the paper's section III-B).
    pub(crate) fn scrubs(&self) -> bool {
        self.from == Side::UNTRUSTED || self.settings.both_directions
    }

    /// Says that `rule`, which is on, changed the packet.
    pub(crate) fn acted(&mut self, rule: Rule) {
        self.counters.count(rule);
        if self.settings.rules.action(rule) == Action::Sever {
            self.severed_by.get_or_insert(rule);
        }
    }

    /// Says that `rule`, which is on, refuses the packet for `reason`.
    pub(crate) fn refused(&mut self, rule: Rule, reason: DropReason) -> DropReason {
        self.acted(rule);
        reason
    }

    /// Refuses the packet if `rule` is on and `wrong`.
    pub(crate) fn refuse_if(&mut self, wrong: bool, rule: Rule, reason: DropReason) -> Result<(), DropReason> {
        if wrong && self.on(rule) { Err(self.refused(rule, reason)) } else { Ok(()) }
    }

    /// Whether `rule` is on and `applies`; if so it is counted.
    pub(crate) fn acts_if(&mut self, applies: bool, rule: Rule) -> bool {
        let acts = applies && self.on(rule);
        if acts {
            self.acted(rule);
        }
        acts
    }

    /// Ends the packet's flow by `rule`, whatever its action is; the reason for which the packet is dropped.
    pub(crate) fn severed(&mut self, rule: Rule) -> DropReason {
        self.counters.count(rule);
        self.severed_by.get_or_insert(rule);
        DropReason::FlowSevered
    }

    /// The rule for which the packet's flow must end.
    pub(crate) fn severed_by(&self) -> Option<Rule> {
        self.severed_by
    }
}
