//! TCP options as fields, and their one canonical form (the paper's section IV-B3).
//!
//! What is known becomes a field. Of the others only the kinds are kept, and their bytes are fetched from the segment again
//! when they are written: an option that no rule let through has no way out.

use bump::DropReason;

use crate::context::Context;
use crate::rule::Rule;
use crate::settings::{OptionKind, OptionOrder};

/// Bytes that a header has for options (RFC 9293, section 3.1).
pub(crate) const OPTIONS_LEN_MAX: usize = 40;
/// Blocks of selective acknowledgement that fit (RFC 2018, section 3).
pub(crate) const SACK_BLOCKS_MAX: usize = 4;
/// Options of other kinds that are looked at in one segment; no known sender has more than three.
pub(crate) const OTHERS_MAX: usize = 8;

/// Option kinds (IANA, TCP parameters).
pub(crate) mod kind {
    pub(crate) const END: u8 = 0;
    pub(crate) const NOP: u8 = 1;
    pub(crate) const MSS: u8 = 2;
    pub(crate) const WINDOW_SCALE: u8 = 3;
    pub(crate) const SACK_PERMITTED: u8 = 4;
    pub(crate) const SACK: u8 = 5;
    pub(crate) const TIMESTAMPS: u8 = 8;
    /// TCP-MD5 (RFC 2385).
    pub(crate) const MD5: u8 = 19;
    /// TCP-AO (RFC 5925).
    pub(crate) const AUTHENTICATION: u8 = 29;
    /// Fast Open (RFC 7413).
    pub(crate) const FAST_OPEN: u8 = 34;
    /// Accurate ECN in its two orders (RFC 9768, section 3.2.3).
    pub(crate) const ACCURATE_ECN: [u8; 2] = [172, 174];
    /// Shared by experiments; Fast Open began there with [`FAST_OPEN_MAGIC`].
    pub(crate) const EXPERIMENT: u8 = 254;
    /// The first two bytes of the experimental Fast Open (RFC 7413, appendix A).
    pub(crate) const FAST_OPEN_MAGIC: [u8; 2] = [0xf9, 0x89];
}

/// The timestamps option (RFC 7323, section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timestamps {
    pub(crate) value: u32,
    pub(crate) echo: u32,
}

/// A short list without allocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Few<T, const MAX: usize> {
    items: [T; MAX],
    len: u8,
}

impl<T: Copy + Default, const MAX: usize> Default for Few<T, MAX> {
    fn default() -> Self {
        Few { items: [T::default(); MAX], len: 0 }
    }
}

impl<T: Copy + PartialEq, const MAX: usize> PartialEq for Few<T, MAX> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl<T: Copy + Eq, const MAX: usize> Eq for Few<T, MAX> {}

impl<T: Copy, const MAX: usize> Few<T, MAX> {
    pub(crate) fn as_slice(&self) -> &[T] {
        &self.items[..usize::from(self.len)]
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.items[..usize::from(self.len)]
    }

    /// Appends `item`; false if there is no room.
    pub(crate) fn push(&mut self, item: T) -> bool {
        let Some(room) = self.items.get_mut(usize::from(self.len)) else { return false };
        *room = item;
        self.len += 1;
        true
    }

    /// Keeps what `keep` says; true if something went.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(T) -> bool) -> bool {
        let before = self.len;
        self.len = 0;
        for index in 0..usize::from(before) {
            let item = self.items[index];
            if keep(item) {
                self.items[usize::from(self.len)] = item;
                self.len += 1;
            }
        }
        self.len < before
    }
}

/// The options of one segment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options<'a> {
    pub(crate) mss: Option<u16>,
    pub(crate) window_scale: Option<u8>,
    pub(crate) sack_permitted: bool,
    pub(crate) timestamps: Option<Timestamps>,
    /// Left and right edges.
    pub(crate) sack: Few<(u32, u32), SACK_BLOCKS_MAX>,
    /// Kinds of the options that have no field, in the order in which they were met.
    pub(crate) others: Few<u8, OTHERS_MAX>,
    /// The options as they arrived.
    raw: &'a [u8],
}

/// Walks over options: kind, and the bytes behind kind and length. A malformed one is `Err` and the last.
struct Walk<'a>(&'a [u8]);

