//! Programs in the kernel, loaded by system calls alone: no loader library, and no compiler where they are used.
//!
//! The kernel's verifier has proved before a program runs that it ends and reads nothing but the frame and its maps. A program
//! lives as long as whoever holds it, so nothing is left behind when the daemon ends, however it does.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

pub use crate::instruction::Instruction;
use crate::instruction::{CALL, EXIT, SET, instruction};

// Commands of linux/bpf.h.
const MAP_CREATE: libc::c_long = 0;
const MAP_UPDATE: libc::c_long = 2;
const MAP_DELETE: libc::c_long = 3;
const PROG_LOAD: libc::c_long = 5;
const OBJECT_PIN: libc::c_long = 6;
const OBJECT_GET: libc::c_long = 7;
const PROG_TEST_RUN: libc::c_long = 10;
const LINK_UPDATE: libc::c_long = 29;

// Kinds and flags of maps.
const HASH: u32 = 1;
const ARRAY: u32 = 2;
const PROGRAMS: u32 = 3;
const LRU_HASH: u32 = 9;
const DEVICES: u32 = 14;
const NO_PREALLOC: u32 = 1;
const MMAPABLE: u32 = 1 << 10;

// A load of 64 bits, and what its source register says when it is a map's descriptor.
pub(crate) const LOAD_64: u8 = 0x18;
pub(crate) const PSEUDO_MAP_FD: u8 = 1;

/// The hook's number in `enum bpf_attach_type` of linux/bpf.h.
pub(crate) const XDP_HOOK: u32 = 37;
/// The program reads frames through helpers, so it also takes those that lie in pieces
/// (`BPF_F_XDP_HAS_FRAGS`, Linux 5.18).
pub(crate) const READS_PIECES: u32 = 1 << 5;

/// A helper of linux/bpf.h.
const TAIL_CALL: i32 = 12;

/// From `asm-generic/socket.h`, Linux 3.19.
const SO_ATTACH_BPF: i32 = 50;

/// What a program is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// In front of a socket.
    SocketFilter,
    /// At the hook of this number, for frames of a device.
    Device(u32),
    /// In front of a card's receive path, see [`xdp`](crate::xdp).
    Xdp,
    /// For frames of a device, as a filter of `tc`.
    Classifier,
}

impl Kind {
    /// Type, hook and flags as the kernel counts them.
    fn numbers(self) -> (u32, u32, u32) {
        match self {
            Kind::SocketFilter => (1, 0, 0),
            Kind::Device(hook) => (3, hook, 0),
            Kind::Xdp => (6, XDP_HOOK, READS_PIECES),
            Kind::Classifier => (3, 0, 0),
        }
    }
}

/// What names an entry of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Its place, from 0.
    Places,
    /// Any bytes of the key's length.
    Any,
    /// The same; when the map is full, what was unused for longest makes room.
    Recent,
    /// Its place, from 0; the values are devices of the calling thread's namespace by number, and
    /// the kernel takes out those that are gone (`BPF_MAP_TYPE_DEVMAP`).
    Devices,
}

/// How a map is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// What names an entry.
    pub keys: Keys,
    /// Whether [`Map::share`] is wanted; only where keys are places.
    pub shared: bool,
    /// Bytes of a key; 4 where keys are places, as is a value that is a device.
    pub key_len: usize,
    /// Bytes of a value.
    pub value_len: usize,
    /// Most entries.
    pub entries: u32,
}

/// A map: what a program looks things up in.
#[derive(Debug)]
pub struct Map {
    descriptor: OwnedFd,
    shape: Shape,
}

/// The head of `union bpf_attr` for [`MAP_CREATE`]; the kernel takes the rest as zero.
#[repr(C)]
struct Create {
    kind: u32,
    key_len: u32,
    value_len: u32,
    entries: u32,
    flags: u32,
}

/// The same for [`MAP_UPDATE`] and [`MAP_DELETE`].
#[repr(C)]
struct Entry {
    map: u32,
    padding: u32,
    key_at: u64,
    value_at: u64,
    flags: u64,
}

