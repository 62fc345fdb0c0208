//! What a key distributor can bear: requests for keys that it answers in a second, and what a forged request costs it.
//!
//! The load comes over the wire from one host in the name of many, with tags as each of them would make. The yardstick is how
//! often one core signs, measured in the same minutes; a distributor that does nothing but sign would reach it.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use bump::{Batch, Generator, Meta};
use identity::distributor::RequestMaster;
use system::port::{PacketPort, Receiver, Sender};
use wire::arp::{Arp, Operation};
use wire::ethernet::{Header, MIN_LEN};
use wire::sarp::data::Question;
use wire::sarp::{Kind, Message, seal};
use wire::{EtherType, MacAddress};

use super::super::mode::{Arena, Mode};
use super::super::row::Row;
use super::super::stats::Series;
use super::super::work;
use super::super::{Schedule, cpu, twice};
use super::NAME;
use crate::failure::Failure;
use crate::guard::Daemon;
use crate::net::Host;
use crate::net::lan::INTERFACE;
use crate::net::link;

/// Hosts in the repository.
const HOSTS: u32 = 100_000;
/// Hosts in whose name is asked. Each asks less often than a distributor allows it.
const ASKING: u64 = 4000;
/// Requests that may be unanswered at a time.
const UNDER_WAY_MAX: u64 = 192;
/// Requests in one burst.
const BURST: u64 = 32;
/// An answer that takes longer is lost.
const PATIENCE: Duration = Duration::from_millis(100);
/// Forged requests in one run.
const FORGED: u64 = 100_000;

/// Runs the load `pairs` times.
///
/// # Errors
/// The lab is interrupted.
pub fn measure(arena: &mut Arena, schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let (Some(site), Some(load), Some(distributor)) = (&arena.site, arena.load_host()?, arena.distributor()?) else {
        return Ok(Vec::new());
    };
    eprintln!("ringwall-lab: {HOSTS} hosts into the repository");
    site.fill_repository(HOSTS)?;
    let Some(daemon) = arena.track(Mode::Sarp).and_then(|track| track.distributor.as_ref()) else {
        return Ok(Vec::new());
    };
    let master = site.request_master()?;
    let time = Duration::from_secs(u64::from(schedule.seconds));
    let mut found = Found::default();
    for pair in 0..schedule.pairs {
        eprintln!("ringwall-lab: requests to the distributor, pair {} of {}", pair + 1, schedule.pairs);
        cpu::settle()?;
        let signing = twice("signing", || signing_rate(arena))?;
        let rate = twice("requests", || Load::open(&load, &distributor, &master, u64::from(pair))?.run(time))?;
        let forged = twice("forged requests", || cost_of_forged(&load, &distributor, daemon))?;
        found.push(signing, rate, forged);
    }
    Ok(found.rows())
}

#[derive(Default)]
struct Found {
    signing: Series,
    rate: Series,
    share: Series,
    forged_us: Series,
    forged_share: Series,
}

impl Found {
    fn push(&mut self, signing: Option<f64>, rate: Option<f64>, forged_us: Option<f64>) {
        let both = |one: Option<f64>, combine: fn(f64, f64) -> f64| Some(combine(one?, signing?));
        self.share.push(both(rate, |rate, signing| rate / signing));
        self.forged_share.push(both(forged_us, |us, signing| us * signing / 1e6));
        self.signing.push(signing);
        self.rate.push(rate);
        self.forged_us.push(forged_us);
    }

    fn rows(&self) -> Vec<Row> {
        let rows = [
            Row::new(NAME, "akd/signatures_per_second", "1/s", &self.signing),
            Row::new(NAME, "akd/requests_per_second", "1/s", &self.rate)
                .map(|row| row.with_stat("hosts_in_repository", Some(f64::from(HOSTS)))),
            Row::new(NAME, "akd/share_of_signing_rate", "ratio", &self.share),
            Row::new(NAME, "akd/forged_request", "us", &self.forged_us),
            Row::new(NAME, "akd/forged_request_per_signature", "ratio", &self.forged_share),
        ];
        rows.into_iter().flatten().collect()
    }
}

/// How often one core signs in a second, without doing anything else.
fn signing_rate(arena: &Arena) -> Result<f64, Failure> {
    let (Some(site), Some(distributor)) = (&arena.site, arena.distributor()?) else {
        return Err(Failure::MissingTool("ringwall".to_owned()));
    };
    let found = work::time_with(site, &distributor, &["--runs", "5000", "--message-len", "110"])?;
    let sign = found.iter().find(|operation| operation.name == "sign");
    sign.map(|sign| 1.0 / sign.median.as_secs_f64())
        .ok_or_else(|| Failure::Unreadable("no time for signing".to_owned()))
}

/// A host that asks in the name of many.
struct Load<'a> {
    port: PacketPort,
    from: &'a Host,
    to: &'a Host,
    keys: Vec<identity::distributor::RequestKey>,
    random: Generator,
    sent: u64,
    answered: u64,
}

