//! What a group frame costs the one who receives it: alone under its signature, and in a batch. Two link layers in this
//! process, without a wire; public key work is done on the spot and counted.

use std::sync::Arc;
use std::time::{Duration, Instant as Clock};

use bump::frame::Frames;
use bump::sink::Collected;
use bump::{Bump, ClockTrust, ErasingGenerator, Generator, Instant, Meta, Now, Side, Wall};
use cll::{Cll, Settings};
use wire::ethernet::Header;
use wire::{EtherType, MacAddress};

use super::Schedule;
use super::mode::NAME;
use super::row::Row;
use super::stats::Series;
use crate::failure::Failure;
use crate::sim::{START_UNIX_S, identities};

/// Frames of one run.
const FRAMES: usize = 6400;
const FRAMES_QUICKLY: usize = 640;
/// Bytes of each payload: what mDNS and SSDP say.
const PAYLOAD_LEN: usize = 300;
/// Frames that a stack sends at one moment.
const BURST: usize = 64;
/// Time between two such moments: as many signatures as the budgets allow, also where each frame has its own.
const PAUSE: Duration = Duration::from_millis(500);
/// One in so many frames does not arrive where loss is measured.
const LOST_ONE_IN: usize = 10;
const GROUP: MacAddress = MacAddress([1, 0, 0x5e, 0, 0, 0xfb]);
const WIRE_MTU: u16 = 1500;

/// Measures all rows.
///
/// # Errors
/// The simulated site could not be made.
pub fn measure(schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let count = if schedule.quick { FRAMES_QUICKLY } else { FRAMES };
    let (mut single, mut batched, mut gain, mut loss) = (Series::new(), Series::new(), Series::new(), Series::new());
    for pair in 0..schedule.pairs as usize {
        let alone = Pair::new(pair, 1)?.cost_ns(count);
        let together = Pair::new(pair, BURST as u8)?.cost_ns(count);
        single.push(alone);
        batched.push(together);
        gain.push(alone.zip(together).map(|(alone, together)| alone / together));
        loss.push(Pair::new(pair, BURST as u8)?.share_with_loss(count));
    }
    let rows = [
        Row::new(NAME, "broadcast/verify/single", "ns", &single),
        Row::new(NAME, "broadcast/verify/batched", "ns", &batched),
        Row::new(NAME, "broadcast/verify/gain", "times", &gain),
        Row::new(NAME, "broadcast/loss", "share", &loss),
    ];
    Ok(rows.into_iter().flatten().collect())
}

/// A sender and a receiver.
struct Pair {
    ends: [Cll; 2],
    source: MacAddress,
    at: Instant,
    keys: ErasingGenerator,
}

impl Pair {
    /// A pair that knows each other; the sender puts at most `batch_frames` under one signature.
    fn new(number: usize, batch_frames: u8) -> Result<Pair, Failure> {
        let identities = identities()?;
        let at = Instant::from_millis(1_000_000);
        let start = |end: usize| {
            let mut settings = Settings::new(Arc::clone(&identities[end]), WIRE_MTU);
            settings.broadcasting.batch_frames = batch_frames;
            let seed = [number as u8 * 2 + end as u8; 32];
            cll::start(now(at), settings, Generator::from_seed(seed), &mut Collected::new())
        };
        let source = identities[0].certificate().mac();
        let mut pair = Pair { ends: [start(0), start(1)], source, at, keys: ErasingGenerator::from_seed(&[7; 32]) };
        let first = pair.send(1);
        pair.at = pair.at + PAUSE;
        // The first frame makes the receiver ask, and the answer proves the sender.
        for frame in first {
            let question = pair.call(1, Side::WIRE, frame);
            let answers: Vec<_> =
                question.into_iter().flat_map(|(_, question)| pair.call(0, Side::WIRE, question)).collect();
            answers.into_iter().for_each(|(_, answer)| drop(pair.call(1, Side::WIRE, answer)));
        }
        Ok(pair)
    }

