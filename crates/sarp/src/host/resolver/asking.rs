//! What our own stack says: questions go out, plain or signed; announcements and probes signed as
//! soon as there is the time.

use std::net::Ipv4Addr;

use bump::{DropReason, Fate};
use wire::arp::Arp;
use wire::ethernet::Header;

use super::Resolver;
use crate::host::akds::Akds;
use crate::host::core::{Call, Nonce, Verdict};
use crate::host::work::Task;
use crate::limits::QUESTION_OPEN;

impl Resolver {
    /// Notes a question before it leaves, here and in front of us; false when too many are open.
    fn open_question(&mut self, call: &mut Call<'_>, ip: Ipv4Addr, nonce: Option<Nonce>) -> bool {
        let now = call.now();
        let is_open = self.questions.ask(now, ip, nonce);
        if let Some(outpost) = call.core.outpost.as_mut().filter(|_| is_open) {
            outpost.expect(ip, now + QUESTION_OPEN);
        }
        is_open
    }

    /// Our stack asks, probes or announces.
    pub(crate) fn stack_asks(
        &mut self,
        call: &mut Call<'_>,
        akds: &mut Akds,
        header: &Header,
        arp: Arp,
        frame: &[u8],
    ) -> Verdict {
        let now = call.now();
        let is_probe = arp.sender_ip.is_unspecified();
        if !is_probe && !call.is_own(arp.sender_ip) {
            return Err(DropReason::ArpNotOurs);
        }
        let is_announcement = arp.sender_ip == arp.target_ip;
        let nonce = self.nonce_for(call, &arp);
        // Who answered with a time far from ours sees ours then, and asks a distributor if his is the wrong one.
        let shows_time = self.questions.is_far(now, arp.target_ip);
        if !is_announcement && !self.open_question(call, arp.target_ip, nonce) {
            return Err(DropReason::ControlBusy);
        }
        // Without the time nothing can be signed; whoever believes plain ARP may hear it all the same.
        let is_wanted = is_probe || is_announcement || shows_time || call.core.settings.sign_requests;
        let is_signed = call.clock().is_some() && is_wanted;
        let fate = if is_signed {
            call.sign(arp, nonce, Task::Send { frame: frame.to_vec(), to: header.destination })
        } else {
            call.send(header.destination, &arp.emit(), Fate::Forwarded)
        };
        if !is_probe && !is_announcement {
            self.fetch_ahead(call, akds, arp.target_ip);
        }
        Ok(fate)
    }

    /// Asks for the key of a host at the same time as for its hardware address, so that it is here
    /// when the answer comes. Within a budget of its own: a program that looks for hosts must not
    /// use up the requests that answers wait for.
    fn fetch_ahead(&mut self, call: &mut Call<'_>, akds: &mut Akds, ip: Ipv4Addr) {
        let now = call.now();
        let is_needed =
            !self.ring.contains(ip) && !self.ring.is_unknown(now, ip) && call.core.settings.known(ip).is_none();
        if is_needed && self.fetch_ahead_budget.take(now) {
            // Without a place it is asked for when the answer comes.
            let _ = akds.ask_for_key(call, ip);
            akds.send_all_due(call);
        }
    }

    /// What ties the answer to our signed question. A repetition keeps the nonce, so that the
    /// answer to the first one is still good.
    fn nonce_for(&mut self, call: &mut Call<'_>, arp: &Arp) -> Option<Nonce> {
        let can_be_signed = call.core.settings.sign_requests && call.clock().is_some();
        let wanted = can_be_signed && arp.sender_ip != arp.target_ip;
        wanted.then(|| self.questions.nonce(call.now(), arp.target_ip).unwrap_or_else(|| call.core.random.bytes()))
    }
}
