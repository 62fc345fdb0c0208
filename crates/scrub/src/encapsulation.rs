//! What carries IP behind something else, in a frame or in a packet.
//!
//! A host reads what its kernel was told to read; whoever watches the wire descends into all that
//! it knows. So what stands behind such a header has two readers, and here it is not scrubbed for
//! either. This room only says whether IP is there. Where it cannot tell, because a header is of a
//! kind that carries IP in a form of its own, it says yes: [`crate::rule`] drops what says yes, and
//! lists let through what is meant.

use wire::EtherType;
use wire::layer::protocol;

/// Headers that are looked behind; what is deeper counts as IP.
const DEPTH_MAX: usize = 8;
/// Below this the field behind the addresses is a length (IEEE 802.3, 3.2.6).
pub(crate) const ETHERTYPE_MIN: u16 = 0x600;

/// EtherTypes that carry packets, and where more than one form is known, who descends.
mod ethertype {
    /// Tags: of customers, of providers (IEEE 802.1Q), and as they were before there was a standard for two.
    pub(super) const TAGS: [u16; 5] = [0x8100, 0x88a8, 0x9100, 0x9200, 0x9300];
    /// Labels (RFC 3032, RFC 5332).
    pub(super) const MPLS: [u16; 2] = [0x8847, 0x8848];
    /// PPPoE sessions (RFC 2516).
    pub(super) const PPPOE_SESSION: u16 = 0x8864;
    pub(super) const PPP: u16 = 0x880b;
    /// Frames (RFC 1701: transparent Ethernet bridging).
    pub(super) const FRAMES: u16 = 0x6558;
    /// 802.2 in a frame that is longer than a length field says.
    pub(super) const JUMBO_LENGTH: u16 = 0x8870;
    /// Provider backbone bridges (IEEE 802.1Q, 9.7).
    pub(super) const SERVICE_TAG: u16 = 0x88e7;
    pub(super) const MACSEC: u16 = 0x88e5;
    pub(super) const FABRIC_PATH: u16 = 0x8903;
    pub(super) const TRILL: u16 = 0x22f3;
    /// Service chains (RFC 8300).
    pub(super) const SERVICE_HEADER: u16 = 0x894f;
    /// Tags with an EtherType behind so many bytes: virtual network tags, bridge port extension
    /// (IEEE 802.1BR), redundant rings (IEC 62439-3), security groups.
    pub(super) const SHIMS: [(u16, usize); 4] = [(0x8926, 4), (0x893f, 6), (0x892f, 4), (0x8909, 6)];
    /// What carries packets in a form of its own: compressed (RFC 7973, ROHC, RFC 1144), of meshes,
    /// of vehicles, mirrored ones, behind time stamps or the tags inside of a switch.
    pub(super) const OWN_FORMS: [u16; 9] = [0xa0ed, 0x22f1, 0x876b, 0x4305, 0x8947, 0x88be, 0x22eb, 0xd28b, 0x8874];
}

/// Protocols of IP that carry packets or frames: minimal encapsulation (RFC 2004), IPIP,
/// encapsulation (RFC 1241), L2TP (RFC 3931).
const OWN_FORM_PROTOCOLS: [u8; 4] = [55, 94, 98, 115];
/// Frames in IP (RFC 3378).
const FRAMES_IN_IP: u8 = 97;
/// Labels in IP (RFC 4023).
const MPLS_IN_IP: u8 = 137;

