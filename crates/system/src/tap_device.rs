//! The inner device: a persistent TAP that stands where the card was.
//!
//! It is persistent because a plain TAP dies with its process, its routes with it, and traffic then takes any other
//! default route in clear. Frames carry a vnet header of [`VNET_HEADER_LEN`] bytes, so that the stack hands over
//! super-frames with partial checksums.
#![allow(unsafe_code)]

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use crate::port::vnet;

/// Bytes of the vnet header before each frame (`struct virtio_net_hdr_v1`: with the buffer count).
pub const VNET_HEADER_LEN: usize = 12;

/// Offloads from most to least wanted. A kernel refuses a set as a whole, so that the next smaller one is tried. No
/// TCP segmentation for IPv6: IPv6 is not carried yet. UDP segmentation exists only for both versions at once.
const OFFLOADS: [(libc::c_uint, &str); 4] = [
    (
        libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO_ECN | libc::TUN_F_USO4 | libc::TUN_F_USO6,
        "checksum, tso4, ecn, uso",
    ),
    (libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO_ECN, "checksum, tso4, ecn"),
    (libc::TUN_F_CSUM, "checksum"),
    (0, "none"),
];

/// `TUN_F_UDP_TUNNEL_GSO` and `TUN_F_UDP_TUNNEL_GSO_CSUM` of linux/if_tun.h, Linux 6.17.
const TUNNELS: libc::c_uint = 0x80;
const TUNNEL_CHECKSUMS: libc::c_uint = 0x100;

/// Times that a queue is asked for that somebody still has open.
const ATTACH_ATTEMPTS: u32 = 50;
/// Pause between two of these attempts.
const ATTACH_PAUSE: Duration = Duration::from_millis(20);

/// Opens or makes the TAP `name` in the calling thread's network namespace, and makes it persistent. A new one gets the
/// interface index `index`, if that is free. Returns its queue and the name of the offloads that the kernel granted.
pub(crate) fn open(name: &str, index: Option<u32>) -> io::Result<(OwnedFd, &'static str)> {
    let queue = attach_patiently(name, index)?;
    give(queue.as_fd(), libc::TUNSETVNETHDRSZ, VNET_HEADER_LEN as libc::c_int)?;
    let offloads = set_offloads(queue.as_fd())?;
    set_persistent(queue.as_fd(), true)?;
    Ok((queue, offloads))
}

/// A TAP that takes super-frames inside of tunnels, without a name of its choice and gone with its descriptor, and its interface index;
/// in the calling thread's network namespace. Up to `send_bytes` of what was written to it may be under way.
///
/// # Errors
/// Fails where the kernel does not know tunnels on a TAP: before Linux 6.17.
pub(crate) fn open_for_tunnels(send_bytes: usize) -> io::Result<(OwnedFd, u32)> {
    let tap = attach("tunnels%d", None)?;
    give(tap.as_fd(), libc::TUNSETVNETHDRSZ, vnet::TUNNEL_LEN as libc::c_int)?;
    // What it would hand over to a reader; older kernels refuse what they do not know, and so say what they cannot take either.
    let offloads = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | TUNNELS | TUNNEL_CHECKSUMS;
    ask_for_offloads(tap.as_fd(), offloads)?;
    give(tap.as_fd(), libc::TUNSETSNDBUF, libc::c_int::try_from(send_bytes).unwrap_or(libc::c_int::MAX))?;
    let index = interface_index(tap.as_fd())?;
    Ok((tap, index))
}

/// A new TAP called `name` that is gone with its descriptor; in the calling thread's network
/// namespace.
pub(crate) fn open_while_held(name: &str) -> io::Result<OwnedFd> {
    let tap = attach_patiently(name, None)?;
    give(tap.as_fd(), libc::TUNSETVNETHDRSZ, VNET_HEADER_LEN as libc::c_int)?;
    Ok(tap)
}