impl Map {
    /// Makes an empty map.
    ///
    /// # Errors
    /// No privilege, or no memory.
    pub fn create(shape: Shape) -> io::Result<Map> {
        let (kind, flags) = match (shape.keys, shape.shared) {
            (Keys::Any, _) => (HASH, NO_PREALLOC),
            (Keys::Recent, _) => (LRU_HASH, 0),
            (Keys::Devices, _) => (DEVICES, 0),
            (Keys::Places, true) => (ARRAY, MMAPABLE),
            (Keys::Places, false) => (ARRAY, 0),
        };
        let len = |len: usize| u32::try_from(len).map_err(|_| io::ErrorKind::InvalidInput);
        let (key_len, value_len) = (len(shape.key_len)?, len(shape.value_len)?);
        let mut create = Create { kind, key_len, value_len, entries: shape.entries, flags };
        // SAFETY: there is no pointer in it.
        let descriptor = unsafe { open(MAP_CREATE, &mut create) }?;
        Ok(Map { descriptor, shape })
    }

    /// Enters `value` under `key`, or replaces what is there.
    ///
    /// # Errors
    /// The map is full, or key or value have another length.
    pub fn put(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        if value.len() != self.shape.value_len {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut entry = self.entry(key, value.as_ptr())?;
        // SAFETY: the kernel reads a key and a value of the map's lengths, which are those of `key` and `value`.
        unsafe { call(MAP_UPDATE, &mut entry) }.map(drop)
    }

    /// Forgets `key`.
    ///
    /// # Errors
    /// It is not there, or has another length.
    pub fn remove(&self, key: &[u8]) -> io::Result<()> {
        let mut entry = self.entry(key, std::ptr::null())?;
        // SAFETY: the kernel reads a key of the map's length, which is that of `key`.
        unsafe { call(MAP_DELETE, &mut entry) }.map(drop)
    }

    fn entry(&self, key: &[u8], value: *const u8) -> io::Result<Entry> {
        if key.len() != self.shape.key_len {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let map = self.descriptor.as_raw_fd().cast_unsigned();
        Ok(Entry { map, padding: 0, key_at: key.as_ptr() as u64, value_at: value as u64, flags: 0 })
    }

    /// The map's memory, if it was made for that.
    ///
    /// # Errors
    /// It was not.
    pub fn share(&self) -> io::Result<Shared> {
        let stride = self.shape.value_len.next_multiple_of(size_of::<AtomicU64>());
        let len = stride * self.shape.entries as usize;
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        let descriptor = self.descriptor.as_raw_fd();
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, descriptor, 0) };
        match NonNull::new(start.cast()).filter(|_| start != libc::MAP_FAILED) {
            Some(start) => Ok(Shared(Arc::new(Mapping { start, words: len / size_of::<AtomicU64>() }))),
            None => Err(io::Error::last_os_error()),
        }
    }
}

/// Memory of a map, in words of eight bytes; each entry begins with a word.
#[derive(Clone, Debug)]
pub struct Shared(Arc<Mapping>);

#[derive(Debug)]
struct Mapping {
    start: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: all access is by atomic operations on memory that stays mapped as long as this lives.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, of this length, and nobody refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.words * size_of::<AtomicU64>()) };
    }
}

impl Shared {
    /// All words. The program may read and write them at the same time.
    #[must_use]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page-aligned, so many words long, was zeroed by the kernel, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.0.start.as_ptr(), self.0.words) }
    }
}

/// A program that the kernel has accepted.
#[derive(Debug)]
pub struct Program {
    descriptor: OwnedFd,
    kind: Kind,
}

/// The head of `union bpf_attr` for [`PROG_LOAD`].
#[repr(C)]
struct Load {
    kind: u32,
    instructions: u32,
    at: u64,
    license: u64,
    log_level: u32,
    log_len: u32,
    log_at: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    hook: u32,
}

/// The same for [`PROG_TEST_RUN`].
#[repr(C)]
struct TestRun {
    program: u32,
    verdict: u32,
    len_in: u32,
    len_out: u32,
    at_in: u64,
    at_out: u64,
    repeat: u32,
    duration_ns: u32,
    context_len_in: u32,
    context_len_out: u32,
    context_at_in: u64,
    context_at_out: u64,
}

