//! What a host says to all (section 5.5 of the paper): signed group frames, and the question and the announcement by which
//! a receiver learns whose signature that is and that its sender lives now.
//!
//! ```text
//! head of all that is signed, 40                     group frame                          announcement
//!  0  version and type    1  flags, zero             40  part: number 4 bits, of 4 bits   40  nonce of the question, 16
//!  2  tag under the site key, 16                     41  length of the payload 2          56  length of the certificate 2
//! 18  incarnation of the sender, 8                   43  EtherType 2                      58  certificate
//! 26  time of the sender in milliseconds, 8          45  payload
//! 34  counter within that time, 4
//! 38  leaf in the batch 1, leaves of the batch 1     both end with: the path, 32 for each node; length of the signature 2, signature
//!
//! question: version and type 1, flags 1, tag 16, nonce 16, zeros 12
//! ```

use super::handshake::{CERTIFICATE_LEN_MAX, SIGNATURE_LEN_MAX, SIGNED_FROM, append_counted, read_counted};
use super::{NONCE_LEN, PacketType, SITE_TAG_AT, SITE_TAG_LEN};
use crate::reader::Reader;
use crate::{Error, EtherType, Field};

/// Bytes of a hash in the tree over a batch.
pub const HASH_LEN: usize = 32;
/// Most leaves of a batch.
pub const LEAVES_MAX: u8 = 64;
/// Most hashes in the path of a leaf.
pub const PATH_NODES_MAX: usize = 6;
const _: () = assert!(1 << PATH_NODES_MAX == LEAVES_MAX as usize);
/// Most parts of one frame of the stack.
pub const PARTS_MAX: u8 = 8;
/// Bytes in front of the payload of a group frame.
pub const PAYLOAD_AT: usize = HEAD_LEN + 5;
/// Bytes in front of the certificate of an announcement.
pub const CERTIFICATE_AT: usize = HEAD_LEN + NONCE_LEN + 2;
/// Bytes of a question.
pub const QUESTION_LEN: usize = 46;
/// Bytes of the head.
const HEAD_LEN: usize = 40;
/// What brings a question to the shortest Ethernet frame, so that no card pads it.
const QUESTION_FILL: usize = QUESTION_LEN - TIME_AT - size_of::<u64>();
const TIME_AT: usize = SIGNED_FROM + NONCE_LEN;

/// Bytes of an incarnation.
pub const INCARNATION_LEN: usize = 8;

/// When a message was made, on its sender's own clock: the paper's timestamp and counter, and which run of the sender counts
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Drawn at random when the sender starts.
    pub incarnation: [u8; INCARNATION_LEN],
    /// The sender's clock in milliseconds; within one incarnation it never goes back.
    pub time_ms: u64,
    /// Counts what has the same time.
    pub counter: u32,
}

/// Which leaf of a batch this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// From 0.
    pub leaf: u8,
    /// Leaves of the batch, 1 to [`LEAVES_MAX`].
    pub leaves: u8,
}

impl Place {
    /// How many hashes stand beside the way from this leaf to the root.
    #[must_use]
    pub fn path_nodes(self) -> usize {
        let (mut at, mut width, mut nodes) = (self.leaf, self.leaves, 0);
        while width > 1 {
            // The last of an odd row has nobody beside it and moves up as it is.
            nodes += usize::from(at ^ 1 < width);
            at /= 2;
            width = width.div_ceil(2);
        }
        nodes
    }
}

/// Which part of a frame of the stack this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// From 0.
    pub number: u8,
    /// Of how many, 1 to [`PARTS_MAX`].
    pub of: u8,
}

impl Part {
    /// All of it.
    pub const WHOLE: Part = Part { number: 0, of: 1 };
}

/// What all signed messages start with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Tag under the site key over the Ethernet header and all of the message but the tag.
    pub site_tag: [u8; SITE_TAG_LEN],
    /// When it was made.
    pub stamp: Stamp,
    /// Where it stands in its batch.
    pub place: Place,
}

/// What all signed messages end with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proof<'a> {
    /// The hashes beside the way to the root, from the leaf up.
    pub path: &'a [u8],
    /// The sender's signature over the root.
    pub signature: &'a [u8],
}

/// A frame of the sender's stack to a group, or a part of one. Nothing in it is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupFrame<'a> {
    /// When it was made, and where it stands in its batch.
    pub head: Head,
    /// Which part of the stack's frame it carries.
    pub part: Part,
    /// EtherType of the stack's frame.
    pub ethertype: EtherType,
    /// What followed the Ethernet header of the stack's frame, or a part of that.
    pub payload: &'a [u8],
    /// What proves it.
    pub proof: Proof<'a>,
}

