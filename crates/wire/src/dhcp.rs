//! DHCP messages (RFC 2131, 2132, 3396) in Ethernet, IPv4 and UDP, and what S-DHCP adds to them (docs/s-dhcp.md).
//!
//! ```text
//!  0 op  1 htype  2 hlen  3 hops  4 xid  8 secs  10 flags  12 ciaddr  16 yiaddr  20 siaddr  24 giaddr
//! 28 chaddr, 16   44 sname, 64   108 file, 128   236 cookie   240 options
//! ```
//!
//! [`recognise`] is the one place that says which frames are DHCP. [`View`] reads one and writes changed copies; nothing in
//! it is proved.

use std::borrow::Cow;
use std::net::Ipv4Addr;

use crate::ethernet::{HEADER_LEN as ETHERNET_LEN, Header, MIN_LEN};
use crate::layer::protocol;
use crate::{Error, EtherType, Field, MacAddress, checksum, ipv4, udp};

pub mod proof;

/// UDP port of servers and relays.
pub const SERVER_PORT: u16 = 67;
/// UDP port of clients.
pub const CLIENT_PORT: u16 = 68;
/// The longest frame that is read or written, in bytes: what every Ethernet carries.
pub const FRAME_MAX_BYTES: usize = 1514;
/// Options that are read in one message; a client's longest wish list fits several times.
pub const OPTIONS_MAX: usize = 128;

/// The option of this site that carries a proof (RFC 3942: 224 to 254 are for sites).
pub const OPTION_PROOF: u8 = 233;
/// What a relay adds (RFC 3046).
pub const OPTION_RELAY: u8 = 82;
/// The address that a client asks for.
pub const OPTION_REQUESTED: u8 = 50;
/// How long a lease lasts, in seconds.
pub const OPTION_LEASE_TIME: u8 = 51;
/// Whether `file` and `sname` hold options, too.
pub const OPTION_OVERLOAD: u8 = 52;
/// The type of the message.
pub const OPTION_TYPE: u8 = 53;
/// Which server is meant or answers.
pub const OPTION_SERVER: u8 = 54;
/// How a client names itself (RFC 2132, section 9.14).
pub const OPTION_CLIENT: u8 = 61;

const PAD: u8 = 0;
const END: u8 = 255;
const COOKIE: [u8; 4] = [99, 130, 83, 99];

const BOOTP_AT: usize = ETHERNET_LEN + ipv4::HEADER_LEN + udp::HEADER_LEN;
const HOPS: usize = 3;
const XID: usize = 4;
const SECS: usize = 8;
const CIADDR: usize = 12;
const YIADDR: usize = 16;
const GIADDR: usize = 24;
const CHADDR: usize = 28;
const SNAME: std::ops::Range<usize> = 44..108;
const FILE: std::ops::Range<usize> = 108..236;
const FIXED_LEN: usize = 236;
const OPTIONS_AT: usize = FIXED_LEN + COOKIE.len();
/// What RFC 1542, section 2.1, lets a receiver demand.
const BOOTP_MIN_LEN: usize = 300;

/// What a frame is as far as DHCP goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No program takes it for DHCP.
    Other,
    /// A DHCP message, or bytes that a DHCP program would try to read as one.
    Dhcp,
    /// A form in which DHCP could slip past a reader of whole messages: a first fragment, or a broken IPv4 header, which
    /// programs with packet sockets read less carefully than the kernel does.
    Hidden,
}

/// Which frames are DHCP: an untagged IPv4 packet to UDP port 67 or 68. What decides is the destination, because by that
/// programs and the kernel choose what they read. Behind a VLAN tag nothing is found; S-ARP carries no tagged frames.
///
/// Of fragments only the first tells its ports. Without it nothing can be put together, so later ones are no danger.
#[must_use]
pub fn recognise(frame: &[u8]) -> Kind {
    let Ok((header, packet)) = Header::parse(frame) else { return Kind::Other };
    if header.ethertype != EtherType::IPV4 {
        return Kind::Other;
    }
    let Ok(ip) = ipv4::View::new(packet) else { return Kind::Hidden };
    if ip.protocol() != protocol::UDP || ip.fragment_offset() != 0 {
        return Kind::Other;
    }
    let Some(ports) = packet.get(ip.header_len()..ip.header_len() + 4) else { return Kind::Hidden };
    match (is_port(u16::from_be_bytes([ports[2], ports[3]])), ip.is_fragment()) {
        (false, _) => Kind::Other,
        (true, false) => Kind::Dhcp,
        (true, true) => Kind::Hidden,
    }
}

/// Whether DHCP is spoken on this port.
pub(crate) fn is_port(port: u16) -> bool {
    matches!(port, SERVER_PORT | CLIENT_PORT)
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A client, perhaps through a relay.
    Request,
    /// A server, perhaps through a relay.
    Reply,
}

