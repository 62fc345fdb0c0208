//! What our own stack says: questions go out, plain or signed; announcements and probes signed as soon as there is the time.

use std::net::Ipv4Addr;

use bump::{DropReason, Fate, Frame, Instant, Side};
use wire::arp::{Arp, Operation};
use wire::ethernet::Header;
use wire::sarp::data::RESOLUTION_NONCE_LEN;
use wire::{EtherType, MacAddress};

use super::{Call, Host, Task, is_tagged};
use crate::enquiry::About;
use crate::limits::QUESTION_OPEN;

impl Host {
    /// The fate of a frame of the stack.
    pub(super) fn stack_frame(&mut self, call: &mut Call<'_>, frame: &Frame<'_>) -> Fate {
        let Ok((header, message)) = Header::parse(frame.bytes) else { return Fate::Dropped(DropReason::Runt) };
        if is_tagged(&header, frame) {
            return Fate::Dropped(DropReason::Vlan);
        }
        if header.ethertype != EtherType::ARP {
            let fate = self.dhcp_frame(call, Side::STACK, frame);
            return fate.unwrap_or_else(|| self.pass(call, Side::WIRE, frame));
        }
        let Ok(arp) = Arp::parse(message) else { return Fate::Dropped(DropReason::BadArp) };
        if header.source != self.settings.mac || arp.sender_mac != self.settings.mac {
            return Fate::Dropped(DropReason::SourceNotOurs);
        }
        match arp.operation {
            Operation::Request => self.stack_asks(call, &header, arp, frame.bytes),
            // An announcement may have either form; receivers take it as a request only (RFC 5227, section 3).
            Operation::Reply if arp.sender_ip == arp.target_ip => {
                self.stack_asks(call, &header, Arp { operation: Operation::Request, ..arp }, frame.bytes)
            }
            // Requests of others are answered here, signed; the stack has heard of some of them and answers, too.
            Operation::Reply => Fate::Dropped(DropReason::ArpUnasked),
        }
    }

    /// Notes a question before it leaves, here and in front of us; false when too many are open.
    fn open_question(&mut self, now: Instant, ip: Ipv4Addr, nonce: Option<[u8; RESOLUTION_NONCE_LEN]>) -> bool {
        let is_open = self.questions.ask(now, ip, nonce);
        if let Some(outpost) = self.outpost.as_mut().filter(|_| is_open) {
            outpost.expect(ip, now + QUESTION_OPEN);
        }
        is_open
    }

    fn stack_asks(&mut self, call: &mut Call<'_>, header: &Header, arp: Arp, frame: &[u8]) -> Fate {
        let now = call.now.since_boot;
        let is_probe = arp.sender_ip.is_unspecified();
        if !is_probe && !self.is_own(now, arp.sender_ip) {
            return Fate::Dropped(DropReason::ArpNotOurs);
        }
        let is_announcement = arp.sender_ip == arp.target_ip;
        let nonce = self.nonce_for(now, &arp);
        // Who answered with a time far from ours sees ours then, and asks a distributor if his is the wrong one.
        let shows_time = self.questions.is_far(now, arp.target_ip);
        if !is_announcement && !self.open_question(now, arp.target_ip, nonce) {
            return Fate::Dropped(DropReason::ControlBusy);
        }
        // Without the time nothing can be signed; whoever believes plain ARP may hear it all the same.
        let is_wanted = is_probe || is_announcement || shows_time || self.settings.sign_requests;
        let is_signed = self.clock.read(now).is_some() && is_wanted;
        let fate = if is_signed {
            self.sign(now, arp, nonce, Task::Send { frame: frame.to_vec(), to: header.destination })
        } else {
            self.send_plain(call, header.destination, &arp)
        };
        if !is_probe && !is_announcement {
            self.fetch_ahead(call, arp.target_ip);
        }
        fate
    }

    /// Asks for the key of a host at the same time as for its hardware address, so that it is here when the answer comes. Within
    /// a budget of its own: a program that looks for hosts must not use up the requests that answers wait for.
    fn fetch_ahead(&mut self, call: &mut Call<'_>, ip: Ipv4Addr) {
        let now = call.now.since_boot;
        let is_needed = !self.ring.contains(ip) && !self.ring.is_unknown(now, ip) && self.settings.known(ip).is_none();
        if is_needed && self.fetch_ahead_budget.take(now) {
            // Without a place it is asked for when the answer comes.
            let _ = self.open_enquiry(now, About::Key(ip));
            self.send_all_due(call);
        }
    }

    /// What ties the answer to our signed question. A repetition keeps the nonce, so that the answer to the first one is
    /// still good.
    fn nonce_for(&mut self, now: Instant, arp: &Arp) -> Option<[u8; RESOLUTION_NONCE_LEN]> {
        let can_be_signed = self.settings.sign_requests && self.clock.read(now).is_some();
        let wanted = can_be_signed && arp.sender_ip != arp.target_ip;
        wanted.then(|| self.questions.nonce(now, arp.target_ip).unwrap_or_else(|| self.random.bytes()))
    }

    fn send_plain(&mut self, call: &mut Call<'_>, to: MacAddress, arp: &Arp) -> Fate {
        if self.send(call, to, &arp.emit()) { Fate::Forwarded } else { Fate::Dropped(DropReason::PortFull) }
    }
}
