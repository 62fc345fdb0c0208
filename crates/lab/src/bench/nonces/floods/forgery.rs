//! The frames of these floods.

use std::net::Ipv4Addr;
use std::time::{SystemTime, UNIX_EPOCH};

use bump::Generator;
use identity::HostIdentity;
use identity::distributor::RequestMaster;
use wire::arp::{Arp, Operation};
use wire::cll::SITE_TAG_AT;
use wire::cll::handshake::{set_site_tag, tagged_parts};
use wire::ethernet::{HEADER_LEN, Header, MIN_LEN};
use wire::sarp::data::Resolution;
use wire::sarp::{Kind, Message, seal};
use wire::{EtherType, MacAddress};

use crate::attack::exhaustion::forged_group_frame;
use crate::bench::s_arp::{Ends, Forger};
use crate::net::flood::{FRAMES_MAX, Forged, NewTags};
use crate::net::{Frame, Host};

/// Frames of a flood before it begins anew.
const FRAMES: u32 = 4096;
/// Hosts in whose name ARP is forged where they are few; a bridge has to learn each.
const SENDERS: u32 = 256;
/// Bytes of a signature.
const SIGNATURE_LEN: usize = 64;
/// What the tag under the site key is over, beside the message (docs/protocol.md, section 3).
const LABEL: &[u8] = b"broadcast";

/// What is wrong with the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgery {
    /// Frames to all in another's name, by somebody without the site key.
    GroupByOutsider,
    /// The same by somebody who has it: only the signature is wrong.
    GroupByInsider,
    /// The same without end: each has a tag of its own, of which no more is right than its hint.
    GroupWithNewTags,
    /// Questions by ARP for the receiver's address, of made-up hosts: each answer is signed.
    Question,
    /// The same of so many that none of them has asked too often.
    QuestionsOfMany,
    /// Answers by ARP that nobody asked for, of made-up hosts, with made-up signatures.
    Answer,
    /// Questions to a distributor, all by this one.
    Request(Forger),
}

/// What who forges knows.
#[derive(Default)]
pub struct Known {
    /// A frame to all, and whose it is.
    pub heard: Option<(Frame, HostIdentity)>,
    /// What a host's own keys follow from, and what was recorded of others was made with.
    pub master: Option<RequestMaster>,
}

impl Forgery {
    /// Those that a host which seals frames is flooded with.
    pub const GROUP: [Forgery; 3] = [Forgery::GroupByOutsider, Forgery::GroupByInsider, Forgery::GroupWithNewTags];
    /// Those that a distributor is flooded with.
    pub const REQUESTS: [Forgery; 5] = [
        Forgery::Request(Forger::Stranger),
        Forgery::Request(Forger::Member),
        Forgery::Request(Forger::Listener),
        Forgery::Request(Forger::Applicant),
        Forgery::Request(Forger::TokenListener),
    ];

