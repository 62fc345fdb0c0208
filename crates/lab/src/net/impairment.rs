//! What a bad line does to frames: a state machine over virtual time, one for each direction of a link.
//!
//! Frames go in with the time, and come out when theirs has come. Everything that is left to chance comes from the
//! generator handed in, so that one seed and one sequence of frames give one sequence of faults. What waits is bounded,
//! and what finds no room is counted.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

use bump::{Checksum, Frame, Generator, Instant, Meta, Side, Sink, sink};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use wire::cll::data;
use wire::layer::{self, protocol};
use wire::{EtherType, ethernet, ipv4, tcp, udp};

/// Frames that wait in one direction: 0.1 s of full frames at 1 Gbit/s.
pub const WAITING_MAX_FRAMES: usize = 8192;
/// Bytes that wait in one direction.
pub const WAITING_MAX_BYTES: usize = 16 << 20;
/// How long a frame may wait for its turn on a line of limited rate, as on the LAN's own limited ports.
pub const TURN_MAX: Duration = Duration::from_millis(50);
/// How far a reordered frame falls behind at most. A lone frame is late by no more than that either.
pub const BEHIND_MAX: Duration = Duration::from_millis(4);

/// A share of all frames, in steps of a ten-thousandth of a percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Percent(u32);

impl Percent {
    const STEPS: u32 = 10_000;
    const ALL: u32 = 100 * Percent::STEPS;

    /// So many whole percent; more than 100 are all.
    #[must_use]
    pub const fn whole(percent: u8) -> Percent {
        let percent = if percent > 100 { 100 } else { percent as u32 };
        Percent(percent * Percent::STEPS)
    }

    fn strikes(self, random: &mut Generator) -> bool {
        random.below(u64::from(Percent::ALL)) < u64::from(self.0)
    }
}

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Percent, String> {
        let percent = text.parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
        let percent = percent.ok_or_else(|| format!("{text} is no number from 0 to 100"))?;
        Ok(Percent((percent * f64::from(Percent::STEPS)).round() as u32))
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", f64::from(self.0) / f64::from(Percent::STEPS))
    }
}

/// How many bits a second a line carries, counted like the kernel's own limits: without preamble and check sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    bits_per_second: u64,
}

impl Rate {
    /// So many Mbit/s; zero is taken for one bit a second.
    #[must_use]
    pub const fn mbit(mbit: u32) -> Rate {
        Rate { bits_per_second: if mbit == 0 { 1 } else { mbit as u64 * 1_000_000 } }
    }

    fn time_of(self, bytes: usize) -> Duration {
        Duration::from_nanos(bytes as u64 * 8 * 1_000_000_000 / self.bits_per_second)
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Rate, String> {
        let mbit = text.parse::<f64>().ok().filter(|mbit| (0.001..=1e6).contains(mbit));
        let mbit = mbit.ok_or_else(|| format!("{text} is no number of Mbit/s from 0.001 to 1000000"))?;
        Ok(Rate { bits_per_second: (mbit * 1e6).round() as u64 })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.bits_per_second as f64 / 1e6)
    }
}

/// Where a bit is flipped. In a frame that has no such place, it is flipped anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Place {
    /// Between the Ethernet header and the body: the clear header of a sealed frame, else the IP and transport headers.
    Header,
    /// The ciphertext of a sealed frame, the payload of others.
    Body,
    /// The tag of a sealed frame.
    Tag,
    /// Anywhere, the Ethernet header included.
    Any,
}

impl Place {
    fn range(self, frame: &[u8]) -> Range<usize> {
        let (body_at, tag_len) = match layer::network_layer(frame) {
            Some((EtherType::CLL, at)) => (at + data::HEADER_LEN, data::TAG_LEN),
            _ => (transport_payload_at(frame), 0),
        };
        let tag_at = frame.len().saturating_sub(tag_len);
        let range = match self {
            Place::Header => ethernet::HEADER_LEN..body_at,
            Place::Body => body_at..tag_at,
            Place::Tag => tag_at..frame.len(),
            Place::Any => 0..frame.len(),
        };
        if range.is_empty() || range.end > frame.len() { 0..frame.len() } else { range }
    }
}

