//! Frames by hand: what a raw sender puts on the wire, and what arrives.

use std::net::Ipv4Addr;

use bump::{Batch, Meta, VlanTag};
use ringwall_lab::failure::Failure;
use ringwall_lab::net::{Namespace, process};
use system::port::{PacketOptions, PacketPort, Receiver, Sender};

use super::{HOST_INTERFACE, TRUSTED, UNTRUSTED};
use crate::stage::SOON;

/// A raw port on the interface of a host.
pub fn raw(host: &Namespace) -> Result<PacketPort, Failure> {
    let text = host.ip(&format!("-o link show dev {HOST_INTERFACE}"))?;
    let index = text.split(':').next().and_then(|number| number.trim().parse().ok()).expect("a number");
    let options = PacketOptions { promiscuous: true, ..PacketOptions::new(index) };
    host.enter(|| PacketPort::open(&options).map_err(|error| Failure::Unreadable(error.to_string())))
}

/// Sends one frame.
pub fn put(port: &mut PacketPort, frame: &[u8]) {
    port.sender.reserve(frame.len()).expect("room").copy_from_slice(frame);
    port.sender.commit(frame.len(), Meta::plain());
    assert!(!port.sender.flush().waits());
}

/// Waits for a frame that ends like `sent`; its tag, and its bytes without it.
pub fn await_frame(port: &mut PacketPort, sent: &[u8]) -> Result<(Option<VlanTag>, Vec<u8>), Failure> {
    let mut found = None;
    let mark = &sent[sent.len() - 8..];
    process::until("the frame", SOON, || {
        let filled = port.receiver.fill().map_err(Failure::io("receiving"))?;
        while let Some(frame) = port.receiver.next_frame().filter(|_| filled) {
            if frame.bytes.ends_with(mark) {
                found = Some((frame.meta.vlan, frame.bytes.to_vec()));
            }
        }
        Ok(found.is_some())
    })?;
    Ok(found.expect("just found"))
}

/// A TCP segment without data.
pub fn segment([source, destination]: [Ipv4Addr; 2], ports: [u16; 2], flags: u8) -> Vec<u8> {
    let [from, to] = ports.map(u16::to_be_bytes);
    let mut segment = [&from[..], &to, &[0, 0, 0, 9, 0, 0, 0, 0, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0]].concat();
    let sum = wire::checksum::pseudo_header_v4(source, destination, 6, 20).bytes(&segment).checksum();
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
    packet_of([source, destination], 6, [0, 0, 0x40, 0], &segment)
}

/// An IPv4 packet of `protocol` from the untrusted to the trusted host.
pub fn packet(protocol: u8, carried: &[u8]) -> Vec<u8> {
    packet_of([UNTRUSTED, TRUSTED], protocol, [0, 0, 0x40, 0], carried)
}

/// An IPv4 packet from one host to another; `cut` is identification, flags and offset.
pub fn packet_of([source, destination]: [Ipv4Addr; 2], protocol: u8, cut: [u8; 4], carried: &[u8]) -> Vec<u8> {
    let len = (20 + carried.len()) as u16;
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    frame.extend(len.to_be_bytes());
    frame.extend(cut);
    frame.extend([64, protocol, 0, 0]);
    frame.extend(source.octets());
    frame.extend(destination.octets());
    wire::ipv4::fill_checksum(&mut frame[14..]);
    frame.extend(carried);
    frame
}