impl<'a> Load<'a> {
    fn open(from: &'a Host, to: &'a Host, master: &RequestMaster, seed: u64) -> Result<Load<'a>, Failure> {
        let keys = (1..=ASKING).map(|number| master.key_of(number)).collect();
        let mut bytes = [7; 32];
        bytes[..8].copy_from_slice(&seed.to_be_bytes());
        let random = Generator::from_seed(bytes);
        Ok(Load { port: open_port(from)?, from, to, keys, random, sent: 0, answered: 0 })
    }

    /// Asks for as long as `time`, at most [`UNDER_WAY_MAX`] questions ahead of the answers; returns answers per second.
    fn run(mut self, time: Duration) -> Result<f64, Failure> {
        let start = Instant::now();
        let mut heard = start;
        while start.elapsed() < time {
            if self.sent - self.answered < UNDER_WAY_MAX {
                self.ask(BURST);
            }
            if self.hear()? {
                heard = Instant::now();
            } else if heard.elapsed() > PATIENCE {
                // What was lost is not waited for.
                (self.sent, heard) = (self.answered, Instant::now());
            } else {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
        Ok(self.answered as f64 / start.elapsed().as_secs_f64())
    }

    fn ask(&mut self, count: u64) {
        for _ in 0..count {
            let message = self.request();
            if put(&mut self.port, self.from.mac, self.to.mac, &message) {
                self.sent += 1;
            }
        }
        self.port.sender.flush();
    }

    fn hear(&mut self) -> Result<bool, Failure> {
        let heard = self.port.receiver.fill().map_err(Failure::io("hearing the distributor"))?;
        while let Some(frame) = self.port.receiver.next_frame() {
            self.answered += u64::from(is_answer(frame.bytes));
        }
        Ok(heard)
    }

    fn request(&mut self) -> Vec<u8> {
        let key = &self.keys[usize::try_from(self.sent % ASKING).unwrap_or(0)];
        let wanted = u32::from_be_bytes(self.random.bytes()) % HOSTS;
        let question = Question { host: key.host(), nonce: self.random.bytes() };
        let unsigned = unsigned(self.from.mac, self.to.mac, crate::guard::filled_address(wanted), &question);
        let tag = key.tag(&unsigned);
        seal(unsigned, &tag)
    }
}

fn open_port(from: &Host) -> Result<PacketPort, Failure> {
    from.namespace.enter(|| link::open(INTERFACE))
}

fn put(port: &mut PacketPort, source: MacAddress, destination: MacAddress, message: &[u8]) -> bool {
    let header = Header { destination, source, ethertype: EtherType::ARP }.emit();
    let len = (header.len() + message.len()).max(MIN_LEN);
    let Some(room) = port.sender.reserve(len) else { return false };
    room[..len].fill(0);
    room[..header.len()].copy_from_slice(&header);
    room[header.len()..header.len() + message.len()].copy_from_slice(message);
    port.sender.commit(len, Meta::plain());
    true
}

fn unsigned(source: MacAddress, target_mac: MacAddress, wanted: Ipv4Addr, question: &Question) -> Vec<u8> {
    let arp = Arp {
        operation: Operation::Request,
        sender_mac: source,
        sender_ip: Ipv4Addr::new(10, 77, 0, 102),
        target_mac,
        target_ip: wanted,
    };
    let unix_s = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs();
    let seconds = u32::try_from(unix_s).unwrap_or(u32::MAX);
    Message { arp, kind: Kind::KeyRequest, seconds, data: &question.emit(), signature: &[] }.signed_bytes()
}

fn is_answer(frame: &[u8]) -> bool {
    let Ok((header, message)) = Header::parse(frame) else { return false };
    header.ethertype == EtherType::ARP && Message::parse(message).is_ok_and(|message| message.kind == Kind::KeyReply)
}

/// Microseconds of the daemon for a request whose tag is wrong.
fn cost_of_forged(load: &Host, distributor: &Host, daemon: &Daemon) -> Result<f64, Failure> {
    let id = daemon.id().ok_or_else(|| Failure::Unreadable("the distributor has ended".to_owned()))?;
    let mut port = open_port(load)?;
    let question = Question { host: 1, nonce: [1; 16] };
    let message = unsigned(load.mac, distributor.mac, Ipv4Addr::new(10, 77, 0, 1), &question);
    let forged = seal(message, &[0; 16]);
    let refused = |daemon: &Daemon| Ok::<u64, Failure>(daemon.drops()?.get("sarp-request-tag").copied().unwrap_or(0));
    let (before, idle) = (refused(daemon)?, cpu::processes(&[id])?);
    let mut sent = 0;
    while sent < FORGED {
        for _ in 0..BURST {
            sent += u64::from(put(&mut port, load.mac, distributor.mac, &forged));
        }
        port.sender.flush();
        // As fast as it can be taken: what is lost on the way costs the distributor nothing.
        std::thread::sleep(Duration::from_micros(150));
    }
    std::thread::sleep(Duration::from_millis(100));
    let (after, busy) = (refused(daemon)?, cpu::processes(&[id])?);
    let (taken, spent) = (after.saturating_sub(before), busy.saturating_sub(idle));
    if taken < FORGED / 2 {
        return Err(Failure::Unreadable(format!("only {taken} of {FORGED} forged requests arrived")));
    }
    Ok(spent.as_secs_f64() * 1e6 / taken as f64)
}
