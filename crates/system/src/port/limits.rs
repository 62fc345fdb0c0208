//! How much a port holds at once.

use wire::offload::{BIG_FRAME_MAX_BYTES, SUPER_FRAME_MAX_BYTES};

/// Frames taken from the wire by one call. More would save no further system call time that could be measured, fewer
/// break up runs that could be joined towards the stack.
pub const WIRE_BATCH_MAX_FRAMES: usize = 64;
/// Super-frames taken from the stack before the other side gets its turn.
pub const STACK_BATCH_MAX_FRAMES: usize = 16;
/// Frames handed to the kernel by one call.
pub const SEND_BATCH_MAX_FRAMES: usize = 128;
/// Frames in a train. Most of what trains save is saved by then, a queue that drops one loses no more than this, and it holds
/// a link of 1 Gbit/s up for 0.1 ms.
pub const TRAIN_MAX_FRAMES: usize = 8;
/// Fewer than this many go alone: the headers of a train cost the wire more than they save the kernel.
pub const TRAIN_MIN_FRAMES: usize = 3;
/// Frames in a train that is accepted: Linux joins 64 datagrams on arrival and cuts at most 128.
pub const PIECES_MAX: usize = 128;
/// Frames that wait in an arena. All segments of a batch from the stack fit, down to segments of 536 bytes, so that a
/// wire that stops in the middle of a batch costs no frame.
pub const ARENA_MAX_FRAMES: usize = 2048;
/// Bytes of frames that wait in an arena. It is used from the front again after every complete flush, so under usual
/// load only its first few hundred KiB are touched and stay in the cache.
pub const ARENA_BYTES: usize = 2 << 20;
/// Segments joined into one super-frame: one buffer each in one system call.
pub const JOINED_MAX_FRAMES: usize = 64;
/// Distance between receive buffers. Not a multiple of 4 KiB, or the headers of all frames of a batch would compete for
/// the same few cache lines.
pub const RECEIVE_STRIDE_BYTES: usize = 66_240;
/// The same once a frame came that is longer than any super-frame: where an administrator raised
/// what Linux joins. Not before, since memory that was touched stays.
pub const BIG_STRIDE_BYTES: usize = BIG_FRAME_MAX_BYTES + 64;
/// Frames taken from the wire by one call from then on.
pub const BIG_BATCH_MAX_FRAMES: usize = 16;
/// Bytes of socket buffer asked for, each way: 60 ms at 1 Gbit/s.
pub const SOCKET_BUFFER_BYTES: usize = 8 << 20;
/// The same for a port that hears only what is kept for the daemon, on its way out: some hundred small frames.
pub const SOCKET_BUFFER_OF_KEPT_BYTES: usize = 256 << 10;
/// Room for one frame in a ring, with what the kernel says about it: ARP and DHCP in packets of 1,500 bytes fit.
pub const RING_SLOT_BYTES: usize = 2048;
/// Frames in the ring of a port that hears only what is kept for the daemon, a burst of requests for a whole subnet. More
/// would only hold more of a flood.
pub const RING_SLOTS_FEW: usize = 256;
/// The same for a distributor: what comes while it signs for some milliseconds.
pub const RING_SLOTS_MANY: usize = 1024;
/// The kernel takes the memory of a ring in pieces of this size.
pub const RING_BLOCK_BYTES: usize = 64 << 10;

const _: () = assert!(RING_BLOCK_BYTES.is_multiple_of(RING_SLOT_BYTES));
const _: () = assert!((RING_SLOTS_FEW * RING_SLOT_BYTES).is_multiple_of(RING_BLOCK_BYTES));
const _: () = assert!((RING_SLOTS_MANY * RING_SLOT_BYTES).is_multiple_of(RING_BLOCK_BYTES));
const _: () = assert!(RECEIVE_STRIDE_BYTES >= SUPER_FRAME_MAX_BYTES + crate::port::vnet::LEN);
const _: () = assert!(BIG_STRIDE_BYTES.is_multiple_of(64) && !BIG_STRIDE_BYTES.is_multiple_of(4096));
const _: () = assert!(RECEIVE_STRIDE_BYTES.is_multiple_of(64) && !RECEIVE_STRIDE_BYTES.is_multiple_of(4096));
// Half as much again for the headers of the segments and the room between them.
const _: () = assert!(ARENA_BYTES * 2 > 3 * STACK_BATCH_MAX_FRAMES * SUPER_FRAME_MAX_BYTES);
const _: () = assert!(ARENA_MAX_FRAMES >= STACK_BATCH_MAX_FRAMES * SUPER_FRAME_MAX_BYTES.div_ceil(536));
const _: () = assert!(ARENA_MAX_FRAMES > SEND_BATCH_MAX_FRAMES);