/// What is looked at next.
#[derive(Clone, Copy, Debug)]
enum Layer<'a> {
    /// What an EtherType describes.
    Typed(u16, &'a [u8]),
    /// A frame, from its addresses on.
    Frame(&'a [u8]),
    /// 802.2 and what it carries.
    Logical(&'a [u8]),
    /// A packet of PPP, from its protocol on.
    Ppp(&'a [u8]),
    /// Labels and what stands behind the last.
    Labels(&'a [u8]),
    /// IP, or what may be.
    Ip,
    /// Something else.
    Other,
}

use Layer::{Frame, Ip, Labels, Logical, Other, Ppp, Typed};

/// Whether a frame whose EtherType or length is `ethertype` carries IP or ARP in `payload` behind anything else.
pub(crate) fn is_in_frame(ethertype: u16, payload: &[u8]) -> bool {
    carries_ip(Typed(ethertype, payload))
}

/// Whether a packet of `protocol` carries another packet of IP, or a frame with one.
pub(crate) fn is_in_packet(protocol: u8, carried: &[u8]) -> bool {
    carries_ip(match protocol {
        protocol::IPV4 | protocol::IPV6 => Ip,
        protocol::GRE => gre(carried),
        FRAMES_IN_IP => Frame(carried.get(2..).unwrap_or_default()),
        MPLS_IN_IP => Labels(carried),
        protocol if OWN_FORM_PROTOCOLS.contains(&protocol) => Ip,
        _ => Other,
    })
}

/// Whether a datagram between these ports carries a packet of IP, or a frame with one.
pub(crate) fn is_in_datagram(ports: [u16; 2], data: &[u8]) -> bool {
    ports.into_iter().any(|port| carries_ip(behind_port(port, data)))
}

fn carries_ip(mut layer: Layer<'_>) -> bool {
    for _ in 0..DEPTH_MAX {
        layer = match layer {
            Ip => return true,
            Other => return false,
            Typed(ethertype, rest) => typed(ethertype, rest),
            Frame(frame) => typed_at(frame, 12),
            Logical(rest) => logical(rest),
            Ppp(rest) => ppp(rest),
            Labels(rest) => labels(rest),
        };
    }
    true
}

/// What the EtherType `at` bytes into `bytes` describes.
fn typed_at(bytes: &[u8], at: usize) -> Layer<'_> {
    match bytes.get(at..).and_then(<[u8]>::split_first_chunk) {
        Some((ethertype, rest)) => Typed(u16::from_be_bytes(*ethertype), rest),
        None => Other,
    }
}

fn from(bytes: &[u8], at: usize) -> &[u8] {
    bytes.get(at..).unwrap_or_default()
}

fn typed(ethertype: u16, rest: &[u8]) -> Layer<'_> {
    if matches!(EtherType(ethertype), EtherType::IPV4 | EtherType::IPV6 | EtherType::ARP) {
        return Ip;
    }
    let shim = ethertype::SHIMS.iter().find(|(known, _)| *known == ethertype);
    match ethertype {
        ..ETHERTYPE_MIN | ethertype::JUMBO_LENGTH => Logical(rest),
        _ if ethertype::TAGS.contains(&ethertype) => typed_at(rest, 2),
        _ if ethertype::MPLS.contains(&ethertype) => Labels(rest),
        _ if ethertype::OWN_FORMS.contains(&ethertype) => Ip,
        ethertype::PPPOE_SESSION => Ppp(from(rest, 6)),
        ethertype::PPP => Ppp(rest),
        ethertype::FRAMES => Frame(rest),
        ethertype::SERVICE_TAG => Frame(from(rest, 4)),
        ethertype::FABRIC_PATH => Frame(from(rest, 2)),
        // The length of the options, in words, stands in the last five bits of the first word of 11
        // (RFC 6325, section 3).
        ethertype::TRILL => Frame(from(rest, 6 + 4 * rest.first_chunk().map_or(0, option_words))),
        ethertype::SERVICE_HEADER => service_header(rest),
        ethertype::MACSEC => macsec(rest),
        _ => shim.map_or(Other, |(_, at)| typed_at(rest, *at)),
    }
}

fn option_words(head: &[u8; 2]) -> usize {
    usize::from(u16::from_be_bytes(*head) >> 6 & 0x1f)
}

/// A frame that is only authenticated can be read by anybody; one that is encrypted by nobody (IEEE 802.1AE, 9.5).
fn macsec(rest: &[u8]) -> Layer<'_> {
    const HAS_CHANNEL: u8 = 0x20;
    const ENCRYPTED_OR_CHANGED: u8 = 0x0c;
    match rest.first() {
        Some(control) if control & ENCRYPTED_OR_CHANGED == 0 => {
            typed_at(rest, if control & HAS_CHANNEL == 0 { 6 } else { 14 })
        }
        _ => Other,
    }
}

/// Length in words and next protocol stand in the second and fourth byte (RFC 8300, section 2.2):
/// IP, frames, labels, or nothing that is assigned.
fn service_header(rest: &[u8]) -> Layer<'_> {
    let Some([_, len, _, next]) = rest.first_chunk() else { return Other };
    let behind = from(rest, usize::from(len & 0x3f) * 4);
    match next {
        1 | 2 => Ip,
        3 => Frame(behind),
        4 => service_header(behind),
        5 => Labels(behind),
        _ => Other,
    }
}

