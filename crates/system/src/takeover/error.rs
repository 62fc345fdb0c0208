//! What can go wrong, in one line for the operator each.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use super::place::BPF_FILES;
use crate::xdp::XdpError;

/// Why an interface was not taken or not given back.
#[derive(Debug)]
pub enum TakeoverError {
    /// The name cannot be one of an interface.
    BadName {
        /// The name.
        interface: String,
    },
    /// There is no such interface.
    NoSuchInterface {
        /// Its name.
        interface: String,
    },
    /// It is not an Ethernet card or its like.
    NotEthernet {
        /// Its name.
        interface: String,
        /// What it is.
        what: &'static str,
    },
    /// It belongs to a bridge, a bond or a VRF.
    Enslaved {
        /// Its name.
        interface: String,
        /// The name of what it belongs to.
        master: String,
    },
    /// Another device, such as a VLAN, sits on it and would die or speak in clear.
    Carries {
        /// Its name.
        interface: String,
        /// The name of the other device.
        upper: String,
    },
    /// A living daemon holds it.
    Busy {
        /// Its name.
        interface: String,
        /// Process number of the holder, if it left one.
        holder: Option<u32>,
    },
    /// The card's MTU leaves no room for packets of the smallest size that IPv4 hosts must take.
    MtuTooSmall {
        /// Its name.
        interface: String,
        /// The card's MTU in bytes.
        mtu: u32,
        /// Bytes that sealing adds to a frame.
        overhead: u16,
    },
    /// It was taken in another network namespace.
    OtherNamespace {
        /// Its name.
        interface: String,
        /// The state file.
        file: PathBuf,
    },
    /// It stands in for a card whose take-over nobody knows of any more.
    StateLost {
        /// Its name.
        interface: String,
        /// The state file that should be there.
        file: PathBuf,
    },
    /// It is not taken.
    NotTaken {
        /// Its name.
        interface: String,
        /// The state file that would be there.
        file: PathBuf,
    },
    /// The card is neither in its namespace nor here any more.
    NicGone {
        /// Its name.
        interface: String,
    },
    /// It has an address, and a gateway's interfaces have none.
    HasAddress {
        /// Its name.
        interface: String,
        /// The address.
        address: IpAddr,
    },
    /// It is held together with others than those that a gateway is asked to have.
    OtherCards {
        /// Its name.
        interface: String,
        /// The names of those that are held.
        held: String,
    },
    /// The card of a gateway cannot leave its network namespace.
    CannotLeave {
        /// Its name.
        interface: String,
        /// What the kernel said.
        cause: io::Error,
    },
    /// The card cannot leave its network namespace.
    CannotMove {
        /// Its name.
        interface: String,
        /// What the kernel said.
        cause: io::Error,
    },
    /// The same of a card that a former version has put behind a filter.
    BehindFilter {
        /// Its name.
        interface: String,
        /// What the kernel said.
        cause: io::Error,
    },
    /// The program `nft` is missing.
    NoNft {
        /// The interface.
        interface: String,
    },
    /// A program of the system is missing.
    NoProgram {
        /// The interface.
        interface: String,
        /// Its name.
        program: &'static str,
    },
    /// No guard can stand in front of the card.
    Guard {
        /// The interface.
        interface: String,
        /// Why.
        cause: XdpError,
    },
    /// The kernel or `nft` refused the filter.
    Filter {
        /// The interface.
        interface: String,
        /// What `nft` said, first line.
        cause: String,
    },
    /// A file of ours cannot be used.
    File {
        /// The file.
        file: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The kernel refused a step.
    Kernel {
        /// The interface.
        interface: String,
        /// The step.
        doing: &'static str,
        /// What the kernel said.
        cause: io::Error,
    },
}

impl fmt::Display for TakeoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadName { interface } => {
                write!(f, "interface {interface:?}: not a possible interface name: use one that `ip link` shows")
            }
            Self::NoSuchInterface { interface } => {
                write!(f, "interface {interface}: no such interface: `ip link` shows those that exist")
            }
            Self::NotEthernet { interface, what } => {
                write!(f, "interface {interface}: is {what}: name an Ethernet interface")
            }
            Self::Enslaved { interface, master } => {
                write!(
                    f,
                    "interface {interface}: belongs to {master}: guard {master}, or take it out (`ip link set {interface} \
                     nomaster`)"
                )
            }
            Self::Carries { interface, upper } => {
                write!(
                    f,
                    "interface {interface}: carries {upper}: remove that device first and make it again afterwards"
                )
            }
            Self::Busy { interface, holder: Some(pid) } => {
                write!(f, "interface {interface}: already taken by process {pid}: stop that first")
            }
            Self::Busy { interface, holder: None } => {
                write!(f, "interface {interface}: already taken by a living daemon: stop that first")
            }
            Self::MtuTooSmall { interface, mtu, overhead } => {
                write!(f, "interface {interface}: MTU {mtu} less {overhead} bytes is below 576: raise the card's MTU")
            }
            Self::CannotMove { interface, cause } => write!(
                f,
                "interface {interface}: cannot move into a namespace ({cause}): guard it in place \
                 (host.takeover = \"in-place\", in mode cll, or sarp without [dhcp]), or use a card that can move"
            ),
            Self::BehindFilter { interface, cause } => write!(
                f,
                "interface {interface}: stays shut behind the filter of a former version, and cannot move into a \
                 namespace ({cause}): give it back (`ringwall host release`) and start again"
            ),
            Self::NicGone { interface } => {
                write!(
                    f,
                    "interface {interface}: the card is gone: plug it in again, or give the interface up (`release`)"
                )
            }
            Self::NoNft { interface } => {
                write!(f, "interface {interface}: the program nft is missing: install nftables")
            }
            Self::NoProgram { interface, program } => {
                write!(f, "interface {interface}: the program {program} is missing: install its package")
            }
            Self::Guard { interface, cause } => write!(
                f,
                "interface {interface}: cannot be guarded in place ({cause}): take that program away, or use the way \
                 \"namespace\""
            ),
            Self::Filter { interface, cause } => {
                write!(
                    f,
                    "interface {interface}: nft refused the filter ({cause}): needs Linux 5.16 and nftables 1.0.1"
                )
            }
            other => other.write_about_gateways(f),
        }
    }
}

