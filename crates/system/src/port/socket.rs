//! Calls that are made of every socket.
#![allow(unsafe_code)]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd};

/// Sets an option to a plain value.
pub(super) fn set_option<T: Copy>(socket: &OwnedFd, level: i32, option: i32, value: &T) -> io::Result<()> {
    let len = size_of::<T>() as u32;
    let value: *const T = value;
    // SAFETY: the pointer and the length describe `value`, which outlives the call.
    checked(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value.cast(), len) }).map(drop)
}

/// What has gone wrong with the socket since it was last asked or used.
pub(super) fn take_error(socket: &OwnedFd) -> io::Result<()> {
    Ok(rustix::net::sockopt::socket_error(socket)??)
}

/// The result of a system call, or its error.
pub(super) fn checked(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
