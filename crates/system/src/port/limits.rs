//! How much a port holds at once.

use wire::offload::SUPER_FRAME_MAX_BYTES;

/// Frames taken from the wire by one call. More would save no further system call time that could be measured, fewer
/// break up runs that could be joined towards the stack.
pub const WIRE_BATCH_MAX_FRAMES: usize = 64;
/// Super-frames taken from the stack before the other side gets its turn.
pub const STACK_BATCH_MAX_FRAMES: usize = 16;
/// Frames handed to the kernel by one call.
pub const SEND_BATCH_MAX_FRAMES: usize = 128;
/// Frames that wait in an arena, sent or not, until it is flushed.
pub const ARENA_MAX_FRAMES: usize = 1024;
/// Bytes of frames that wait in an arena. It is used from the front again after every complete flush, so under usual
/// load only its first few hundred KiB are touched and stay in the cache.
pub const ARENA_BYTES: usize = 1 << 20;
/// Segments joined into one super-frame: one buffer each in one system call.
pub const JOINED_MAX_FRAMES: usize = 64;
/// Distance between receive buffers. Not a multiple of 4 KiB, or the headers of all frames of a batch would compete for
/// the same few cache lines.
pub const RECEIVE_STRIDE_BYTES: usize = 66_240;
/// Bytes of socket buffer asked for, each way: 60 ms at 1 Gbit/s.
pub const SOCKET_BUFFER_BYTES: usize = 8 << 20;

const _: () = assert!(RECEIVE_STRIDE_BYTES >= SUPER_FRAME_MAX_BYTES + crate::port::vnet::LEN);
const _: () = assert!(RECEIVE_STRIDE_BYTES % 64 == 0 && RECEIVE_STRIDE_BYTES % 4096 != 0);
const _: () = assert!(ARENA_BYTES > 8 * SUPER_FRAME_MAX_BYTES);
