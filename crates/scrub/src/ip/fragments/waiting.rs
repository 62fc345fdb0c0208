//! One packet of which fragments have come.

use bump::{DropReason, Instant};

use super::Arrived;
use super::map::{Map, Relation};
use crate::context::Context;
use crate::ip::Ip;
use crate::ip::class::Congestion;
use crate::limits;
use crate::rule::Rule;

/// The header of the first fragment, which is that of the packet, and how many bytes the fragment carried.
#[derive(Debug)]
pub(super) struct First {
    pub(super) ip: Ip,
    pub(super) len: usize,
}

/// One packet of which fragments have come.
#[derive(Debug)]
pub(super) struct Waiting {
    /// When its first fragment came.
    pub(super) since: Instant,
    /// Headers of the fragment that came first: the example that is kept if it never leaves.
    pub(super) head: Vec<u8>,
    /// Frames that are held for it.
    pub(super) held: u32,
    pub(super) map: Map,
    pub(super) first: Option<First>,
    /// Bytes of the longest fragment, headers included.
    pub(super) longest: usize,
    /// The lowest among its fragments.
    pub(super) hop_limit: u8,
    pub(super) congestion: Congestion,
    /// Its fragments contradict each other and all that are still to come go the same way (RFC 5722, section 4).
    pub(super) is_refused: bool,
}

impl Waiting {
    pub(super) fn new(since: Instant, head: Vec<u8>) -> Waiting {
        Waiting {
            since,
            head,
            held: 0,
            map: Map::default(),
            first: None,
            longest: 0,
            hop_limit: u8::MAX,
            congestion: Congestion::default(),
            is_refused: false,
        }
    }

    /// Takes one more fragment in.
    ///
    /// # Errors
    /// It contradicts those that came before, and the packet must go.
    pub(super) fn take(&mut self, context: &mut Context<'_>, arrived: Arrived<'_>) -> Result<(), DropReason> {
        let relation = self.map.relation(arrived.part.offset, arrived.bytes);
        let rule = super::rule(&arrived.ip);
        let is_overlap = !matches!(relation, Relation::Apart | Relation::Duplicate);
        match arrived.ip {
            Ip::V6(_) if is_overlap => return Err(context.refused(rule, DropReason::FragmentConflict)),
            Ip::V4(_) if relation == Relation::Differs => {
                let is_reuse = arrived.part.offset == 0;
                context.refuse_if(is_reuse, Rule::Ipv4FragmentReuse, DropReason::FragmentConflict)?;
                context.acted(rule);
            }
            _ => {}
        }
        if self.map.insert(arrived.part, arrived.bytes).is_err() {
            return Err(context.refused(rule, DropReason::FragmentConflict));
        }
        self.note(arrived);
        Ok(())
    }

    /// Remembers what the fragment says beside its bytes.
    fn note(&mut self, arrived: Arrived<'_>) {
        let Arrived { mut ip, part, header_len, bytes } = arrived;
        self.longest = self.longest.max(header_len + bytes.len());
        // The packet gets no farther than the one of its fragments that gets least far.
        self.hop_limit = self.hop_limit.min(ip.hop_limit());
        self.congestion.add(*ip.class_mut());
        if part.offset == 0 && self.first.is_none() {
            self.first = Some(First { ip, len: bytes.len() });
        }
    }

    /// What it takes of the memory, in bytes.
    pub(super) fn cost(&self) -> usize {
        let options = self.first.as_ref().map_or(0, |first| first.ip.header_len());
        limits::FRAGMENTED_PACKET_COST_BYTES + self.head.capacity() + options + self.map.cost()
    }
}
