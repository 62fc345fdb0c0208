//! Floods of first messages of IKE, the paper's section 6.1: what they take from a tunnel that is there, and how long a third host needs
//! to open one meanwhile.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::super::flood::Pace;
use super::super::placement::{Receive, SENDER_CORE, sit_on};
use super::super::stage::Measured;
use super::super::{Series, row};
use super::forgery::Pretence;
use super::hosts::{Front, Hosts};
use crate::bench::row::Row;
use crate::bench::stats::median;
use crate::bench::{Schedule, twice};
use crate::cleanup::Run;
use crate::failure::Failure;
use crate::net::{Direction, Frame, Lan, Watch, process};

/// How long an opening of a tunnel may take: two repetitions of strongSwan's first message (4 s and 7.2 s apart) and not a third.
const OPENING_LIMIT: Duration = Duration::from_secs(12);
/// How long the stream runs beside a flood, so that an opening finds the flood there that long.
const TIME: Duration = Duration::from_secs(14);
/// Of a quick run: no repetition fits in.
const QUICK_TIME: Duration = Duration::from_secs(3);
/// How fast messages come: beside openings and a stream a program with a packet socket comes to too few for a row.
const PACES: [Pace; 2] = [Pace::Steady, Pace::Max];
/// Between two openings.
const INTERVAL: Duration = Duration::from_millis(200);
/// Where a frame of IKE has its port, and the type of its exchange (RFC 7296, section 3.1).
const PORTS_AT: usize = 14 + 20;
const EXCHANGE_AT: usize = 14 + 20 + 8 + 18;
const IKE_SA_INIT: u8 = 34;

/// What a run showed.
struct Flooded {
    stream: Measured,
    openings_ms: Vec<f64>,
    failed: usize,
}

/// Both pretences at both paces, beside the stream and openings alone.
///
/// # Errors
/// The hosts cannot be set up, or the lab is interrupted.
pub fn measure(
    run: &Run,
    program: &Path,
    (front, receive): (Front, Receive),
    schedule: Schedule,
) -> Result<Vec<Row>, Failure> {
    let hosts = Hosts::open(run, program, front, receive, None)?;
    let genuine = first_message(&hosts)?;
    let time = if schedule.quick { QUICK_TIME } else { TIME };
    let floods = Pretence::ALL.into_iter().flat_map(|pretence| PACES.map(|pace| Some((pretence, pace))));
    let mut found: Vec<_> = std::iter::once(None).chain(floods).map(|flood| (flood, Vec::new())).collect();
    let pairs = schedule.lighter().pairs;
    for pair in 0..pairs {
        eprintln!("ringwall-lab: floods of IKE {}, pair {} of {pairs}", front.name(), pair + 1);
        for (flood, found) in &mut found {
            found.push(twice(&name(*flood, front), || hosts.play(&genuine, *flood, time))?);
        }
    }
    let alone: Series = found[0].1.iter().map(|one| one.as_ref().map(|one| one.stream.goodput_mbit)).collect();
    let rows = found.iter().filter_map(|(flood, found)| of_flood(&name(*flood, front), found, &alone));
    Ok(rows.map(|row| row.with_note("hook", front.hook())).collect())
}

fn name(flood: Option<(Pretence, Pace)>, front: Front) -> String {
    flood.map_or(format!("strongswan/ike_alone/{}", front.name()), |(pretence, pace)| {
        format!("strongswan/{}/{}/{}", pretence.name(), front.name(), pace.name())
    })
}

fn of_flood(name: &str, found: &[Option<Flooded>], alone: &Series) -> Option<Row> {
    let streams: Vec<Option<Measured>> = found.iter().map(|one| one.as_ref().map(|one| one.stream)).collect();
    let row = row(name, &streams, alone)?;
    let taken: Vec<f64> = found.iter().flatten().flat_map(|one| one.openings_ms.iter().copied()).collect();
    let failed: usize = found.iter().flatten().map(|one| one.failed).sum();
    let row = row.with_stat("initiation_median_ms", median(&taken)).with_stat("initiations", Some(taken.len() as f64));
    Some(row.with_stat("initiations_failed", Some(failed as f64)))
}

impl Hosts {
    /// Lets the stream run and the third host open tunnels one after the other, beside a flood.
    fn play(&self, genuine: &Frame, flood: Option<(Pretence, Pace)>, time: Duration) -> Result<Flooded, Failure> {
        let (a, m) = (self.lan.host("a")?, self.lan.host("m")?);
        let frames = flood.map(|(pretence, pace)| (pretence.frames(genuine, m, a), pace));
        let over = AtomicBool::new(false);
        let (stream, openings) = thread::scope(|scope| {
            let opening = scope.spawn(|| self.open_tunnels(time, &over));
            let stream = self.measure_beside(frames, time);
            over.store(true, Ordering::Relaxed);
            (stream, opening.join())
        });
        let ended = |_| Failure::Unreadable("who opens tunnels ended".to_owned());
        let (openings_ms, failed) = openings.map_err(ended)??;
        Ok(Flooded { stream: stream?, openings_ms, failed })
    }

    /// Opens the third host's tunnel and forgets it again, until it is over; how long each opening took, in milliseconds, and how many
    /// came to nothing.
    fn open_tunnels(&self, time: Duration, over: &AtomicBool) -> Result<(Vec<f64>, usize), Failure> {
        sit_on(SENDER_CORE, None)?;
        let (a, swan) = (self.lan.host("a")?, self.swan("c")?);
        let limit = OPENING_LIMIT.min(time);
        let (mut taken, mut failed) = (Vec::new(), 0);
        // The flood must be there.
        process::pause(Duration::from_secs(1))?;
        while !over.load(Ordering::Relaxed) {
            let start = Instant::now();
            match swan.initiate_once(a, limit) {
                Ok(()) => taken.push(start.elapsed().as_secs_f64() * 1e3),
                Err(Failure::Interrupted) => return Err(Failure::Interrupted),
                Err(_) => failed += 1,
            }
            // What did not come to be is not there to be forgotten.
            let _none = swan.terminate(a);
            process::pause(INTERVAL)?;
        }
        Ok((taken, failed))
    }
}

/// The first message with which the third host opens a tunnel, as the wire has it.
fn first_message(hosts: &Hosts) -> Result<Frame, Failure> {
    let (a, c) = (hosts.lan.host("a")?, hosts.lan.host("c")?);
    let watch = Watch::start(&hosts.lan.bridge, &Lan::port(c), Direction::In, &hosts.lan.directory, "first")?;
    hosts.swan("c")?.initiate(a, OPENING_LIMIT)?;
    hosts.swan("c")?.terminate(a)?;
    let is_first = |frame: &Frame| {
        frame.ipv4_source() == Some(c.ip)
            && frame.0.get(PORTS_AT..PORTS_AT + 4) == Some(&[1, 0xf4, 1, 0xf4])
            && frame.0.get(EXCHANGE_AT) == Some(&IKE_SA_INIT)
    };
    let found = watch.stop()?.into_iter().find(is_first);
    found.ok_or_else(|| Failure::Unreadable("no first message of IKE was overheard".to_owned()))
}