/// Types of messages (RFC 2132, section 9.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum MessageType {
    /// A client looks for servers.
    Discover = 1,
    /// A server offers an address.
    Offer = 2,
    /// A client asks for an address, or for more time.
    Request = 3,
    /// A client found the address in use.
    Decline = 4,
    /// A server grants.
    Ack = 5,
    /// A server refuses.
    Nak = 6,
    /// A client gives its address back.
    Release = 7,
    /// A client that has an address asks for the rest.
    Inform = 8,
}

impl MessageType {
    const ALL: [MessageType; 8] = [
        MessageType::Discover,
        MessageType::Offer,
        MessageType::Request,
        MessageType::Decline,
        MessageType::Ack,
        MessageType::Nak,
        MessageType::Release,
        MessageType::Inform,
    ];

    /// The type with this number.
    ///
    /// # Errors
    /// There is none that this program knows; FORCERENEW (9) answers nothing that a client asked.
    pub fn from_byte(byte: u8) -> Result<MessageType, Error> {
        let found = Self::ALL.into_iter().find(|kind| *kind as u8 == byte);
        found.ok_or(Error::Unsupported(Field::DhcpOptions))
    }

    /// Who sends it.
    #[must_use]
    pub fn operation(self) -> Operation {
        match self {
            MessageType::Offer | MessageType::Ack | MessageType::Nak => Operation::Reply,
            _ => Operation::Request,
        }
    }

    /// The messages of a client that a server answers with this one (RFC 2131, section 4.3).
    #[must_use]
    pub fn answers(self) -> &'static [MessageType] {
        match self {
            MessageType::Offer => &[MessageType::Discover],
            MessageType::Ack => &[MessageType::Request, MessageType::Inform],
            MessageType::Nak => &[MessageType::Request],
            _ => &[],
        }
    }
}

/// A DHCP message whose fields and options are all there. The frame has been measured; its checksums have not been looked at.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    frame: &'a [u8],
    bootp: &'a [u8],
    overload: u8,
    kind: MessageType,
}

impl<'a> View<'a> {
    /// Reads the message in `frame`, which may be padded.
    ///
    /// # Errors
    /// Anything but one whole DHCP message for Ethernet in an unfragmented IPv4 packet without IP options, to one of DHCP's
    /// ports.
    pub fn new(frame: &'a [u8]) -> Result<View<'a>, Error> {
        let bootp = payload(frame)?;
        if bootp.len() < OPTIONS_AT || bootp[FIXED_LEN..OPTIONS_AT] != COOKIE {
            return Err(Error::Truncated(Field::Dhcp));
        }
        // Hardware type and length: Ethernet.
        if !matches!(bootp[0], 1 | 2) || bootp[1..3] != [1, 6] {
            return Err(Error::Invalid(Field::Dhcp));
        }
        let mut view = View { frame, bootp, overload: 0, kind: MessageType::Discover };
        measure(&bootp[OPTIONS_AT..], OPTIONS_MAX)?;
        view.overload = one_byte(view.field_options(), OPTION_OVERLOAD)?.unwrap_or(0);
        if view.overload > 3 {
            return Err(Error::Invalid(Field::DhcpOptions));
        }
        for area in view.overloaded() {
            measure(area, OPTIONS_MAX)?;
        }
        // These two are taken out and put in, which only works in the options field.
        let hidden = view
            .overloaded()
            .flat_map(options_in)
            .any(|(code, _)| matches!(code, OPTION_PROOF | OPTION_RELAY | OPTION_OVERLOAD));
        let kind = one_byte(view.options(), OPTION_TYPE)?.ok_or(Error::Truncated(Field::DhcpOptions))?;
        view.kind = MessageType::from_byte(kind)?;
        let fits = view.kind.operation() == view.operation();
        if hidden || !fits { Err(Error::Invalid(Field::DhcpOptions)) } else { Ok(view) }
    }

    /// The addresses of the frame.
    #[must_use]
    pub fn ethernet(&self) -> Header {
        let mac = |at: usize| MacAddress(array(self.frame, at));
        Header { destination: mac(0), source: mac(6), ethertype: EtherType::IPV4 }
    }

    /// The address that the packet comes from.
    #[must_use]
    pub fn source(&self) -> Ipv4Addr {
        Ipv4Addr::from(array::<4>(self.frame, ETHERNET_LEN + ipv4::SOURCE))
    }

    /// The UDP port that it goes to.
    #[must_use]
    pub fn destination_port(&self) -> u16 {
        u16::from_be_bytes(array(self.frame, ETHERNET_LEN + ipv4::HEADER_LEN + 2))
    }

    /// Who speaks.
    #[must_use]
    pub fn operation(&self) -> Operation {
        if self.bootp[0] == 1 { Operation::Request } else { Operation::Reply }
    }

    /// The type of the message, which fits the operation.
    #[must_use]
    pub fn kind(&self) -> MessageType {
        self.kind
    }

    /// What ties the messages of one exchange together.
    #[must_use]
    pub fn xid(&self) -> u32 {
        u32::from_be_bytes(array(self.bootp, XID))
    }

    /// The address that the client uses already.
    #[must_use]
    pub fn ciaddr(&self) -> Ipv4Addr {
        self.address(CIADDR)
    }

    /// The address that the server gives.
    #[must_use]
    pub fn yiaddr(&self) -> Ipv4Addr {
        self.address(YIADDR)
    }

    /// The relay on the client's side; unspecified without one.
    #[must_use]
    pub fn giaddr(&self) -> Ipv4Addr {
        self.address(GIADDR)
    }

    /// The client's hardware address.
    #[must_use]
    pub fn chaddr(&self) -> MacAddress {
        MacAddress(array(self.bootp, CHADDR))
    }

    /// Whether a relay has had it, or claims so.
    #[must_use]
    pub fn is_relayed(&self) -> bool {
        !self.giaddr().is_unspecified() || self.field_options().any(|(code, _)| code == OPTION_RELAY)
    }

    /// The value of an option; of one that stands there several times all of them, joined (RFC 3396).
    #[must_use]
    pub fn option(&self, code: u8) -> Option<Cow<'a, [u8]>> {
        joined(self.options(), code)
    }

