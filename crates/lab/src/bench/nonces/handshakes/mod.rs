//! Floods of requests for handshakes, the paper's section 6.1: what they take from a stream that is there, and how long an honest
//! handshake takes meanwhile.
//!
//! The receiver has a processor for itself, as in `stage.rs`. The stream is that of `stream.rs`; the honest handshakes are those of a
//! third host, whose link layer runs here, one after the other. What is forged is made of a request of a fourth, who is silent
//! otherwise: whoever sends in a host's name takes its place in the switch, which is another attack (49).

mod forgery;
pub mod restarted;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cll::limits::CLOCK_TOLERANCE;
use identity::aead::Suite;
use shield::{Hook, Layers};

use super::NAME;
use super::books::{busy, forged_to};
use super::flood::AHEAD;
use super::flood::{self, Flood, Pace};
use super::peer::Peer;
use super::placement::{
    RECEIVER_CORE, Receive, SENDER_CORE, STREAM_PRIORITY, place, place_receive_path, receive_in_a_thread,
};
use super::starting::start_at;
use super::stream::{PAYLOAD_LEN, PER_SECOND, Stream};
use crate::bench::row::Row;
use crate::bench::stats::{Series, median, present};
use crate::bench::work::Work;
use crate::bench::{Schedule, cpu, twice};
use crate::cleanup::Run;
use crate::failure::Failure;
use crate::guard::{Daemon, Site};
use crate::net::flood::Forged;
use crate::net::{Host, Lan, LanPlan, process};
pub use forgery::Forgery;

/// Between two honest handshakes: a host's budget for answers to one source is four a second.
const INTERVAL: Duration = Duration::from_millis(300);
/// Share of the stream that must leave its program: what is lost there is not the receiver's loss.
const SENT_MIN: f64 = 0.99;

/// What a run showed.
#[derive(Clone, Debug)]
struct Measured {
    goodput_mbit: f64,
    /// How long each honest handshake took that came to an end.
    handshakes_ms: Vec<f64>,
    failed: usize,
    forged_per_second: f64,
}

/// The hosts: a receiver, the stream's sender, who shakes hands, whose request is forged, and the attacker.
struct Hosts {
    _daemons: [Daemon; 2],
    receive: Receive,
    site: Site,
    lan: Lan,
}

/// Every flood at every pace, beside the stream without any.
///
/// # Errors
/// The hosts cannot be set up, or the lab is interrupted.
pub fn measure(
    run: &Run,
    program: &Path,
    schedule: Schedule,
    (receive, hook): (Receive, Hook),
) -> Result<Vec<Row>, Failure> {
    let hosts = Hosts::open(run, program, (receive, hook))?;
    let floods = Forgery::ALL.into_iter().flat_map(|forgery| Pace::ALL.map(|pace| Some((forgery, pace))));
    let mut found: Vec<_> = std::iter::once(None).chain(floods).map(|flood| (flood, Vec::new())).collect();
    for pair in 0..schedule.pairs {
        eprintln!("ringwall-lab: floods of handshakes, pair {} of {}", pair + 1, schedule.pairs);
        for (flood, found) in &mut found {
            found.push(twice(&name(*flood), || hosts.play(*flood, Duration::from_secs(schedule.seconds.into())))?);
        }
    }
    let alone = goodput(&found[0].1);
    let rows = found.iter().filter_map(|(flood, found)| row(&name(*flood), found, &alone));
    Ok(rows.map(|row| row.with_note("hook", hook.word())).collect())
}

/// The row of this flood, or of the stream and honest handshakes alone.
pub fn name(flood: Option<(Forgery, Pace)>) -> String {
    flood.map_or("handshakes/alone".to_owned(), |(forgery, pace)| {
        format!("handshakes/{}/{}", forgery.name(), pace.name())
    })
}

fn goodput(found: &[Option<Measured>]) -> Series {
    found.iter().map(|one| one.as_ref().map(|one| one.goodput_mbit)).collect()
}

fn row(name: &str, found: &[Option<Measured>], alone: &Series) -> Option<Row> {
    let mbit = goodput(found);
    let row = Row::new(NAME, name, "Mbit/s", &mbit)?.against_plain(&mbit, alone);
    let ran = || found.iter().flatten();
    let taken: Vec<f64> = ran().flat_map(|one| one.handshakes_ms.iter().copied()).collect();
    let rates: Series = ran().map(|one| Some(one.forged_per_second)).collect();
    let row = row.with_stat("handshake_median_ms", median(&taken)).with_stat("handshakes", Some(taken.len() as f64));
    let row = row.with_stat("handshakes_failed", Some(ran().map(|one| one.failed).sum::<usize>() as f64));
    Some(row.with_stat("forged_per_second_on_wire", median(&present(&rates))))
}

