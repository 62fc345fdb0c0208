//! What our own stack says: questions go out, plain or signed; announcements and probes always signed.

use bump::{DropReason, Fate, Frame, Instant, Side};
use wire::arp::{Arp, Operation};
use wire::ethernet::Header;
use wire::sarp::data::RESOLUTION_NONCE_LEN;
use wire::{EtherType, MacAddress};

use super::{Call, Host, Task, is_tagged};

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
            // Requests of others are answered here, signed; the stack has heard of some of them and answers, too.
            Operation::Reply => Fate::Dropped(DropReason::ArpUnasked),
        }
    }

    fn stack_asks(&mut self, call: &mut Call<'_>, header: &Header, arp: Arp, frame: &[u8]) -> Fate {
        let now = call.now.since_boot;
        let is_probe = arp.sender_ip.is_unspecified();
        if !is_probe && !self.is_own(now, arp.sender_ip) {
            return Fate::Dropped(DropReason::ArpNotOurs);
        }
        let is_announcement = arp.sender_ip == arp.target_ip;
        let nonce = self.nonce_for(now, &arp);
        if !is_announcement && !self.questions.ask(now, arp.target_ip, nonce) {
            return Fate::Dropped(DropReason::ControlBusy);
        }
        if is_probe || is_announcement || self.settings.sign_requests {
            let to = header.destination;
            return self.sign(now, arp, nonce, Task::Send { frame: frame.to_vec(), to });
        }
        self.send_plain(call, header.destination, &arp)
    }

    /// What ties the answer to our signed question. A repetition keeps the nonce, so that the answer to the first one is
    /// still good.
    fn nonce_for(&mut self, now: Instant, arp: &Arp) -> Option<[u8; RESOLUTION_NONCE_LEN]> {
        let wanted = self.settings.sign_requests && arp.sender_ip != arp.target_ip;
        wanted.then(|| self.questions.nonce(now, arp.target_ip).unwrap_or_else(|| self.random.bytes()))
    }

    fn send_plain(&mut self, call: &mut Call<'_>, to: MacAddress, arp: &Arp) -> Fate {
        if self.send(call, to, &arp.emit()) { Fate::Forwarded } else { Fate::Dropped(DropReason::PortFull) }
    }
}