impl<'a> Iterator for Walk<'a> {
    type Item = Result<(u8, &'a [u8]), ()>;

    fn next(&mut self) -> Option<Self::Item> {
        let (&kind, rest) = self.0.split_first()?;
        if kind == kind::END {
            return None;
        }
        if kind == kind::NOP {
            self.0 = rest;
            return Some(Ok((kind, &[])));
        }
        let len = rest.first().map_or(0, |len| usize::from(*len));
        let Some((option, behind)) = (len >= 2).then(|| self.0.split_at_checked(len)).flatten() else {
            self.0 = &[];
            return Some(Err(()));
        };
        self.0 = behind;
        Some(Ok((kind, &option[2..])))
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// Reads the options in `raw`, padding included.
pub(crate) fn read<'a>(context: &mut Context<'_>, raw: &'a [u8]) -> Result<Options<'a>, DropReason> {
    let mut options = Options { raw, ..Options::default() };
    // What nearly every segment carries: NOP, NOP, timestamps (RFC 7323, appendix A).
    if raw.len() == 12 && raw[..4] == [kind::NOP, kind::NOP, kind::TIMESTAMPS, 10] {
        options.timestamps = Some(Timestamps { value: number(&raw[4..8]), echo: number(&raw[8..]) });
        return Ok(options);
    }
    for option in Walk(raw) {
        let is_right = option.is_ok_and(|(kind, body)| options.take(kind, body));
        context.refuse_if(!is_right, Rule::TcpOptions, DropReason::TcpOptions)?;
    }
    Ok(options)
}

impl<'a> Options<'a> {
    /// Nothing, or timestamps alone.
    pub(crate) fn bare(timestamps: Option<Timestamps>) -> Options<'static> {
        Options { timestamps, ..Options::default() }
    }

    /// Nothing, or what is given of timestamps and one block of selective acknowledgement.
    pub(crate) fn of(timestamps: Option<Timestamps>, block: Option<(u32, u32)>) -> Options<'static> {
        let mut options = Options::bare(timestamps);
        block.map(|block| options.sack.push(block));
        options
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.timestamps.is_none() && self.has_at_most_timestamps()
    }

    /// Takes one option into its field; false if its length is wrong or it is there twice.
    fn take(&mut self, kind: u8, body: &[u8]) -> bool {
        match (kind, body.len()) {
            (kind::NOP, _) => true,
            (kind::MSS, 2) => self.mss.replace(number(body) as u16).is_none(),
            (kind::WINDOW_SCALE, 1) => self.window_scale.replace(body[0]).is_none(),
            (kind::SACK_PERMITTED, 0) => !std::mem::replace(&mut self.sack_permitted, true),
            (kind::TIMESTAMPS, 8) => {
                let stamps = Timestamps { value: number(&body[..4]), echo: number(&body[4..]) };
                self.timestamps.replace(stamps).is_none()
            }
            (kind::SACK, 8 | 16 | 24 | 32) => {
                let is_first = self.sack.as_slice().is_empty();
                let mut blocks = body.chunks_exact(8).map(|block| (number(&block[..4]), number(&block[4..])));
                is_first && blocks.all(|block| self.sack.push(block))
            }
            _ if known(kind).is_some() => false,
            _ => self.has(kind) || self.others.push(kind),
        }
    }

    /// Whether an option without a field is there.
    pub(crate) fn has(&self, kind: u8) -> bool {
        self.others.as_slice().contains(&kind)
    }

    /// Whether a signature stands in it (TCP-MD5 or TCP-AO).
    pub(crate) fn is_signed(&self) -> bool {
        self.has(kind::MD5) || self.has(kind::AUTHENTICATION)
    }

    /// Takes Fast Open out, in both its forms; true if it was there.
    pub(crate) fn remove_fast_open(&mut self) -> bool {
        let is_experiment = self.other(kind::EXPERIMENT).is_some_and(|body| body.starts_with(&kind::FAST_OPEN_MAGIC));
        self.others.retain(|kind| kind != kind::FAST_OPEN && !(kind == kind::EXPERIMENT && is_experiment))
    }

    /// What stands behind kind and length of the first option of kind `wanted`.
    fn other(&self, wanted: u8) -> Option<&'a [u8]> {
        Walk(self.raw).flatten().find(|(kind, _)| *kind == wanted).map(|(_, body)| body)
    }

    /// Writes the options into `room`, in `order`, or where that is `None` as they came. Gives their length with padding.
    pub(crate) fn write(&self, order: Option<&OptionOrder>, room: &mut [u8; OPTIONS_LEN_MAX]) -> usize {
        if let (Some(stamps), true) = (self.timestamps, self.has_at_most_timestamps()) {
            room[..4].copy_from_slice(&[kind::NOP, kind::NOP, kind::TIMESTAMPS, 10]);
            room[4..12].copy_from_slice(&stamps.bytes());
            return 12;
        }
        let written = match order {
            Some(order) => self.write_in_order(order, room, true).or_else(|| self.write_in_order(order, room, false)),
            None => self.write_as_they_came(room),
        };
        let len = written.unwrap_or(0).next_multiple_of(4);
        room[written.unwrap_or(0)..len].fill(kind::END);
        len
    }

