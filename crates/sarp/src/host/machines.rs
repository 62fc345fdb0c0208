//! Which machine of a host each frame, each end of a job and each deadline belongs to.
//!
//! A machine may ask distributors (`Akds`), and hands all else that concerns another back to here.

use bump::{DropReason, Fate, Frame, Instant, Meta, Side, time};
use wire::EtherType;
use wire::arp::{Arp, Operation};
use wire::ethernet::Header;
use wire::sarp::{Kind, Message};

use super::akds::{Akds, ClockStep, Told};
use super::answering::Answering;
use super::core::{Call, Verdict};
use super::dhcp::Dhcp;
use super::resolver::{Heard, Judged, Resolver};
use super::work::{Checking, Task};
use crate::akd::Akd;
use crate::clock::Clock;
use crate::job::CompletionKind;
use crate::limits;
use crate::settings::Settings;

/// The machines of a host, each with a state of its own.
#[derive(Debug)]
pub(super) struct Machines {
    pub(super) answering: Answering,
    pub(super) resolver: Resolver,
    pub(super) akds: Akds,
    pub(super) dhcp: Dhcp,
}

impl Machines {
    pub(super) fn new(settings: &Settings, akd: Option<Akd>) -> Machines {
        Machines {
            answering: Answering::new(),
            resolver: Resolver::new(),
            akds: Akds::new(akd),
            dhcp: Dhcp::new(settings),
        }
    }

    /// The fate of a frame, or why it is dropped, here and below.
    pub(super) fn frame(&mut self, call: &mut Call<'_>, from: Side, frame: &Frame<'_>) -> Verdict {
        let (header, message) = Header::parse(frame.bytes).map_err(|_| DropReason::Runt)?;
        // A tag can hide ARP that the kernel finds: behind a priority tag it learns like behind none.
        if frame.meta.vlan.is_some() || header.ethertype.is_vlan() {
            return Err(DropReason::Vlan);
        }
        if header.ethertype != EtherType::ARP {
            let fate = self.dhcp.frame(call, &mut self.akds, from, frame);
            return Ok(fate.unwrap_or_else(|| call.pass(from.other(), frame.bytes, frame.meta)));
        }
        match from {
            Side::STACK => self.of_stack(call, &header, message, frame.bytes),
            Side::WIRE => self.of_wire(call, &header, message, frame.bytes),
        }
    }

    fn of_stack(&mut self, call: &mut Call<'_>, header: &Header, message: &[u8], frame: &[u8]) -> Verdict {
        let arp = Arp::parse(message).map_err(|_| DropReason::BadArp)?;
        let mac = call.core.settings.mac;
        if header.source != mac || arp.sender_mac != mac {
            return Err(DropReason::SourceNotOurs);
        }
        let is_announcement = arp.sender_ip == arp.target_ip;
        match arp.operation {
            // Requests of others are answered here, signed; the stack has heard of some of them and answers, too.
            Operation::Reply if !is_announcement => Err(DropReason::ArpUnasked),
            // An announcement may have either form; receivers take it as a request only (RFC 5227, section 3).
            Operation::Reply | Operation::Request => {
                let arp = Arp { operation: Operation::Request, ..arp };
                self.resolver.stack_asks(call, &mut self.akds, header, arp, frame)
            }
        }
    }

    fn of_wire(&mut self, call: &mut Call<'_>, header: &Header, bytes: &[u8], frame: &[u8]) -> Verdict {
        // What is kept while a job runs is bounded in bytes, too.
        if frame.len() > limits::ARP_FRAME_MAX_BYTES {
            return Err(DropReason::SarpMalformed);
        }
        check_addresses(call, header)?;
        if !Message::is_one(bytes) {
            let arp = Arp::parse(bytes).map_err(|_| DropReason::BadArp)?;
            let judged = self.resolver.plain(call, header, &arp)?;
            return Ok(self.conclude(call, judged, &arp, frame));
        }
        let message = Message::parse(bytes).map_err(|_| DropReason::SarpMalformed)?;
        match message.kind {
            Kind::Resolution => {
                let heard = Heard { message: &message, frame, retried: false };
                let judged = self.resolver.signed(call, &mut self.akds, header, heard)?;
                Ok(self.conclude(call, judged, &message.arp, frame))
            }
            Kind::TimeRequest | Kind::KeyRequest | Kind::KeyChange | Kind::Lease | Kind::Apply | Kind::Fetch => {
                self.akds.serve(call, header.source, &message, Some(frame))
            }
            _ => self.akds.hear(call, header.source, (&message, bytes), Some(frame)),
        }
    }

    /// Answers a message that was judged, if that is what is left to do.
    fn conclude(&mut self, call: &mut Call<'_>, judged: Judged, arp: &Arp, frame: &[u8]) -> Fate {
        match judged {
            Judged::Done(fate) => fate,
            Judged::Asks(nonce) => {
                let is_proved = self.resolver.is_proved(call, arp);
                self.answering.answer(call, arp, nonce, is_proved, frame)
            }
        }
    }