fn transport_payload_at(frame: &[u8]) -> usize {
    match layer::transport_layer(frame) {
        Some((protocol::UDP, at)) => at + udp::HEADER_LEN,
        Some((protocol::TCP, at)) => {
            at + frame.get(at..).and_then(|segment| tcp::View::new(segment).ok()).map_or(0, |view| view.header_len())
        }
        Some((_, at)) => at,
        None => ethernet::HEADER_LEN,
    }
}

/// Gives plain UDP over IPv4 the lengths that it has, and checksums that say nothing against them.
fn mend_lengths(frame: &mut [u8]) {
    let (Some((protocol::UDP, udp_at)), Some((EtherType::IPV4, ip_at))) =
        (layer::transport_layer(frame), layer::network_layer(frame))
    else {
        return;
    };
    let len = |from: usize| u16::try_from(frame.len() - from).unwrap_or(u16::MAX).to_be_bytes();
    let (packet_len, datagram_len) = (len(ip_at), len(udp_at));
    if frame.len() < udp_at + udp::HEADER_LEN {
        return;
    }
    frame[ip_at + ipv4::TOTAL_LENGTH..ip_at + ipv4::TOTAL_LENGTH + 2].copy_from_slice(&packet_len);
    ipv4::fill_checksum(&mut frame[ip_at..udp_at]);
    frame[udp_at + udp::LENGTH..udp_at + udp::LENGTH + 2].copy_from_slice(&datagram_len);
    frame[udp_at + udp::CHECKSUM..udp_at + udp::CHECKSUM + 2].fill(0);
}

/// What a line does to the frames of one direction. The default does nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Impairment {
    /// Percent of frames that are lost
    #[arg(long = "loss-percent", value_name = "F", default_value_t)]
    pub loss: Percent,
    /// Percent of frames that are carried twice
    #[arg(long = "duplicate-percent", value_name = "F", default_value_t)]
    pub duplicate: Percent,
    /// Percent of frames that later ones may overtake
    #[arg(long = "reorder-percent", value_name = "F", default_value_t)]
    pub reorder: Percent,
    /// How long every frame is under way
    #[arg(long = "delay-ms", value_name = "F", default_value = "0", value_parser = milliseconds)]
    pub delay: Duration,
    /// How much longer it may take, evenly spread; the order of frames stays
    #[arg(long = "jitter-ms", value_name = "F", default_value = "0", value_parser = milliseconds)]
    pub jitter: Duration,
    /// Percent of frames in which one bit is flipped
    #[arg(long = "corrupt-percent", value_name = "F", default_value_t)]
    pub corrupt: Percent,
    /// Where it is flipped; several places take turns, and none is anywhere
    #[arg(long, value_name = "PLACE", value_enum, value_delimiter = ',')]
    pub flip_at: Vec<Place>,
    /// By how many bytes corrupted frames become longer or shorter at their end, in turn, instead of a flipped bit
    #[arg(long, value_name = "BYTES", value_delimiter = ',', allow_hyphen_values = true)]
    pub resize_by: Vec<i16>,
    /// Give corrupted plain UDP the checksum "none" (RFC 768) and lengths that fit, as a liar on the path would
    #[arg(long)]
    pub mend_udp: bool,
    /// Lose, duplicate, reorder and corrupt only frames of this type
    #[arg(long, value_name = "HEX", value_parser = hexadecimal)]
    pub only_ethertype: Option<EtherType>,
    /// Lose, duplicate, reorder and corrupt only frames of at least this length
    #[arg(long, value_name = "BYTES", default_value_t)]
    pub only_from_bytes: usize,
    /// How many Mbit/s the line carries
    #[arg(id = "rate-mbit", long, value_name = "F")]
    pub rate: Option<Rate>,
}