/// The same for a run on live frames, whose verdicts are carried out.
#[repr(C)]
struct LiveRun {
    run: TestRun,
    flags: u32,
    processor: u32,
    batch: u32,
    padding: u32,
}

/// A flag for [`PROG_TEST_RUN`]: verdicts are carried out.
const LIVE_FRAMES: u32 = 2;

/// `struct __sk_buff` up to the size of a super-frame's segments, in words.
const CONTEXT_WORDS: usize = 45;
const GSO_SIZE_AT: usize = CONTEXT_WORDS - 1;
/// What a program in front of a card answers for a frame that is to go on.
const XDP_PASS: u32 = 2;

impl Program {
    /// Has the kernel check and take `instructions`. Where one names a map, it holds the map's place in `maps`. `name` is for
    /// whoever lists the kernel's programs.
    ///
    /// # Errors
    /// No privilege, a kernel that lacks what the program needs, a map that is not there, or a processor of the other byte order.
    pub fn load(kind: Kind, name: &str, instructions: &[Instruction], maps: &[Map]) -> io::Result<Program> {
        let instructions = with_maps(instructions, maps)?;
        let license = c"Apache-2.0";
        let (number, hook, flags) = kind.numbers();
        let mut load = Load {
            kind: number,
            instructions: instructions.len() as u32,
            at: instructions.as_ptr() as u64,
            license: license.as_ptr() as u64,
            log_level: 0,
            log_len: 0,
            log_at: 0,
            kernel_version: 0,
            flags,
            name: [0; 16],
            interface: 0,
            hook,
        };
        // The last byte stays zero.
        load.name.iter_mut().take(15).zip(name.bytes()).for_each(|(to, from)| *to = from);
        // SAFETY: both pointers in `load` are to values that outlive the call, with the lengths that it states.
        let descriptor = unsafe { open(PROG_LOAD, &mut load) }?;
        Ok(Program { descriptor, kind })
    }

    /// Has everything that `socket` would hear judged by this program first, in place of any filter
    /// before it; gives what is to be kept for as long, if that is anything.
    ///
    /// Before Linux 6.7 a socket takes no more than 2,560 instructions (`net.core.optmem_max`, 20,480
    /// bytes). It is then given a few, which jump to the rest.
    ///
    /// # Errors
    /// The program is of another kind.
    pub fn attach_to(&self, socket: impl AsFd) -> io::Result<Option<OwnedFd>> {
        match attach(socket.as_fd(), self.descriptor.as_fd()) {
            Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => self.attach_by_jump(socket.as_fd()).map(Some),
            other => other.map(|()| None),
        }
    }

    /// Gives the socket a program that jumps to this one.
    fn attach_by_jump(&self, socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
        let mut create = Create { kind: PROGRAMS, key_len: 4, value_len: 4, entries: 1, flags: 0 };
        // SAFETY: there is no pointer in it.
        let descriptor = unsafe { open(MAP_CREATE, &mut create) }?;
        let shape = Shape { keys: Keys::Places, shared: false, key_len: 4, value_len: 4, entries: 1 };
        let map = Map { descriptor, shape };
        map.put(&[0; 4], &self.descriptor.as_raw_fd().to_ne_bytes())?;
        let jump = [
            instruction(LOAD_64, 2, PSEUDO_MAP_FD, 0, 0),
            instruction(0, 0, 0, 0, 0),
            instruction(SET, 3, 0, 0, 0),
            instruction(CALL, 0, 0, 0, TAIL_CALL),
            // There is always somewhere to jump to; else everything is kept.
            instruction(SET, 0, 0, 0, i32::MAX),
            instruction(EXIT, 0, 0, 0, 0),
        ];
        let maps = [map];
        let jump = Program::load(Kind::SocketFilter, "ringwall_jump", &jump, &maps)?;
        attach(socket, jump.as_fd())?;
        // The kernel empties such a map when nobody has it open any more.
        let [map] = maps;
        Ok(map.descriptor)
    }

