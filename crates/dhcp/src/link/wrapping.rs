//! From a DHCP message to a DHCP frame and back.

use bump::DropReason;
use identity::dhcp_key::DhcpKey;
use wire::EtherType;
use wire::cll::DhcpFrame;
use wire::cll::dhcp::{set_tag, tagged_parts};
use wire::dhcp::View;
use wire::ethernet::{HEADER_LEN, Header};

use super::Link;

/// A DHCP frame with its tag and Ethernet header, which keeps the addresses of the plain one.
pub(super) fn wrap(link: Link, key: &DhcpKey, header: Header, frame: &DhcpFrame<'_>) -> Result<Vec<u8>, DropReason> {
    let ethernet = Header { ethertype: link.ethertype, ..header }.emit();
    let mut message = frame.emit();
    if message.len() > usize::from(link.mtu) {
        return Err(DropReason::TooBig);
    }
    let tag = key.tag(&covered(&ethernet, &message));
    set_tag(&mut message, &tag);
    Ok([&ethernet[..], &message].concat())
}

/// Whether the tag of `message` is right under `key`.
pub(super) fn is_tagged(key: &DhcpKey, header: &Header, message: &[u8], frame: &DhcpFrame<'_>) -> bool {
    key.verify(&covered(&header.emit(), message), &frame.tag)
}

fn covered<'a>(ethernet: &'a [u8], message: &'a [u8]) -> [&'a [u8]; 3] {
    let [before, after] = tagged_parts(message);
    [ethernet, before, after]
}

/// The plain frame that a program expects.
pub(super) fn unwrap(header: &Header, frame: &DhcpFrame<'_>) -> Vec<u8> {
    [&Header { ethertype: EtherType::IPV4, ..*header }.emit()[..], frame.packet].concat()
}

/// The DHCP message in a plain frame, which no relay has had.
pub(super) fn message(frame: &[u8]) -> Result<View<'_>, DropReason> {
    let message = View::new(frame).map_err(|_| DropReason::DhcpMalformed)?;
    if message.is_relayed() { Err(DropReason::DhcpRelay) } else { Ok(message) }
}

/// The packet of a plain frame that was read before, without padding behind it.
pub(super) fn packet(frame: &[u8]) -> &[u8] {
    let packet = frame.get(HEADER_LEN..).unwrap_or_default();
    let len = packet.get(2..4).map_or(0, |len| usize::from(u16::from_be_bytes([len[0], len[1]])));
    packet.get(..len).unwrap_or(packet)
}
