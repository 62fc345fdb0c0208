//! What a key distributor can bear: requests for keys that it answers in a second, and what a forged request costs it.
//!
//! The load comes over the distributor's own cable from one host in the name of many, with tags as each of them would make.
//! The yardstick is how often one core signs, measured in the same minutes; a distributor that does nothing but sign would
//! reach it.

use std::net::Ipv4Addr;
use std::time::Duration;

use bump::Generator;
use identity::distributor::{RequestKey, RequestMaster};
use identity::token::{DRAWN_LEN, NumberKey};
use system::port::Sender;
use wire::arp::{Arp, Operation};
use wire::sarp::data::{CREDENTIAL_LEN, Question, TAG_LEN};
use wire::sarp::enrolment::Application;
use wire::sarp::{Kind, Message, seal};

use super::super::mode::{Arena, Mode};
use super::super::row::Row;
use super::super::stats::{Series, median, present};
use super::super::work;
use super::super::{Schedule, cpu, twice};
use super::NAME;
use super::load::{Borne, Ends, HOSTS, Load, Parties, frame, open_port, put, unsigned};
use crate::failure::Failure;
use crate::guard::Daemon;
use crate::net::Host;

/// Forged requests in one burst.
const BURST: usize = 32;
/// Forged requests in one run.
const FORGED: usize = 300_000;
/// The number of the host that forges, and how many requests were heard of how many others.
const MEMBER: u64 = 1;
const HEARD: usize = 1024;
const HEARD_HOSTS: u64 = 64;
/// Bytes of a request for a certificate in a forged application; that of an honest machine has some 200.
const APPLICATION_LEN: usize = 200;

/// Runs the load `pairs` times.
///
/// # Errors
/// The lab is interrupted.
pub fn measure(arena: &mut Arena, schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let (Some(site), Some(load), Some(distributor)) = (&arena.site, arena.distributors_cable()?, arena.distributor()?)
    else {
        return Ok(Vec::new());
    };
    eprintln!("ringwall-lab: {HOSTS} hosts into the repository");
    site.fill_repository(HOSTS)?;
    let Some(daemon) = arena.track(Mode::Sarp).and_then(|track| track.distributor.as_ref()) else {
        return Ok(Vec::new());
    };
    let (master, key) = (site.request_master()?, site.distributor_key(&distributor)?);
    let parties = Parties { from: &load, to: &distributor, master: &master, distributor: &key };
    let time = Duration::from_secs(u64::from(schedule.seconds));
    let mut found = Found::default();
    for pair in 0..schedule.pairs {
        eprintln!("ringwall-lab: requests to the distributor, pair {} of {}", pair + 1, schedule.pairs);
        cpu::settle()?;
        let signing = twice("signing", || signing_rate(arena))?;
        let borne = twice("requests", || Load::prepare(&parties, time, u64::from(pair))?.run(&parties, time))?;
        found.push(signing, borne);
        for (forger, series) in Forger::ALL.into_iter().zip(&mut found.forged_us) {
            series.push(twice("forged requests", || cost_of_forged(&parties, daemon, forger))?);
        }
    }
    Ok(found.rows())
}

#[derive(Default)]
struct Found {
    signing: Series,
    rate: Series,
    lost: f64,
    share: Series,
    /// In the order of [`Forger::ALL`].
    forged_us: [Series; Forger::ALL.len()],
}

impl Found {
    fn push(&mut self, signing: Option<f64>, borne: Option<Borne>) {
        let rate = borne.map(|borne| borne.rate);
        self.lost += borne.map_or(0.0, |borne| borne.lost);
        self.share.push(rate.zip(signing).map(|(rate, signing)| rate / signing));
        self.signing.push(signing);
        self.rate.push(rate);
    }

    fn rows(&self) -> Vec<Row> {
        let rows = [
            Row::new(NAME, "akd/signatures_per_second", "1/s", &self.signing),
            Row::new(NAME, "akd/requests_per_second", "1/s", &self.rate)
                .map(|row| row.with_stat("hosts_in_repository", Some(f64::from(HOSTS))))
                .map(|row| row.with_stat("requests_lost", Some(self.lost))),
            Row::new(NAME, "akd/share_of_signing_rate", "ratio", &self.share),
            Row::new(NAME, "akd/forged_request_per_signature", "ratio", &self.per_signature(&self.forged_us[0])),
        ];
        let forged = Forger::ALL.iter().zip(&self.forged_us).map(|(forger, us)| self.forged(*forger, us));
        rows.into_iter().chain(forged).flatten().collect()
    }

    /// What this forger's messages cost, beside a signature.
    fn forged(&self, forger: Forger, us: &Series) -> Option<Row> {
        let row = Row::new(NAME, format!("akd/{}", forger.row()), "us", us)?;
        Some(row.with_stat("per_signature", median(&present(&self.per_signature(us)))))
    }

    fn per_signature(&self, us: &Series) -> Series {
        us.iter().zip(&self.signing).map(|(us, rate)| Some((*us)? * (*rate)? / 1e6)).collect()
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

/// Who forges requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forger {
    /// Somebody who holds no key of the site and asks for keys.
    Stranger,
    /// A host of the site that asks in its own name, without end.
    Member,
    /// Somebody who has recorded a thousand requests of hosts and changes what follows their checks.
    Listener,
    /// Somebody who applies with tokens that he makes up.
    Applicant,
    /// The same, who has heard the number of a token.
    TokenListener,
}

impl Forger {
    const ALL: [Forger; 5] =
        [Forger::Stranger, Forger::Member, Forger::Listener, Forger::Applicant, Forger::TokenListener];

