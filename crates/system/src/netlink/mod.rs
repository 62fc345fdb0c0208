//! The kernel's routing socket: links, addresses, routes and neighbours of the calling thread's network namespace.
//!
//! Addresses, routes and neighbours are kept as the kernel's own messages. To give an interface back exactly what it
//! had, the message is sent again with another interface index in it: attributes that we do not know survive, because
//! nobody interprets them.

pub(crate) mod address;
pub(crate) mod attribute;
mod connection;
mod discipline;
pub(crate) mod link;
pub(crate) mod neighbour;
pub(crate) mod route;

pub(crate) use connection::{Connection, Message, Subscription};
