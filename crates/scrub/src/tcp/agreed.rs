//! What the two ends of a connection agreed on in its handshake.

use bump::DropReason;

use crate::context::Context;
use crate::rule::Rule;
use crate::tcp::greeting::{Greeting, OTHERS_AGREED_MAX};
use crate::tcp::options::{Few, kind};
use crate::tcp::segment::{Segment, flag};

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
    /// What a SYN with the flags `offered` and a SYN-ACK with the flags `answered` agree on (RFC
    /// 9768, section 3.1.1).
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

    pub(super) fn unknown() -> Agreed {
        let others = Few::default();
        Agreed { sack: true, timestamps: true, ecn: Ecn::Accurate, others, is_known: false, is_told: false }
    }

    /// Takes out of a segment what was not agreed on.
    pub(super) fn limit(&self, context: &mut Context<'_>, segment: &mut Segment<'_>) -> Result<(), DropReason> {
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
        // Hosts drop a segment with a signature that they have no key for, and most observers do
        // not.
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
