//! Connections that a program in the kernel carries (record 0123): what it shares with this room,
//! and who has which of it.
//!
//! The program (`bpf/carry.c`) passes clean segments on without the daemon, by the numbers in an
//! [`Entry`](entry::Entry); bytes that nobody has acknowledged are kept in a [ring](rings). A half
//! of a connection is the daemon's, free for the program, or in hand of one processor; the program
//! takes none that is not free, so that whoever takes a half knows all that has passed.

mod carrier;
mod entry;
pub mod layout;
mod rings;
mod shares;

pub(crate) use carrier::{Carried, Half, Headers, Kept, Moved, NotTaken, Room};
pub use carrier::{Carrier, Words};
