//! Answering requests for our addresses, within a budget.

use std::net::Ipv4Addr;

use bump::{DropReason, Fate};
use shield::{Apart, Bucket, PerSource};
use wire::MacAddress;
use wire::arp::{Arp, Operation};

use super::core::{Call, Nonce};
use super::work::Task;
use crate::limits;

/// What may still be answered. Strangers, whose addresses may all be made up by one, take nothing from who has proved
/// his.
#[derive(Debug)]
pub(super) struct Answering {
    budget: Apart<Bucket>,
    budget_per_source: Apart<PerSource<(MacAddress, Ipv4Addr)>>,
}

impl Answering {
    pub(super) fn new() -> Answering {
        let bucket = |per_second| Bucket::new(per_second, per_second);
        Answering {
            budget: Apart {
                proved: bucket(limits::ANSWERS_PER_SECOND),
                strangers: bucket(limits::STRANGERS_ANSWERED_PER_SECOND),
            },
            budget_per_source: Apart::new(|| {
                PerSource::new(limits::ANSWERS_PER_SOURCE_PER_SECOND, limits::SOURCES_MAX)
            }),
        }
    }

    /// Answers a request for an address of ours. Before this host has the time it cannot sign; then whoever believes
    /// plain answers hears one, and nobody else is worse off than without.
    pub(super) fn answer(
        &mut self,
        call: &mut Call<'_>,
        request: &Arp,
        nonce: Option<Nonce>,
        is_proved: bool,
        frame: &[u8],
    ) -> Fate {
        if !call.is_own(request.target_ip) {
            return Fate::Dropped(DropReason::ArpTarget);
        }
        if !self.may_answer(call, request, is_proved) && !call.core.settings.weaken.budgets {
            return Fate::Dropped(DropReason::SarpBudget);
        }
        let reply = Arp {
            operation: Operation::Reply,
            sender_mac: call.core.settings.mac,
            sender_ip: request.target_ip,
            target_mac: request.sender_mac,
            target_ip: request.sender_ip,
        };
        if call.clock().is_none() {
            return call.send(request.sender_mac, &reply.emit(), Fate::Answered);
        }
        call.sign(reply, nonce, Task::Answer { frame: frame.to_vec(), to: request.sender_mac })
    }

    fn may_answer(&mut self, call: &Call<'_>, request: &Arp, is_proved: bool) -> bool {
        let source = (request.sender_mac, request.sender_ip);
        self.budget_per_source.of(is_proved).take(call.now(), source) && self.budget.of(is_proved).take(call.now())
    }
}