/// 802.2: the access points of IP and ARP, of OSI's identifiers, and SNAP (RFC 1042).
fn logical(rest: &[u8]) -> Layer<'_> {
    const GROUP: u8 = 1;
    const UNNUMBERED: u8 = 3;
    let Some([point, _, control]) = rest.first_chunk() else { return Other };
    let behind = from(rest, if control & UNNUMBERED == UNNUMBERED { 3 } else { 4 });
    match point & !GROUP {
        0x06 | 0x98 => Ip,
        0xaa => snap(behind),
        // The identifiers of IP, of SNAP and of PPP (RFC 2427, section 4).
        0xfe if matches!(behind.first(), Some(0xcc | 0x8e | 0x80 | 0xcf)) => Ip,
        _ => Other,
    }
}

/// An organisation, and what it calls a type: mostly an EtherType, with the bridges' a frame (RFC 2684, appendix B).
fn snap(rest: &[u8]) -> Layer<'_> {
    const BRIDGES: [u8; 3] = [0x00, 0x80, 0xc2];
    const BRIDGED_FRAMES_MAX: u8 = 0x0a;
    match rest {
        [a, b, c, 0, 1..=BRIDGED_FRAMES_MAX, ..] if [*a, *b, *c] == BRIDGES => Ip,
        _ => match typed_at(rest, 3) {
            // What an organisation numbers like a length is its own. Nobody needs a tag here.
            Typed(..ETHERTYPE_MIN, _) => Other,
            Typed(tag, _) if ethertype::TAGS.contains(&tag) => Ip,
            layer => layer,
        },
    }
}

/// The protocol of PPP, in one byte if that is odd (RFC 1661, section 6.5). Below 0x4000 are
/// packets: those of IP in any form but an encrypted or compressed one, which nobody reads.
fn ppp(rest: &[u8]) -> Layer<'_> {
    let rest = rest.strip_prefix(&[0xff, 0x03]).unwrap_or(rest);
    let (protocol, behind) = match rest {
        [low, behind @ ..] if low & 1 != 0 => (u16::from(*low), behind),
        [high, low, behind @ ..] => (u16::from_be_bytes([*high, *low]), behind),
        _ => return Other,
    };
    match protocol {
        // IP, its compressed headers, bridged frames, several links, and both forms of compressed
        // headers that came later.
        0x21 | 0x57 | 0x2d | 0x2f | 0x31 | 0x3d | 0x03 | 0x05 | 0x4f | 0x61..=0x69 => Ip,
        0x0281 | 0x0283 => Labels(behind),
        _ => Other,
    }
}

/// Labels up to the last. Behind it nothing says what follows, and those who watch guess by its
/// first bits; only a channel of its own says that it is none (RFC 5586, section 2.1), and what it
/// carries.
fn labels(mut rest: &[u8]) -> Layer<'_> {
    const LAST: u8 = 1;
    while let Some(([_, _, last, _], behind)) = rest.split_first_chunk() {
        rest = behind;
        if last & LAST != 0 {
            break;
        }
    }
    match rest {
        [] => Other,
        [first, _, 0, 0x21 | 0x57, ..] if first >> 4 == 1 => Ip,
        [first, ..] if first >> 4 == 1 => Other,
        _ => Ip,
    }
}

