//! Frames as they enter a bump: bytes, and everything the kernel said about them beside the bytes.
//!
//! Metadata is explicit because losing it is how inline systems break networks: a partial checksum sent as if it were
//! complete, a VLAN tag left in auxiliary data, a tunnelled segment mistaken for a plain one. Ports turn whatever they
//! cannot describe, or could not send as one, into plain frames, so that a bump never has to guess.

/// The two sides of a bump. A host's sides are *stack* and *wire*, a gateway's *trusted* and *untrusted*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The side that is being protected.
    Inner,
    /// The side that is hostile until proved otherwise.
    Outer,
}

impl Side {
    /// The host's own protocol stack.
    pub const STACK: Side = Side::Inner;
    /// The network interface.
    pub const WIRE: Side = Side::Outer;
    /// The gateway's side where the protected hosts are.
    pub const TRUSTED: Side = Side::Inner;
    /// The gateway's side where everybody else is.
    pub const UNTRUSTED: Side = Side::Outer;

    /// The side opposite to this one.
    #[must_use]
    pub fn other(self) -> Side {
        match self {
            Side::Inner => Side::Outer,
            Side::Outer => Side::Inner,
        }
    }
}

/// What is known about the transport checksum of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// Nothing is known; who cares must verify.
    #[default]
    Unknown,
    /// Somebody trustworthy verified it.
    Complete,
    /// The field holds only the sum of the pseudo header: the sum from `start` to the end of the frame is still to be
    /// stored at `start + offset`. Both count bytes, `start` from the first byte of the Ethernet header.
    Partial {
        /// First byte that is summed.
        start: u16,
        /// Where the sum belongs, counted from `start`.
        offset: u16,
    },
    /// Somebody verified it and it is wrong.
    Bad,
}

/// How a super-frame is to be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GsoKind {
    /// TCP over IPv4.
    TcpV4,
    /// TCP over IPv6.
    TcpV6,
    /// UDP datagrams of equal length, over either IP version.
    Udp,
    /// TCP over IPv4 in a tunnel in UDP. From the outside it is one datagram as long as all pieces together; the partial
    /// checksum is the inner segment's, and whoever cuts it counts the outer headers on as well.
    TunnelledTcpV4,
    /// The same with TCP over IPv6.
    TunnelledTcpV6,
}

impl GsoKind {
    /// Whether outer headers stand in front of the packet that is cut.
    #[must_use]
    pub fn is_tunnelled(self) -> bool {
        matches!(self, GsoKind::TunnelledTcpV4 | GsoKind::TunnelledTcpV6)
    }
}

/// A frame that stands for several: its payload is to be cut every `size` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gso {
    /// Which headers are repeated in front of every piece.
    pub kind: GsoKind,
    /// Payload bytes of each piece but the last.
    pub size: u16,
    /// The first piece alone carries CWR (RFC 3168, section 6.1.2).
    pub ecn: bool,
}

/// An 802.1Q tag that stood between the addresses and the EtherType.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanTag {
    /// Tag protocol identifier, 0x8100 or 0x88a8.
    pub tpid: u16,
    /// Priority, drop eligibility and VLAN identifier.
    pub tci: u16,
}

/// What is known about a frame beside its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// State of the transport checksum.
    pub checksum: Checksum,
    /// Set on super-frames.
    pub gso: Option<Gso>,
    /// Set where the port took a tag out of the bytes.
    pub vlan: Option<VlanTag>,
    /// Queue of the port on which the frame arrived.
    pub queue: u16,
}

impl Meta {
    /// Whether the frame is a super-frame inside of a tunnel.
    #[must_use]
    pub fn is_tunnelled(&self) -> bool {
        self.gso.is_some_and(|gso| gso.kind.is_tunnelled())
    }

    /// Metadata of a frame about which nothing is known.
    #[must_use]
    pub fn plain() -> Meta {
        Meta::default()
    }
}

/// One frame in the arriving port's own buffer; a bump may scribble on it and never keeps it.
#[derive(Debug)]
pub struct Frame<'a> {
    /// From the destination address to the last byte before the frame check sequence.
    pub bytes: &'a mut [u8],
    /// What the port knows beside the bytes.
    pub meta: Meta,
}

/// Frames that arrived together. Lending: each frame lives until the next is asked for.
pub trait Batch {
    /// The next frame, or `None` when the batch is used up.
    fn next_frame(&mut self) -> Option<Frame<'_>>;
}

/// A batch over frames held in memory, for tests, the lab and fuzzers.
#[derive(Debug)]
pub struct Frames<'a> {
    frames: &'a mut [(Vec<u8>, Meta)],
    next: usize,
}

impl<'a> Frames<'a> {
    /// A batch of `frames`, in order.
    pub fn new(frames: &'a mut [(Vec<u8>, Meta)]) -> Self {
        Frames { frames, next: 0 }
    }
}

impl Batch for Frames<'_> {
    fn next_frame(&mut self) -> Option<Frame<'_>> {
        let (bytes, meta) = self.frames.get_mut(self.next)?;
        self.next += 1;
        Some(Frame { bytes, meta: *meta })
    }
}

impl Batch for Option<Frame<'_>> {
    fn next_frame(&mut self) -> Option<Frame<'_>> {
        self.take()
    }
}
