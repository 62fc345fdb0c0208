//! Requests for a handshake that cost their receiver something and come to nothing, made from a genuine one.

use std::time::{SystemTime, UNIX_EPOCH};

use bump::Generator;
use identity::HostIdentity;
use wire::cll::handshake::{CERTIFICATE_LEN_MAX, FIXED_LEN, SIGNATURE_LEN_MAX, set_site_tag, tagged_parts};
use wire::cll::{Agreement, SITE_TAG_AT};
use wire::ethernet::HEADER_LEN;

use crate::net::flood::{FRAMES_MAX, Forged, NewTags};

/// Frames of a flood before it begins anew.
const FRAMES: u32 = FRAMES_MAX as u32;
/// The same where each gets a new tag whenever it is sent.
const FRAMES_WITH_NEW_TAGS: u32 = 1024;
/// Where a request has its fields (docs/protocol.md, section 4), behind the Ethernet header.
const ARP_SENDER_AT: usize = 18 + 8;
/// Where its time stands.
pub const TIMESTAMP_AT: usize = 46;
/// Where its nonce stands.
pub const NONCE_AT: usize = 54;
/// What the tag under the site key is over, beside the message (docs/protocol.md, section 3).
pub const LABEL: &[u8] = b"handshake";

/// What is wrong with the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgery {
    /// The tag under the site key: an outsider, under a new hardware address each time.
    WrongSiteTag,
    /// Nothing but that it was heard before.
    Replayed,
    /// The certificate, as long as one may be, under a right tag: by somebody who has the site key.
    LargeCertificate,
    /// The signature, under a right tag, a good certificate and a new hardware address each time.
    WrongSignature,
    /// The tag, which is another one each time and of which no more is right than its hint, as somebody makes them who has the site key
    /// and does not repeat himself.
    NewTags,
    /// The same with a certificate as long as one may be.
    NewTagsLarge,
}

impl Forgery {
    /// All of them.
    pub const ALL: [Forgery; 6] = [
        Forgery::WrongSiteTag,
        Forgery::Replayed,
        Forgery::LargeCertificate,
        Forgery::WrongSignature,
        Forgery::NewTags,
        Forgery::NewTagsLarge,
    ];

    /// Its part of a row's name.
    pub fn name(self) -> &'static str {
        match self {
            Forgery::WrongSiteTag => "wrong_site_tag",
            Forgery::Replayed => "replayed",
            Forgery::LargeCertificate => "large_certificate",
            Forgery::WrongSignature => "wrong_signature",
            Forgery::NewTags => "new_tags",
            Forgery::NewTagsLarge => "new_tags_large",
        }
    }

    /// What is made from `genuine`, a request that `identity` made.
    pub fn forge(self, genuine: &[u8], identity: &HostIdentity) -> Forged {
        let mut random = Generator::from_seed([4; 32]);
        let long = |random: &mut Generator| with_long_certificate(genuine, random);
        let (of, count) = match self {
            Forgery::Replayed => return vec![genuine.to_vec()].into(),
            Forgery::WrongSiteTag | Forgery::WrongSignature => (genuine.to_vec(), FRAMES),
            Forgery::LargeCertificate => (long(&mut random), FRAMES),
            Forgery::NewTags => (genuine.to_vec(), FRAMES_WITH_NEW_TAGS),
            Forgery::NewTagsLarge => (long(&mut random), FRAMES_WITH_NEW_TAGS),
        };
        let frames = (0..count).map(|_| self.renew(of.clone(), identity, &mut random)).collect();
        let is_new = matches!(self, Forgery::NewTags | Forgery::NewTagsLarge);
        let new_tags =
            is_new.then(|| NewTags { at: HEADER_LEN + SITE_TAG_AT, hint_key: *identity.site_key().hint_key() });
        Forged { frames, new_tags }
    }

    /// The same with a new address, time and nonce, and a tag as this forger can make it.
    fn renew(self, mut frame: Vec<u8>, identity: &HostIdentity, random: &mut Generator) -> Vec<u8> {
        let mut mac: [u8; 6] = random.bytes();
        // Of one host, and administered locally.
        mac[0] = mac[0] & 0xfc | 2;
        frame[6..12].copy_from_slice(&mac);
        let (ethernet, message) = frame.split_at_mut(HEADER_LEN);
        message[ARP_SENDER_AT..ARP_SENDER_AT + 6].copy_from_slice(&mac);
        message[TIMESTAMP_AT..TIMESTAMP_AT + 8].copy_from_slice(&now_ms().to_be_bytes());
        message[NONCE_AT..NONCE_AT + 16].copy_from_slice(&random.bytes::<16>());
        let tag = match self {
            Forgery::WrongSiteTag => random.bytes(),
            _ => {
                let [before, after] = tagged_parts(message);
                identity.site_key().frame_tag(LABEL, &[ethernet, before, after])
            }
        };
        set_site_tag(message, &tag);
        frame
    }
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

/// The same request with certificate and signature of the greatest lengths that are read, of random bytes in the form of a
/// certificate's outermost element.
fn with_long_certificate(genuine: &[u8], random: &mut Generator) -> Vec<u8> {
    let mut frame = genuine[..HEADER_LEN + FIXED_LEN + Agreement::X25519.share_len()].to_vec();
    let content_len = (CERTIFICATE_LEN_MAX - 4) as u16;
    frame.extend((CERTIFICATE_LEN_MAX as u16).to_be_bytes());
    frame.extend([0x30, 0x82]);
    frame.extend(content_len.to_be_bytes());
    frame.extend((0..content_len).map(|_| random.bytes::<1>()[0]));
    frame.extend((SIGNATURE_LEN_MAX as u16).to_be_bytes());
    frame.extend((0..SIGNATURE_LEN_MAX).map(|_| random.bytes::<1>()[0]));
    frame
}
