//! What a pcapng file says beside its frames: who captured on which interface, names of hosts,
//! secrets that open TLS, comments. It is kept as it stands there, so that nobody has to know it.

use std::time::Duration;

/// Codes of options (pcapng, 3.5 and 4).
const END: u16 = 0;
const COMMENT: u16 = 1;
const FLAGS: u16 = 2;
const HASH: u16 = 3;
const INTERFACE_CHECKSUM_LEN: u16 = 13;
/// Of a frame's flags those that say how long its checksum is, which is not written.
const CHECKSUM_LEN_FLAGS: u32 = 0x1e0;
/// Length of a block's type and its two lengths.
const FRAME_OF_BLOCK: usize = 12;
/// Where options begin in blocks with a section's header, an interface and a frame.
const SECTION_OPTIONS: usize = 24;
const INTERFACE_OPTIONS: usize = 16;
pub(super) const FRAME_OPTIONS: usize = 28;

/// How an interface counts time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    pub(super) units_per_second: u128,
    pub(super) offset_seconds: i64,
}

impl Clock {
    pub(super) const NANOSECONDS: Clock = Clock { units_per_second: 1_000_000_000, offset_seconds: 0 };

    /// The time since 1970 that so many units are.
    pub(super) fn time(&self, units: u64) -> Duration {
        let units = u128::from(units);
        let seconds = u64::try_from(units / self.units_per_second).unwrap_or(u64::MAX);
        let seconds = seconds.saturating_add_signed(self.offset_seconds);
        // Finer than a nanosecond no clock is, and the product would not fit.
        let scale = (self.units_per_second / 1_000_000_000).max(1);
        let whole = (self.units_per_second / scale).max(1);
        let rest = units % self.units_per_second / scale * 1_000_000_000 / whole;
        Duration::new(seconds, u32::try_from(rest).unwrap_or(0).min(999_999_999))
    }

    /// The units that `time` is, the last one begun counted.
    pub(super) fn units(&self, time: Duration) -> u64 {
        let seconds = u128::from(time.as_secs().saturating_add_signed(self.offset_seconds.saturating_neg()));
        // Rounded up, so that what was read by `time` comes out as it went in.
        let part = u128::from(time.subsec_nanos()).saturating_mul(self.units_per_second).div_ceil(1_000_000_000);
        u64::try_from(seconds.saturating_mul(self.units_per_second).saturating_add(part)).unwrap_or(u64::MAX)
    }
}

/// A block that is no frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub(super) kind: NoteKind,
    pub(super) block: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoteKind {
    Section { big_endian: bool },
    Interface(Clock),
    Other,
}

impl Note {
    /// Whether a section begins with it, which counts its interfaces from zero.
    #[must_use]
    pub fn is_section(&self) -> bool {
        matches!(self.kind, NoteKind::Section { .. })
    }

    /// Whether it says how frames are to be read, which every kind of file says.
    #[must_use]
    pub fn is_description(&self) -> bool {
        self.kind != NoteKind::Other
    }

    /// The block as it is to be written where every frame is Ethernet's and has no checksum behind
    /// it.
    pub(super) fn written(&self, big_endian: bool) -> Vec<u8> {
        let mut block = self.block.clone();
        match self.kind {
            // How long the section becomes is not known.
            NoteKind::Section { .. } if block.len() >= SECTION_OPTIONS => block[16..24].fill(0xff),
            NoteKind::Interface(_) if block.len() >= INTERFACE_OPTIONS + 4 => {
                let order = Order { big_endian };
                block[8..10].copy_from_slice(&order.short(super::ETHERNET));
                // No limit: what is put together again may be longer than what was captured.
                block[12..16].fill(0);
                let options = &self.block[INTERFACE_OPTIONS..self.block.len() - 4];
                block.truncate(INTERFACE_OPTIONS);
                let kept = order.options(options).filter(|(code, _)| *code != INTERFACE_CHECKSUM_LEN);
                block.extend(kept.flat_map(|(_, whole)| whole).copied());
                if block.len() > INTERFACE_OPTIONS {
                    block.extend([0; 4]);
                }
                let len = order.word(block.len() as u32 + 4);
                block[4..8].copy_from_slice(&len);
                block.extend(len);
            }
            _ => {}
        }
        block
    }
}

/// The order of bytes in a section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) big_endian: bool,
}

impl Order {
    pub(super) fn short(self, number: u16) -> [u8; 2] {
        if self.big_endian { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    pub(super) fn word(self, number: u32) -> [u8; 4] {
        if self.big_endian { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    fn read_short(self, bytes: [u8; 2]) -> u16 {
        if self.big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    }

    pub(super) fn read_word(self, bytes: [u8; 4]) -> u32 {
        if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    /// Each option with its code, as it stands there; what follows the end or leaves the room is
    /// none.
    fn options(self, bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
        let mut rest = bytes;
        std::iter::from_fn(move || {
            let (head, _) = rest.split_first_chunk::<4>()?;
            let code = self.read_short([head[0], head[1]]);
            let len = usize::from(self.read_short([head[2], head[3]])).next_multiple_of(4);
            let (option, behind) = rest.split_at_checked(4 + len)?;
            rest = behind;
            (code != END).then_some((code, option))
        })
    }

    /// What stays true of a frame that was rewritten: comments, direction, who let it pass; no hash
    /// over bytes that are others now.
    pub(super) fn options_of_frame(self, bytes: &[u8]) -> Vec<u8> {
        let mut kept = Vec::new();
        for (code, option) in self.options(bytes).filter(|(code, _)| *code != HASH) {
            match (code, option.get(4..).and_then(|flags| flags.first_chunk::<4>())) {
                (FLAGS, Some(flags)) => {
                    kept.extend(&option[..4]);
                    kept.extend(self.word(self.read_word(*flags) & !CHECKSUM_LEN_FLAGS));
                }
                _ => kept.extend(option),
            }
        }
        kept
    }

    /// An option that is a comment.
    pub(super) fn comment(self, text: &str) -> Vec<u8> {
        // The longest text that the length of an option can say, in whole words.
        let text = &text.as_bytes()[..text.len().min(0xfffc)];
        let mut option = [self.short(COMMENT), self.short(text.len() as u16)].concat();
        option.extend(text);
        option.resize(4 + text.len().next_multiple_of(4), 0);
        option
    }
}

/// The body of a block that is whole.
pub(super) fn is_whole(block: &[u8]) -> bool {
    block.len() >= FRAME_OF_BLOCK && block.len().is_multiple_of(4)
}
