//! Resumption (docs/protocol.md, section 25): two hosts that had an association come back to one in a single exchange. The paper
//! stores associations to tolerate a reboot (section 7.1); here each side gives the other a ticket, and only tickets are stored.
//!
//! - `tickets.rs`: tickets given, taken, held and spent, and the keys under which this host seals its own.
//! - `asking.rs`: this host has a ticket; `answering.rs`: the peer has one.
//!
//! A request with a ticket takes the place of the first handshake request, and the handshake takes
//! over where it is refused or not answered for a second. All else, ARP, candidates, promotion and
//! budgets, is that of the handshake. Whoever has a ticket is not believed before its binder is
//! right, and is judged again by its certificate; the issuer signs its reply.

mod answering;
mod asking;
mod tickets;

pub(super) use answering::ask_for_handshake;
pub(super) use tickets::Resumptions;