    /// Its part of a row's name.
    pub fn name(self) -> &'static str {
        match self {
            Forgery::GroupByOutsider => "group_by_outsider",
            Forgery::GroupByInsider => "group_by_insider",
            Forgery::GroupWithNewTags => "group_with_new_tags",
            Forgery::Question => "questions",
            Forgery::QuestionsOfMany => "questions_of_many",
            Forgery::Answer => "answers",
            Forgery::Request(Forger::Stranger) => "requests_by_stranger",
            Forgery::Request(Forger::Member) => "requests_by_member",
            Forgery::Request(Forger::Listener) => "requests_recorded",
            Forgery::Request(Forger::Applicant) => "applications",
            Forgery::Request(Forger::TokenListener) => "applications_overheard",
        }
    }

    /// What comes to `to`, or to all, of whom they are who is `known`.
    pub fn forge(self, to: &Host, known: &Known) -> Forged {
        let frames = self.frames(to, known);
        let hint_key = known.heard.as_ref().map(|(_, identity)| *identity.site_key().hint_key());
        let new_tags = hint_key.filter(|_| self == Forgery::GroupWithNewTags);
        Forged { frames, new_tags: new_tags.map(|hint_key| NewTags { at: HEADER_LEN + SITE_TAG_AT, hint_key }) }
    }

    fn frames(self, to: &Host, known: &Known) -> Vec<Vec<u8>> {
        let mut random = Generator::from_seed([6; 32]);
        match self {
            Forgery::Question => of_arp(to, Operation::Request, SENDERS, &mut random),
            Forgery::QuestionsOfMany => of_arp(to, Operation::Request, FRAMES_MAX as u32, &mut random),
            Forgery::Answer => of_arp(to, Operation::Reply, SENDERS, &mut random),
            Forgery::Request(forger) => {
                let forged = |master| forger.requests(ends(to), to, master, FRAMES_MAX);
                known.master.as_ref().map(forged).unwrap_or_default()
            }
            Forgery::GroupByOutsider => to_all(known, FRAMES, |frame, _| frame),
            Forgery::GroupByInsider => to_all(known, FRAMES_MAX as u32, with_tag),
            Forgery::GroupWithNewTags => to_all(known, FRAMES, |frame, _| frame),
        }
    }
}

/// So many frames to all, each finished by `finish`.
fn to_all(known: &Known, count: u32, finish: impl Fn(Vec<u8>, &HostIdentity) -> Vec<u8>) -> Vec<Vec<u8>> {
    let mut random = Generator::from_seed([6; 32]);
    let Some((heard, identity)) = &known.heard else { return Vec::new() };
    (0..count).map(|number| finish(forged_group_frame(heard, number, &mut random).0, identity)).collect()
}

/// Questions of somebody who is no host of the lab.
fn ends(to: &Host) -> Ends {
    let network = to.ip.octets();
    Ends { mac: MacAddress([2, 0, 0, 0x99, 0, 1]), ip: Ipv4Addr::new(network[0], network[1], 1, 1), to: to.mac }
}

/// The frame with a right tag.
fn with_tag(mut frame: Vec<u8>, identity: &HostIdentity) -> Vec<u8> {
    let (ethernet, message) = frame.split_at_mut(HEADER_LEN);
    let [before, after] = tagged_parts(message);
    let tag = identity.site_key().frame_tag(LABEL, &[ethernet, before, after]);
    set_site_tag(message, &tag);
    frame
}

/// ARP of so many made-up hosts in turn.
fn of_arp(to: &Host, operation: Operation, senders: u32, random: &mut Generator) -> Vec<Vec<u8>> {
    (0..FRAMES.max(senders)).map(|number| arp(to, operation, number % senders, random)).collect()
}

/// A question, which is plain, or an answer with a signature, of a made-up host.
fn arp(to: &Host, operation: Operation, number: u32, random: &mut Generator) -> Vec<u8> {
    let [_, _, high, low] = number.to_be_bytes();
    let sender_mac = MacAddress([2, 0, 0, 0x99, high, low]);
    let network = to.ip.octets();
    let sender_ip = Ipv4Addr::new(network[0], network[1], 1 + high, low);
    let arp = Arp { operation, sender_mac, sender_ip, target_mac: to.mac, target_ip: to.ip };
    let message = match operation {
        Operation::Request => arp.emit().to_vec(),
        _ => {
            let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            let data = Resolution { fraction: Some(number), nonce: None }.emit();
            let seconds = u32::try_from(unix_s).unwrap_or(u32::MAX);
            let message = Message { arp, kind: Kind::Resolution, seconds, data: &data, signature: &[] };
            seal(message.signed_bytes(), &random.bytes::<SIGNATURE_LEN>())
        }
    };
    let header = Header { destination: to.mac, source: sender_mac, ethertype: EtherType::ARP };
    let mut frame = [&header.emit()[..], &message].concat();
    frame.resize(frame.len().max(MIN_LEN), 0);
    frame
}