    /// Goes on after a job, and gives the frame that was held for it its fate.
    pub(super) fn complete(&mut self, call: &mut Call<'_>, task: Task, completion: CompletionKind) {
        let akds = &mut self.akds;
        match (task, completion) {
            (Task::Send { frame, to }, CompletionKind::Signed(Some(message))) => {
                let fate = call.send(to, &message, Fate::Forwarded);
                call.release(Side::STACK, fate, &frame);
            }
            (Task::Answer { frame, to }, CompletionKind::Signed(Some(message))) => {
                let fate = call.send(to, &message, Fate::Answered);
                call.release(Side::WIRE, fate, &frame);
            }
            (Task::Change { to }, CompletionKind::Signed(Some(message))) => akds.send(call, to, &message),
            (Task::Serve { frame, to }, CompletionKind::Signed(Some(message))) => {
                akds.served(call, to, &message, frame.as_deref());
            }
            (Task::Check(checking), CompletionKind::Checked(good)) => self.checked(call, &checking, good),
            (Task::Learn { frame, distributor }, CompletionKind::Learnt(statement)) => {
                let learnt = akds.learn(call, statement, distributor);
                let fate = learnt.map(|(step, told)| self.learnt(call, step, told)).unwrap_or_else(Fate::Dropped);
                frame.iter().for_each(|frame| call.release(Side::WIRE, fate, frame));
            }
            (Task::ProveDhcp { frame }, CompletionKind::DhcpProved(proved)) => {
                let sent = proved.map(|proved| call.pass(Side::WIRE, &proved, Meta::plain()));
                call.release(Side::STACK, sent.unwrap_or_else(Fate::Dropped), &frame);
            }
            (Task::CheckDhcp { frame }, CompletionKind::ReplyChecked(claimed)) => {
                self.dhcp.reply_checked(call, akds, &frame, claimed);
            }
            (Task::CheckDhcp { frame }, CompletionKind::RequestChecked(checked)) => {
                self.dhcp.request_checked(call, akds, &frame, *checked);
            }
            // The job came to nothing.
            (task, _) => {
                if let Some((from, frame)) = task.held() {
                    call.release(from, Fate::Dropped(DropReason::JobLost), frame);
                }
            }
        }
    }

    /// The signature of another host's message was checked.
    fn checked(&mut self, call: &mut Call<'_>, checking: &Checking, good: bool) {
        let judged = self.resolver.checked(call, &mut self.akds, checking, good);
        let fate = judged.map(|(arp, judged)| self.conclude(call, judged, &arp, &checking.frame));
        call.release(Side::WIRE, fate.unwrap_or_else(Fate::Dropped), &checking.frame);
    }

    fn learnt(&mut self, call: &mut Call<'_>, step: Option<ClockStep>, told: Told) -> Fate {
        if let Some(step) = step {
            self.resolver.clock_moved(step);
            self.dhcp.clock_moved(step);
        }
        self.told(call, told);
        Fate::Consumed
    }

    /// One piece of what is due; false when nothing is.
    pub(super) fn tick(&mut self, call: &mut Call<'_>) -> bool {
        if self.resolver.expire(call) || self.dhcp.expire(call) {
            return true;
        }
        let told = self.akds.tick(call);
        let is_busy = told.is_some();
        self.told(call, told.unwrap_or(Told::Nothing));
        is_busy
    }

    /// Hands on what distributors have said, or that none has answered.
    fn told(&mut self, call: &mut Call<'_>, told: Told) {
        let akds = &mut self.akds;
        match told {
            Told::Nothing => {}
            Told::Time => self.resolver.take_up_all_with_key(call, akds),
            Told::Key(ip, Some(statement)) => self.resolver.take_key(call, akds, ip, &statement),
            Told::Key(ip, None) => self.resolver.given_up(call, ip),
            Told::Lease(number, question, Some(statement)) => {
                self.dhcp.answered(call, akds, (number, question), &statement);
            }
            Told::Lease(number, question, None) => self.dhcp.given_up(call, akds, number, question),
        }
    }

    /// When something is due next, by the S-ARP `clock`.
    pub(super) fn deadline(&self, clock: &Clock) -> Option<Instant> {
        let all = [self.resolver.deadline(), self.dhcp.deadline(), self.akds.deadline(clock)];
        all.into_iter().fold(None, time::earlier)
    }
}

fn check_addresses(call: &Call<'_>, header: &Header) -> Result<(), DropReason> {
    let mac = call.core.settings.mac;
    if header.source.is_group() {
        Err(DropReason::GroupSource)
    } else if header.source == mac {
        Err(DropReason::OwnSource)
    } else if header.destination != mac && !header.destination.is_broadcast() {
        Err(DropReason::NotForUs)
    } else {
        Ok(())
    }
}
