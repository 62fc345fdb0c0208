//! What stands in a frame, as text: enough to see what a rule changed.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, SocketAddr};

use wire::layer::{self, protocol};
use wire::{EtherType, ipv4, ipv6, tcp};

/// Names of TCP's flags, from the lowest bit on.
const FLAGS: [&str; 8] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
const UDP_LEN: usize = 8;

/// Between whom a packet goes; no ports where it does not begin with any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ends {
    addresses: [IpAddr; 2],
    ports: Option<[u16; 2]>,
}

impl Ends {
    pub(super) fn of(frame: &[u8]) -> Option<Ends> {
        let (ethertype, start) = layer::network_layer(frame)?;
        let packet = frame.get(start..)?;
        let addresses: [IpAddr; 2] = match ethertype {
            EtherType::IPV4 => {
                let header = ipv4::View::new(packet).ok()?;
                [header.source().into(), header.destination().into()]
            }
            EtherType::IPV6 => {
                let header = ipv6::View::new(packet).ok()?;
                [header.source().into(), header.destination().into()]
            }
            _ => return None,
        };
        let transport = layer::transport_of(frame, ethertype, start).filter(|(kind, _)| has_ports(*kind));
        let ports = transport.and_then(|(_, at)| frame.get(at..)?.first_chunk::<4>());
        let ports = ports.map(|at| [u16::from_be_bytes([at[0], at[1]]), u16::from_be_bytes([at[2], at[3]])]);
        Some(Ends { addresses, ports })
    }

    /// Whether it goes between these two; fragments and errors by their addresses alone.
    pub(super) fn are(&self, [one, other]: [SocketAddr; 2]) -> bool {
        [[one, other], [other, one]].iter().any(|ends| {
            ends.map(|end| end.ip()) == self.addresses
                && self.ports.is_none_or(|ports| ends.map(|end| end.port()) == ports)
        })
    }
}

fn has_ports(kind: u8) -> bool {
    kind == protocol::TCP || kind == protocol::UDP
}

/// Names and values, from the outermost header in; checksums are left out, which follow from the
/// rest.
pub(super) fn of(frame: &[u8], shown: usize) -> Vec<(&'static str, String)> {
    let Some((ethertype, start)) = layer::network_layer(frame) else { return vec![bytes("frame", frame, shown)] };
    let mut fields = vec![bytes("link header", &frame[..start.min(frame.len())], shown + 6)];
    let packet = frame.get(start..).unwrap_or_default();
    match ethertype {
        EtherType::IPV4 => of_ipv4(packet, &mut fields),
        EtherType::IPV6 => of_ipv6(packet, &mut fields),
        _ => {
            fields.push(bytes("content", packet, shown));
            return fields;
        }
    }
    match layer::transport_of(frame, ethertype, start).and_then(|(kind, at)| Some((kind, frame.get(at..)?))) {
        Some((protocol::TCP, segment)) => of_tcp(segment, shown, &mut fields),
        Some((protocol::UDP, datagram)) if datagram.len() >= UDP_LEN => {
            fields.push(("UDP length", short(datagram, 4).to_string()));
            fields.push(bytes("data", &datagram[UDP_LEN..], shown));
        }
        Some((_, content)) => fields.push(bytes("content", content, shown)),
        None => fields.push(bytes("packet", packet, shown + ipv6::HEADER_LEN)),
    }
    fields
}

fn of_ipv4(packet: &[u8], fields: &mut Vec<(&'static str, String)>) {
    let Ok(header) = ipv4::View::new(packet) else { return };
    let fragment = short(packet, 6);
    fields.extend([
        ("class", format!("{:#04x}", packet[1])),
        ("length", short(packet, 2).to_string()),
        ("identification", format!("{:#06x}", short(packet, 4))),
        ("reserved bit", (fragment >> 15).to_string()),
        ("DF", (fragment >> 14 & 1).to_string()),
        ("fragment", format!("{}{}", (fragment & 0x1fff) * 8, if fragment >> 13 & 1 == 1 { "+" } else { "" })),
        ("hop limit", packet[8].to_string()),
        bytes("IP options", packet.get(20..header.header_len()).unwrap_or_default(), 40),
    ]);
}

fn of_ipv6(packet: &[u8], fields: &mut Vec<(&'static str, String)>) {
    if packet.len() < ipv6::HEADER_LEN {
        return;
    }
    let first = u32::from_be_bytes([packet[0], packet[1], packet[2], packet[3]]);
    fields.extend([
        ("class", format!("{:#04x}", first >> 20 & 0xff)),
        ("flow label", format!("{:#07x}", first & 0xf_ffff)),
        ("length", short(packet, 4).to_string()),
        ("next header", packet[6].to_string()),
        ("hop limit", packet[7].to_string()),
    ]);
}

fn of_tcp(segment: &[u8], shown: usize, fields: &mut Vec<(&'static str, String)>) {
    let Ok(header) = tcp::View::new(segment) else { return };
    let word = |at: usize| u32::from(short(segment, at)) << 16 | u32::from(short(segment, at + 2));
    let flags = FLAGS.iter().enumerate().filter(|(bit, _)| segment[13] >> bit & 1 == 1).map(|(_, name)| *name);
    let data = segment.get(header.header_len()..).unwrap_or_default();
    fields.extend([
        ("sequence number", word(4).to_string()),
        ("acknowledgement number", word(8).to_string()),
        ("flags", flags.collect::<Vec<_>>().join(" ")),
        ("reserved bits", (segment[12] & 0x0f).to_string()),
        ("window", short(segment, 14).to_string()),
        ("urgent pointer", short(segment, 18).to_string()),
        bytes("TCP options", segment.get(20..header.header_len()).unwrap_or_default(), 40),
        bytes("data", data, shown),
    ]);
}

fn short(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |pair| u16::from_be_bytes([pair[0], pair[1]]))
}

/// How many bytes and the first of them; of longer ones a hash, so that they differ where any of
/// them does.
fn bytes(name: &'static str, content: &[u8], shown: usize) -> (&'static str, String) {
    let mut text = format!("{} bytes", content.len());
    for byte in content.iter().take(shown) {
        // Writing into a string does not fail.
        let _ = write!(text, " {byte:02x}");
    }
    if content.len() > shown {
        let mut hasher = DefaultHasher::new();
        content.hash(&mut hasher);
        let _ = write!(text, " … (hash {:08x})", hasher.finish() >> 32);
    }
    (name, text)
}
