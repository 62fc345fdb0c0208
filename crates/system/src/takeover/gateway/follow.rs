//! What happens to the cards after they were taken.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;

use super::{Gateway, GatewayCard, Role};
use crate::takeover::Change;
use crate::takeover::follow::{Step, Watch, card_changes};

/// Follows the cards of a gateway. Lost notifications are made good by reading the card again.
pub struct GatewayFollower {
    watches: Vec<(Role, Watch)>,
    pending: VecDeque<(Role, Change)>,
}

impl GatewayFollower {
    /// Begins to follow. What changed since the cards were taken is reported first.
    ///
    /// # Errors
    /// Fails if the kernel gives no routing sockets.
    pub fn open(gateway: &Gateway) -> io::Result<GatewayFollower> {
        let mut follower = GatewayFollower { watches: Vec::new(), pending: VecDeque::new() };
        for card in &gateway.cards {
            let mut watch = gateway.inside(|| Watch::open(card.index))??;
            let mut changes = VecDeque::new();
            for step in watch.resynchronise()? {
                card_changes(&step, &mut changes);
            }
            changes.retain(|change| !is_known(card, *change));
            follower.pending.extend(changes.into_iter().map(|change| (card.role, change)));
            follower.watches.push((card.role, watch));
        }
        Ok(follower)
    }

    /// What to wait on: readable when [`next_change`](Self::next_change) may have something.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.watches.iter().map(|(_, watch)| watch.descriptor())
    }

    /// The next change of a card; none if nothing is left to report. Never blocks.
    ///
    /// # Errors
    /// Fails if a routing socket fails.
    pub fn next_change(&mut self) -> io::Result<Option<(Role, Change)>> {
        if self.pending.is_empty() {
            let mut observed = Vec::new();
            for (role, watch) in &mut self.watches {
                observed.push((*role, watch.observe()?));
            }
            for (role, steps) in observed {
                self.enter(role, steps);
            }
        }
        Ok(self.pending.pop_front())
    }

    /// Reads the cards, of which [`next_change`](Self::next_change) has left nothing to report. Linux
    /// tells of a carrier that is lost no sooner than a second after it told of another one,
    /// whichever card of the machine that was (`net/core/link_watch.c`); who reads a card has its
    /// carrier as it is.
    ///
    /// # Errors
    /// Fails if a routing socket fails.
    pub fn look(&mut self) -> io::Result<()> {
        let mut observed = Vec::new();
        for (role, watch) in &mut self.watches {
            observed.push((*role, watch.resynchronise()?));
        }
        observed.into_iter().for_each(|(role, steps)| self.enter(role, steps));
        Ok(())
    }

    fn enter(&mut self, role: Role, steps: Vec<Step>) {
        let mut changes = VecDeque::new();
        for step in &steps {
            card_changes(step, &mut changes);
        }
        self.pending.extend(changes.into_iter().map(|change| (role, change)));
    }
}

/// Whether `change` says nothing that was not so when the card was taken.
fn is_known(card: &GatewayCard, change: Change) -> bool {
    match change {
        Change::Carrier(carrier) => carrier == card.carrier,
        Change::Mtu(mtu) => mtu == card.mtu,
        Change::Mac(mac) => mac == card.mac,
        Change::NicUp(up) => up,
        _ => false,
    }
}
