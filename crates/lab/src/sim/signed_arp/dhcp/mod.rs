//! DHCP programs that know nothing of S-DHCP: a server with a pool, and clients.

pub mod client;
pub mod message;
pub mod server;
