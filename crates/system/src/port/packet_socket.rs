//! Opening a packet socket on an interface, with everything that keeps its frames whole: vnet headers, or offloaded
//! frames arrive without checksum and oversized; auxiliary data, or VLAN tags are lost; no echo of our own frames.
#![allow(unsafe_code)]

use std::fmt;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::limits::{RING_SLOTS_FEW, RING_SLOTS_MANY, SOCKET_BUFFER_BYTES, SOCKET_BUFFER_OF_KEPT_BYTES};
use super::ring::ReceiveRing;
use super::socket::{checked, set_option};
use super::train::TrainOptions;
use crate::takeover::{Instruction, Kept};

/// How to open a packet socket.
#[derive(Clone, Debug)]
pub struct PacketOptions {
    /// Index of the interface in the network namespace of the calling thread.
    pub interface_index: u32,
    /// Hears only what this filter takes, as all sockets here before the ingress hook. Does not limit what is sent.
    pub filter: Option<Vec<Instruction>>,
    /// Mark on outgoing frames, for firewall rules to tell them apart.
    pub mark: Option<u32>,
    /// Receive every multicast frame, whatever the card's filter says.
    pub all_multicast: bool,
    /// Receive frames for every address.
    pub promiscuous: bool,
    /// Receive nothing: for a port that only sends, whose frames in would fill a buffer that nobody reads.
    pub deaf: bool,
    /// Bytes of socket buffer each way; where there is a ring, of the way out alone.
    pub buffer_bytes: usize,
    /// What arrives waits in a ring for so many small frames, without a system call for each. A frame that does not fit into a slot
    /// is unreadable.
    pub ring: Option<RingSlots>,
    /// Which frames travel in trains, if any do.
    pub trains: Option<TrainOptions>,
    /// Super-frames inside of tunnels can be sent in one piece, if the kernel knows how.
    pub tunnels: bool,
}

impl PacketOptions {
    /// A socket on interface `interface_index` with the usual buffers, unmarked, that hears what the card lets through.
    #[must_use]
    pub fn new(interface_index: u32) -> PacketOptions {
        PacketOptions {
            interface_index,
            filter: None,
            mark: None,
            all_multicast: false,
            promiscuous: false,
            deaf: false,
            buffer_bytes: SOCKET_BUFFER_BYTES,
            ring: None,
            trains: None,
            tunnels: false,
        }
    }

    /// A socket on interface `interface_index` that hears what is kept for the daemon, in a ring: a few frames each second, or
    /// a flood of forged ones, each of which should cost as little as possible.
    #[must_use]
    pub fn kept(kept: Kept, interface_index: u32) -> PacketOptions {
        PacketOptions {
            filter: Some(kept.filter().to_vec()),
            buffer_bytes: SOCKET_BUFFER_OF_KEPT_BYTES,
            ring: Some(RingSlots::Few),
            ..PacketOptions::new(interface_index)
        }
    }
}

/// How many frames a ring holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingSlots {
    /// A burst of requests for a whole subnet.
    Few,
    /// What a distributor is asked by everybody at once.
    Many,
}

impl RingSlots {
    fn count(self) -> usize {
        match self {
            RingSlots::Few => RING_SLOTS_FEW,
            RingSlots::Many => RING_SLOTS_MANY,
        }
    }
}

/// Why a port could not be opened.
#[derive(Debug)]
pub struct PortError {
    step: &'static str,
    cause: io::Error,
}

impl fmt::Display for PortError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PortError { step, cause } = self;
        match cause.raw_os_error() {
            Some(libc::EPERM) => write!(f, "cannot {step}: {cause}; run it as root or with CAP_NET_RAW"),
            Some(libc::ENODEV | libc::ENXIO) => write!(f, "cannot {step}: {cause}; is the interface still there?"),
            _ => write!(f, "cannot {step}: {cause}"),
        }
    }
}

impl std::error::Error for PortError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// Names the step that failed.
fn step<T>(step: &'static str, result: io::Result<T>) -> Result<T, PortError> {
    result.map_err(|cause| PortError { step, cause })
}

