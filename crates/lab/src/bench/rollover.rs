//! What a rollover costs (CLL paper, section 5.4): cryptography, CPU time of both daemons, the time from request to acknowledgement,
//! and what is left of a stream while keys are replaced every ten seconds.

use std::time::Duration;

use wire::cll::PacketType;

use super::first_ping::microseconds;
use super::mode::{Arena, EVERY_S, Mode, NAME, Track};
use super::row::Row;
use super::stats::{Series, median};
use super::tcp::Direction;
use super::{Schedule, cpu, twice, work};
use crate::failure::Failure;
use crate::net::talk::Ping;
use crate::net::{self, Frame, Lan, Watch, process};

/// How long rollovers are looked at, and how long where only whether it works is to be seen.
const WINDOW: Duration = Duration::from_secs(10);
const QUICK_WINDOW: Duration = Duration::from_secs(4);
/// After this the pings of both pairs go.
const BEGIN: Duration = Duration::from_secs(1);
/// Length of a stream: two rollovers each, or one.
const STREAM_S: u32 = 2 * EVERY_S + 1;
const QUICK_STREAM_S: u32 = EVERY_S + 1;
/// An acknowledgement in its frame is shorter, requests and replies with their certificates are longer, in bytes. Pings lie between.
const ACKNOWLEDGEMENT_MAX: usize = 100;
const REQUEST_MIN: usize = 200;

/// What one side of a rollover has to work out, in the words of `ringwall bench-crypto`: it signs, judges the other's certificate
/// and signature, agrees and derives.
const STEPS: [&str; 5] = ["sign", "certificate_verify", "verify", "agree", "derive"];

/// Everything seen, one entry per pair.
#[derive(Default)]
struct Found {
    /// Cryptography of one side, in microseconds.
    steps: Series,
    /// CPU time of both daemons for one rollover, in microseconds.
    cpu: Series,
    /// From request to acknowledgement, in microseconds.
    times: Series,
    /// Goodput with the same keys all the time, in Mbit/s, and with new ones every ten seconds.
    steady: Series,
    rekeyed: Series,
}

/// Looks at rollovers between hosts that do little else, and at streams with them and without.
///
/// # Errors
/// The lab is interrupted.
pub fn measure(arena: &Arena, schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let mut found = Found::default();
    let (window, stream_s) = if schedule.quick { (QUICK_WINDOW, QUICK_STREAM_S) } else { (WINDOW, STREAM_S) };
    for pair in 0..schedule.pairs {
        eprintln!("ringwall-lab: rollovers, pair {} of {}", pair + 1, schedule.pairs);
        found.steps.push(time_steps(arena)?);
        let seen = twice("rollovers", || look(arena, window))?.flatten();
        found.cpu.push(seen.map(|(cpu_us, _)| cpu_us));
        found.times.push(seen.map(|(_, time_us)| time_us));
        for (mode, series) in [(Mode::Encrypted, &mut found.steady), (Mode::Rekeying, &mut found.rekeyed)] {
            let Some(track) = arena.track(mode) else { continue };
            let what = format!("TCP, {}", mode.name());
            let sample = twice(&what, || track.stream(Direction::Forward, stream_s))?;
            series.push(sample.map(|sample| sample.goodput_mbit));
        }
    }
    Ok(found.rows())
}

/// The sum of what one side works out; missing where the program does not say.
fn time_steps(arena: &Arena) -> Result<Option<f64>, Failure> {
    let (Some(site), Some(track)) = (&arena.site, arena.track(Mode::Encrypted)) else { return Ok(None) };
    cpu::settle()?;
    let measured = twice("the steps of a rollover", || work::time_operations(site, &track.a))?.unwrap_or_default();
    Ok(sum(&measured))
}

fn sum(measured: &[(String, Duration)]) -> Option<f64> {
    let time =
        |operation: &str| measured.iter().find(|(name, _)| name == operation).map(|(_, time)| microseconds(*time));
    STEPS.iter().map(|operation| time(operation)).sum()
}

/// CPU time of both daemons for a rollover between hosts that ping each other, less what two others take that do the same under the
/// same keys, and the median of the times from request to acknowledgement; in microseconds. Without the pings nothing would be due.
fn look(arena: &Arena, window: Duration) -> Result<Option<(f64, f64)>, Failure> {
    let (Some(track), Some(steady)) = (arena.track(Mode::RekeyingOften), arena.track(Mode::Encrypted)) else {
        return Ok(None);
    };
    let (bridge, directory) = arena.wires();
    let watch = Watch::start(bridge, &Lan::port(&track.a), net::Direction::Both, directory, "rollovers")?;
    cpu::settle()?;
    let pings = [track, steady].map(|track| Ping::start(&track.a, &track.b, directory));
    let _pings: Vec<Ping> = pings.into_iter().collect::<Result<_, _>>()?;
    process::pause(BEGIN)?;
    let (count, busy, resting) = (rollovers(track)?, cpu_of(track)?, cpu_of(steady)?);
    process::pause(window)?;
    let (busy, resting) = (cpu_of(track)?.saturating_sub(busy), cpu_of(steady)?.saturating_sub(resting));
    let count = rollovers(track)?.saturating_sub(count);
    let times: Vec<f64> = times(&watch.timed()?).into_iter().map(microseconds).collect();
    let cpu_us = (count > 0).then(|| microseconds(busy.saturating_sub(resting)) / count as f64);
    Ok(cpu_us.zip(median(&times)))
}

