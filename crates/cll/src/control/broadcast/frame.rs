//! Group frames of the wire by what is known of them: one that was read, and one that its sender signed.
//!
//! A frame is read once; what was found in it goes from check to check with its bytes. Only a tree whose root was found right
//! makes an [`Authentic`] one, so that none that is not can be taken.

use bump::DropReason;
use wire::cll::GroupFrame;
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};

use crate::merkle::{self, Batches, Way};

/// A frame that is well formed. Nothing in it is proved.
#[derive(Clone, Copy)]
pub(super) struct Heard<'f> {
    /// The frame of the wire.
    pub(super) bytes: &'f [u8],
    pub(super) header: Header,
    pub(super) message: GroupFrame<'f>,
}

impl<'f> Heard<'f> {
    /// Reads a frame of the wire.
    pub(super) fn read(bytes: &'f [u8]) -> Result<Heard<'f>, DropReason> {
        let (header, message) = Header::parse(bytes).map_err(|_| DropReason::Runt)?;
        Ok(Heard { bytes, header, message: GroupFrame::parse(message).map_err(|_| DropReason::Malformed)? })
    }

    /// Whether it is in one of the sender's `batches` whose root was found right.
    ///
    /// # Errors
    /// It is in none: the way to the root whose signature would prove it.
    pub(super) fn prove(self, batches: &mut Batches) -> Result<Authentic<'f>, Box<Way>> {
        let (ethernet, message) = self.bytes.split_at(ETHERNET_LEN);
        let leaf = merkle::leaf(ethernet, &message[..self.message.unproved_len()]);
        batches.prove(leaf, self.message.head.place, self.message.proof.path)?;
        Ok(Authentic(self))
    }

    /// It is proved: the signature over the root of `way`, which is its own, was found right.
    pub(super) fn proved_by(self, way: Box<Way>, batches: &mut Batches) -> Authentic<'f> {
        batches.remember(way);
        Authentic(self)
    }
}

/// A frame that the host in its Ethernet source has signed in this incarnation. What it says about that host is not checked.
pub(super) struct Authentic<'f>(Heard<'f>);

impl<'f> Authentic<'f> {
    pub(super) fn into_heard(self) -> Heard<'f> {
        self.0
    }
}