/// The interface index of the device that `queue` belongs to, in the calling thread's network namespace.
fn interface_index(queue: BorrowedFd<'_>) -> io::Result<u32> {
    // SAFETY: `ifreq` is plain data for which all zero bytes are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // SAFETY: TUNGETIFF writes one `ifreq`, which lives until the call returns.
    check(unsafe { libc::ioctl(queue.as_raw_fd(), libc::TUNGETIFF, &raw mut request) })?;
    // SAFETY: the kernel wrote a name that ends with a zero.
    match unsafe { libc::if_nametoindex(request.ifr_name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

/// Tells the stack whether the wire below the TAP has a carrier.
///
/// # Errors
/// Fails if `queue` is not a TAP or the kernel is older than 5.0.
pub fn set_carrier(queue: BorrowedFd<'_>, carrier: bool) -> io::Result<()> {
    give(queue, libc::TUNSETCARRIER, libc::c_int::from(carrier))
}

/// A daemon that has just died may still be closing its descriptors, and a child between fork and exec has copies.
fn attach_patiently(name: &str, index: Option<u32>) -> io::Result<OwnedFd> {
    for _ in 0..ATTACH_ATTEMPTS {
        match attach(name, index) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => std::thread::sleep(ATTACH_PAUSE),
            other => return other,
        }
    }
    attach(name, index)
}

fn attach(name: &str, index: Option<u32>) -> io::Result<OwnedFd> {
    let mut open_options = OpenOptions::new();
    let file = open_options.read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
    if let Some(index) = index {
        // Asking for an index that is taken fails later; the device is then made with any index.
        give(file.as_fd(), libc::TUNSETIFINDEX, index.cast_signed())?;
    }
    match set_interface(file.as_fd(), name, libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR) {
        Err(error) if index.is_some() && error.raw_os_error() == Some(libc::EBUSY) => attach(name, None),
        other => other.map(|()| file.into()),
    }
}

fn set_interface(file: BorrowedFd<'_>, name: &str, flags: libc::c_int) -> io::Result<()> {
    // SAFETY: `ifreq` is plain data for which all zero bytes are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from.cast_signed();
    }
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one `ifreq`, which lives until the call returns.
    check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })
}

/// Whether the kernel behind `queue` cuts joined datagrams: it learned to take and to give them at once, with Linux 6.2. Asks for all
/// offloads again to find out, which changes nothing where they are granted and is refused as a whole where not.
pub(crate) fn cuts_datagrams(queue: BorrowedFd<'_>) -> bool {
    let (everything, _) = OFFLOADS[0];
    ask_for_offloads(queue, everything).is_ok()
}

/// Whether this kernel cuts joined datagrams. It is asked in a namespace of its own, where nobody sees
/// the device that it takes.
///
/// # Errors
/// No privilege.
pub fn kernel_cuts_datagrams() -> io::Result<bool> {
    let mut cuts = false;
    crate::namespace::create(|| {
        let tap = attach("probe%d", None)?;
        cuts = cuts_datagrams(tap.as_fd());
        Ok(())
    })?;
    Ok(cuts)
}

fn ask_for_offloads(queue: BorrowedFd<'_>, flags: libc::c_uint) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes its flags by value.
    check(unsafe { libc::ioctl(queue.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(flags)) })
}

fn set_offloads(queue: BorrowedFd<'_>) -> io::Result<&'static str> {
    for (flags, name) in OFFLOADS {
        match ask_for_offloads(queue, flags) {
            Ok(()) => return Ok(name),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
            Err(error) => return Err(error),
        }
    }
    Ok("none")
}

fn set_persistent(queue: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    // SAFETY: TUNSETPERSIST takes its argument by value.
    check(unsafe { libc::ioctl(queue.as_raw_fd(), libc::TUNSETPERSIST, libc::c_ulong::from(on)) })
}

/// An ioctl that reads one `int`.
fn give(queue: BorrowedFd<'_>, request: libc::Ioctl, value: libc::c_int) -> io::Result<()> {
    // SAFETY: every request passed to this function reads one `int`, which lives until the call returns.
    check(unsafe { libc::ioctl(queue.as_raw_fd(), request, &raw const value) })
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
