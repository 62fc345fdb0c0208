//! System calls that the filter refuses, for the log.
//!
//! The kernel signals each (SIGSYS); the handler lets the call fail with EPERM and notes its
//! number, and the supervisor tells each number once. Refused is not ended: a new version of the C
//! library may try a call that nobody has seen here, and a host must not lose its network for that.
//! Whoever took the process over may replace the handler, which makes no call succeed.

#![allow(unsafe_code)]

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use super::calls;

/// Numbers that are noted; those beyond share the last bit. Linux 6.18 has 470 calls.
const NUMBERS: usize = 512;
const WORD_BITS: usize = u64::BITS as usize;

static SEEN: [AtomicU64; NUMBERS / WORD_BITS] = [const { AtomicU64::new(0) }; NUMBERS / WORD_BITS];

/// What was refused in this process.
#[derive(Debug)]
pub struct Refused {
    told: [u64; NUMBERS / WORD_BITS],
}

impl Refused {
    /// Calls that were refused and have not been told yet, by name where it is known.
    pub fn news(&mut self) -> Vec<String> {
        let mut news = Vec::new();
        for (place, (told, seen)) in self.told.iter_mut().zip(&SEEN).enumerate() {
            let seen = seen.load(Ordering::Relaxed);
            let fresh = seen & !*told;
            *told = seen;
            let bits = (0..WORD_BITS).filter(|bit| fresh & (1 << bit) != 0);
            news.extend(bits.map(|bit| calls::name(place * WORD_BITS + bit)));
        }
        news
    }
}

/// Begins to note what is refused.
pub(super) fn watch() -> io::Result<Refused> {
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = note;
    // SAFETY: all bytes zero are a `sigaction` without flags and with an empty mask; the fields set
    // next are valid.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    // SAFETY: `action` outlives the call, and the handler does nothing that a handler must not do:
    // no allocation, no lock.
    match unsafe { libc::sigaction(libc::SIGSYS, &raw const action, std::ptr::null_mut()) } {
        0 => Ok(Refused { told: [0; NUMBERS / WORD_BITS] }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The beginning of `siginfo_t` for SIGSYS (sigaction(2)).
#[repr(C)]
struct SystemCall {
    signal: libc::c_int,
    error: libc::c_int,
    code: libc::c_int,
    #[cfg(target_pointer_width = "64")]
    padding: libc::c_int,
    address: *mut libc::c_void,
    number: libc::c_int,
    architecture: libc::c_uint,
}

/// `SYS_SECCOMP` (asm-generic/siginfo.h): the filter sent the signal.
const OF_FILTER: libc::c_int = 1;

extern "C" fn note(_: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel hands a `siginfo_t` to a handler with SA_SIGINFO, and for SIGSYS it begins
    // as described.
    let call = unsafe { &*info.cast::<SystemCall>() };
    if call.code != OF_FILTER {
        return;
    }
    let number = usize::try_from(call.number).unwrap_or(NUMBERS).min(NUMBERS - 1);
    SEEN[number / WORD_BITS].fetch_or(1 << (number % WORD_BITS), Ordering::Relaxed);
    // SAFETY: the kernel hands the interrupted thread's context to the handler, and takes its
    // registers back from there.
    unsafe { answer(&mut *context.cast::<libc::ucontext_t>(), -i64::from(libc::EPERM)) };
}

/// Has the interrupted call return `result`.
fn answer(context: &mut libc::ucontext_t, result: i64) {
    #[cfg(target_arch = "x86_64")]
    {
        context.uc_mcontext.gregs[libc::REG_RAX as usize] = result;
    }
    #[cfg(target_arch = "aarch64")]
    {
        context.uc_mcontext.regs[0] = result.cast_unsigned();
    }
    #[cfg(target_arch = "riscv64")]
    {
        context.uc_mcontext.__gregs[10] = result.cast_unsigned();
    }
}
