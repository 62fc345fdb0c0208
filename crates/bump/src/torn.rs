//! What is left when a panic cuts a call into a bump short.

use crate::Side;

/// Whose state may be half done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Torn {
    /// That of the host with this hardware address, which is a claim.
    Host([u8; 6]),
    /// Anybody's.
    Anything,
}

impl Torn {
    /// By a frame that came from side `from`: its source if that is the wire, its destination
    /// otherwise. A frame without addresses leaves nobody's.
    #[must_use]
    pub fn by_frame(from: Side, frame: &[u8]) -> Torn {
        let addresses = frame.first_chunk::<12>().copied().unwrap_or_default();
        let (destination, source) = addresses.split_at(6);
        let far = if from == Side::WIRE { source } else { destination };
        Torn::Host(far.try_into().unwrap_or_default())
    }

    /// Whether the state of the host with this hardware address is among it.
    #[must_use]
    pub fn includes(self, host: [u8; 6]) -> bool {
        match self {
            Torn::Host(torn) => torn == host,
            Torn::Anything => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_about_the_host_at_its_far_end() {
        let frame = [[1; 6], [2; 6]].concat();
        assert_eq!(Torn::by_frame(Side::WIRE, &frame), Torn::Host([2; 6]));
        assert_eq!(Torn::by_frame(Side::STACK, &frame), Torn::Host([1; 6]));
        assert_eq!(Torn::by_frame(Side::WIRE, &frame[..11]), Torn::Host([0; 6]));
        assert!(Torn::Host([2; 6]).includes([2; 6]) && !Torn::Host([2; 6]).includes([1; 6]));
        assert!(Torn::Anything.includes([1; 6]));
    }
}
