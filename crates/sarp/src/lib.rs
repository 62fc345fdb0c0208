//! S-ARP: address resolution whose answers are signed, with keys looked up at a key distributor (AKD).
//!
//! Sections refer to the paper "S-ARP: a Secure Address Resolution Protocol" (Bruschi, Ornaghi, Rosti). One bump,
//! [`Host`], stands between a host's stack and its wire. It carries everything but ARP and DHCP as it is; of ARP the stack hears
//! only what a signature proves or an operator listed. On a distributor's machine it answers for the repository, too.
//!
//! What goes beyond the paper: answers that nobody asked for change nothing; stamps of one sender only ever grow; times
//! are asked for with a nonce like keys; strangers cannot make a distributor sign, because requests carry a tag under the
//! asking host's own key; pending replies are bounded in number, bytes and time.
//!
//! A machine that enrols by token is no host yet: [`applicant`].
//!
//! Reading order: [`settings`], [`clock`], `host/mod.rs` and the files it names, [`akd`], [`limits`]. It trusts what
//! `identity` verified, the clock and the randomness that it is given, and nothing that a frame says.

pub mod akd;
pub mod applicant;
pub mod clock;
mod enquiry;
pub mod event;
mod host;
mod job;
pub mod limits;
mod pending;
mod questions;
mod ring;
pub mod settings;

pub use clock::Stamp;
pub use event::Event;
pub use host::{Host, LeaseReport, Report};
pub use job::{Completion, Job};
pub use ring::KeyReport;
pub use settings::{Distributor, KnownHost, Settings, SharedKeys, Weaken};
