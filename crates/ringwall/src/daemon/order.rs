//! What a supervisor wants of one kind of bump and of no other. A bump leaves what does not concern it, and whoever waits for an
//! answer then hears at once that there is none.

use std::net::IpAddr;
use std::sync::Arc;

use cll::Instruction;
use identity::signing::SigningKey;
use sarp::SharedKeys;
use scrub::{FlowId, FlowReport};
use shield::ipsec::PeerSettings;

use super::queue::Reply;

/// An order to a bump.
pub(crate) enum Order {
    /// S-ARP: have the host's own key replaced; how that ends is in the report.
    ChangeKey(Arc<SigningKey>),
    /// S-ARP: what this host shares with others is this from now on.
    Share(Box<SharedKeys>),
    /// S-ARP: the hosts that are believed without a signature are these from now on.
    KnownHosts(Vec<sarp::KnownHost>),
    /// The link layer: follow what an operator or the site says.
    Instruct(Instruction),
    /// A shield in front of IPsec: take other keys of its peers.
    SetPeers(Vec<PeerSettings>),
    /// A scrubber: list the connections that are asked for.
    ListFlows(Wanted, Reply<Vec<FlowReport>>),
    /// A scrubber: block a connection, and say whether that changed anything.
    Block(Blocking, Reply<bool>),
}

/// Which connections are asked for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// At most so many.
    pub(crate) limit: usize,
    /// Of this host.
    pub(crate) address: Option<IpAddr>,
    /// In this state.
    pub(crate) state: Option<String>,
}

impl Wanted {
    /// Whether the connection is among them.
    pub(crate) fn takes(&self, report: &FlowReport) -> bool {
        let FlowId { trusted, untrusted, .. } = report.flow;
        self.address.is_none_or(|address| trusted.ip() == address || untrusted.ip() == address)
            && self.state.as_ref().is_none_or(|state| report.state == state)
    }
}

/// A connection to block.
#[derive(Clone, Debug)]
pub(crate) struct Blocking {
    pub(crate) flow: FlowId,
    /// To unblock it.
    pub(crate) undo: bool,
}