impl TakeoverError {
    /// Whether it speaks against this way of taking the interface over, so that another may do.
    #[must_use]
    pub fn is_of_the_way(&self) -> bool {
        match self {
            Self::Guard { .. } | Self::Filter { .. } | Self::NoNft { .. } | Self::NoProgram { .. } => true,
            Self::File { file, .. } => file.starts_with(BPF_FILES),
            _ => false,
        }
    }

    fn write_about_gateways(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HasAddress { interface, address } => write!(
                f,
                "interface {interface}: has the address {address}, and a gateway's interfaces have none: remove it, or \
                 name another interface"
            ),
            Self::OtherCards { interface, held } => write!(
                f,
                "interface {interface}: an earlier gateway holds {held}: name the same ones, or give those back first \
                 (`ringwall gate release`)"
            ),
            Self::CannotLeave { interface, cause } => write!(
                f,
                "interface {interface}: cannot move into a namespace of its own ({cause}): use a card that can"
            ),
            other => other.write_about_files(f),
        }
    }

    fn write_about_files(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherNamespace { interface, file } => write!(
                f,
                "interface {interface}: taken in another network namespace, says {}: run this there, or remove the file \
                 if that namespace is gone",
                file.display()
            ),
            Self::StateLost { interface, file } => write!(
                f,
                "interface {interface}: stands in for a card, but {} is gone: put that file back, or start the machine \
                 again",
                file.display()
            ),
            Self::NotTaken { interface, file } => {
                write!(f, "interface {interface}: not taken: there is no {}", file.display())
            }
            Self::File { file, cause } => {
                write!(f, "file {}: {cause}: correct its permissions or remove it", file.display())
            }
            Self::Kernel { interface, doing, cause } if is_privilege(cause) => {
                write!(
                    f,
                    "interface {interface}: {doing}: not permitted: run as root or with CAP_NET_ADMIN and CAP_SYS_ADMIN"
                )
            }
            Self::Kernel { interface, doing, cause } => {
                write!(f, "interface {interface}: {doing}: {cause}: put it right and start again, or run `release`")
            }
            _ => Ok(()),
        }
    }
}

impl std::error::Error for TakeoverError {}

fn is_privilege(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

/// Says which step on which interface an error of the kernel belongs to.
pub(super) trait Doing<T> {
    /// Adds interface and step to the error.
    fn doing(self, interface: &str, step: &'static str) -> Result<T, TakeoverError>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, interface: &str, step: &'static str) -> Result<T, TakeoverError> {
        self.map_err(|cause| TakeoverError::Kernel { interface: interface.to_owned(), doing: step, cause })
    }
}
