//! The modes: what guards an interface, each in a folder of its own with its section of the
//! configuration, its start, its program in the kernel, its parts of `status` and the files that it
//! follows.
//!
//! This is the only list of them, with their names in `name.rs` and their sections in `file.rs`.
//! `contract.rs` is what the rest of the program asks of a mode; nothing outside of this room names
//! one. `gateway` is no mode of a host: its daemon has two cards and a file of its own.

pub(crate) mod any_file;
pub(crate) mod cll;
pub(crate) mod contract;
pub(crate) mod file;
pub(crate) mod gateway;
pub(crate) mod ipsec;
pub(crate) mod kept_leases;
pub(crate) mod layers;
pub(crate) mod name;
pub(crate) mod null;
pub(crate) mod part;
pub(crate) mod parts;
pub(crate) mod sarp;
pub(crate) mod site_policy;

pub(crate) use any_file::ConfigFile;
use contract::HostMode;
use name::Mode;

/// The mode of this name.
pub(crate) fn of(mode: Mode) -> &'static dyn HostMode {
    match mode {
        Mode::Cll => &cll::LinkLayer,
        Mode::Sarp => &sarp::SignedArp,
        Mode::Shield => &ipsec::IpsecShield,
        Mode::Null => &null::Unprotected,
    }
}
