//! What lanes ask of control, and what control orders.

use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;

use bump::{DropReason, Instant, Meta, Side};
use shield::kernel::HintKeys;
use wire::MacAddress;

use crate::keys::{ReceiveKey, SendKey};
use crate::migration::Rules;
use crate::origin::{Claims, Origin};
use crate::settings::Settings;

/// Names an association for as long as the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AssociationId(pub u64);

/// What a lane saw of an association since it last reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Frames with payload were sealed.
    pub sealed_payload: bool,
    /// Frames were opened.
    pub opened: bool,
    /// Frames with payload were opened.
    pub opened_payload: bool,
}

impl Activity {
    /// Whether there is anything to report.
    #[must_use]
    pub fn any(self) -> bool {
        self != Activity::default()
    }
}

/// From a lane to control.
#[derive(Debug)]
pub enum Request {
    /// The stack sent this ARP frame.
    StackArp(Vec<u8>),
    /// The stack sent this frame with a neighbour solicitation or advertisement.
    StackNeighbour(Vec<u8>),
    /// A frame was opened that claims IPv6 addresses which this lane does not know for its sender's.
    Claim(Box<Claim>),
    /// The stack sent this frame to a group.
    StackGroup(Vec<u8>),
    /// The wire brought this frame with a handshake message, or one that is for all.
    Handshake(Vec<u8>),
    /// This frame is DHCP: a plain one of the stack, or a DHCP frame of the wire.
    Dhcp(Side, Vec<u8>),
    /// Frames wait for an association with this address.
    Wanted(MacAddress),
    /// A first frame was opened under this candidate.
    FirstFrame(AssociationId),
    /// A first frame of the peer's stack was opened under this association.
    FirstPayload(AssociationId),
    /// Something happened under this association.
    Activity(AssociationId, Activity),
    /// A frame from this address carried an index that means nothing here.
    UnknownIndex(MacAddress),
    /// Many frames were sent under this association; its key should be replaced.
    Worn(AssociationId),
    /// The wire brought this ARP frame in clear, and its source address may be heard.
    PlainArp(Vec<u8>),
    /// This frame in clear of the wire carries a neighbour solicitation or advertisement, and the mode of migration may let it pass.
    PlainNeighbour(Vec<u8>),
    /// A frame in clear was noted or refused that an operator should hear of.
    Plain(PlainWord),
    /// A peer with an association spoke in clear.
    HeardPlain(MacAddress),
    /// This sealed frame was opened under this association and carried this message of the link layer.
    Control(AssociationId, Vec<u8>, Vec<u8>),
}

/// A frame in clear that an operator should hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainWord {
    /// A stricter mode would have dropped it for this reason.
    Passed {
        /// Its source address, which is a claim.
        mac: MacAddress,
        /// Why.
        reason: DropReason,
    },
    /// It spoke for a host that has proved itself, and was dropped.
    Refused {
        /// Its source address, which is a claim.
        mac: MacAddress,
        /// The host for which it spoke.
        owner: MacAddress,
    },
    /// A manager's machine speaks in clear.
    Management {
        /// Its hardware address.
        mac: MacAddress,
    },
}

/// A frame that is authentic and good if what it claims is.
#[derive(Debug)]
pub struct Claim {
    pub(crate) association: AssociationId,
    pub(crate) claims: Claims,
    /// As it came from the wire.
    pub(crate) sealed: Vec<u8>,
    /// As the stack shall have it.
    pub(crate) opened: Vec<u8>,
    pub(crate) meta: Meta,
}

/// A key to receive with, as a lane installs it.
pub(crate) struct Incoming {
    pub(crate) association: AssociationId,
    pub(crate) origin: Arc<Origin>,
    pub(crate) key: ReceiveKey,
    /// The first frame that opens is to be reported.
    pub(crate) awaits_first_frame: bool,
    /// Otherwise only messages of the link layer are let in under it.
    pub(crate) carries_payload: bool,
}

/// A key to send with, as a lane installs it.
pub(crate) struct Outgoing {
    pub(crate) association: AssociationId,
    pub(crate) peer: MacAddress,
    pub(crate) key: SendKey,
    pub(crate) first_sequence: u32,
    /// Otherwise only messages of the link layer leave under it.
    pub(crate) carries_payload: bool,
}

/// From control to a lane.
pub struct Order(pub(crate) OrderKind);

pub(crate) enum OrderKind {
    /// Open frames with this key from now on.
    Receive(Box<Incoming>),
    /// Seal frames to this peer with this key from now on, first those that wait.
    Send(Box<Outgoing>),
    /// Forget the key with this receiver index.
    StopReceiving(u32),
    /// Forget the key for sending to this peer, if it is still this association's.
    StopSending(MacAddress, AssociationId),
    /// Seal this frame of the stack to the peer.
    Seal(MacAddress, Vec<u8>),
    /// Send the peer a frame without payload.
    ShowLife(MacAddress),
    /// Send the peer this message of the link layer.
    Control(MacAddress, Vec<u8>),
    /// Frames to this host go in clear from now on, first those that wait. After this time it is
    /// asked again.
    InClear(MacAddress, Duration),
    /// Go by these rules from now on.
    Rules(Arc<Rules>),
    /// This peer has this address; ask again after that moment.
    Admit(MacAddress, Ipv6Addr, Instant),
    /// This peer has this address no more.
    Withdraw(MacAddress, Ipv6Addr),
    /// The handshake failed: drop what waits for this address.
    GiveUp(MacAddress),
    /// Go by these settings from now on: this host has another certificate.
    Settle(Arc<Settings>),
    /// Tags have the hints of these keys from now on.
    SiteKeys(HintKeys),
}

impl std::fmt::Debug for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            OrderKind::Receive(_) => "Receive",
            OrderKind::Send(_) => "Send",
            OrderKind::StopReceiving(_) => "StopReceiving",
            OrderKind::StopSending(..) => "StopSending",
            OrderKind::Seal(..) => "Seal",
            OrderKind::ShowLife(_) => "ShowLife",
            OrderKind::Control(..) => "Control",
            OrderKind::InClear(..) => "InClear",
            OrderKind::Rules(_) => "Rules",
            OrderKind::Admit(..) => "Admit",
            OrderKind::Withdraw(..) => "Withdraw",
            OrderKind::GiveUp(_) => "GiveUp",
            OrderKind::Settle(_) => "Settle",
            OrderKind::SiteKeys(_) => "SiteKeys",
        })
    }
}