/// How often the keys between the two hosts were replaced.
fn rollovers(track: &Track) -> Result<u64, Failure> {
    let missing = || Failure::Unreadable("`ringwall peers --json` has no association in use".to_owned());
    let peers = track.daemons().first().ok_or_else(missing)?.peers()?;
    let in_use = peers.as_array().and_then(|peers| peers.iter().find(|peer| peer["state"] == "established"));
    in_use.and_then(|peer| peer["rollovers"].as_u64()).ok_or_else(missing)
}

fn cpu_of(track: &Track) -> Result<Duration, Failure> {
    track.daemons().iter().filter_map(|daemon| daemon.id()).map(cpu::exact).sum()
}

/// The time from request to acknowledgement of each rollover between hosts that only ping each other: a long frame, a long one back,
/// and a short one.
fn times(frames: &[(Duration, Frame)]) -> Vec<Duration> {
    let is_ping = |frame: &Frame| (ACKNOWLEDGEMENT_MAX..=REQUEST_MIN).contains(&frame.0.len());
    let is_one = |frame: &Frame| frame.cll_type() == Some(PacketType::Unicast) && !is_ping(frame);
    let sealed: Vec<_> = frames.iter().filter(|(_, frame)| is_one(frame)).collect();
    let time = |three: &[&(Duration, Frame)]| {
        let [(start, request), (_, reply), (end, acknowledgement)] = three else { return None };
        let (from, to) = (request.source(), request.destination());
        let goes = reply.is_between(to, from) && acknowledgement.is_between(from, to);
        let long = [request, reply].into_iter().all(|frame| frame.0.len() > REQUEST_MIN);
        (goes && long && acknowledgement.0.len() < ACKNOWLEDGEMENT_MAX).then(|| end.saturating_sub(*start))
    };
    sealed.windows(3).filter_map(time).collect()
}

impl Found {
    fn rows(&self) -> Vec<Row> {
        let shares: Series =
            self.rekeyed.iter().zip(&self.steady).map(|(ours, steady)| Some((*ours)? / (*steady)?)).collect();
        let rows = [
            ("rollover/cost", "us", &self.steps),
            ("rollover/cpu", "us", &self.cpu),
            ("rollover/time", "us", &self.times),
            ("rollover/tcp/none", "Mbit/s", &self.steady),
            ("rollover/tcp/10s", "Mbit/s", &self.rekeyed),
            ("rollover/tcp/share", "ratio", &shares),
        ];
        rows.into_iter().filter_map(|(name, unit, series)| Row::new(NAME, name, unit, series)).collect()
    }
}

#[cfg(test)]
mod tests {
    use wire::MacAddress;
    use wire::ethernet::HEADER_LEN;

    use super::*;

    #[test]
    fn a_rollover_costs_the_sum_of_its_steps_or_is_not_known() {
        let measured = |steps: &[&str]| -> Vec<(String, Duration)> {
            steps.iter().map(|step| ((*step).to_owned(), Duration::from_micros(10))).collect()
        };
        assert_eq!(sum(&measured(&STEPS)), Some(50.0));
        assert_eq!(sum(&measured(&STEPS[1..])), None);
    }

    fn sealed(at_us: u64, from: u8, len: usize) -> (Duration, Frame) {
        let mac = |last: u8| MacAddress([2, 0, 0, 0, 0, last]);
        let mut bytes = vec![0; len];
        bytes[..6].copy_from_slice(&mac(3 - from).0);
        bytes[6..12].copy_from_slice(&mac(from).0);
        bytes[12..HEADER_LEN].copy_from_slice(&wire::EtherType::CLL.0.to_be_bytes());
        bytes[HEADER_LEN] = PacketType::Unicast.first_byte();
        (Duration::from_micros(at_us), Frame(bytes))
    }

    /// Broke `times` by leaving out who sends: a repeated request was taken for its reply.
    #[test]
    fn only_three_messages_in_their_order_make_a_time() {
        let whole = [sealed(10, 1, 500), sealed(600, 2, 510), sealed(900, 1, 65)];
        assert_eq!(times(&whole), [Duration::from_micros(890)]);
        let pinged = [whole[0].clone(), sealed(20, 1, 133), whole[1].clone(), sealed(700, 2, 133), whole[2].clone()];
        assert_eq!(times(&pinged), [Duration::from_micros(890)]);
        let other_way = [sealed(10, 2, 500), sealed(600, 1, 510), sealed(900, 2, 65)];
        assert_eq!(times(&[whole.clone(), other_way].concat()).len(), 2);
        let repeated = [sealed(10, 1, 500), sealed(600, 1, 500), sealed(900, 1, 65)];
        assert!(times(&repeated).is_empty() && times(&whole[..2]).is_empty());
        let without_end = [whole[0].clone(), whole[1].clone(), sealed(900, 1, 500)];
        assert!(times(&without_end).is_empty());
    }

    #[test]
    fn the_share_is_taken_pair_by_pair() {
        let found = Found {
            steady: vec![Some(1000.0), Some(500.0), None],
            rekeyed: vec![Some(900.0), Some(500.0), Some(1.0)],
            ..Found::default()
        };
        let rows = found.rows();
        let share = rows.iter().find(|row| row.row == "rollover/tcp/share").expect("measured");
        assert_eq!((share.median, share.runs, rows.len()), (0.95, 2, 3));
    }
}