    /// Nanoseconds of the receiver for each of `count` frames; `None` if one was not delivered.
    fn cost_ns(&mut self, count: usize) -> Option<f64> {
        let (mut delivered, mut spent) = (0, Duration::ZERO);
        for _ in 0..count / BURST {
            self.at = self.at + PAUSE;
            // The first of a burst leaves at once and alone; those behind it are the batch.
            let mut frames = self.send(1 + BURST);
            self.receive(frames.remove(0));
            let start = Clock::now();
            delivered += frames.into_iter().map(|frame| self.receive(frame)).sum::<usize>();
            spent += start.elapsed();
        }
        (delivered == count / BURST * BURST).then(|| spent.as_secs_f64() * 1e9 / delivered as f64)
    }

    /// Which share of the frames that arrived was delivered, where some did not arrive.
    fn share_with_loss(&mut self, count: usize) -> Option<f64> {
        let (mut arrived, mut delivered) = (0, 0);
        for _ in 0..count / BURST {
            self.at = self.at + PAUSE;
            let kept = self.send(BURST).into_iter().enumerate().filter(|(at, _)| at % LOST_ONE_IN != 3);
            for (_, frame) in kept {
                arrived += 1;
                delivered += self.receive(frame);
            }
        }
        Some(delivered as f64 / arrived as f64)
    }

    /// What the sender puts on the wire for `count` frames of its stack at one moment.
    fn send(&mut self, count: usize) -> Vec<Vec<u8>> {
        let header = Header { destination: GROUP, source: self.source, ethertype: EtherType(0x88b5) };
        let frame = [&header.emit()[..], &[0x5a; PAYLOAD_LEN]].concat();
        let mut batch = vec![(frame, Meta::plain()); count];
        let mut sink = Collected::new();
        self.ends[0].process(now(self.at), Side::STACK, &mut Frames::new(&mut batch), &mut sink);
        self.work(0, &mut sink);
        while self.ends[0].deadline().is_some_and(|due| due <= self.at + PAUSE / 2) {
            self.at = self.at + Duration::from_millis(1);
            self.ends[0].tick(now(self.at), 64, &mut sink);
            self.work(0, &mut sink);
        }
        sink.take().into_iter().map(|(_, frame, _)| frame).collect()
    }

    /// How many frames reach the receiver's stack for this one of the wire.
    fn receive(&mut self, frame: Vec<u8>) -> usize {
        self.call(1, Side::WIRE, frame).into_iter().filter(|(side, _)| *side == Side::STACK).count()
    }

    fn call(&mut self, end: usize, from: Side, frame: Vec<u8>) -> Vec<(Side, Vec<u8>)> {
        let mut sink = Collected::new();
        let mut batch = [(frame, Meta::plain())];
        self.ends[end].process(now(self.at), from, &mut Frames::new(&mut batch), &mut sink);
        self.work(end, &mut sink);
        sink.take().into_iter().map(|(side, frame, _)| (side, frame)).collect()
    }

    /// Does all jobs of `end`.
    fn work(&mut self, end: usize, sink: &mut Collected) {
        while let Some((ticket, job)) = self.ends[end].next_job() {
            let completion = job.run(&mut self.keys);
            self.ends[end].complete(now(self.at), ticket, completion, sink);
        }
    }
}

fn now(at: Instant) -> Now {
    let unix_ms = START_UNIX_S * 1000 + at.as_nanos() / 1_000_000;
    Now { since_boot: at, wall: Some(Wall { unix_ms, trust: ClockTrust::Plausible }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rows_come_about_and_loss_costs_nothing_beyond_the_lost() {
        let schedule = Schedule { pairs: 1, seconds: 1, quick: true };
        let rows = measure(schedule).expect("rows");
        let names: Vec<_> = rows.iter().map(|row| row.row.as_str()).collect();
        let wanted = ["broadcast/verify/single", "broadcast/verify/batched", "broadcast/verify/gain", "broadcast/loss"];
        assert_eq!(names, wanted);
        assert_eq!(rows[3].median, 1.0);
        assert!(rows[2].median > 2.0, "{}", rows[2].median);
    }
}
