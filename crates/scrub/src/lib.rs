//! The protocol scrubber (Watson, Smart, Malan, Jahanian: "Protocol Scrubbing"): a bump between a trusted and an untrusted
//! side that makes TCP/IP flows unambiguous for everyone behind it and hides what runs there.
//!
//! One property defines it: *whatever leaves has exactly one interpretation*. Receivers with different rules for overlaps
//! read the same bytes; every frame that leaves parses and carries right checksums; our output through a fresh scrubber comes
//! out unchanged, the shifts apart.
//!
//! That is why a packet is not patched but read into fields and written again from them ([`packet`], [`emit`]): what no rule
//! understands does not leave. Reading order: [`rule`] (what is done, by name), [`scrubber`] (in which order), then the stages
//! `ethernet`, `ip`, `tcp`, `udp`, `icmp`. This room trusts the metadata of its ports and nothing else.

pub mod carried;
mod checksum;
mod context;
mod departure;
mod emit;
mod encapsulation;
mod ethernet;
mod exchange;
mod fingerprint;
mod icmp;
mod ip;
pub mod keys;
mod lately;
pub mod limits;
mod neighbours;
mod opaque;
mod packet;
pub mod rule;
pub mod scrubber;
pub mod settings;
mod stages;
mod table;
mod tcp;
mod udp;

pub use keys::Keys;
pub use rule::{Action, Rule, Rules};
pub use scrubber::Scrubber;
pub use settings::{FlowLimits, Preset, Settings};
pub use tcp::events::Event;
pub use tcp::{BadRecord, Came, CarriedFlows, FlowCounts, FlowEnd, FlowId, FlowReport, Over, Told, Waits};
