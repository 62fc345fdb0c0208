//! What stands in front of expensive work, so that forged packets cannot buy processor time (Touch and Yang).
//!
//! - [`checks`]: the order of checks in front of a data frame's tag; [`spin`]: its nonces; [`window`]: its number
//! - [`outpost`]: the same checks in the kernel; [`hook`]: where there; [`kernel`]: the program and its maps
//! - [`sarp`]: checks in front of signed ARP, in the kernel alone
//! - [`budget`]: how much of something costly strangers may cause
//! - [`ipsec`]: a spinning index in front of an IPsec stack
//!
//! It trusts nobody: what passes here is still to be proved.

pub mod budget;
pub mod checks;
pub mod hook;
pub mod ipsec;
pub mod kernel;
pub mod limits;
pub mod map;
pub mod outpost;
pub mod sarp;
pub mod spin;
pub mod window;

pub use budget::{Apart, Bucket, ByRecency, PerSource, RecencyRates};
pub use checks::{Checks, Layers, NonceKeys, Nonces, Refusal, Switches};
pub use hook::Hook;
pub use map::{Keys, MapShape};
pub use outpost::{KernelPost, Maps, Outpost};
pub use window::{Refused, Window, Words};
