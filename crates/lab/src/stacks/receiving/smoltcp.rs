//! smoltcp, in this program. It knows no fragments over IPv6, and holds one packet in fragments at a time.

use std::collections::VecDeque;

use ::smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use ::smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use ::smoltcp::socket::{tcp, udp};
use ::smoltcp::time::Instant;
use ::smoltcp::wire::{EthernetAddress, HardwareAddress, IpAddress, IpCidr};

use crate::failure::Failure;
use crate::receivers::packet::{PORT, RECEIVER_MAC, RECEIVER_V4, RECEIVER_V6, Version};
use crate::receivers::{Carrier, Reading, Receiver};

/// Bytes of each buffer.
const BUFFER_BYTES: usize = 1 << 16;
/// Datagrams that wait for the application.
const DATAGRAMS_MAX: usize = 64;
/// Longest frame, in bytes.
const MTU: usize = 1514;
/// The time of a case, in milliseconds: it stands still, so nothing is sent again.
const NOW_MS: i64 = 1000;

/// A smoltcp host.
pub(super) struct Embedded {
    wire: Wire,
    interface: Interface,
    sockets: SocketSet<'static>,
    datagrams: SocketHandle,
    connection: SocketHandle,
    reading: Reading,
}

/// Frames on their way in and out.
#[derive(Default)]
struct Wire {
    incoming: VecDeque<Vec<u8>>,
    outgoing: Vec<Vec<u8>>,
}

struct Arrived(Vec<u8>);
struct Leaving<'a>(&'a mut Vec<Vec<u8>>);

impl RxToken for Arrived {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

impl TxToken for Leaving<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        let mut frame = vec![0; len];
        let result = write(&mut frame);
        self.0.push(frame);
        result
    }
}

impl Device for Wire {
    type RxToken<'a> = Arrived;
    type TxToken<'a> = Leaving<'a>;

    fn receive(&mut self, _now: Instant) -> Option<(Arrived, Leaving<'_>)> {
        let frame = self.incoming.pop_front()?;
        Some((Arrived(frame), Leaving(&mut self.outgoing)))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Leaving<'_>> {
        Some(Leaving(&mut self.outgoing))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = MTU;
        capabilities
    }
}

impl Embedded {
    pub(super) fn new() -> Embedded {
        let mut wire = Wire::default();
        let hardware = HardwareAddress::Ethernet(EthernetAddress(RECEIVER_MAC));
        let mut interface = Interface::new(Config::new(hardware), &mut wire, Instant::from_millis(NOW_MS));
        interface.update_ip_addrs(|addresses| {
            for (address, prefix_len) in [(IpAddress::Ipv4(RECEIVER_V4), 24), (IpAddress::Ipv6(RECEIVER_V6), 64)] {
                // There is room for two.
                let _kept = addresses.push(IpCidr::new(address, prefix_len));
            }
        });
        let mut sockets = SocketSet::new(Vec::new());
        let datagrams = sockets.add(datagram_socket());
        let connection = sockets.add(stream_socket());
        Embedded { wire, interface, sockets, datagrams, connection, reading: Reading::default() }
    }

    fn turn(&mut self) {
        while self.interface.poll(Instant::from_millis(NOW_MS), &mut self.wire, &mut self.sockets)
            != ::smoltcp::iface::PollResult::None
        {
            self.hear();
        }
        self.hear();
    }

    /// The application reads at once.
    fn hear(&mut self) {
        let datagrams = self.sockets.get_mut::<udp::Socket<'_>>(self.datagrams);
        while let Ok((data, _)) = datagrams.recv() {
            self.reading.datagrams.push(data.to_vec());
        }
        let connection = self.sockets.get_mut::<tcp::Socket<'_>>(self.connection);
        let stream = &mut self.reading.stream;
        while connection.can_recv() {
            let read = connection.recv(|data| {
                stream.extend_from_slice(data);
                (data.len(), ())
            });
            if read.is_err() {
                break;
            }
        }
    }
}

fn datagram_socket() -> udp::Socket<'static> {
    let buffer = || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; DATAGRAMS_MAX], vec![0; BUFFER_BYTES]);
    let mut socket = udp::Socket::new(buffer(), buffer());
    // It fails for port zero and for a socket that is bound already.
    let _bound = socket.bind(PORT);
    socket
}

fn stream_socket() -> tcp::Socket<'static> {
    let buffer = || tcp::SocketBuffer::new(vec![0; BUFFER_BYTES]);
    let mut socket = tcp::Socket::new(buffer(), buffer());
    // It fails for port zero and for a socket that is open already.
    let _listens = socket.listen(PORT);
    socket
}

impl Receiver for Embedded {
    fn name(&self) -> &str {
        "smoltcp"
    }

    fn cannot(&self, carrier: Carrier) -> Option<&'static str> {
        (carrier == Carrier::Fragments(Version::V6)).then_some("smoltcp does not reassemble fragments of IPv6")
    }

    fn begin_anew(&mut self) -> Result<(), Failure> {
        *self = Embedded::new();
        Ok(())
    }

    fn take(&mut self, frame: &[u8]) -> Result<Vec<Vec<u8>>, Failure> {
        self.wire.incoming.push_back(frame.to_vec());
        self.turn();
        Ok(std::mem::take(&mut self.wire.outgoing))
    }

    fn read(&mut self) -> Result<Reading, Failure> {
        Ok(self.reading.clone())
    }
}
