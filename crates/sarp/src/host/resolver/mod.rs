//! Who has which hardware address: what our stack has asked (`asking.rs`), what others say (`judging.rs`), and the
//! keys to judge that by.

mod asking;
mod judging;

use std::net::Ipv4Addr;

use bump::{DropReason, Fate, Instant, Side, Torn};
use identity::Verified;
use identity::distributor::Statement;
use shield::{Bucket, PerSource};
use wire::arp::Arp;

use crate::event::Event;
use crate::host::akds::{Akds, ClockStep};
use crate::host::core::Call;
use crate::limits;
use crate::pending::Pending;
use crate::questions::Questions;
use crate::ring::KeyReport;
use crate::ring::{Learnt, Ring};

pub(super) use judging::{Heard, Judged};

/// Questions of our stack, keys of others, and replies that wait for a key.
#[derive(Debug)]
pub(super) struct Resolver {
    questions: Questions,
    ring: Ring,
    pending: Pending,
    check_budget: Bucket,
    unasked_budget: Bucket,
    unasked_budget_per_sender: PerSource<Ipv4Addr>,
    fetch_ahead_budget: Bucket,
}

impl Resolver {
    pub(super) fn new() -> Resolver {
        let bucket = |per_second| Bucket::new(per_second, per_second);
        Resolver {
            questions: Questions::default(),
            ring: Ring::default(),
            pending: Pending::default(),
            check_budget: bucket(limits::CHECKS_PER_SECOND),
            unasked_budget: bucket(limits::UNASKED_CHECKS_PER_SECOND),
            unasked_budget_per_sender: PerSource::new(
                limits::UNASKED_CHECKS_PER_SENDER_PER_SECOND,
                limits::SOURCES_MAX,
            ),
            fetch_ahead_budget: bucket(limits::KEYS_AHEAD_PER_SECOND),
        }
    }

    /// Keys in the ring.
    pub(super) fn keys(&self) -> usize {
        self.ring.len()
    }

    /// The keys in the order of their addresses.
    pub(super) fn report(&self, now: Instant) -> Vec<KeyReport> {
        self.ring.report(now)
    }

    /// Whether the sender has proved that its addresses belong together, or an operator said so.
    pub(super) fn is_proved(&self, call: &Call<'_>, arp: &Arp) -> bool {
        let is_known = || call.core.settings.known(arp.sender_ip).is_some_and(|known| known.mac == arp.sender_mac);
        self.ring.has_proved(arp.sender_ip, arp.sender_mac) || is_known()
    }

    /// What was taken note of a sender may not be all of it: its key is asked for anew.
    pub(super) fn mend(&mut self, torn: Torn) {
        self.ring.forget_torn(torn);
    }

    /// The S-ARP clock was set, or has moved.
    pub(super) fn clock_moved(&mut self, step: ClockStep) {
        self.ring.begin_stamps(step.to, step.back);
    }

    /// When the next reply has waited too long.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.pending.deadline()
    }

    /// Drops one reply that has waited too long; false when there is none.
    pub(super) fn expire(&mut self, call: &mut Call<'_>) -> bool {
        let Some(waiting) = self.pending.expired(call.now()) else { return false };
        call.release(Side::WIRE, Fate::Dropped(DropReason::SarpPendingExpired), &waiting.frame);
        true
    }

    /// No distributor says whose key `ip` has.
    pub(super) fn given_up(&mut self, call: &mut Call<'_>, ip: Ipv4Addr) {
        self.drop_pending(call, ip, DropReason::SarpPendingExpired);
    }

    fn drop_pending(&mut self, call: &mut Call<'_>, ip: Ipv4Addr, reason: DropReason) {
        for waiting in self.pending.take(Some(ip)) {
            call.release(Side::WIRE, Fate::Dropped(reason), &waiting.frame);
        }
    }

    /// A distributor has said whose key `ip` has, or that nobody has a good one.
    pub(super) fn take_key(
        &mut self,
        call: &mut Call<'_>,
        akds: &mut Akds,
        ip: Ipv4Addr,
        statement: &Verified<Statement>,
    ) {
        let now = call.now();
        let Some(record) = statement.record() else {
            let was_known = self.ring.forget(now, ip);
            // A key that was asked for ahead may be that of an address which nobody has.
            if was_known || self.pending.holds(ip) {
                call.report(Event::NoKey { ip });
            }
            return self.drop_pending(call, ip, DropReason::SarpNoKey);
        };
        let learnt = self.ring.learn(now, call.clock().unwrap_or_default(), record);
        if learnt == Learnt::Changed {
            call.report(Event::KeyChanged { ip });
        }
        for waiting in self.pending.take(Some(ip)) {
            // The paper's rule for unchanged keys: what failed under this very key is forged.
            if waiting.failed_before && learnt == Learnt::Same {
                call.release(Side::WIRE, Fate::Dropped(DropReason::SarpSignature), &waiting.frame);
            } else {
                self.take_up(call, akds, &waiting);
            }
        }
    }

    /// After the clock was first set: replies whose key is here need nothing else; the others wait on.
    pub(super) fn take_up_all_with_key(&mut self, call: &mut Call<'_>, akds: &mut Akds) {
        for waiting in self.pending.take(None) {
            if self.ring.contains(waiting.sender) && !waiting.failed_before {
                self.take_up(call, akds, &waiting);
            } else {
                let sender = waiting.sender;
                if let Err(waiting) = self.pending.keep(waiting) {
                    call.release(Side::WIRE, Fate::Dropped(DropReason::SarpPendingFull), &waiting.frame);
                }
                // Without a place the reply waits for its end.
                let _ = akds.ask_for_key(call, sender);
            }
        }
        akds.send_all_due(call);
    }
}