/// The answer to a question: "this is my certificate, and my clock shows this now". Nothing in it is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announcement<'a> {
    /// When it was made, and where it stands in its batch.
    pub head: Head,
    /// The nonce of the question.
    pub nonce: [u8; NONCE_LEN],
    /// The sender's certificate, DER.
    pub certificate: &'a [u8],
    /// What proves it.
    pub proof: Proof<'a>,
}

/// "Who are you, and what does your clock show?"
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// Tag under the site key over the Ethernet header and all of the message but the tag.
    pub site_tag: [u8; SITE_TAG_LEN],
    /// To be repeated in the announcement.
    pub nonce: [u8; NONCE_LEN],
    /// What the asker's clock showed, in milliseconds since 1970.
    pub time_ms: u64,
}

impl Head {
    fn parse(bytes: &[u8], kind: PacketType) -> Result<(Head, Reader<'_>), Error> {
        let (site_tag, mut reader) = begin(bytes, kind)?;
        let stamp = Stamp { incarnation: reader.array()?, time_ms: reader.u64()?, counter: reader.u32()? };
        let place = Place { leaf: reader.u8()?, leaves: reader.u8()? };
        if place.leaves > LEAVES_MAX || place.leaf >= place.leaves {
            return Err(Error::Invalid(Field::CllBroadcast));
        }
        Ok((Head { site_tag, stamp, place }, reader))
    }

    fn emit(&self, kind: PacketType, capacity: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(capacity);
        out.extend_from_slice(&[kind.first_byte(), 0]);
        out.extend_from_slice(&self.site_tag);
        out.extend_from_slice(&self.stamp.incarnation);
        out.extend_from_slice(&self.stamp.time_ms.to_be_bytes());
        out.extend_from_slice(&self.stamp.counter.to_be_bytes());
        out.extend_from_slice(&[self.place.leaf, self.place.leaves]);
        out
    }
}

impl<'a> Proof<'a> {
    fn parse(mut reader: Reader<'a>, place: Place) -> Result<Proof<'a>, Error> {
        let path = reader.bytes(place.path_nodes() * HASH_LEN)?;
        let signature = read_counted(&mut reader, Field::CllSignature, SIGNATURE_LEN_MAX)?;
        if reader.rest().is_empty() { Ok(Proof { path, signature }) } else { Err(Error::Trailing(Field::CllBroadcast)) }
    }

    /// Appends the proof to a message that was emitted without.
    pub fn append_to(&self, message: &mut Vec<u8>) {
        message.extend_from_slice(self.path);
        append_counted(message, self.signature);
    }
}

impl<'a> GroupFrame<'a> {
    /// Reads a group frame from `bytes`, which start after the Ethernet header.
    ///
    /// # Errors
    /// Truncated, no group frame, a field without meaning, or bytes after its end.
    pub fn parse(bytes: &'a [u8]) -> Result<GroupFrame<'a>, Error> {
        let (head, mut reader) = Head::parse(bytes, PacketType::GroupFrame)?;
        let part = reader.u8()?;
        let part = Part { number: part >> 4, of: part & 0x0f };
        if part.of > PARTS_MAX || part.number >= part.of {
            return Err(Error::Invalid(Field::CllBroadcast));
        }
        let len = usize::from(reader.u16()?);
        let ethertype = EtherType(reader.u16()?);
        let payload = reader.bytes(len)?;
        Ok(GroupFrame { head, part, ethertype, payload, proof: Proof::parse(reader, head.place)? })
    }

    /// The message up to its proof: what the leaf covers, beside the Ethernet header.
    #[must_use]
    pub fn emit_unproved(&self) -> Vec<u8> {
        let proof_len = PATH_NODES_MAX * HASH_LEN + 2 + SIGNATURE_LEN_MAX;
        let mut out = self.head.emit(PacketType::GroupFrame, PAYLOAD_AT + self.payload.len() + proof_len);
        out.push(self.part.number << 4 | self.part.of);
        let len = u16::try_from(self.payload.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&len.to_be_bytes());
        out.extend_from_slice(&self.ethertype.0.to_be_bytes());
        out.extend_from_slice(&self.payload[..usize::from(len)]);
        out
    }

    /// The message as bytes.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut out = self.emit_unproved();
        self.proof.append_to(&mut out);
        out
    }

