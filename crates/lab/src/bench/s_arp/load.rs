//! A host that asks a key distributor in the name of all hosts of the site, as fast as it is answered.
//!
//! It shares two processors with the distributor, so it does as little as it can while the clock runs: the requests, each with
//! a nonce and a credential of its own, are made before; answers come in a ring; it sleeps between. What counts as answered is an
//! answer of the right kind to a request that was still open, and of some the signature is checked at the end.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use bump::{Batch, Generator, Meta};
use identity::distributor::{DistributorKey, RequestKey, RequestMaster};
use system::port::{PacketPort, Receiver, Sender};
use wire::arp::{Arp, Operation};
use wire::ethernet::{HEADER_LEN, Header, MIN_LEN};
use wire::sarp::data::{Answer, NONCE_LEN, Question, Record};
use wire::sarp::{Kind, Message, seal};
use wire::{EtherType, MacAddress};

use super::super::mode::Cable;
use super::super::stats::median;
use crate::failure::Failure;
use crate::guard::{filled_address, filled_key};
use crate::net::Host;
use crate::net::link;

/// Hosts in the repository, and hosts in whose name is asked.
pub const HOSTS: u32 = 100_000;

/// Requests that may be unanswered at a time; fewer than a distributor lets wait.
const UNDER_WAY_MAX: usize = 480;
/// Requests made for each second of the run, more than any distributor here answers.
const PREPARED_PER_SECOND: usize = 160_000;
/// How long the load rests between two looks. A distributor that answers 80,000 in a second answers 40 meanwhile.
const REST: Duration = Duration::from_micros(450);
/// An answer that takes longer is lost.
const PATIENCE: Duration = Duration::from_millis(100);
/// Of this many answers one has its signature checked.
const CHECKED_ONE_IN: usize = 128;

/// One request, ready to be sent.
struct Request {
    frame: Vec<u8>,
    host: u64,
    nonce: [u8; NONCE_LEN],
    wanted: u32,
    /// When it was sent, while it is open.
    open_since: Option<Instant>,
}

/// The load of one run.
pub struct Load {
    port: PacketPort,
    requests: Vec<Request>,
    next: usize,
    under_way: usize,
    answered: usize,
    lost: usize,
    kept: Vec<Vec<u8>>,
    delays_ms: Vec<f64>,
}

/// What came of a run.
#[derive(Clone, Copy, Debug)]
pub struct Borne {
    /// Answers per second.
    pub rate: f64,
    /// Requests that nobody answered.
    pub lost: f64,
    /// How long half of the answers took at most, of those that are checked.
    pub delay_median_ms: f64,
}

/// Who asks whom, and with what.
pub struct Parties<'a> {
    pub from: &'a Cable,
    pub to: &'a Host,
    pub master: &'a RequestMaster,
    pub distributor: &'a DistributorKey,
}

/// The addresses of who asks, and the hardware address of who is asked.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    pub mac: MacAddress,
    pub ip: Ipv4Addr,
    pub to: MacAddress,
}

impl Parties<'_> {
    /// Both ends.
    pub fn ends(&self) -> Ends {
        Ends { mac: self.from.mac, ip: self.from.ip, to: self.to.mac }
    }
}

impl Load {
    /// Makes the requests for a run of `time`. No two of them share a nonce, and each is for any of the site's hosts.
    pub fn prepare(parties: &Parties<'_>, time: Duration, seed: u64) -> Result<Load, Failure> {
        let mut bytes = [7; 32];
        bytes[..8].copy_from_slice(&seed.to_be_bytes());
        let mut random = Generator::from_seed(bytes);
        let count = time.as_secs() as usize * PREPARED_PER_SECOND;
        let keys: Vec<_> = (1..=u64::from(HOSTS)).map(|number| parties.master.key_of(number)).collect();
        let make = |at: usize| request(parties, &keys[at % keys.len()], at as u64, &mut random);
        let requests = (0..count).map(make).collect();
        Ok(Load {
            port: open_port(parties.from)?,
            requests,
            next: 0,
            under_way: 0,
            answered: 0,
            lost: 0,
            kept: Vec::new(),
            delays_ms: Vec::new(),
        })
    }

    /// Asks for as long as `time`, at most [`UNDER_WAY_MAX`] questions ahead of the answers.
    pub fn run(mut self, parties: &Parties<'_>, time: Duration) -> Result<Borne, Failure> {
        let start = Instant::now();
        let mut heard_at = start;
        while start.elapsed() < time && self.next < self.requests.len() {
            self.ask();
            std::thread::sleep(REST);
            if self.hear()? {
                heard_at = Instant::now();
            } else if heard_at.elapsed() > PATIENCE {
                // What was lost is not waited for.
                self.lost += std::mem::take(&mut self.under_way);
                heard_at = Instant::now();
            }
        }
        let rate = self.answered as f64 / start.elapsed().as_secs_f64();
        self.check(parties.distributor)?;
        let delay_median_ms = median(&self.delays_ms).unwrap_or(0.0);
        Ok(Borne { rate, lost: self.lost as f64, delay_median_ms })
    }

