//! Why no attack record can have the attacker's hardware address, where none can.

use crate::guard::Guard;

/// Under which guards, and why.
type Anonymous = &'static [(Guard, &'static str)];

/// The switch alone knows the port.
pub(super) const SENT_AS_ANOTHER: Anonymous = &both("its frames have the hardware address of another host");

/// As above.
pub(super) const SENT_AS_NOBODY: Anonymous = &both("its frames have hardware addresses that are made up");

/// It changes what others send.
pub(super) const ON_THE_WIRE: Anonymous = &both("it sits on the wire of b and sends as b");

/// It sends nothing, or nothing that matters.
pub(super) const LISTENS: Anonymous = &both("it only listens");

/// The claim cannot be compared with anything.
pub(super) const NOT_MET: Anonymous =
    &both("the victim has never met c, and an unguarded host asks for addresses so as well");

/// What is answered is not dropped, so nobody looks at what it says.
pub(super) const ANSWERED: Anonymous =
    &both("the victim answers the question, believes nothing of it and drops nothing");

/// The thief is the client in all that can be seen, or nobody.
pub(super) const WITH_A_STOLEN_KEY: Anonymous =
    &both("it sends as e, whose key it has, or with addresses that are made up");

/// A host that signs still hears what unguarded hosts answer.
pub(super) const BEYOND_THE_LAN: Anonymous =
    &[(Guard::Sarp, "the victim has asked, and an unguarded proxy answers for what is beyond the LAN so as well")];

/// Nothing tells it from a device that the manager has put there.
pub(super) const AS_A_SWITCH: Anonymous = &both("a switch of the LAN sends the same messages");

/// As above.
pub(super) const AS_A_ROUTER: Anonymous = &both("a router that is not listed sends packets of as many addresses");

/// As above.
pub(super) const AS_A_GUEST: Anonymous = &both("an unguarded host may send through the router, wherever to");

/// Clusters for load sharing have one address of IP and a group address of Ethernet.
pub(super) const AS_A_BALANCER: Anonymous =
    &both("hosts that share the load of a cluster are sent such frames by honest hosts");

const fn both(why: &'static str) -> [(Guard, &'static str); 2] {
    [(Guard::Cll, why), (Guard::Sarp, why)]
}
