//! What a key distributor can bear: requests for keys that it answers in a second, and what a forged request costs it.
//!
//! The load comes over the wire from one host in the name of many, with tags as each of them would make. The yardstick is how
//! often one core signs, measured in the same minutes; a distributor that does nothing but sign would reach it.

use std::time::Duration;

use bump::Generator;
use system::port::Sender;
use wire::sarp::data::{CHECK_LEN, CREDENTIAL_LEN, Question};
use wire::sarp::seal;

use super::super::mode::{Arena, Mode};
use super::super::row::Row;
use super::super::stats::Series;
use super::super::work;
use super::super::{Schedule, cpu, twice};
use super::NAME;
use super::load::{Borne, Load, Parties, frame, open_port, put, unsigned};
use crate::failure::Failure;
use crate::guard::Daemon;

/// Hosts in the repository, and hosts in whose name is asked.
pub(super) const HOSTS: u32 = 100_000;
/// Forged requests in one burst.
const BURST: usize = 32;
/// Forged requests in one run.
const FORGED: usize = 300_000;

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
    let (master, members) = (site.request_master()?, site.member_key(&distributor)?);
    let key = site.distributor_key(&distributor)?;
    let parties = Parties { from: &load, to: &distributor, members: &members, master: &master, distributor: &key };
    let time = Duration::from_secs(u64::from(schedule.seconds));
    let mut found = Found::default();
    for pair in 0..schedule.pairs {
        eprintln!("ringwall-lab: requests to the distributor, pair {} of {}", pair + 1, schedule.pairs);
        cpu::settle()?;
        let signing = twice("signing", || signing_rate(arena))?;
        let borne = twice("requests", || Load::prepare(&parties, time, u64::from(pair))?.run(&parties, time))?;
        let forged = |forger| twice("forged requests", || cost_of_forged(&parties, daemon, forger));
        found.push(signing, borne, [forged(Forger::Stranger)?, forged(Forger::Member)?]);
    }
    Ok(found.rows())
}

#[derive(Default)]
struct Found {
    signing: Series,
    rate: Series,
    lost: f64,
    share: Series,
    forged_us: Series,
    forged_share: Series,
    by_member_us: Series,
}

impl Found {
    fn push(&mut self, signing: Option<f64>, borne: Option<Borne>, [forged_us, by_member_us]: [Option<f64>; 2]) {
        let rate = borne.map(|borne| borne.rate);
        self.lost += borne.map_or(0.0, |borne| borne.lost);
        let both = |one: Option<f64>, combine: fn(f64, f64) -> f64| Some(combine(one?, signing?));
        self.share.push(both(rate, |rate, signing| rate / signing));
        self.forged_share.push(both(forged_us, |us, signing| us * signing / 1e6));
        self.signing.push(signing);
        self.rate.push(rate);
        self.forged_us.push(forged_us);
        self.by_member_us.push(by_member_us);
    }

    fn rows(&self) -> Vec<Row> {
        let rows = [
            Row::new(NAME, "akd/signatures_per_second", "1/s", &self.signing),
            Row::new(NAME, "akd/requests_per_second", "1/s", &self.rate)
                .map(|row| row.with_stat("hosts_in_repository", Some(f64::from(HOSTS))))
                .map(|row| row.with_stat("requests_lost", Some(self.lost))),
            Row::new(NAME, "akd/share_of_signing_rate", "ratio", &self.share),
            Row::new(NAME, "akd/forged_request", "us", &self.forged_us),
            Row::new(NAME, "akd/forged_request_per_signature", "ratio", &self.forged_share),
            Row::new(NAME, "akd/forged_by_member", "us", &self.by_member_us),
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

/// Who forges requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forger {
    /// Somebody who holds no key of the site.
    Stranger,
    /// A host of the site that asks in the name of others, or an outsider who changes what he has recorded.
    Member,
}

impl Forger {
    /// Why its requests are dropped.
    fn reason(self) -> &'static str {
        match self {
            Forger::Stranger => "sarp-request-check",
            Forger::Member => "sarp-request-tag",
        }
    }

    /// Requests in the name of any host, with nonces and tags drawn at random.
    fn requests(self, parties: &Parties<'_>) -> Vec<Vec<u8>> {
        let mut random = Generator::from_seed([9; 32]);
        let (source, destination) = (parties.from.mac, parties.to.mac);
        let mut forge = || {
            let host = 1 + u64::from(u32::from_be_bytes(random.bytes()) % HOSTS);
            let question = Question { host, nonce: random.bytes() };
            let wanted = u32::from_be_bytes(random.bytes()) % HOSTS;
            let unsigned = unsigned(source, destination, wanted, &question);
            let mut credential: [u8; CREDENTIAL_LEN] = random.bytes();
            if let (Forger::Member, Some(head)) = (self, unsigned.first_chunk()) {
                credential[..CHECK_LEN].copy_from_slice(&parties.members.check(head));
            }
            frame(source, destination, &seal(unsigned, &credential))
        };
        (0..FORGED).map(|_| forge()).collect()
    }
}

/// Microseconds of the daemon's processor time for a forged request: what all its threads used meanwhile, by the requests
/// that it says it refused.
fn cost_of_forged(parties: &Parties<'_>, daemon: &Daemon, forger: Forger) -> Result<f64, Failure> {
    let id = daemon.id().ok_or_else(|| Failure::Unreadable("the distributor has ended".to_owned()))?;
    let mut port = open_port(parties.from)?;
    let forged = forger.requests(parties);
    let refused = || Ok::<u64, Failure>(daemon.drops()?.get(forger.reason()).copied().unwrap_or(0));
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