/// Opens the socket in the network namespace of the calling thread; it stays there, whichever thread uses it.
///
/// # Errors
/// The kernel refuses: no privilege, no such interface, a kernel older than Linux 4.20.
pub(super) fn open(options: &PacketOptions) -> Result<(OwnedFd, Option<ReceiveRing>), PortError> {
    // Protocol 0 hears nothing until the socket is bound, so no frame of another interface ever gets in.
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: socket takes no pointer.
    let descriptor = step("open a packet socket", checked(unsafe { libc::socket(libc::AF_PACKET, kind, 0) }))?;
    // SAFETY: the descriptor is new, open and ours.
    let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let on = 1_i32;
    let packet = libc::SOL_PACKET;
    step("switch on vnet headers", set_option(&socket, packet, libc::PACKET_VNET_HDR, &on))?;
    step("switch on auxiliary data", set_option(&socket, packet, libc::PACKET_AUXDATA, &on))?;
    step("ignore our own frames", set_option(&socket, packet, PACKET_IGNORE_OUTGOING, &on))?;
    set_buffer(&socket, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, options.buffer_bytes)?;
    set_buffer(&socket, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, options.buffer_bytes)?;
    if let Some(mark) = options.mark {
        step("mark outgoing frames", set_option(&socket, libc::SOL_SOCKET, libc::SO_MARK, &mark))?;
    }
    for (wanted, membership) in
        [(options.all_multicast, libc::PACKET_MR_ALLMULTI), (options.promiscuous, libc::PACKET_MR_PROMISC)]
    {
        if wanted {
            step("widen the card's filter", join(&socket, options.interface_index, membership))?;
        }
    }
    if let Some(filter) = &options.filter {
        step("attach the socket's filter", attach(&socket, filter))?;
    }
    let ring = options.ring.map(|slots| ReceiveRing::open(&socket, slots.count())).transpose();
    let ring = step("share memory for what arrives", ring)?;
    step("bind the packet socket", bind(&socket, options))?;
    Ok((socket, ring))
}

/// From `linux/if_packet.h`, Linux 4.20.
const PACKET_IGNORE_OUTGOING: i32 = 23;

/// Forces the buffer beyond the system's limit if allowed, else takes what the limit gives.
fn set_buffer(socket: &OwnedFd, forced: i32, plain: i32, bytes: usize) -> Result<(), PortError> {
    let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
    set_option(socket, libc::SOL_SOCKET, forced, &bytes)
        .or_else(|_| step("set the socket's buffers", set_option(socket, libc::SOL_SOCKET, plain, &bytes)))
}

fn join(socket: &OwnedFd, interface_index: u32, membership: i32) -> io::Result<()> {
    // SAFETY: packet_mreq is plain data, for which zero bytes are a value.
    let mut request: libc::packet_mreq = unsafe { std::mem::zeroed() };
    request.mr_ifindex = interface_index as i32;
    request.mr_type = membership as u16;
    set_option(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
}

/// Before the socket is bound, so that it never hears anything else.
fn attach(socket: &OwnedFd, filter: &[Instruction]) -> io::Result<()> {
    let instruction = |&(code, jt, jf, k): &Instruction| libc::sock_filter { code, jt, jf, k };
    let mut instructions: Vec<libc::sock_filter> = filter.iter().map(instruction).collect();
    let len = u16::try_from(instructions.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // The kernel copies the instructions within the call, and `instructions` outlives it.
    let program = libc::sock_fprog { len, filter: instructions.as_mut_ptr() };
    set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

fn bind(socket: &OwnedFd, options: &PacketOptions) -> io::Result<()> {
    // SAFETY: sockaddr_ll is plain data, for which zero bytes are a value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = if options.deaf { 0 } else { (libc::ETH_P_ALL as u16).to_be() };
    address.sll_ifindex = options.interface_index as i32;
    let len = size_of::<libc::sockaddr_ll>() as u32;
    // SAFETY: the pointer and the length describe `address`, which outlives the call.
    checked(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) }).map(drop)
}

/// Frames the kernel dropped for want of room since the last call.
pub(super) fn take_drops(socket: &OwnedFd) -> u64 {
    let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut len = size_of::<libc::tpacket_stats>() as u32;
    // SAFETY: the pointer and the length describe `statistics`, which outlives the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut statistics).cast(),
            &raw mut len,
        )
    };
    if result == 0 { u64::from(statistics.tp_drops) } else { 0 }
}
