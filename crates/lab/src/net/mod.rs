//! A LAN in network namespaces: real kernel stacks, real tools, nothing in the machine's own namespace.
//!
//! ```text
//!   a e0 ---- p-a \
//!   b e0 ---- p-b  \
//!   c e0 ---- p-c   > br0, in a namespace of its own
//!   m e0 ---- p-m  /
//!   i e0 ---- p-i /
//! ```
//! An impaired host has our own link between its port and itself: `b e0 -- inner [link] outer -- p-b`.
//!
//! Trusts: that it runs as root, and iproute2.

pub mod authority;
pub mod etcd;
pub mod flood;
pub mod frame;
pub mod impairment;
pub mod lan;
pub mod link;
pub mod namespace;
pub mod neighbours;
pub mod pcap;
pub mod process;
pub mod strongswan;
pub mod talk;
pub mod watch;

pub use frame::Frame;
pub use impairment::{Impairment, Percent, Place};
pub use lan::{Forwarding, Host, Lan, LanPlan};
pub use link::{ImpairedPort, LinkCounters};
pub use namespace::Namespace;
pub use process::Running;
pub use watch::{Direction, Watch};