    /// Whether the program lets `frame` pass, without any socket or card, for tests. `gso_size` is the size of a super-frame's segments, or
    /// 0, which a program in front of a card is not told.
    ///
    /// # Errors
    /// No privilege, or a frame shorter than its header, or longer than a page less what the kernel keeps beside it.
    pub fn try_on(&self, frame: &[u8], gso_size: u32) -> io::Result<bool> {
        if self.kind == Kind::Xdp {
            return Ok(self.verdict(frame, &[])? == XDP_PASS);
        }
        // The kernel takes an Ethernet header off before it shows a frame to a socket filter in this way.
        let frame = [&[0; 14], frame].concat();
        let mut context = [0_u32; CONTEXT_WORDS];
        context[GSO_SIZE_AT] = gso_size;
        Ok(self.verdict(&frame, &context)? != 0)
    }

    /// What a program for frames of a device answers to `frame`, and what it makes of it, without any device, for tests.
    ///
    /// # Errors
    /// As [`Program::try_on`].
    pub fn try_changing(&self, frame: &[u8]) -> io::Result<(u32, Vec<u8>)> {
        let mut changed = vec![0; frame.len()];
        let mut run = self.run_on(frame, &[], 1);
        (run.len_out, run.at_out) = (changed.len() as u32, changed.as_mut_ptr() as u64);
        // SAFETY: all pointers in `run` are to values that outlive the call, with the lengths that it states.
        unsafe { call(PROG_TEST_RUN, &mut run) }?;
        changed.truncate(run.len_out as usize);
        Ok((run.verdict, changed))
    }

    /// What the program answers to `frame`, with `context` beside it if there are any words in it.
    fn verdict(&self, frame: &[u8], context: &[u32]) -> io::Result<u32> {
        let mut run = self.run_on(frame, context, 1);
        // SAFETY: both pointers in `run` are to values that outlive the call, with the lengths that it states.
        unsafe { call(PROG_TEST_RUN, &mut run) }?;
        Ok(run.verdict)
    }

    /// Lets this program, of kind [`Kind::Xdp`], judge a page with `frame` in it so many times, in the calling thread's namespace, and
    /// carries its verdicts out: what it redirects leaves by the interface that it names. Linux 5.18.
    ///
    /// # Errors
    /// No privilege, a frame longer than a page less what the kernel keeps beside it, or a signal came before the end.
    pub fn run_live(&self, frame: &[u8], times: u32) -> io::Result<()> {
        let run = self.run_on(frame, &[], times);
        let mut live = LiveRun { run, flags: LIVE_FRAMES, processor: 0, batch: 0, padding: 0 };
        // SAFETY: the pointer in `live` is to `frame`, which outlives the call, with its length.
        unsafe { call(PROG_TEST_RUN, &mut live) }.map(drop)
    }

    fn run_on(&self, frame: &[u8], context: &[u32], times: u32) -> TestRun {
        let context_at = if context.is_empty() { 0 } else { context.as_ptr() as u64 };
        TestRun {
            program: self.descriptor.as_raw_fd().cast_unsigned(),
            verdict: 0,
            len_in: frame.len() as u32,
            len_out: 0,
            at_in: frame.as_ptr() as u64,
            at_out: 0,
            repeat: times,
            duration_ns: 0,
            context_len_in: size_of_val(context) as u32,
            context_len_out: 0,
            context_at_in: context_at,
            context_at_out: 0,
        }
    }
}

