//! The public key work of signed group frames (paper, section 5.5): one signature for a batch, and its check.

use std::sync::Arc;

use bump::DropReason;
use identity::certificate::HostCertificate;
use identity::site_key::SiteKey;
use identity::{HostIdentity, Verified};
use wire::MacAddress;
use wire::cll::Announcement;
use wire::cll::broadcast::{INCARNATION_LEN, Proof};
use wire::cll::handshake::{set_site_tag, tagged_parts};
use wire::ethernet::HEADER_LEN as ETHERNET_LEN;

use super::{Origins, Refusal};
use crate::merkle::{self, Hash, Tree};

/// Label of the tag under the site key in front of everything that is said to all.
pub(crate) const TAG_LABEL: &[u8] = b"broadcast";

/// Slow work for group frames.
#[derive(Debug)]
pub(crate) enum Work {
    /// Sign a batch of our messages.
    Sign(Box<Batch>),
    /// Check the signature over the root of a batch.
    CheckRoot(Box<CheckRoot>),
    /// Check the answer to our question.
    CheckAnnouncement(Box<CheckAnnouncement>),
}

/// What it came to.
pub(crate) enum Outcome {
    /// The batch as whole frames, in the order in which they were given; `None` if signing failed.
    Signed(Option<Vec<Vec<u8>>>),
    /// Whether the root is its sender's.
    Root(Result<(), Refusal>),
    /// Who answered.
    Announced(Result<Box<Verified<HostCertificate>>, Refusal>),
}

impl Work {
    pub(crate) fn run(self) -> Outcome {
        match self {
            Work::Sign(batch) => Outcome::Signed(batch.run()),
            Work::CheckRoot(job) => Outcome::Root(job.run()),
            Work::CheckAnnouncement(job) => Outcome::Announced(job.run().map(Box::new)),
        }
    }
}

/// Messages that one signature is to prove.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) identity: Arc<HostIdentity>,
    /// The site key to tag with.
    pub(crate) site_key: SiteKey,
    pub(crate) incarnation: [u8; INCARNATION_LEN],
    /// Ethernet header and message without its proof, in the order of the leaves.
    pub(crate) frames: Vec<Vec<u8>>,
}

impl Batch {
    fn run(self) -> Option<Vec<Vec<u8>>> {
        let leaves = u8::try_from(self.frames.len()).ok()?;
        let tree = Tree::over(self.frames.iter().map(|frame| leaf_of(frame)).collect());
        let signature = self.identity.sign(&merkle::signed(self.incarnation, leaves, &tree.root())).ok()?;
        let proved = self.frames.into_iter().enumerate().map(|(at, mut frame)| {
            Proof { path: &tree.path(at), signature: &signature }.append_to(&mut frame);
            tag(&self.site_key, &mut frame);
            frame
        });
        Some(proved.collect())
    }
}

fn leaf_of(frame: &[u8]) -> Hash {
    let (ethernet, message) = frame.split_at(ETHERNET_LEN.min(frame.len()));
    merkle::leaf(ethernet, message)
}

/// Writes the tag under the site key into a whole frame.
pub(crate) fn tag(site_key: &SiteKey, frame: &mut [u8]) {
    let (ethernet, message) = frame.split_at_mut(ETHERNET_LEN.min(frame.len()));
    let [before, after] = tagged_parts(message);
    let tag = site_key.frame_tag(TAG_LABEL, &[ethernet, before, after]);
    set_site_tag(message, &tag);
}

/// A root of which it is to be known whether it is its sender's.
#[derive(Debug)]
pub(crate) struct CheckRoot {
    pub(crate) certificate: Arc<Verified<HostCertificate>>,
    pub(crate) signed: Vec<u8>,
    pub(crate) signature: Vec<u8>,
}

impl CheckRoot {
    fn run(self) -> Result<(), Refusal> {
        let checked = self.certificate.verify_signature(&self.signed, &self.signature);
        checked.map_err(|error| Refusal::new(DropReason::BadSignature, error))
    }
}

/// The answer to our question, whose nonce fits.
#[derive(Debug)]
pub(crate) struct CheckAnnouncement {
    pub(crate) origins: Origins,
    pub(crate) asked: MacAddress,
    pub(crate) frame: Vec<u8>,
}

impl CheckAnnouncement {
    fn run(self) -> Result<Verified<HostCertificate>, Refusal> {
        let (ethernet, message) = self.frame.split_at(ETHERNET_LEN.min(self.frame.len()));
        let announcement = Announcement::parse(message).map_err(|error| Refusal::new(DropReason::Malformed, error))?;
        let peer = self.origins.judge_certificate(announcement.certificate)?;
        if peer.mac() != self.asked {
            let detail = format!("the certificate of {} is for {}", peer.name(), peer.mac());
            return Err(Refusal::new(DropReason::CertificateAddress, detail));
        }
        let head = announcement.head;
        let leaf = merkle::leaf(ethernet, &message[..announcement.unproved_len()]);
        let root = merkle::Way::of(leaf, head.place, announcement.proof.path).root();
        let signed = merkle::signed(head.stamp.incarnation, head.place.leaves, &root);
        let checked = peer.verify_signature(&signed, announcement.proof.signature);
        checked.map_err(|error| Refusal::new(DropReason::BadSignature, error))?;
        Ok(peer)
    }
}
