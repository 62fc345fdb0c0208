//! What an ICMP message is for, whichever version of IP carries it.

use wire::icmp::{PROTOCOL_V4, PROTOCOL_V6, v4, v6};

/// The purpose of a message, as far as rules tell messages apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    EchoRequest,
    EchoReply,
    /// Something went wrong with the packet that the message quotes.
    Error(Error),
    /// Neighbour discovery, which never crosses a router.
    Neighbour,
    /// All others.
    Other,
}

/// What beside the quote an error says in the last four bytes of its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    /// Nothing.
    Plain,
    /// The packet was longer than this MTU, in the last two bytes (IPv4) or in all four.
    TooBig,
    /// A place in the packet, in the first byte.
    ShortPointer,
    /// A place in the packet, or the address of a router, in all four.
    Word,
}

impl Kind {
    /// The kind of a message of this type and code; `None` if `protocol` is not ICMP.
    pub(crate) fn of(protocol: u8, message_type: u8, code: u8) -> Option<Kind> {
        match protocol {
            PROTOCOL_V4 => Some(Kind::of_v4(message_type, code)),
            PROTOCOL_V6 => Some(Kind::of_v6(message_type)),
            _ => None,
        }
    }

    fn of_v4(message_type: u8, code: u8) -> Kind {
        match (message_type, code) {
            (v4::ECHO_REQUEST, _) => Kind::EchoRequest,
            (v4::ECHO_REPLY, _) => Kind::EchoReply,
            (v4::UNREACHABLE, v4::FRAGMENTATION_NEEDED) => Kind::Error(Error::TooBig),
            (v4::UNREACHABLE | v4::TIME_EXCEEDED | v4::SOURCE_QUENCH, _) => Kind::Error(Error::Plain),
            (v4::PARAMETER_PROBLEM, _) => Kind::Error(Error::ShortPointer),
            (v4::REDIRECT, _) => Kind::Error(Error::Word),
            _ => Kind::Other,
        }
    }

    fn of_v6(message_type: u8) -> Kind {
        match message_type {
            v6::ECHO_REQUEST => Kind::EchoRequest,
            v6::ECHO_REPLY => Kind::EchoReply,
            v6::PACKET_TOO_BIG => Kind::Error(Error::TooBig),
            v6::UNREACHABLE | v6::TIME_EXCEEDED => Kind::Error(Error::Plain),
            v6::PARAMETER_PROBLEM => Kind::Error(Error::Word),
            v6::ROUTER_SOLICITATION..=v6::REDIRECT => Kind::Neighbour,
            _ => Kind::Other,
        }
    }

    /// Whether it answers something, so that its timing and form tell about the host that made it.
    pub(crate) fn is_answer(self) -> bool {
        matches!(self, Kind::EchoReply | Kind::Error(_))
    }
}

/// Whether a message of this type is assigned and may pass: none that RFC 6918 or RFC 6633 ended,
/// that tells a host's clock, mask or names, or that changes its routes from afar. Router discovery
/// and what is for neighbours stays on its link by itself.
pub(crate) fn is_of_use(protocol: u8, message_type: u8) -> bool {
    if protocol == PROTOCOL_V4 {
        return v4::OF_USE.contains(&message_type);
    }
    v6::OF_USE.iter().any(|types| types.contains(&message_type))
}