    fn has_at_most_timestamps(&self) -> bool {
        let has_handshake = self.mss.is_some() || self.window_scale.is_some() || self.sack_permitted;
        !has_handshake && self.sack.as_slice().is_empty() && self.others.as_slice().is_empty()
    }

    /// Known options in `order` and all others behind. Aligned, every option ends at a word (RFC 7323, appendix A), and
    /// SACK-permitted and timestamps share their words as most hosts write them. `None` if that does not fit.
    fn write_in_order(&self, order: &OptionOrder, room: &mut [u8; OPTIONS_LEN_MAX], is_aligned: bool) -> Option<usize> {
        let mut pen = Pen { room, at: 0 };
        for option in order {
            let len = self.len_of(*option);
            let shares = *option == OptionKind::SackPermitted && self.timestamps.is_some();
            if len != 0 && is_aligned && !shares {
                let end = pen.at + len;
                pen.pad(end.next_multiple_of(4) - end)?;
            }
            self.write_known(*option, &mut pen)?;
        }
        // A kind may stand there more than once: multipath TCP does that (RFC 8684, section 3).
        for (kind, body) in Walk(self.raw).flatten().filter(|(kind, _)| self.has(*kind)) {
            pen.option(kind, body)?;
        }
        Some(pen.at)
    }

    fn write_as_they_came(&self, room: &mut [u8; OPTIONS_LEN_MAX]) -> Option<usize> {
        let mut pen = Pen { room, at: 0 };
        for (kind, body) in Walk(self.raw).flatten() {
            match known(kind) {
                Some(option) => self.write_known(option, &mut pen)?,
                None if kind == kind::NOP => pen.pad(1)?,
                None if self.has(kind) => pen.option(kind, body)?,
                None => {}
            }
        }
        Some(pen.at)
    }

    /// Bytes of a known option; zero if it is not there.
    fn len_of(&self, option: OptionKind) -> usize {
        match option {
            OptionKind::MaximumSegmentSize => self.mss.map_or(0, |_| 4),
            OptionKind::SackPermitted => usize::from(self.sack_permitted) * 2,
            OptionKind::Timestamps => self.timestamps.map_or(0, |_| 10),
            OptionKind::WindowScale => self.window_scale.map_or(0, |_| 3),
            OptionKind::Sack => match self.sack.as_slice().len() {
                0 => 0,
                blocks => 2 + 8 * blocks,
            },
        }
    }

    fn write_known(&self, option: OptionKind, pen: &mut Pen<'_>) -> Option<()> {
        if self.len_of(option) == 0 {
            return Some(());
        }
        match option {
            OptionKind::MaximumSegmentSize => pen.option(kind::MSS, &self.mss?.to_be_bytes()),
            OptionKind::SackPermitted => pen.option(kind::SACK_PERMITTED, &[]),
            OptionKind::Timestamps => pen.option(kind::TIMESTAMPS, &self.timestamps?.bytes()),
            OptionKind::WindowScale => pen.option(kind::WINDOW_SCALE, &[self.window_scale?]),
            OptionKind::Sack => {
                let mut body = [0; 8 * SACK_BLOCKS_MAX];
                let blocks = self.sack.as_slice();
                for (place, (left, right)) in body.chunks_exact_mut(8).zip(blocks) {
                    place[..4].copy_from_slice(&left.to_be_bytes());
                    place[4..].copy_from_slice(&right.to_be_bytes());
                }
                pen.option(kind::SACK, &body[..8 * blocks.len()])
            }
        }
    }
}

impl Timestamps {
    fn bytes(self) -> [u8; 8] {
        (u64::from(self.value) << 32 | u64::from(self.echo)).to_be_bytes()
    }
}

fn known(kind: u8) -> Option<OptionKind> {
    match kind {
        kind::MSS => Some(OptionKind::MaximumSegmentSize),
        kind::WINDOW_SCALE => Some(OptionKind::WindowScale),
        kind::SACK_PERMITTED => Some(OptionKind::SackPermitted),
        kind::SACK => Some(OptionKind::Sack),
        kind::TIMESTAMPS => Some(OptionKind::Timestamps),
        _ => None,
    }
}

/// Writes options one behind the other, and says when there is no room.
struct Pen<'a> {
    room: &'a mut [u8; OPTIONS_LEN_MAX],
    at: usize,
}

impl Pen<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> Option<()> {
        self.room.get_mut(self.at..self.at + bytes.len())?.copy_from_slice(bytes);
        self.at += bytes.len();
        Some(())
    }

    fn pad(&mut self, len: usize) -> Option<()> {
        (0..len).try_for_each(|_| self.bytes(&[kind::NOP]))
    }

    fn option(&mut self, kind: u8, body: &[u8]) -> Option<()> {
        self.bytes(&[kind, body.len() as u8 + 2])?;
        self.bytes(body)
    }
}
