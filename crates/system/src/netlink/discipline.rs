//! The discipline by which a device queues what it sends (tc(8)).

use std::io;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};

use super::Connection;
use super::attribute::put_text;

/// Drops whatever is to be sent, from packet sockets as well; every kernel with disciplines has it.
const BLACKHOLE: &str = "blackhole";
/// The device itself, above all classes (`TC_H_ROOT` of linux/pkt_sched.h).
const ROOT: u32 = u32::MAX;

/// By which ours is known: `5257:` of tc(8). An administrator's own stays.
const HANDLE: u32 = 0x5257_0000;

/// `struct tcmsg` of a device's own discipline, and its name.
fn body(index: u32) -> Vec<u8> {
    let unspecified = [0; 4];
    let words = [unspecified, index.to_ne_bytes(), HANDLE.to_ne_bytes(), ROOT.to_ne_bytes(), unspecified];
    let mut body = words.concat();
    put_text(&mut body, libc::TCA_KIND, BLACKHOLE);
    body
}

impl Connection {
    /// Has the device drop all that it is to send.
    pub(crate) fn add_blackhole(&mut self, index: u32) -> io::Result<()> {
        self.change(libc::RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, &body(index))
    }

    /// Takes that away. A device that is gone, or has another discipline, stays as it is.
    pub(crate) fn remove_blackhole(&mut self, index: u32) -> io::Result<()> {
        match self.change(libc::RTM_DELQDISC, 0, &body(index)) {
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOENT | libc::ENODEV)) => Ok(()),
            removed => removed,
        }
    }
}