/// GRE with the fields that its flags announce (RFC 2784, RFC 2890), and as PPTP has it (RFC 2637).
fn gre(bytes: &[u8]) -> Layer<'_> {
    const ROUTING: u8 = 0x40;
    let Some([flags, version, a, b]) = bytes.first_chunk() else { return Other };
    let ethertype = u16::from_be_bytes([*a, *b]);
    if flags & ROUTING != 0 {
        return Ip;
    }
    let words = if version & 7 == 1 {
        1 + usize::from(flags >> 4 & 1) + usize::from(version >> 7)
    } else {
        usize::from(flags >> 7) + usize::from(flags >> 5 & 1) + usize::from(flags >> 4 & 1)
    };
    Typed(ethertype, from(bytes, 4 + 4 * words))
}

/// What a datagram to or from `port` carries, if it looks like that port's tunnel: others use the
/// same numbers by chance.
fn behind_port(port: u16, data: &[u8]) -> Layer<'_> {
    match (port, data) {
        // L2TP (RFC 2661).
        (1701, _) => l2tp(data),
        // GTP-U, a packet of a user (3GPP TS 29.281), and as it was before.
        (2152, [0x30..=0x3f, 0xff, ..]) | (3386, [0x00..=0x1f, 0xff, ..]) => Ip,
        // Teredo (RFC 4380): IPv6, or what Teredo puts before it.
        (3544, [0x60..=0x6f, ..] | [0, 0 | 1, ..]) if data.len() >= 40 => Ip,
        // LISP (RFC 9300): flags, and behind eight bytes a packet.
        (4341, [_, _, _, _, _, _, _, _, 0x45..=0x4f | 0x60..=0x6f, ..]) => Ip,
        // GRE in UDP (RFC 8086).
        (4754, _) => gre(data),
        // VXLAN (RFC 7348), also as Linux once numbered it.
        (4789 | 8472, [flags, _, ..]) if flags & 0x08 != 0 => Frame(from(data, 8)),
        // Its extension (RFC 9638 names it): the last byte of the first word says what follows.
        (4790, [flags, _, _, next, ..]) if flags & 0x04 != 0 => match next {
            1 | 2 => Ip,
            3 => Frame(from(data, 8)),
            4 => service_header(from(data, 8)),
            5 => Labels(from(data, 8)),
            _ => Other,
        },
        // AYIYA.
        (5072, _) if matches!(data.get(3), Some(4 | 41)) => Ip,
        // CAPWAP's data (RFC 5415) in the clear.
        (5247, [0, ..]) if data.len() > 16 => Ip,
        // Generic UDP encapsulation: a protocol of IP, or a packet.
        (6080, [0..=0x1f, 4 | 41 | 47 | 97, ..] | [0x45..=0x4f | 0x60..=0x6f, ..]) if data.len() >= 20 => Ip,
        // Geneve (RFC 8926).
        (6081, [head @ 0..=0x3f, _, a, b, ..]) => {
            Typed(u16::from_be_bytes([*a, *b]), from(data, 8 + 4 * usize::from(head & 0x3f)))
        }
        // MPLS in UDP (RFC 7510).
        (6635, _) => Labels(data),
        // TaZmen sniffer protocol: frames of a mirror.
        (37008, [1, 0 | 1, 0, 1, ..]) => Ip,
        _ => Other,
    }
}

/// A message of data of L2TP (RFC 2661, section 3.1), or of its third version, where nothing says what follows.
fn l2tp(data: &[u8]) -> Layer<'_> {
    const CONTROL: u8 = 0x80;
    let Some([flags, version]) = data.first_chunk() else { return Other };
    if flags & CONTROL != 0 {
        return Other;
    }
    match version & 0x0f {
        2 => {
            let mut at = 6 + 2 * usize::from(flags >> 6 & 1) + 4 * usize::from(flags >> 3 & 1);
            if flags & 0x02 != 0 {
                let [a, b] = data.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
                at += 2 + usize::from(u16::from_be_bytes([a, b]));
            }
            Ppp(from(data, at))
        }
        3 if data.len() > 8 => Ip,
        _ => Other,
    }
}