    /// The name of the row.
    pub fn row(self) -> &'static str {
        match self {
            Forger::Stranger => "forged_request",
            Forger::Member => "forged_by_member",
            Forger::Listener => "forged_of_recorded",
            Forger::Applicant => "forged_enrolment",
            Forger::TokenListener => "forged_enrolment_overheard",
        }
    }

    /// Why its requests are dropped.
    fn reasons(self) -> &'static [&'static str] {
        match self {
            Forger::Stranger => &["sarp-request-check"],
            Forger::Member | Forger::Listener => &["sarp-request-tag", "sarp-budget"],
            Forger::Applicant => &["sarp-enrol-number"],
            Forger::TokenListener => &["sarp-enrol-tag", "sarp-enrol-budget"],
        }
    }

    /// So many frames with tags drawn at random.
    pub fn requests(self, ends: Ends, to: &Host, master: &RequestMaster, count: usize) -> Vec<Vec<u8>> {
        let mut random = Generator::from_seed([9; 32]);
        let overheard = NumberKey::of(master).number([1; DRAWN_LEN]);
        let mut hear = || by_host(ends, &master.key_of(host(HEARD_HOSTS, &mut random)), &mut random);
        let listened = if self == Forger::Listener { HEARD } else { 0 };
        let heard: Vec<_> = (0..listened).map(|_| hear()).collect();
        let own = master.key_of(MEMBER);
        let mut forge = |at: usize| match self {
            Forger::Stranger => by_stranger(ends, &mut random),
            Forger::Member => by_host(ends, &own, &mut random),
            Forger::Listener => with_other_tag(&heard[at % HEARD], &mut random),
            Forger::Applicant => application(ends, to, u64::from_be_bytes(random.bytes()) >> 1, &mut random),
            Forger::TokenListener => application(ends, to, overheard, &mut random),
        };
        (0..count).map(|at| frame(ends, &forge(at))).collect()
    }
}

/// The number of one of the first `hosts`.
fn host(hosts: u64, random: &mut Generator) -> u64 {
    1 + u64::from(u32::from_be_bytes(random.bytes())) % hosts
}

/// A question for any host's key.
fn question(ends: Ends, host: u64, random: &mut Generator) -> Vec<u8> {
    let question = Question { host, nonce: random.bytes() };
    unsigned(ends, u32::from_be_bytes(random.bytes()) % HOSTS, &question)
}

/// A question in the name of any host, by who has none of its keys.
fn by_stranger(ends: Ends, random: &mut Generator) -> Vec<u8> {
    let host = host(u64::from(HOSTS), random);
    seal(question(ends, host, random), &random.bytes::<CREDENTIAL_LEN>())
}

/// A question of the host with this key, with a right check and another tag.
fn by_host(ends: Ends, key: &RequestKey, random: &mut Generator) -> Vec<u8> {
    let unsigned = question(ends, key.host(), random);
    let credential = key.credential(&unsigned);
    with_other_tag(&seal(unsigned, &credential), random)
}

/// The message with a tag drawn at random.
fn with_other_tag(message: &[u8], random: &mut Generator) -> Vec<u8> {
    let (before, _) = message.split_at(message.len() - TAG_LEN);
    [before, &random.bytes::<TAG_LEN>()].concat()
}

/// An application with the token `number`, whose request for a certificate is none.
fn application(ends: Ends, to: &Host, number: u64, random: &mut Generator) -> Vec<u8> {
    let question = Question { host: number, nonce: random.bytes() };
    let data = Application { question, sealing_key: random.bytes(), request: &[0x30; APPLICATION_LEN] }.emit();
    let arp = Arp {
        operation: Operation::Request,
        sender_mac: ends.mac,
        sender_ip: Ipv4Addr::UNSPECIFIED,
        target_mac: to.mac,
        target_ip: to.ip,
    };
    let unsigned = Message { arp, kind: Kind::Apply, seconds: 0, data: &data, signature: &[] }.signed_bytes();
    seal(unsigned, &random.bytes::<TAG_LEN>())
}

/// Microseconds of the daemon's processor time for a forged request: what all its threads used meanwhile, by the requests
/// that it says it refused.
fn cost_of_forged(parties: &Parties<'_>, daemon: &Daemon, forger: Forger) -> Result<f64, Failure> {
    let id = daemon.id().ok_or_else(|| Failure::Unreadable("the distributor has ended".to_owned()))?;
    let mut port = open_port(parties.from)?;
    let forged = forger.requests(parties.ends(), parties.to, parties.master, FORGED);
    let refused = || {
        let drops = daemon.drops()?;
        Ok::<u64, Failure>(forger.reasons().iter().filter_map(|reason| drops.get(*reason)).sum())
    };
    let (before, idle) = (refused()?, cpu::exact(id)?);
    for burst in forged.chunks(BURST) {
        for frame in burst {
            put(&mut port, frame);
        }
        port.sender.flush();
        // As fast as it can be taken: what is lost on the way costs the distributor nothing.
        std::thread::sleep(Duration::from_micros(150));
    }
    std::thread::sleep(Duration::from_millis(100));
    let (busy, after) = (cpu::exact(id)?, refused()?);
    let (taken, spent) = (after.saturating_sub(before), busy.saturating_sub(idle));
    if taken < FORGED as u64 / 2 {
        return Err(Failure::Unreadable(format!("only {taken} of {FORGED} forged requests arrived")));
    }
    Ok(spent.as_secs_f64() * 1e6 / taken as f64)
}
