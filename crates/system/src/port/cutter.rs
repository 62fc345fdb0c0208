//! Super-frames that metadata cannot describe, turned into plain frames before a bump sees them.
//!
//! The kernel's header names only one transport header. When that is not the outer one, the frame is a tunnel's (VXLAN,
//! GRE, IP in IP), and whoever took it for plain TCP would write lengths and checksums into the wrong places. Where all ports
//! can send it as it is (record 0025) metadata say that it is tunnelled, and it stays whole.

use bump::{Checksum, Frame, Gso, GsoKind, Meta};
use wire::offload::{Cut, Kind, Plan, SUPER_FRAME_MAX_BYTES};
use wire::{ethernet, layer};

/// How `wire` says what `gso` says.
#[must_use]
pub fn cut_of(gso: Gso) -> Cut {
    let kind = match gso.kind {
        GsoKind::TcpV4 | GsoKind::TunnelledTcpV4 => Kind::TcpV4,
        GsoKind::TcpV6 | GsoKind::TunnelledTcpV6 => Kind::TcpV6,
        GsoKind::Udp => Kind::Udp,
    };
    Cut { kind, size: gso.size }
}

/// How a super-frame with `meta` is to be cut into plain frames.
///
/// # Errors
/// It is no super-frame, or its headers contradict what the kernel said.
pub fn plan_of(frame: &[u8], meta: &Meta) -> Result<Plan, wire::Error> {
    let gso = meta.gso.ok_or(wire::Error::Invalid(wire::Field::Offload))?;
    let transport = match meta.checksum {
        Checksum::Partial { start, .. } => Some(usize::from(start)),
        _ => None,
    };
    Plan::new(frame, transport, cut_of(gso))
}

/// The metadata of every frame cut by `plan` out of a frame with `meta`.
#[must_use]
pub fn segment_meta(plan: &Plan, meta: &Meta) -> Meta {
    let (start, offset) = plan.checksum();
    Meta { checksum: Checksum::Partial { start: start as u16, offset: offset as u16 }, gso: None, ..*meta }
}

/// Whether the transport header that `meta` names is not the outer one.
pub(crate) fn is_tunnelled(frame: &[u8], meta: &Meta) -> bool {
    let (Some(_), Checksum::Partial { start, .. }) = (meta.gso, meta.checksum) else { return false };
    layer::transport_layer(frame).is_none_or(|(_, outer)| outer != usize::from(start))
}

/// The metadata of a tunnelled super-frame that may stay whole, because it can be sent as one: TCP in a tunnel in UDP, without
/// tags. `None` for what must be cut, among it whatever contradicts itself.
pub(crate) fn kept_whole(frame: &[u8], meta: &Meta) -> Option<Meta> {
    let gso = meta.gso?;
    let kind = match gso.kind {
        GsoKind::TcpV4 => GsoKind::TunnelledTcpV4,
        GsoKind::TcpV6 => GsoKind::TunnelledTcpV6,
        _ => return None,
    };
    let is_tagged = meta.vlan.is_some() || layer::network_layer(frame)?.1 != ethernet::HEADER_LEN;
    let plan = plan_of(frame, meta).ok()?;
    // The kernel takes a single piece for a plain frame, whose outer checksum nobody would complete.
    let is_fit = !is_tagged && plan.udp_tunnel().is_some() && plan.segments() > 1;
    is_fit.then_some(Meta { gso: Some(Gso { kind, ..gso }), ..*meta })
}

/// A tunnelled super-frame on its way out in pieces.
#[derive(Debug)]
pub(crate) struct Cutter {
    plan: Option<(Plan, Meta)>,
    next: usize,
    piece: Box<[u8]>,
}

impl Cutter {
    pub(crate) fn new() -> Cutter {
        Cutter { plan: None, next: 0, piece: vec![0; SUPER_FRAME_MAX_BYTES].into_boxed_slice() }
    }

    /// Begins with `frame`; returns the number of pieces.
    ///
    /// # Errors
    /// The frame cannot be cut; nothing was begun.
    pub(crate) fn begin(&mut self, frame: &[u8], meta: &Meta) -> Result<usize, wire::Error> {
        let plan = plan_of(frame, meta)?;
        self.plan = Some((plan, segment_meta(&plan, meta)));
        self.next = 0;
        Ok(plan.segments())
    }

    /// Whether pieces are left.
    pub(crate) fn is_busy(&self) -> bool {
        self.plan.is_some()
    }

    /// The next piece of `frame`, which is the one begun with.
    pub(crate) fn next(&mut self, frame: &[u8]) -> Option<Frame<'_>> {
        let (plan, meta) = self.plan?;
        let len = plan.write(frame, self.next, &mut self.piece);
        self.next += 1;
        if len.is_none() || self.next == plan.segments() {
            self.plan = None;
        }
        Some(Frame { bytes: &mut self.piece[..len?], meta })
    }
}
