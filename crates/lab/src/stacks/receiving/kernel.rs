//! The kernel of this machine, in a namespace of its own: a pair of interfaces, sockets that listen
//! at one end, and a packet socket at the other.
//!
//! What a frame sets off mostly happens before sending it returns. On a busy machine it may be put
//! off, and what was read then would lack it. So a question by ARP follows each frame in the same
//! queue, and all is said once that is answered.

use std::io::{self, Read};
use std::net::{Ipv6Addr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use bump::{Batch, Meta};
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use system::port::{PacketPort, Receiver as _, Sender};
use wire::arp::{Arp, Operation};
use wire::ethernet::Header;
use wire::{EtherType, MacAddress};

use crate::cleanup::Run;
use crate::failure::Failure;
use crate::net::lan::set_offloads;
use crate::net::{Namespace, link};
use crate::receivers::packet::{ATTACKER_MAC, ATTACKER_V4, ATTACKER_V6, PORT, RECEIVER_MAC, RECEIVER_V4, RECEIVER_V6};
use crate::receivers::{Carrier, Reading, Receiver};

/// The host's interface and the wire's end.
const HOST: &str = "e0";
const WIRE: &str = "w0";
/// Longest datagram and longest part of a stream that is read at once.
const READ_BYTES: usize = 1 << 16;
/// How long an interface may take until it carries frames.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// How long the kernel may take for a frame.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// The kernel as a receiver.
pub(super) struct Kernel {
    namespace: Namespace,
    port: PacketPort,
    listener: TcpListener,
    datagrams: UdpSocket,
    accepted: Vec<TcpStream>,
    reading: Reading,
}

impl Kernel {
    /// Makes the namespace and all in it.
    pub(super) fn start(run: &Run) -> Result<Kernel, Failure> {
        let namespace = Namespace::create(run, "receiver")?;
        let opened = furnish(&namespace).and_then(|()| open(&namespace));
        let (port, listener, datagrams) = match opened {
            Ok(opened) => opened,
            Err(failure) => {
                // What cannot be removed here is tried again by the sweep at the end of the run.
                let _swept_later = namespace.delete();
                return Err(failure);
            }
        };
        let (accepted, reading) = (Vec::new(), Reading::default());
        Ok(Kernel { namespace, port, listener, datagrams, accepted, reading })
    }

    fn hear(&mut self) -> io::Result<()> {
        let mut bytes = vec![0; READ_BYTES];
        while let Some(len) = if_there(self.datagrams.recv(&mut bytes))? {
            self.reading.datagrams.push(bytes[..len].to_vec());
        }
        while let Some((stream, _)) = if_there(self.listener.accept())? {
            stream.set_nonblocking(true)?;
            self.accepted.push(stream);
        }
        for stream in &mut self.accepted {
            // A reset tells no more than that this is all.
            while let Ok(len @ 1..) = stream.read(&mut bytes) {
                self.reading.stream.extend(&bytes[..len]);
            }
        }
        Ok(())
    }

    fn sent(&mut self) -> io::Result<Vec<Vec<u8>>> {
        let mut frames = Vec::new();
        while self.port.receiver.fill()? {
            while let Some(frame) = self.port.receiver.next_frame() {
                frames.push(frame.bytes.to_vec());
            }
        }
        Ok(frames)
    }

    fn exchange(&mut self, frame: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        for frame in [frame, &question()] {
            let Some(room) = self.port.sender.reserve(frame.len()) else {
                return Err(io::ErrorKind::OutOfMemory.into());
            };
            room[..frame.len()].copy_from_slice(frame);
            self.port.sender.commit(frame.len(), Meta::plain());
            self.port.sender.flush();
        }
        let said = self.sent_until_answered()?;
        self.hear()?;
        Ok(said)
    }

    /// What the kernel sends until it answers the question; that answer is nobody's.
    fn sent_until_answered(&mut self) -> io::Result<Vec<Vec<u8>>> {
        let deadline = Instant::now() + ANSWER_LIMIT;
        let mut said = Vec::new();
        loop {
            said.extend(self.sent()?);
            if let Some(at) = said.iter().position(|frame| is_answer(frame)) {
                said.remove(at);
                return Ok(said);
            }
            if Instant::now() > deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            std::thread::yield_now();
        }
    }
}

/// Asks for the receiver's hardware address.
fn question() -> Vec<u8> {
    let arp = Arp {
        operation: Operation::Request,
        sender_mac: MacAddress(ATTACKER_MAC),
        sender_ip: ATTACKER_V4,
        target_mac: MacAddress::default(),
        target_ip: RECEIVER_V4,
    };
    let header =
        Header { destination: MacAddress(RECEIVER_MAC), source: MacAddress(ATTACKER_MAC), ethertype: EtherType::ARP };
    [&header.emit()[..], &arp.emit()].concat()
}

fn is_answer(frame: &[u8]) -> bool {
    let arp = Header::parse(frame).ok().filter(|(header, _)| header.ethertype == EtherType::ARP);
    arp.and_then(|(_, message)| Arp::parse(message).ok()).is_some_and(|arp| arp.operation == Operation::Reply)
}

/// Keeps this thread where it is: each processor has a queue of its own, and only in one of them
/// frames keep their order.
fn stay() -> Result<(), Failure> {
    let mut here = CpuSet::new();
    here.set(sched_getcpu());
    sched_setaffinity(None, &here).map_err(|error| Failure::io("keeping a thread on its processor")(error.into()))
}

/// `None` where nothing is there yet.
fn if_there<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Ok(there) => Ok(Some(there)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// Interfaces, addresses and neighbours.
fn furnish(namespace: &Namespace) -> Result<(), Failure> {
    let [host, attacker] = [RECEIVER_MAC, ATTACKER_MAC].map(MacAddress);
    namespace.ip(&format!("link add {HOST} address {host} type veth peer name {WIRE}"))?;
    for interface in [HOST, WIRE] {
        set_offloads(namespace, interface, &["tx", "off", "tso", "off", "gso", "off", "gro", "off"])?;
    }
    namespace.set_kernel_parameter(&format!("ipv6/conf/{HOST}/disable_ipv6"), "0")?;
    // What a case leaves unfinished must be forgotten before its identification comes again, and
    // must not fill the memory.
    for key in ["ipv4/ipfrag_time", "ipv6/ip6frag_time"] {
        namespace.set_kernel_parameter(key, "5")?;
    }
    namespace.ip(&format!("link set {WIRE} up"))?;
    namespace.ip(&format!("link set {HOST} up"))?;
    namespace.ip(&format!("address add {RECEIVER_V4}/24 dev {HOST}"))?;
    namespace.ip(&format!("address add {RECEIVER_V6}/64 dev {HOST} nodad"))?;
    for address in [ATTACKER_V4.to_string(), ATTACKER_V6.to_string()] {
        namespace.ip(&format!("neigh replace {address} lladdr {attacker} dev {HOST} nud permanent"))?;
    }
    await_carrier(namespace)
}

/// Waits until the interface says that it is up; what is sent before is lost.
fn await_carrier(namespace: &Namespace) -> Result<(), Failure> {
    let deadline = Instant::now() + READY_LIMIT;
    while !namespace.ip(&format!("-o link show {HOST}"))?.contains("state UP") {
        if Instant::now() > deadline {
            return Err(Failure::Late { what: format!("{HOST} up"), limit: READY_LIMIT });
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// The sockets, which stay in the namespace wherever they are used.
fn open(namespace: &Namespace) -> Result<(PacketPort, TcpListener, UdpSocket), Failure> {
    namespace.enter(|| {
        let any = (Ipv6Addr::UNSPECIFIED, PORT);
        let listener = TcpListener::bind(any).map_err(Failure::io("listening by TCP"))?;
        let datagrams = UdpSocket::bind(any).map_err(Failure::io("listening by UDP"))?;
        for outcome in [listener.set_nonblocking(true), datagrams.set_nonblocking(true)] {
            outcome.map_err(Failure::io("making a socket that does not wait"))?;
        }
        Ok((link::open(WIRE)?, listener, datagrams))
    })
}

impl Receiver for Kernel {
    fn name(&self) -> &str {
        "Linux"
    }

    fn cannot(&self, _carrier: Carrier) -> Option<&'static str> {
        None
    }

    fn begin_anew(&mut self) -> Result<(), Failure> {
        stay()?;
        self.accepted.clear();
        self.hear().and_then(|()| self.sent()).map_err(Failure::io("clearing the kernel's sockets"))?;
        self.accepted.clear();
        self.reading = Reading::default();
        Ok(())
    }

    fn take(&mut self, frame: &[u8]) -> Result<Vec<Vec<u8>>, Failure> {
        self.exchange(frame).map_err(Failure::io("a frame to the kernel"))
    }

    fn read(&mut self) -> Result<Reading, Failure> {
        self.hear().map_err(Failure::io("reading the kernel's sockets"))?;
        Ok(self.reading.clone())
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        // What cannot be removed here is tried again, and reported, by the sweep at the end of the run.
        let _swept_later = self.namespace.delete();
    }
}
