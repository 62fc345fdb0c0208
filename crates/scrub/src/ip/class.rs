//! The former type of service: six bits of class (RFC 2474), two of congestion notification (RFC 3168).

use bump::DropReason;

use crate::context::Context;
use crate::rule::Rule;

/// The bits of congestion notification.
const ECN: u8 = 0x03;
const NOT_CAPABLE: u8 = 0;
const EXPERIENCED: u8 = 3;

/// One bit for each class that is assigned: class selectors (RFC 2474), assured forwarding (RFC 2597), expedited forwarding
/// (RFC 3246), voice admit (RFC 5865), lower effort (RFC 8622), and no queue building (RFC 9956).
const ASSIGNED: u64 = {
    let classes = [0, 8, 16, 24, 32, 40, 48, 56, 10, 12, 14, 18, 20, 22, 26, 28, 30, 34, 36, 38, 46, 44, 1, 45];
    let (mut mask, mut at) = (0, 0);
    while at < classes.len() {
        mask |= 1_u64 << classes[at];
        at += 1;
    }
    mask
};

/// The field with its class cleared, if nobody assigned it.
pub(crate) fn scrubbed(context: &mut Context<'_>, rule: Rule, field: u8) -> u8 {
    let is_assigned = ASSIGNED & (1 << (field >> 2)) != 0;
    if context.acts_if(!is_assigned, rule) { field & ECN } else { field }
}

/// What the fragments of a packet say together about congestion (RFC 3168, section 5.3).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Congestion {
    was_experienced: bool,
    /// One of the fragments belongs to a transport that does not know about it.
    is_unknown_to_some: bool,
}

impl Congestion {
    /// Takes in the field of one more fragment.
    pub(crate) fn add(&mut self, field: u8) {
        self.was_experienced |= field & ECN == EXPERIENCED;
        self.is_unknown_to_some |= field & ECN == NOT_CAPABLE;
    }

    /// The field of the whole packet, whose first fragment has `field`.
    ///
    /// # Errors
    /// Congestion was marked, and the transport cannot have been told that it would be.
    pub(crate) fn of_whole(self, field: u8) -> Result<u8, DropReason> {
        match (self.was_experienced, self.is_unknown_to_some) {
            (true, true) => Err(DropReason::FragmentConflict),
            (true, false) => Ok(field | EXPERIENCED),
            (false, _) => Ok(field),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_assigned_classes_are_those_of_the_registry() {
        // IANA, "Differentiated Services Field Codepoints", pools 1 and 3.
        let assigned: Vec<u32> = (0..64).filter(|class| ASSIGNED & (1 << class) != 0).collect();
        let registry = [0, 1, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 44, 45, 46, 48, 56];
        assert_eq!(assigned, registry);
    }

    #[test]
    fn congestion_of_one_fragment_is_that_of_the_packet() {
        let of = |fields: &[u8]| {
            let mut congestion = Congestion::default();
            fields.iter().for_each(|field| congestion.add(*field));
            congestion.of_whole(fields[0])
        };
        assert_eq!(of(&[0x2a, 0x2b, 0x29]), Ok(0x2b));
        assert_eq!(of(&[0x28, 0x28]), Ok(0x28));
        assert_eq!(of(&[0x29, 0x2a]), Ok(0x29));
        assert_eq!(of(&[0x28, 0x2b]), Err(DropReason::FragmentConflict));
    }
}
