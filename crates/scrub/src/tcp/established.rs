//! An established connection, up to its end (the paper's states ESTAB, CLOSE and CLOSED).

use bump::{DropReason, Side};

use crate::context::Context;
use crate::rule::Rule;
use crate::tcp::flow::{Class, Work};
use crate::tcp::handshake::{Greeting, OTHERS_AGREED_MAX};
use crate::tcp::memory::Memory;
use crate::tcp::options::{Few, kind};
use crate::tcp::retained::Retained;
use crate::tcp::segment::{Segment, flag};
use crate::tcp::serial::{ahead, is_within, later};
use crate::tcp::{acknowledgement, adoption, closing, question, stream, timestamps};

/// Largest scale of a window (RFC 7323, section 2.3): assumed where the handshake was not seen.
pub(crate) const WINDOW_SCALE_MAX: u8 = 14;

/// Which form of explicit congestion notification both ends speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ecn {
    None,
    /// RFC 3168.
    Classic,
    /// RFC 9768, or unknown.
    Accurate,
}

impl Ecn {
    /// What a SYN with the flags `offered` and a SYN-ACK with the flags `answered` agree on (RFC 9768, section 3.1.1).
    pub(crate) fn agreed(offered: u16, answered: u16) -> Ecn {
        const ACCURATE: [u16; 4] = [flag::CWR, flag::CWR | flag::ECE, flag::AE, flag::AE | flag::CWR];
        let offers_classic = offered & (flag::CWR | flag::ECE) == flag::CWR | flag::ECE;
        if offered == flag::ECN && ACCURATE.contains(&answered) {
            Ecn::Accurate
        } else if offers_classic && answered == flag::ECE {
            Ecn::Classic
        } else {
            Ecn::None
        }
    }

    /// The flags that may be set once the connection stands.
    fn flags(self) -> u16 {
        match self {
            Ecn::None => 0,
            Ecn::Classic => flag::CWR | flag::ECE,
            Ecn::Accurate => flag::ECN,
        }
    }
}

/// What the handshake agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreed {
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
    pub(crate) ecn: Ecn,
    /// Options without a field.
    pub(crate) others: Few<u8, OTHERS_AGREED_MAX>,
    /// Whether the handshake was seen. If not, hosts are believed to have agreed on what they use.
    pub(crate) is_known: bool,
    /// Whether another scrubber told of the connection. More may have passed there than it told.
    pub(crate) is_told: bool,
}

impl Agreed {
    /// What `syn` and `answer` agree on.
    pub(crate) fn of(syn: &Greeting, answer: &Greeting) -> Agreed {
        Agreed {
            sack: syn.sack_permitted && answer.sack_permitted,
            timestamps: syn.stamps.is_some() && answer.stamps.is_some(),
            ecn: Ecn::agreed(syn.ecn, answer.ecn),
            others: answer.others,
            is_known: true,
            is_told: false,
        }
    }

    /// Whether hosts may have heard of each other what did not pass here.
    pub(crate) fn may_lag(&self) -> bool {
        self.is_told || !self.is_known
    }

    fn unknown() -> Agreed {
        let others = Few::default();
        Agreed { sack: true, timestamps: true, ecn: Ecn::Accurate, others, is_known: false, is_told: false }
    }

    /// Takes out of a segment what was not agreed on.
    fn limit(&self, context: &mut Context<'_>, segment: &mut Segment<'_>) -> Result<(), DropReason> {
        let strange = segment.flags & flag::ECN & !self.ecn.flags();
        if context.acts_if(strange != 0, Rule::TcpReservedBits) {
            segment.flags &= !strange;
        }
        if !self.is_known || segment.options.others.as_slice().is_empty() {
            return Ok(());
        }
        let is_agreed = |kind| {
            self.others.as_slice().contains(&kind) || (self.ecn == Ecn::Accurate && kind::ACCURATE_ECN.contains(&kind))
        };
        // Hosts drop a segment with a signature that they have no key for, and most observers do not.
        let is_strange =
            [kind::MD5, kind::AUTHENTICATION].iter().any(|kind| segment.options.has(*kind) && !is_agreed(*kind));
        context.refuse_if(is_strange, Rule::TcpOptions, DropReason::TcpOptions)?;
        if context.on(Rule::TcpOptions) {
            let had_others = segment.options.others.retain(is_agreed);
            context.acts_if(had_others, Rule::TcpOptions);
        }
        Ok(())
    }
}

