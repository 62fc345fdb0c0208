//! The authoritative key distributor (sections 3.1 and 3.5): says, signed, whose key belongs to an address and what time
//! it is. It trusts its repository and the wall clock of its machine; requests prove themselves by a tag before anything
//! is looked up or signed, because a signature costs ten times as much as the tag.

use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;

use bump::{DropReason, Now};
use identity::distributor::RequestMaster;
use identity::signing::SigningKey;
use shield::PerSource;
use wire::arp::{Arp, Operation};
use wire::sarp::data::{Answer, Question, Record};
use wire::sarp::{Kind, Message, seal};
use wire::{MacAddress, sarp};

use crate::clock::Stamp;
use crate::limits;

/// Where a distributor finds keys.
pub trait Records {
    /// What is known of the host with this address.
    fn find(&self, ip: Ipv4Addr) -> Lookup;
}

/// What a repository says of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// A host with a good key.
    Good {
        /// The algorithm's number.
        algorithm: u8,
        /// The public key.
        key: Vec<u8>,
        /// The hardware address that the site binds to it, if any.
        mac: Option<MacAddress>,
    },
    /// The host was revoked, or its time is over.
    Invalid,
    /// Nobody has this address.
    NotFound,
    /// The repository cannot be asked; the host asks another distributor.
    Failed,
}

/// The repository of a host that distributes nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoRecords;

impl Records for NoRecords {
    fn find(&self, _ip: Ipv4Addr) -> Lookup {
        Lookup::Failed
    }
}

/// The distributor of one machine; part of the machine's own [`Host`](crate::Host).
pub struct Akd {
    key: Arc<SigningKey>,
    master: RequestMaster,
    budget: PerSource<u64>,
}

impl fmt::Debug for Akd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Akd").finish_non_exhaustive()
    }
}

/// A request that has proved itself, ready to be looked up and answered.
pub(crate) struct Answering {
    key: Arc<SigningKey>,
    asked: Asked,
    arp: Arp,
    stamp: Stamp,
    nonce: [u8; sarp::data::NONCE_LEN],
}

#[derive(Clone, Copy, Debug)]
enum Asked {
    Time,
    Key(Ipv4Addr),
}

impl fmt::Debug for Answering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answering").field("asked", &self.asked).finish_non_exhaustive()
    }
}

impl Akd {
    /// A distributor that signs with `key` and knows hosts by keys made from `master`.
    #[must_use]
    pub fn new(key: Arc<SigningKey>, master: RequestMaster) -> Akd {
        let budget = PerSource::new(limits::REQUESTS_PER_HOST_PER_SECOND, limits::REQUESTING_HOSTS_MAX);
        Akd { key, master, budget }
    }

    /// Judges a request; what is returned runs as a job.
    pub(crate) fn request(&mut self, now: Now, message: &Message<'_>) -> Result<Answering, DropReason> {
        let question = Question::parse(message.data).map_err(|_| DropReason::SarpMalformed)?;
        let asked = match message.kind {
            Kind::TimeRequest => Asked::Time,
            Kind::KeyRequest => Asked::Key(message.arp.target_ip),
            _ => return Err(DropReason::SarpMalformed),
        };
        if !self.master.key_of(question.host).verify(&message.signed_bytes(), message.signature) {
            return Err(DropReason::SarpRequestTag);
        }
        if !self.budget.take(now.since_boot, question.host) {
            return Err(DropReason::SarpBudget);
        }
        let wall = now.wall.ok_or(DropReason::SarpNoClock)?;
        let stamp = Stamp::from_unix_ms(wall.unix_ms);
        Ok(Answering { key: Arc::clone(&self.key), asked, arp: message.arp, stamp, nonce: question.nonce })
    }
}

impl Answering {
    /// Looks up and signs; `None` when the repository cannot be asked.
    pub(crate) fn run(self, records: &dyn Records) -> Option<Vec<u8>> {
        let (kind, record) = match self.asked {
            Asked::Time => (Kind::TimeReply, Vec::new()),
            Asked::Key(ip) => match records.find(ip) {
                Lookup::Good { algorithm, key, mac } => (Kind::KeyReply, Record { algorithm, mac, key: &key }.emit()),
                Lookup::Invalid => (Kind::KeyInvalid, Vec::new()),
                Lookup::NotFound => (Kind::KeyNotFound, Vec::new()),
                Lookup::Failed => return None,
            },
        };
        let data = Answer { fraction: self.stamp.fraction(), nonce: self.nonce, rest: &record }.emit();
        let message =
            Message { arp: answer_to(&self.arp), kind, seconds: self.stamp.seconds(), data: &data, signature: &[] };
        let unsigned = message.signed_bytes();
        let signature = self.key.sign(&unsigned).ok()?;
        Some(seal(unsigned, &signature))
    }
}

/// The ARP message of an answer, as the original daemon writes it: from the address asked about, hardware address zero.
fn answer_to(request: &Arp) -> Arp {
    Arp {
        operation: Operation::Reply,
        sender_mac: MacAddress::ZERO,
        sender_ip: request.target_ip,
        target_mac: request.sender_mac,
        target_ip: request.sender_ip,
    }
}