impl Impairment {
    /// The options that say the same on a command line.
    #[must_use]
    pub fn options(&self) -> Vec<String> {
        let milliseconds = |time: Duration| (time.as_secs_f64() * 1e3).to_string();
        let mut options = vec![
            format!("--loss-percent={}", self.loss),
            format!("--duplicate-percent={}", self.duplicate),
            format!("--reorder-percent={}", self.reorder),
            format!("--delay-ms={}", milliseconds(self.delay)),
            format!("--jitter-ms={}", milliseconds(self.jitter)),
            format!("--corrupt-percent={}", self.corrupt),
            format!("--only-from-bytes={}", self.only_from_bytes),
        ];
        let places = self.flip_at.iter().filter_map(ValueEnum::to_possible_value);
        options.extend(places.map(|place| format!("--flip-at={}", place.get_name())));
        options.extend(self.resize_by.iter().map(|bytes| format!("--resize-by={bytes}")));
        options.extend(self.only_ethertype.map(|ethertype| format!("--only-ethertype={:04x}", ethertype.0)));
        options.extend(self.rate.map(|rate| format!("--rate-mbit={rate}")));
        options.extend(self.mend_udp.then(|| "--mend-udp".to_owned()));
        options
    }

    /// Whether `frame` may be lost, doubled, overtaken or corrupted.
    fn concerns(&self, frame: &[u8]) -> bool {
        let is_of_type = |wanted| ethernet::Header::parse(frame).is_ok_and(|(header, _)| header.ethertype == wanted);
        frame.len() >= self.only_from_bytes && self.only_ethertype.is_none_or(is_of_type)
    }
}

fn milliseconds(text: &str) -> Result<Duration, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=60_000.0).contains(number));
    let number = number.ok_or_else(|| format!("{text} is no number of milliseconds from 0 to 60000"))?;
    Ok(Duration::from_nanos((number * 1e6).round() as u64))
}

fn hexadecimal(text: &str) -> Result<EtherType, String> {
    let digits = text.trim_start_matches("0x");
    u16::from_str_radix(digits, 16).map(EtherType).map_err(|_| format!("{text} is no EtherType, such as 07d0"))
}

/// What became of the frames of one direction: `taken + duplicated` is the sum of `delivered`, `lost`, `overflowed`,
/// `offloaded` and what still waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineCounters {
    /// Frames that came in.
    pub taken: u64,
    /// Frames that came out, copies included.
    pub delivered: u64,
    /// Frames that were lost by chance.
    pub lost: u64,
    /// Frames that became two.
    pub duplicated: u64,
    /// Frames that others could overtake.
    pub reordered: u64,
    /// Frames with a bit flipped, or with another length.
    pub corrupted: u64,
    /// Frames for which there was no room, or no turn at the limited rate.
    pub overflowed: u64,
    /// Frames that no wire carries, super-frames and such without their checksum, dropped: see [`Line::offer`].
    pub offloaded: u64,
}

/// One direction of a link.
#[derive(Debug)]
pub struct Line {
    impairment: Impairment,
    to: Side,
    random: Generator,
    /// By the moment when they leave; the number keeps the order of those that leave together.
    waiting: BTreeMap<(Instant, u64), (Vec<u8>, Meta)>,
    waiting_bytes: usize,
    entered: u64,
    /// When the line has taken in the last bit of all that came before.
    free_at: Instant,
    /// When the last frame leaves that kept its place.
    last_leaves: Instant,
    counters: LineCounters,
}

impl Line {
    /// A line towards `to`.
    #[must_use]
    pub fn new(impairment: Impairment, to: Side, random: Generator) -> Line {
        Line {
            impairment,
            to,
            random,
            waiting: BTreeMap::new(),
            waiting_bytes: 0,
            entered: 0,
            free_at: Instant::default(),
            last_leaves: Instant::default(),
            counters: LineCounters::default(),
        }
    }

    /// What became of the frames so far.
    #[must_use]
    pub fn counters(&self) -> LineCounters {
        self.counters
    }