/// Where the stream of one half ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fin {
    None,
    /// A FIN was seen behind a hole and did not go on. It counts once everything before it is there.
    Waiting(u32),
    /// A FIN went on; this is its sequence number.
    At(u32),
}

/// One half of a connection: what one host sends, in its own sequence numbers.
#[derive(Debug)]
pub(crate) struct Half {
    /// The oldest byte that the peer has not acknowledged.
    pub(crate) unacknowledged: u32,
    /// The end of what went on without a hole.
    pub(crate) in_sequence: u32,
    /// The end of all that went on.
    pub(crate) end: u32,
    /// How far its host has sent by its own word: its sequence number where it said nothing.
    pub(crate) reached: u32,
    /// The right edge of the window that the peer ever granted.
    pub(crate) edge: u32,
    /// The largest window that the peer granted, in bytes.
    pub(crate) window_max: u32,
    pub(crate) fin: Fin,
    /// The timestamp below which the peer refuses (TS.Recent, RFC 7323, section 5), and when it was set, in seconds.
    pub(crate) stamp: u32,
    pub(crate) stamp_at: u32,
    /// What the peer takes in one segment.
    pub(crate) mss: u16,
    pub(crate) scale: Scale,
    pub(crate) has_stamp: bool,
    /// Whether this host reset the connection.
    pub(crate) is_reset: bool,
    /// The last byte that the peer acknowledged, if it is known.
    pub(crate) last_acknowledged: Option<u8>,
    pub(crate) retained: Option<Box<dyn Retained>>,
}

/// How windows of a host are scaled (RFC 7323, section 2), in bits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scale {
    /// As it grants them.
    pub(crate) own: u8,
    /// As its peer was told.
    pub(crate) told: u8,
}

/// What the peer takes when it does not say (RFC 9293, section 3.7.1).
const MSS: u16 = 536;

impl Half {
    /// The half of a host that said `own`, to a peer that said `other`.
    fn new(own: &Greeting, other: &Greeting, now: u32) -> Half {
        let first = own.sequence.wrapping_add(1);
        let scales = own.window_scale.zip(other.window_scale);
        Half {
            edge: first.wrapping_add(u32::from(other.window)),
            window_max: u32::from(other.window),
            mss: other.mss.unwrap_or(MSS),
            scale: Scale { own: scales.map_or(0, |(own, _)| own), told: scales.and(own.told_scale).unwrap_or(0) },
            stamp: own.stamps.map_or(0, |(_, latest)| latest),
            has_stamp: own.stamps.is_some(),
            ..Half::at(first, now)
        }
    }

    /// The half of a host about which nothing is known but its next sequence number.
    pub(crate) fn at(next: u32, now: u32) -> Half {
        Half {
            unacknowledged: next,
            in_sequence: next,
            end: next,
            reached: next,
            edge: next,
            window_max: 0,
            fin: Fin::None,
            stamp: 0,
            stamp_at: now,
            mss: u16::MAX,
            scale: Scale::default(),
            has_stamp: false,
            is_reset: false,
            last_acknowledged: None,
            retained: None,
        }
    }