impl Hosts {
    fn open(run: &Run, program: &Path, (receive, hook): (Receive, Hook)) -> Result<Hosts, Failure> {
        let lan = Lan::create(run, &LanPlan { hosts: vec!["a", "b", "c", "f", "m"], ..LanPlan::default() })?;
        let site = Site::found_as(run, program, "-handshakes", None)?;
        let (a, b) = (lan.host("a")?, lan.host("b")?);
        receive_in_a_thread(&lan, a, receive)?;
        let guard = |host, way| start_at(&site, &lan, host, (Work::Encrypt, Layers::Kernel), way);
        let daemons = [guard(a, (hook, receive))?, guard(b, (Hook::Socket, Receive::default()))?];
        lan.acquaint(b, a)?;
        place(&daemons[0], RECEIVER_CORE, receive.of_daemon())?;
        place(&daemons[1], SENDER_CORE, Some(STREAM_PRIORITY))?;
        place_receive_path(receive)?;
        until_times_are_believed()?;
        Ok(Hosts { _daemons: daemons, receive, site, lan })
    }

    /// Lets the stream run and a third host shake hands, under a flood from a little before to the end.
    fn play(&self, flood: Option<(Forgery, Pace)>, time: Duration) -> Result<Measured, Failure> {
        let [a, b, c, f] = ["a", "b", "c", "f"].map(|name| self.lan.host(name));
        let (a, b, c, f) = (a?, b?, c?, f?);
        let frames =
            flood.map(|(forgery, pace)| Ok::<_, Failure>((forge(&self.site, forgery, f, a)?, pace))).transpose()?;
        let stream = Stream::open(b, a, self.receive)?;
        cpu::settle()?;
        let before = forged_to(&self.lan, a)?;
        let (start, over) = (Instant::now(), AtomicBool::new(false));
        let flood = frames.map(|(frames, pace)| flood::start(&self.lan, a, frames, pace)).transpose()?;
        let (sample, shaken) = thread::scope(|scope| {
            let over = &over;
            thread::sleep(AHEAD);
            let shaking = scope.spawn(|| shake_hands(&self.site, c, a, over));
            let sample = stream.run(time, || over.store(true, Ordering::Relaxed));
            let shaken = shaking.join().map_err(|_| Failure::Unreadable("who shakes hands ended".to_owned()));
            Ok::<_, Failure>((sample?, shaken??))
        })?;
        flood.map(Flood::stop).transpose()?;
        let (handshakes_ms, failed) = shaken;
        let share = sample.sent as f64 / (time.as_secs_f64() * PER_SECOND);
        if share < SENT_MIN {
            return Err(busy(&format!("only {share:.3} of the stream were sent")));
        }
        Ok(Measured {
            goodput_mbit: sample.delivered as f64 * PAYLOAD_LEN as f64 * 8.0 / 1e6 / time.as_secs_f64(),
            handshakes_ms,
            failed,
            forged_per_second: (forged_to(&self.lan, a)? - before) / start.elapsed().as_secs_f64(),
        })
    }
}

/// One handshake after the other until it is over; how long each took, in milliseconds, and how many
/// came to nothing.
fn shake_hands(site: &Site, own: &Host, other: &Host, over: &AtomicBool) -> Result<(Vec<f64>, usize), Failure> {
    let (mut taken, mut failed) = (Vec::new(), 0);
    while !over.load(Ordering::Relaxed) {
        let mut peer = Peer::open(own, site.host_identity(own)?, Suite::Aes256Gcm)?;
        let start = Instant::now();
        match peer.ask_for(own, other) {
            Ok(()) => taken.push(start.elapsed().as_secs_f64() * 1e3),
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            Err(_) => failed += 1,
        }
        thread::sleep(INTERVAL);
    }
    Ok((taken, failed))
}

/// A host that has just started challenges everybody, so that it believes nothing that was made before. Later it believes the time in a
/// stranger's request, and that is the worse case.
fn until_times_are_believed() -> Result<(), Failure> {
    let end = Instant::now() + CLOCK_TOLERANCE + AHEAD;
    while Instant::now() < end {
        process::pause(AHEAD)?;
    }
    Ok(())
}

/// The frames of a flood of requests of `own`, who says nothing else; the one that is repeated has been heard once.
///
/// # Errors
/// There is no request.
pub fn forge(site: &Site, forgery: Forgery, own: &Host, other: &Host) -> Result<Forged, Failure> {
    let identity = site.host_identity(own)?;
    let mut peer = Peer::open(own, site.host_identity(own)?, Suite::Aes256Gcm)?;
    let request = peer.request(own, other)?;
    if forgery == Forgery::Replayed {
        peer.send(std::slice::from_ref(&request));
        thread::sleep(AHEAD);
    }
    Ok(forgery.forge(&request, &identity))
}
