//! What the run loop needs of a bump beside the contract: its orders, and answers for an operator.

use bump::{Bump, Instant, Ledger, Now, Sink};

use crate::protocol::About;

/// News of a bump in an operator's words.
#[derive(Clone, Debug)]
pub(crate) struct Described {
    pub(crate) word: &'static str,
    pub(crate) text: String,
    pub(crate) about: About,
}

/// A kind of daemon: what its supervisor and its bump have to say to each other.
pub(crate) trait Kind: 'static {
    /// What the supervisor has the bump do.
    type Order: Send + 'static;
    /// What the bump knows of others.
    type Report: Send + 'static;
    /// What the bump wants of the machine.
    type Effect: Send + 'static;
}

/// A bump that a daemon of this kind can drive.
pub(crate) trait Guard<K: Kind>: Bump<Effect = K::Effect> {
    /// An event in words.
    fn describe(event: &Self::Event) -> Described;

    /// The wire carries packets of another size from now on, in bytes.
    fn set_wire_mtu(&mut self, _wire_mtu: u16) {}

    /// Carries out an order.
    fn obey(&mut self, now: Now, order: K::Order, sink: &mut dyn Sink);

    /// Whom it knows.
    fn report(&self, now: Instant) -> K::Report;

    /// The books.
    fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::new();
        self.add_to_ledger(&mut ledger);
        ledger
    }
}