    /// The half of a host whose handshake was not seen, and which may send whatever the largest window allows.
    fn adopted(next: u32, now: u32) -> Half {
        let window_max = u32::from(u16::MAX) << WINDOW_SCALE_MAX;
        let edge = next.wrapping_add(window_max);
        Half { edge, window_max, scale: Scale { own: WINDOW_SCALE_MAX, told: WINDOW_SCALE_MAX }, ..Half::at(next, now) }
    }

    /// The window that its host grants in `field`, in bytes, and how its peer is told of it: rounded down, so that it is never
    /// told of more room than there is.
    pub(crate) fn window(&self, field: u16) -> (u32, u16) {
        let window = u32::from(field) << self.scale.own;
        let told = (window >> self.scale.told).min(u32::from(u16::MAX)) as u16;
        (window, if self.scale.told == self.scale.own { field } else { told })
    }

    /// Whether its FIN was acknowledged.
    fn is_closed(&self) -> bool {
        matches!(self.fin, Fin::At(fin) if ahead(self.unacknowledged, fin) > 0)
    }

    /// Whether its peer may acknowledge that number, `last` being the highest: late ones are as old as a window at most (RFC
    /// 5961, section 5).
    pub(crate) fn may_be_acknowledged(&self, number: u32, last: u32) -> bool {
        is_within(number, self.unacknowledged.wrapping_sub(self.window_max), last)
    }

    /// Goes on at `acknowledgement`, which the peer says of it: what it sent behind that is not known.
    pub(crate) fn go_on_at(&mut self, acknowledgement: u32, memory: &mut Memory) {
        self.acknowledge(acknowledgement, memory);
        if self.fin == Fin::None {
            self.in_sequence = self.unacknowledged;
        }
    }

    /// Notes that the peer has everything up to `acknowledgement`.
    pub(crate) fn acknowledge(&mut self, acknowledgement: u32, memory: &mut Memory) {
        let Ok(len @ 1..) = u32::try_from(ahead(acknowledgement, self.unacknowledged)) else { return };
        self.unacknowledged = acknowledgement;
        self.in_sequence = later(self.in_sequence, acknowledgement);
        self.end = later(self.end, acknowledgement);
        self.last_acknowledged = None;
        let Some(retained) = &mut self.retained else { return };
        let is_behind_fin = matches!(self.fin, Fin::At(fin) if ahead(acknowledgement, fin) > 0);
        let last = retained.release(len - u32::from(is_behind_fin));
        self.last_acknowledged = last.filter(|_| !is_behind_fin);
        if retained.end() == 0 {
            retained.give_back(memory);
            self.retained = None;
        }
    }
}

/// A connection whose handshake is complete.
#[derive(Debug)]
pub(crate) struct Established {
    /// By the side that sends.
    pub(crate) halves: [Half; 2],
    pub(crate) agreed: Agreed,
    /// The sequence number of the SYN that began it, where the handshake was seen.
    pub(crate) opened_at: u32,
    /// Halves of which another scrubber told how far they were, by the side that sends: their peer
    /// must say how far they are.
    pub(crate) awaits: [bool; 2],
}

impl Established {
    /// The connection that `initiator` opened by `syn` and its peer answered by `answer`.
    pub(crate) fn agree(initiator: Side, syn: &Greeting, answer: &Greeting, now: u32) -> Established {
        let mut halves = [Half::new(syn, answer, now), Half::new(answer, syn, now)];
        if initiator == Side::UNTRUSTED {
            halves.reverse();
        }
        Established { halves, agreed: Agreed::of(syn, answer), opened_at: syn.sequence, awaits: [false; 2] }
    }

    /// A connection older than the scrubber, by the next sequence number of the trusted and of the untrusted host.
    pub(crate) fn adopt(trusted: u32, untrusted: u32, now: u32) -> Established {
        let halves = [Half::adopted(trusted, now), Half::adopted(untrusted, now)];
        Established { halves, agreed: Agreed::unknown(), opened_at: 0, awaits: [false; 2] }
    }