    /// The address in an option.
    ///
    /// # Errors
    /// The option is there and holds no single address.
    pub fn address_option(&self, code: u8) -> Result<Option<Ipv4Addr>, Error> {
        let Some(value) = self.option(code) else { return Ok(None) };
        let octets: [u8; 4] = value.as_ref().try_into().map_err(|_| Error::Invalid(Field::DhcpOptions))?;
        Ok(Some(octets.into()))
    }

    /// For how many seconds the address is leased; the largest number means for ever.
    ///
    /// # Errors
    /// The option is there and holds no number.
    pub fn lease_s(&self) -> Result<Option<u32>, Error> {
        Ok(self.address_option(OPTION_LEASE_TIME)?.map(Ipv4Addr::to_bits))
    }

    /// What a proof covers: everything but what relays change (hops, secs, giaddr and their option), padding, and the proof
    /// itself.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        let mut bytes = self.bootp[..FIXED_LEN].to_vec();
        bytes[HOPS] = 0;
        bytes[SECS..SECS + 2].fill(0);
        bytes[GIADDR..GIADDR + 4].fill(0);
        self.write_options(&mut bytes, |code| code != OPTION_RELAY && code != OPTION_PROOF);
        bytes
    }

    /// The frame with `proof` as its last option, in the place of any that was there; `None` if it would be too long.
    #[must_use]
    pub fn with_proof(&self, proof: &[u8]) -> Option<Vec<u8>> {
        let len = u8::try_from(proof.len()).ok()?;
        self.rebuild(&[&[OPTION_PROOF, len][..], proof].concat())
    }

    /// The frame without the option that holds a proof.
    #[must_use]
    pub fn without_proof(&self) -> Option<Vec<u8>> {
        self.rebuild(&[])
    }

    fn address(&self, at: usize) -> Ipv4Addr {
        Ipv4Addr::from(array::<4>(self.bootp, at))
    }

    /// The options of the options field alone.
    fn field_options(&self) -> Options<'a> {
        options_in(&self.bootp[OPTIONS_AT..])
    }

    /// The other fields that hold options, in the order in which they are to be read (RFC 2131, section 4.1).
    fn overloaded(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let bootp = self.bootp;
        let file = (self.overload & 1 != 0).then(|| &bootp[FILE]);
        let sname = (self.overload & 2 != 0).then(|| &bootp[SNAME]);
        file.into_iter().chain(sname)
    }

    fn options(&self) -> impl Iterator<Item = (u8, &'a [u8])> + use<'a> {
        self.field_options().chain(self.overloaded().flat_map(options_in))
    }

    fn write_options(&self, bytes: &mut Vec<u8>, keep: impl Fn(u8) -> bool) {
        for (code, value) in self.field_options().filter(|(code, _)| keep(*code)) {
            // It was read from one byte.
            bytes.extend([code, value.len() as u8]);
            bytes.extend(value);
        }
    }

    /// The frame anew with `last` as its last option and no other proof; lengths and checksums fit.
    fn rebuild(&self, last: &[u8]) -> Option<Vec<u8>> {
        let mut bootp = self.bootp[..OPTIONS_AT].to_vec();
        self.write_options(&mut bootp, |code| code != OPTION_PROOF);
        bootp.extend(last);
        bootp.push(END);
        bootp.resize(bootp.len().max(BOOTP_MIN_LEN), PAD);
        let mut frame = [&self.frame[..BOOTP_AT], &bootp].concat();
        if frame.len() > FRAME_MAX_BYTES {
            return None;
        }
        fill_headers(&mut frame);
        frame.resize(frame.len().max(MIN_LEN), 0);
        Some(frame)
    }
}

