//! Every limit of the shield, with its unit and its reason.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Sequence numbers behind the newest that are still accepted once. Parallel queues reorder by hundreds of frames;
/// 8,192 leaves room and costs 2 KiB for each key.
pub const REPLAY_WINDOW_FRAMES: u32 = 8192;
/// How far a sequence number may be ahead of the newest that was delivered. A peer that goes unheard is asked for a new
/// handshake after 10 s, in which it would have to send 1.6 million frames a second to come this far.
pub const FAR_AHEAD_FRAMES: u32 = 1 << 24;

/// Frames that a slow nonce serves, as a power of two: an observer may use what he saw for milliseconds, and the receiver
/// computes it once in a thousand frames.
pub const SLOW_SHIFT: u32 = 10;
/// Sequence numbers on either side of the newest for which [`SpinTable`](crate::spin::SpinTable) holds nonces.
pub const TABLE_REACH: u32 = 8192;

/// Receiver indices that the kernel knows. With more, it lets unknown ones pass and the twin decides.
pub const KERNEL_RECEIVERS_MAX: u32 = 65_536;
/// Replay windows that the kernel sees, 2 KiB each. What is received beyond is looked up by the twin alone.
pub const KERNEL_WINDOWS_MAX: u32 = 1024;
/// Tags of handshakes and of frames to groups that the kernel remembers, so that one that is repeated passes only now and then. Eight
/// bytes each; who records more messages than that replays them for a look at each.
pub const KERNEL_TAGS_MAX: u32 = 65_536;
/// Messages of handshakes with a right tag that pass the kernel in a second, new tags each, unless something else is configured: forty
/// times what is answered, and a thirtieth of a processor. More would bring nobody in, because what is answered is the bound.
pub const KERNEL_HANDSHAKES_PER_SECOND: u32 = 10_000;
/// Messages about groups with a right tag that pass in a second: as many as the signatures prove that are checked of one sender.
pub const KERNEL_GROUP_MESSAGES_PER_SECOND: u32 = 32_000;
/// What of either may be configured. Below, honest hosts that all start at once would wait for each other; above, it bounds nothing.
pub const KERNEL_RATE_RANGE: RangeInclusive<u32> = 1000..=1_000_000;
/// Messages of one peer that pass in a second when somebody else has used all that up.
pub const KERNEL_MESSAGES_PER_PEER_PER_SECOND: u32 = 100;
/// Peers that the kernel has such a share for, those of the latest associations.
pub const KERNEL_PEERS_MAX: u32 = 4096;
/// Places of addresses that the kernel knows of ARP, sixteen bytes each. Addresses of one place are taken for each other: a site of a
/// /20 has a place for each.
pub const ADDRESS_PLACES: u32 = 4096;
/// An answer by ARP that nobody asked for passes the kernel once in so long, and so does a question about others: it may claim an address
/// of ours, which is reported, or announce a new card.
pub const IDLE_INTERVAL: Duration = Duration::from_millis(1);
/// Who asks by ARP, as far as the kernel counts them apart; as many as the daemon does.
pub const KERNEL_SOURCES_MAX: u32 = 4096;
/// Pairs of addresses that have proved themselves, whose questions have a share of their own in the kernel. Twice as many as a ring has
/// keys, because a full map of this kind makes room a little early.
pub const KERNEL_ACQUAINTED_MAX: u32 = 8192;
/// Highest number of a host whose requests the kernel of a distributor tells from others, 24 bytes for each.
pub const KERNEL_HOST_NUMBER_MAX: u32 = 262_144;
/// Requests of one host to a distributor that pass the kernel in a second, three times what is ever answered. A tag costs two
/// microseconds, so a host that wants to do harm buys a thousandth of a processor; and who would use up the share of another needs a
/// hundred different recordings of that one's requests.
pub const KERNEL_REQUESTS_PER_HOST_PER_SECOND: u32 = 500;
/// The same request passes once in so long: a host that gets no answer repeats it after twice that.
pub const KERNEL_REPEAT_INTERVAL: Duration = Duration::from_millis(200);
/// Requests that the kernel knows again, sixteen bytes each.
pub const KERNEL_REQUESTS_MAX: u32 = 65_536;
/// A frame with an unknown index passes the kernel once in so long: it may be a peer's that outlived our restart, whom a
/// handshake helps. That is more than are ever answered.
pub const STRANGER_INTERVAL: Duration = Duration::from_millis(15);