    /// From now on the peers of the halves that are `scrubbed` must say how far they are.
    pub(crate) fn await_word(&mut self, scrubbed: [bool; 2]) {
        self.agreed.is_told = true;
        self.awaits = scrubbed;
    }

    /// The half of the host on side `from`, and that of its peer.
    fn split(&mut self, from: Side) -> (&mut Half, &mut Half) {
        let [inner, outer] = &mut self.halves;
        if from == Side::Inner { (inner, outer) } else { (outer, inner) }
    }

    /// Judges a segment, in the order of RFC 9293, section 3.10.7.4, but that timestamps and acknowledgement come before
    /// anything changes.
    pub(crate) fn receive(&mut self, work: &mut Work<'_, '_, '_>) -> Result<(), DropReason> {
        let agreed = self.agreed;
        let mut awaits = self.awaits;
        let (sender, receiver) = self.split(work.context.from);
        let is_late = sender.is_reset && !work.segment.has(flag::RST);
        work.context.refuse_if(is_late, Rule::TcpReset, DropReason::TcpNoConnection)?;
        if work.segment.has(flag::SYN) || (receiver.is_reset && !work.segment.has(flag::RST)) {
            return question::instead(work, Rule::TcpHandshake, sender, receiver, &agreed);
        }
        agreed.limit(work.context, work.segment)?;
        let is_question = awaits != [false; 2] && adoption::catch_up(work, sender, receiver, &agreed, &mut awaits)?;
        if is_question {
            self.awaits = awaits;
            return Ok(());
        }
        if work.segment.has(flag::RST) {
            closing::reset(work, sender, receiver, &agreed)?;
            if sender.is_reset {
                // Neither says a byte more, so nothing that was said is needed again.
                self.give_back(work.memory);
            }
            return Ok(());
        }
        timestamps::judge(work, sender, &agreed)?;
        acknowledgement::judge(work, receiver, &agreed)?;
        if work.context.scrubs() {
            stream::judge(work, sender, receiver, &agreed)?;
        } else {
            stream::follow(work, sender);
        }
        acknowledgement::take(work, sender, receiver, &agreed);
        timestamps::remember(work, sender);
        self.awaits = awaits;
        Ok(())
    }

    /// Whether a host has reset it.
    pub(crate) fn is_reset(&self) -> bool {
        self.halves.iter().any(|half| half.is_reset)
    }

    pub(crate) fn class(&self) -> Class {
        if self.is_reset() || self.halves.iter().all(Half::is_closed) {
            Class::Closed
        } else if self.halves.iter().any(|half| matches!(half.fin, Fin::At(_))) {
            Class::Closing
        } else {
            Class::Established
        }
    }

    /// Whether the SYN from `from` may begin a new connection in this one's place. The SYN that
    /// began it may not: it was sent again before its answer was heard, or another segment overtook
    /// it. What else a trusted host says of its own connections is believed; after a reset nobody
    /// waits; otherwise RFC 6191, section 2.
    pub(crate) fn may_begin_anew(&self, from: Side, segment: &Segment<'_>, context: &mut Context<'_>) -> bool {
        if self.agreed.is_known && self.opened_at == segment.sequence {
            return false;
        }
        if from == Side::TRUSTED || self.is_reset() {
            return true;
        }
        if self.class() != Class::Closed {
            return false;
        }
        let half = &self.halves[from as usize];
        let stamp = segment.options.timestamps.filter(|_| half.has_stamp);
        let is_later = stamp.is_some_and(|stamps| ahead(stamps.value, half.stamp) > 0);
        let may = is_later || ahead(segment.sequence, half.end) > 0;
        !context.acts_if(!may, Rule::TcpPortReuse)
    }

    /// Gives back what is retained.
    pub(crate) fn give_back(&mut self, memory: &mut Memory) {
        for mut retained in self.halves.iter_mut().filter_map(|half| half.retained.take()) {
            retained.give_back(memory);
        }
    }
}
