//! Requests for a handshake that cost their receiver something and come to nothing, made from a genuine one.

use std::time::{SystemTime, UNIX_EPOCH};

use bump::Generator;
use identity::HostIdentity;
use shield::limits::KERNEL_TAGS_MAX;
use wire::cll::Agreement;
use wire::cll::handshake::{CERTIFICATE_LEN_MAX, FIXED_LEN, SIGNATURE_LEN_MAX, set_site_tag, tagged_parts};
use wire::ethernet::HEADER_LEN;

/// Frames of a flood before it begins anew: as many as a kernel remembers, since who can make a tag makes another one each time.
const FRAMES: u32 = KERNEL_TAGS_MAX;
/// Where a request has its fields (docs/protocol.md, section 4), behind the Ethernet header.
const ARP_SENDER_AT: usize = 18 + 8;
const TIMESTAMP_AT: usize = 46;
const NONCE_AT: usize = 54;
/// What the tag under the site key is over, beside the message (docs/protocol.md, section 3).
const LABEL: &[u8] = b"handshake";

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
}

impl Forgery {
    /// All of them.
    pub const ALL: [Forgery; 4] =
        [Forgery::WrongSiteTag, Forgery::Replayed, Forgery::LargeCertificate, Forgery::WrongSignature];

    /// Its part of a row's name.
    pub fn name(self) -> &'static str {
        match self {
            Forgery::WrongSiteTag => "wrong_site_tag",
            Forgery::Replayed => "replayed",
            Forgery::LargeCertificate => "large_certificate",
            Forgery::WrongSignature => "wrong_signature",
        }
    }

    /// Frames made from `genuine`, a request that `identity` made.
    pub fn frames(self, genuine: &[u8], identity: &HostIdentity) -> Vec<Vec<u8>> {
        let mut random = Generator::from_seed([4; 32]);
        match self {
            Forgery::Replayed => vec![genuine.to_vec()],
            Forgery::WrongSiteTag | Forgery::WrongSignature => {
                let forge = |_| self.renew(genuine.to_vec(), identity, &mut random);
                (0..FRAMES).map(forge).collect()
            }
            Forgery::LargeCertificate => {
                let long = with_long_certificate(genuine, &mut random);
                (0..FRAMES).map(|_| self.renew(long.clone(), identity, &mut random)).collect()
            }
        }
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

fn now_ms() -> u64 {
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
