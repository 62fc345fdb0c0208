//! Bytes to values and back.
//!
//! Each format has a *view*, which reads fields of bytes whose length was checked and may hold nonsense, and a *meaning*,
//! a small value that cannot be nonsense. Two laws hold for every format: `parse(emit(x)) == x`, and
//! `emit(parse(b)) == b` for every canonical `b`. Nothing here panics on any input, allocates for a stranger, or knows a
//! key.

pub mod arp;
pub mod checksum;
pub mod cll;
pub mod dhcp;
pub mod error;
pub mod ethernet;
pub mod icmp;
pub mod ipv4;
pub mod ipv6;
pub mod layer;
pub mod nd;
pub mod offload;
pub mod policy;
pub mod reader;
pub mod sarp;
pub mod tcp;
pub mod udp;

pub use error::{Error, Field};
pub use ethernet::{EtherType, MacAddress};