    fn ask(&mut self) {
        let now = Instant::now();
        let end = self.requests.len().min(self.next + UNDER_WAY_MAX - self.under_way);
        for request in &mut self.requests[self.next..end] {
            if !put(&mut self.port, &request.frame) {
                break;
            }
            request.open_since = Some(now);
            self.under_way += 1;
            self.next += 1;
        }
        self.port.sender.flush();
    }

    fn hear(&mut self) -> Result<bool, Failure> {
        let before = self.answered;
        while self.port.receiver.fill().map_err(Failure::io("hearing the distributor"))? {
            while let Some(frame) = self.port.receiver.next_frame() {
                let Some(at) = answered(frame.bytes, &self.requests) else { continue };
                let sent = self.requests[at].open_since.take();
                self.under_way = self.under_way.saturating_sub(1);
                self.answered += 1;
                if self.answered.is_multiple_of(CHECKED_ONE_IN) {
                    self.kept.push(frame.bytes.to_vec());
                    self.delays_ms.extend(sent.map(|sent| sent.elapsed().as_secs_f64() * 1e3));
                }
            }
        }
        Ok(self.answered > before)
    }

    /// Whether what was answered is signed by the distributor and true.
    fn check(&self, distributor: &DistributorKey) -> Result<(), Failure> {
        let is_right = |frame: &Vec<u8>| {
            let message = Message::parse(frame.get(HEADER_LEN..)?).ok()?;
            let answer = Answer::parse(message.data).ok()?;
            let request = self.requests.get(number(&answer.nonce)?)?;
            let record = Record::parse(answer.rest).ok()?;
            let is_true = message.arp.sender_ip == filled_address(request.wanted)
                && record.key == filled_key(request.wanted)
                && (answer.host, answer.nonce) == (request.host, request.nonce);
            (is_true && distributor.verify(&message).is_ok()).then_some(())
        };
        match self.kept.iter().all(|frame| is_right(frame).is_some()) {
            true => Ok(()),
            false => Err(Failure::Unreadable("an answer of the distributor is wrong".to_owned())),
        }
    }
}

/// A port that hears what a distributor answers.
pub fn open_port(from: &Cable) -> Result<PacketPort, Failure> {
    from.namespace.enter(|| link::open_for_arp(&from.interface))
}

/// Puts a frame where the next flush finds it; false when there is no room.
pub(super) fn put(port: &mut PacketPort, frame: &[u8]) -> bool {
    let Some(room) = port.sender.reserve(frame.len()) else { return false };
    room[..frame.len()].copy_from_slice(frame);
    port.sender.commit(frame.len(), Meta::plain());
    true
}

fn request(parties: &Parties<'_>, key: &RequestKey, at: u64, random: &mut Generator) -> Request {
    let wanted = u32::from_be_bytes(random.bytes()) % HOSTS;
    let mut nonce: [u8; NONCE_LEN] = random.bytes();
    nonce[..8].copy_from_slice(&at.to_be_bytes());
    let question = Question { host: key.host(), nonce };
    let unsigned = unsigned(parties.ends(), wanted, &question);
    let credential = key.credential(&unsigned);
    let frame = frame(parties.ends(), &seal(unsigned, &credential));
    Request { frame, host: key.host(), nonce, wanted, open_since: None }
}

/// What a request for the key of the made-up host `wanted` says in front of its credential.
pub(super) fn unsigned(ends: Ends, wanted: u32, question: &Question) -> Vec<u8> {
    let arp = Arp {
        operation: Operation::Request,
        sender_mac: ends.mac,
        sender_ip: ends.ip,
        target_mac: ends.to,
        target_ip: filled_address(wanted),
    };
    let unix_s = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs();
    let seconds = u32::try_from(unix_s).unwrap_or(u32::MAX);
    Message { arp, kind: Kind::KeyRequest, seconds, data: &question.emit(), signature: &[] }.signed_bytes()
}

/// The frame that carries `message`.
pub(super) fn frame(ends: Ends, message: &[u8]) -> Vec<u8> {
    let header = Header { destination: ends.to, source: ends.mac, ethertype: EtherType::ARP };
    let mut frame = [&header.emit()[..], message].concat();
    frame.resize(frame.len().max(MIN_LEN), 0);
    frame
}

/// Which open request this frame answers with a key, if it does.
fn answered(frame: &[u8], requests: &[Request]) -> Option<usize> {
    let (header, message) = Header::parse(frame).ok()?;
    let message = Message::parse(message).ok()?;
    if header.ethertype != EtherType::ARP || message.kind != Kind::KeyReply {
        return None;
    }
    let answer = Answer::parse(message.data).ok()?;
    let at = number(&answer.nonce)?;
    let request = requests.get(at)?;
    (request.open_since.is_some() && request.nonce == answer.nonce).then_some(at)
}

/// Which request has this nonce.
fn number(nonce: &[u8; NONCE_LEN]) -> Option<usize> {
    usize::try_from(u64::from_be_bytes(*nonce.first_chunk()?)).ok()
}