    /// Bytes in front of the proof.
    #[must_use]
    pub fn unproved_len(&self) -> usize {
        PAYLOAD_AT + self.payload.len()
    }
}

impl<'a> Announcement<'a> {
    /// Reads an announcement from `bytes`, which start after the Ethernet header.
    ///
    /// # Errors
    /// Truncated, no announcement, a field without meaning, or bytes after its end.
    pub fn parse(bytes: &'a [u8]) -> Result<Announcement<'a>, Error> {
        let (head, mut reader) = Head::parse(bytes, PacketType::Announcement)?;
        let nonce = reader.array()?;
        let certificate = read_counted(&mut reader, Field::CllCertificate, CERTIFICATE_LEN_MAX)?;
        reader.now_reading(Field::CllBroadcast);
        Ok(Announcement { head, nonce, certificate, proof: Proof::parse(reader, head.place)? })
    }

    /// The message up to its proof: what the leaf covers, beside the Ethernet header.
    #[must_use]
    pub fn emit_unproved(&self) -> Vec<u8> {
        let mut out = self.head.emit(PacketType::Announcement, 0);
        out.extend_from_slice(&self.nonce);
        append_counted(&mut out, self.certificate);
        out
    }

    /// The message as bytes.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut out = self.emit_unproved();
        self.proof.append_to(&mut out);
        out
    }

    /// Bytes in front of the proof.
    #[must_use]
    pub fn unproved_len(&self) -> usize {
        CERTIFICATE_AT + self.certificate.len()
    }
}

impl Question {
    /// Reads a question from `bytes`, which start after the Ethernet header.
    ///
    /// # Errors
    /// Truncated, no question, a field without meaning, or bytes after its end.
    pub fn parse(bytes: &[u8]) -> Result<Question, Error> {
        let (site_tag, mut reader) = begin(bytes, PacketType::Question)?;
        let (nonce, time_ms) = (reader.array()?, reader.u64()?);
        if reader.array()? != [0; QUESTION_FILL] {
            return Err(Error::Invalid(Field::CllBroadcast));
        }
        if reader.rest().is_empty() {
            Ok(Question { site_tag, nonce, time_ms })
        } else {
            Err(Error::Trailing(Field::CllBroadcast))
        }
    }

    /// The question as bytes.
    #[must_use]
    pub fn emit(&self) -> [u8; QUESTION_LEN] {
        let mut out = [0; QUESTION_LEN];
        out[0] = PacketType::Question.first_byte();
        out[SITE_TAG_AT..SIGNED_FROM].copy_from_slice(&self.site_tag);
        out[SIGNED_FROM..TIME_AT].copy_from_slice(&self.nonce);
        out[TIME_AT..TIME_AT + 8].copy_from_slice(&self.time_ms.to_be_bytes());
        out
    }
}

fn begin(bytes: &[u8], kind: PacketType) -> Result<([u8; SITE_TAG_LEN], Reader<'_>), Error> {
    if PacketType::of(bytes)? != kind {
        return Err(Error::Invalid(Field::CllHeader));
    }
    let mut reader = Reader::new(bytes, Field::CllBroadcast);
    let _version_and_type = reader.u8()?;
    if reader.u8()? != 0 {
        return Err(Error::Unsupported(Field::CllBroadcast));
    }
    Ok((reader.array()?, reader))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn head(leaf: u8, leaves: u8) -> Head {
        let stamp = Stamp { incarnation: [2; 8], time_ms: 0x0102_0304_0506_0708, counter: 9 };
        Head { site_tag: [1; 16], stamp, place: Place { leaf, leaves } }
    }

    fn group_frame<'a>(payload: &'a [u8], path: &'a [u8]) -> GroupFrame<'a> {
        let place = if path.is_empty() { (0, 1) } else { (2, 3) };
        let proof = Proof { path, signature: &[0xdd; 3] };
        let part = Part { number: 1, of: 2 };
        GroupFrame { head: head(place.0, place.1), part, ethertype: EtherType::IPV4, payload, proof }
    }

    fn announcement() -> Announcement<'static> {
        let proof = Proof { path: &[], signature: &[0xdd; 3] };
        Announcement { head: head(0, 1), nonce: [3; 16], certificate: &[0xcc; 5], proof }
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let bytes = group_frame(&[0xee; 4], &[0xbb; 32]).emit();
        assert_eq!(bytes[..2], [0x22, 0]);
        assert_eq!(bytes[2..18], [1; 16]);
        assert_eq!(bytes[18..26], [2; 8]);
        assert_eq!(bytes[26..40], [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 9, 2, 3]);
        assert_eq!(bytes[40..45], [0x12, 0, 4, 8, 0]);
        assert_eq!(bytes[45..49], [0xee; 4]);
        assert_eq!(bytes[49..81], [0xbb; 32]);
        assert_eq!(bytes[81..], [0, 3, 0xdd, 0xdd, 0xdd]);
        let bytes = announcement().emit();
        assert_eq!(
            (bytes[0], &bytes[40..56], &bytes[56..63]),
            (0x29, &[3; 16][..], &[0, 5, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc][..])
        );
        assert_eq!(bytes[63..], [0, 3, 0xdd, 0xdd, 0xdd]);
        let bytes = Question { site_tag: [1; 16], nonce: [3; 16], time_ms: 0x0102_0304_0506_0708 }.emit();
        assert_eq!((bytes[0], &bytes[18..34]), (0x2a, &[3; 16][..]));
        assert_eq!(bytes[34..], [1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0]);
    }