/// Puts a program in front of a socket.
fn attach(socket: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    let (value, len) = (program.as_raw_fd(), size_of::<i32>() as u32);
    let at = (&raw const value).cast();
    // SAFETY: the pointer and the length describe `value`, which outlives the call.
    match unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, SO_ATTACH_BPF, at, len) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl AsFd for Program {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// The same for [`OBJECT_PIN`] and [`OBJECT_GET`].
#[repr(C)]
struct Named {
    path_at: u64,
    descriptor: u32,
    flags: u32,
}

/// Gives what `descriptor` stands for a name below a file system of kind `bpf`, so that it outlives this process.
///
/// # Errors
/// The name is taken, or lies elsewhere.
pub(crate) fn pin(descriptor: impl AsFd, path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let descriptor = descriptor.as_fd().as_raw_fd().cast_unsigned();
    let mut named = Named { path_at: path.as_ptr() as u64, descriptor, flags: 0 };
    // SAFETY: the path ends with a zero and outlives the call.
    unsafe { call(OBJECT_PIN, &mut named) }.map(drop)
}

/// What was [pinned](pin) under this name; none if nothing was.
///
/// # Errors
/// No privilege, or the name is that of something else.
pub(crate) fn pinned(path: &Path) -> io::Result<Option<OwnedFd>> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut named = Named { path_at: path.as_ptr() as u64, descriptor: 0, flags: 0 };
    // SAFETY: the path ends with a zero and outlives the call.
    match unsafe { open(OBJECT_GET, &mut named) } {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// The head of `union bpf_attr` for [`LINK_UPDATE`].
#[repr(C)]
struct Exchange {
    link: u32,
    program: u32,
    flags: u32,
    former: u32,
}

/// Puts `program` in the place of the one that `link` holds to its hook, without a moment between the two.
///
/// # Errors
/// The hook is gone, or the program of another kind.
pub(crate) fn exchange(link: impl AsFd, program: &Program) -> io::Result<()> {
    let number = |descriptor: &dyn AsFd| descriptor.as_fd().as_raw_fd().cast_unsigned();
    let mut exchange = Exchange { link: number(&link), program: number(program), flags: 0, former: 0 };
    // SAFETY: there is no pointer in it.
    unsafe { call(LINK_UPDATE, &mut exchange) }.map(drop)
}

/// Puts descriptors in the places of maps.
fn with_maps(instructions: &[Instruction], maps: &[Map]) -> io::Result<Vec<Instruction>> {
    if cfg!(target_endian = "big") && !maps.is_empty() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let place = |instruction: &Instruction| {
        if (instruction.operation, instruction.registers >> 4) != (LOAD_64, PSEUDO_MAP_FD) {
            return Ok(*instruction);
        }
        let map = usize::try_from(instruction.operand).ok().and_then(|place| maps.get(place));
        let map = map.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Instruction { operand: map.descriptor.as_raw_fd(), ..*instruction })
    };
    instructions.iter().map(place).collect()
}

/// Calls `bpf`, which answers with a descriptor.
///
/// # Safety
/// As [`call`].
pub(crate) unsafe fn open<T>(command: libc::c_long, attributes: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: the caller vouches for it.
    let descriptor = unsafe { call(command, attributes) }?;
    // SAFETY: the kernel has just opened it for us, and nobody else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Calls `bpf`. The kernel breaks the check of a program off with EAGAIN when a signal comes, and
/// wants to be called again; five times is what its own library tries.
///
/// # Safety
/// `attributes` must be what `command` reads and writes, and its pointers valid for as much as it says.
unsafe fn call<T>(command: libc::c_long, attributes: &mut T) -> io::Result<i32> {
    const TRIES: u32 = 5;
    let mut tries = 1;
    loop {
        // SAFETY: the kernel uses `attributes` within the size given, and the caller vouches for what it points to.
        let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<T>()) };
        if let Some(result) = i32::try_from(result).ok().filter(|result| *result >= 0) {
            return Ok(result);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::WouldBlock || tries == TRIES {
            return Err(error);
        }
        tries += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    #[test]
    fn what_a_socket_has_no_room_for_is_reached_by_a_jump() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: the kernel takes programs of root only");
            return;
        }
        for (verdict, passes) in [(0, false), (i32::MAX, true)] {
            let judge = [instruction(SET, 0, 0, 0, verdict), instruction(EXIT, 0, 0, 0, 0)];
            let program = Program::load(Kind::SocketFilter, "ringwall_test", &judge, &[]).expect("loaded");
            let (near, far) = UnixDatagram::pair().expect("sockets");
            let held = program.attach_by_jump(far.as_fd()).expect("attached");
            far.set_nonblocking(true).expect("a socket");
            // The kernel tells the sender of a datagram that its receiver refuses.
            let _refused = near.send(b"judged");
            assert_eq!(far.recv(&mut [0; 8]).is_ok(), passes);
            drop(held);
        }
    }
}
