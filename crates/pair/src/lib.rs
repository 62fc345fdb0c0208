//! Two gateways in parallel between the same two segments: one is active and forwards, the other is
//! on standby and forwards nothing until it takes over.
//!
//! Messages travel on three paths: the sync link and both segments. A loop needs both segments
//! whole, and then messages get through on them: who hears the other forward stands down or tells it
//! to. So a cut sync link alone makes no split.
//!
//! - [`channel`]: messages sealed and opened; what is forged, old or repeated has a named reason
//! - [`message`]: what they say
//! - [`machine`]: who forwards
//! - [`stream`]: records of flows, in batches, with a round of all of them after a loss
//!
//! The machine takes messages and `now`. It opens no socket and knows nothing of what a record says.
//! Record 0097 says why it is so.

pub mod channel;
pub mod limits;
pub mod machine;
pub mod message;
pub mod stream;

pub use channel::{Path, Refusal, Secret};
pub use machine::{Event, NotNow, Pair, Report, Settings, Why};
pub use message::{Cards, Role};
pub use stream::{Next, Source};
