//! Programs in front of a card's receive path (`bpf(2)`, the hook `xdp`): they judge a frame before the kernel has made anything of it.
//!
//! A program is attached by a descriptor and gone with it, however its holder ends. A card has one place for such programs, so nobody
//! who was there before is put away: whoever comes second is refused.

use std::io;
use std::os::fd::OwnedFd;

use crate::bpf::{Program, XDP_HOOK};
use crate::ingress;

/// Who calls the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The card's driver, with what the card has written into memory.
    Native,
    /// The kernel, on any card, with what the driver has made of it; super-frames come whole and unmarked.
    Generic,
}

impl Mode {
    /// From linux/if_link.h.
    fn flags(self) -> u32 {
        match self {
            Mode::Native => 1 << 2,
            Mode::Generic => 1 << 1,
        }
    }
}

/// Why a program was not attached.
#[derive(Debug)]
pub enum XdpError {
    /// Another one is there, in this mode or in the other.
    Occupied,
    /// The driver calls none.
    NoDriver,
    /// Frames may be longer than the driver hands to a program.
    MtuTooLarge,
    /// The driver has fewer receive queues than it wants for this, or than the other end of a pair sends by.
    TooFewQueues,
    /// Anything else.
    Refused(io::Error),
}

impl From<io::Error> for XdpError {
    fn from(error: io::Error) -> XdpError {
        match error.raw_os_error() {
            Some(libc::EBUSY | libc::EEXIST) => XdpError::Occupied,
            Some(libc::EOPNOTSUPP) => XdpError::NoDriver,
            Some(libc::ERANGE) => XdpError::MtuTooLarge,
            Some(libc::ENOSPC) => XdpError::TooFewQueues,
            _ => XdpError::Refused(error),
        }
    }
}

impl std::fmt::Display for XdpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            XdpError::Occupied => f.write_str("another XDP program is on the card"),
            XdpError::NoDriver => f.write_str("the card's driver cannot, or not as the card is set"),
            XdpError::MtuTooLarge => f.write_str("the MTU is too large for the card's driver"),
            XdpError::TooFewQueues => f.write_str("the card has too few queues"),
            XdpError::Refused(error) => write!(f, "the kernel refuses: {error}"),
        }
    }
}

impl std::error::Error for XdpError {}

/// Puts `program` in front of the receive path of `interface`, in the calling thread's namespace, until the descriptor is closed.
///
/// # Errors
/// See [`XdpError`].
pub fn attach(program: &Program, interface: u32, mode: Mode) -> Result<OwnedFd, XdpError> {
    Ok(ingress::link(program, interface, XDP_HOOK, mode.flags())?)
}