/// Writes lengths and checksums of a frame that is a header of each kind and a payload.
fn fill_headers(frame: &mut [u8]) {
    let (_, packet) = frame.split_at_mut(ETHERNET_LEN);
    let packet_len = packet.len() as u16;
    let (header, datagram) = packet.split_at_mut(ipv4::HEADER_LEN);
    header[ipv4::TOTAL_LENGTH..ipv4::TOTAL_LENGTH + 2].copy_from_slice(&packet_len.to_be_bytes());
    ipv4::fill_checksum(header);
    let datagram_len = datagram.len() as u16;
    datagram[udp::LENGTH..udp::LENGTH + 2].copy_from_slice(&datagram_len.to_be_bytes());
    datagram[udp::CHECKSUM..udp::CHECKSUM + 2].fill(0);
    let address = |at: usize| Ipv4Addr::from(array::<4>(header, at));
    let (source, destination) = (address(ipv4::SOURCE), address(ipv4::SOURCE + 4));
    let pseudo = checksum::pseudo_header_v4(source, destination, protocol::UDP, datagram_len);
    // Zero would mean that there is none (RFC 768).
    let sum = match pseudo.bytes(datagram).checksum() {
        0 => u16::MAX,
        sum => sum,
    };
    datagram[udp::CHECKSUM..udp::CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
}

/// The UDP payload of a frame, as far as all lengths agree.
fn payload(frame: &[u8]) -> Result<&[u8], Error> {
    let (header, packet) = Header::parse(frame)?;
    if header.ethertype != EtherType::IPV4 || frame.len() > FRAME_MAX_BYTES {
        return Err(Error::Invalid(Field::Ethernet));
    }
    let ip = ipv4::View::new(packet)?;
    if ip.header_len() != ipv4::HEADER_LEN || ip.is_fragment() || ip.protocol() != protocol::UDP {
        return Err(Error::Unsupported(Field::Ipv4));
    }
    if usize::from(ip.total_len()) > packet.len() {
        return Err(Error::Truncated(Field::Ipv4));
    }
    let datagram = udp::View::new(ip.payload())?;
    if !is_port(datagram.destination_port()) {
        return Err(Error::Unsupported(Field::Udp));
    }
    let len = usize::from(datagram.length());
    if len < udp::HEADER_LEN || len > ip.payload().len() {
        return Err(Error::Invalid(Field::Udp));
    }
    Ok(&ip.payload()[udp::HEADER_LEN..len])
}

/// `N` bytes at `at` of bytes that were measured before.
fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

/// Options of one area, up to its end or the first that is cut short.
struct Options<'a>(&'a [u8]);

fn options_in(area: &[u8]) -> Options<'_> {
    Options(area)
}

impl<'a> Iterator for Options<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let code = loop {
            match self.0.split_first()? {
                (&PAD, rest) => self.0 = rest,
                (&END, _) => return None,
                (&code, rest) => {
                    self.0 = rest;
                    break code;
                }
            }
        };
        // Whatever follows an option that is cut short is no end.
        let after = std::mem::take(&mut self.0);
        let (&len, rest) = after.split_first()?;
        let (value, rest) = rest.split_at_checked(usize::from(len))?;
        self.0 = rest;
        Some((code, value))
    }
}

/// Checks that an area has its end, no option that is cut short, and not too many.
fn measure(area: &[u8], most: usize) -> Result<(), Error> {
    let mut options = options_in(area);
    let count = options.by_ref().count();
    let at_end = options.0.iter().find(|byte| **byte != PAD) == Some(&END);
    if at_end && count <= most { Ok(()) } else { Err(Error::Invalid(Field::DhcpOptions)) }
}

fn joined<'a>(options: impl Iterator<Item = (u8, &'a [u8])>, code: u8) -> Option<Cow<'a, [u8]>> {
    let mut found = options.filter(|(other, _)| *other == code).map(|(_, value)| value);
    let first = Cow::Borrowed(found.next()?);
    Some(found.fold(first, |joined, more| Cow::Owned([&joined, more].concat())))
}

fn one_byte<'a>(options: impl Iterator<Item = (u8, &'a [u8])>, code: u8) -> Result<Option<u8>, Error> {
    match joined(options, code).as_deref() {
        None => Ok(None),
        Some(&[byte]) => Ok(Some(byte)),
        Some(_) => Err(Error::Invalid(Field::DhcpOptions)),
    }
}

#[cfg(test)]
mod tests;