    /// Counted by hand on a drawing: three leaves are (0 1) 2, five are ((0 1)(2 3)) 4.
    #[test]
    fn a_leaf_without_a_neighbour_moves_up() {
        for (leaf, leaves, nodes) in [(0, 1, 0), (0, 2, 1), (0, 3, 2), (2, 3, 1), (3, 5, 3), (4, 5, 1), (63, 64, 6)] {
            assert_eq!(Place { leaf, leaves }.path_nodes(), nodes, "leaf {leaf} of {leaves}");
        }
    }

    #[test]
    fn every_truncation_and_every_trailing_byte_is_refused() {
        let group = group_frame(&[0xee; 20], &[0xbb; 32]).emit();
        for len in 0..group.len() {
            assert!(GroupFrame::parse(&group[..len]).is_err(), "{len} bytes");
        }
        assert_eq!(GroupFrame::parse(&[&group[..], &[0]].concat()), Err(Error::Trailing(Field::CllBroadcast)));
        let bytes = announcement().emit();
        for len in 0..bytes.len() {
            assert!(Announcement::parse(&bytes[..len]).is_err(), "{len} bytes");
        }
        assert_eq!(Announcement::parse(&[&bytes[..], &[0]].concat()), Err(Error::Trailing(Field::CllBroadcast)));
        let question = Question { site_tag: [1; 16], nonce: [3; 16], time_ms: 4 };
        assert_eq!(Question::parse(&question.emit()), Ok(question));
        assert_eq!(Question::parse(&[&question.emit()[..], &[0]].concat()), Err(Error::Trailing(Field::CllBroadcast)));
    }

    #[test]
    fn fields_without_meaning_are_refused() {
        let good = group_frame(&[0xee; 4], &[]).emit();
        for (at, value) in [(0, 0x29), (1, 1), (38, 1), (39, 0), (39, 65), (40, 0x00), (40, 0x22), (40, 0x19)] {
            let mut bad = good.clone();
            bad[at] = value;
            assert!(GroupFrame::parse(&bad).is_err(), "byte {at}: {value:#x}");
        }
        let mut question = Question { site_tag: [1; 16], nonce: [3; 16], time_ms: 4 }.emit();
        question[45] = 1;
        assert_eq!(Question::parse(&question), Err(Error::Invalid(Field::CllBroadcast)));
    }

    proptest! {
        #[test]
        fn what_is_emitted_parses(leaves in 1_u8..=LEAVES_MAX, leaf: u8, payload in proptest::collection::vec(any::<u8>(), 0..1500)) {
            let place = Place { leaf: leaf % leaves, leaves };
            let path = vec![0x5a; place.path_nodes() * HASH_LEN];
            prop_assert!(place.path_nodes() <= PATH_NODES_MAX);
            let proof = Proof { path: &path, signature: &[7; 64] };
            let head = Head { place, ..head(0, 1) };
            let frame = GroupFrame { head, part: Part::WHOLE, ethertype: EtherType::IPV6, payload: &payload, proof };
            let bytes = frame.emit();
            prop_assert_eq!(GroupFrame::parse(&bytes), Ok(frame));
            prop_assert_eq!(frame.unproved_len(), frame.emit_unproved().len());
        }

        #[test]
        fn mutated_bytes_that_parse_emit_themselves(at in 0_usize..200, value: u8, cut in 0_usize..200) {
            let mut group = group_frame(&[7; 40], &[9; 32]).emit();
            let at = at % group.len();
            group[at] = value;
            group.truncate(cut);
            if let Ok(parsed) = GroupFrame::parse(&group) {
                prop_assert_eq!(parsed.emit(), group);
            }
            let mut bytes = announcement().emit();
            let at = at % bytes.len();
            bytes[at] = value;
            if let Ok(parsed) = Announcement::parse(&bytes) {
                prop_assert_eq!(parsed.emit(), bytes);
            }
        }

        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = (GroupFrame::parse(&bytes), Announcement::parse(&bytes), Question::parse(&bytes));
        }
    }
}