    /// When the next frame leaves.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|(&(leaves, _), _)| leaves)
    }

    /// Takes `frame` in.
    ///
    /// Only frames as a wire carries them are taken. To lose a super-frame would be to lose dozens of frames at once, and
    /// a flipped bit in a frame whose checksum is still to be written would become part of a right one. Whoever sends
    /// into the link has its offloads off; what comes nevertheless shows in the counters.
    pub fn offer(&mut self, now: Instant, frame: &Frame<'_>) {
        self.counters.taken += 1;
        if frame.meta.gso.is_some() || matches!(frame.meta.checksum, Checksum::Partial { .. }) {
            self.counters.offloaded += 1;
            return;
        }
        let concerned = self.impairment.concerns(frame.bytes);
        if concerned && self.impairment.loss.strikes(&mut self.random) {
            self.counters.lost += 1;
            return;
        }
        self.enter(now, frame, concerned);
        if concerned && self.impairment.duplicate.strikes(&mut self.random) {
            self.counters.duplicated += 1;
            self.enter(now, frame, concerned);
        }
    }

    fn enter(&mut self, now: Instant, frame: &Frame<'_>, concerned: bool) {
        let Some(carried) = self.carry(now, frame.bytes.len()) else {
            self.counters.overflowed += 1;
            return;
        };
        let mut bytes = frame.bytes.to_vec();
        if concerned && self.impairment.corrupt.strikes(&mut self.random) {
            if self.impairment.resize_by.is_empty() { self.flip(&mut bytes) } else { self.resize(&mut bytes) }
        }
        let leaves = self.leaves(carried, concerned);
        self.waiting_bytes += bytes.len();
        // A checksum that somebody verified before the line says nothing about what is behind it.
        let meta = Meta { checksum: Checksum::Unknown, ..frame.meta };
        self.waiting.insert((leaves, self.entered), (bytes, meta));
        self.entered += 1;
    }

    /// When the line has taken in a frame of `len` bytes; `None` when it cannot.
    fn carry(&mut self, now: Instant, len: usize) -> Option<Instant> {
        if self.waiting.len() >= WAITING_MAX_FRAMES || self.waiting_bytes + len > WAITING_MAX_BYTES {
            return None;
        }
        let Some(rate) = self.impairment.rate else { return Some(now) };
        let turn = self.free_at.max(now);
        if turn.since(now) > TURN_MAX {
            return None;
        }
        self.free_at = turn + rate.time_of(len);
        Some(self.free_at)
    }

    /// When a frame leaves that the line took in at `carried`.
    fn leaves(&mut self, carried: Instant, concerned: bool) -> Instant {
        let Impairment { delay, jitter, reorder, .. } = self.impairment;
        let leaves = (carried + delay + self.up_to(jitter)).max(self.last_leaves);
        if concerned && reorder.strikes(&mut self.random) {
            self.counters.reordered += 1;
            return leaves + self.up_to(BEHIND_MAX);
        }
        self.last_leaves = leaves;
        leaves
    }

    fn up_to(&mut self, most: Duration) -> Duration {
        Duration::from_nanos(self.random.below(most.as_nanos() as u64 + 1))
    }

    fn flip(&mut self, frame: &mut [u8]) {
        let places = &self.impairment.flip_at;
        let turn = self.counters.corrupted as usize;
        let place = if places.is_empty() { Place::Any } else { places[turn % places.len()] };
        let range = place.range(frame);
        if range.is_empty() {
            return;
        }
        let at = range.start + self.random.below(range.len() as u64) as usize;
        if let (true, Some((protocol::UDP, udp_at))) = (self.impairment.mend_udp, layer::transport_layer(frame))
            && let Some(checksum) = frame.get_mut(udp_at + udp::CHECKSUM..udp_at + udp::CHECKSUM + 2)
        {
            checksum.fill(0);
        }
        frame[at] ^= 1 << self.random.below(8);
        self.counters.corrupted += 1;
    }

    fn resize(&mut self, frame: &mut Vec<u8>) {
        let turn = self.counters.corrupted as usize;
        let by = self.impairment.resize_by[turn % self.impairment.resize_by.len()];
        let len = frame.len().saturating_add_signed(isize::from(by)).max(ethernet::HEADER_LEN);
        frame.resize(len, 0);
        if self.impairment.mend_udp {
            mend_lengths(frame);
        }
        self.counters.corrupted += 1;
    }

    /// Hands over every frame whose time has come, as far as `sink` has room; the rest stays.
    pub fn release(&mut self, now: Instant, sink: &mut dyn Sink) {
        while let Some(first) = self.waiting.first_entry() {
            let (bytes, meta) = first.get();
            if first.key().0 > now || !sink::copy(sink, self.to, bytes, *meta) {
                return;
            }
            self.waiting_bytes -= bytes.len();
            self.counters.delivered += 1;
            first.remove();
        }
    }
}

#[cfg(test)]
mod tests;
