//! Every limit of the room, with its unit and its reason.

use std::time::Duration;

/// A gateway that was not heard for so many heartbeats is taken for dead.
pub const HEARTBEATS_MISSED: u32 = 3;
/// For so many heartbeats after its last one an active gateway forwards. One less than
/// [`HEARTBEATS_MISSED`]: one that was stopped and goes on must not forward beside its successor.
pub const LEASE_HEARTBEATS: u32 = 2;
/// For so many heartbeats a gateway that handed over leaves the other one the turn.
pub const YIELD_HEARTBEATS: u32 = 20;
/// Longest message, in bytes: with headers of IPv6 and UDP it fits into an Ethernet frame.
pub const MESSAGE_MAX_BYTES: usize = 1400;
/// Longest record, in bytes: its length takes one byte.
pub const RECORD_MAX_BYTES: usize = 255;
/// Between two batches of records.
pub const BATCH_INTERVAL: Duration = Duration::from_millis(10);
/// Records that are sent at once before a handover.
pub const RECORDS_BEFORE_HANDOVER: usize = 10_000;
/// Messages that wait to be sent. Whoever drives the machine takes them after every call.
pub const MESSAGES_WAITING_MAX: usize = 2048;
/// Events that wait for whoever drains them.
pub const EVENTS_MAX: usize = 64;

const _: () = assert!(LEASE_HEARTBEATS < HEARTBEATS_MISSED);
const _: () =
    assert!(RECORDS_BEFORE_HANDOVER.div_ceil(MESSAGE_MAX_BYTES / RECORD_MAX_BYTES) < 2 * MESSAGES_WAITING_MAX);
