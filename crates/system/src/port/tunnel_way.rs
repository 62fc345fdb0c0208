//! The way out for super-frames inside of tunnels, which a packet socket cannot describe: a TAP whose header knows tunnels (Linux 6.17), and
//! a program that sends whatever is written to it out by the port's interface.
//!
//! Both belong to descriptors of this program and are gone with it. What is written has left towards the interface's queue when
//! the call returns, so it stays in order with what the packet socket sends.

use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;

use bump::Meta;
use rustix::io::Errno;

use super::cutter::plan_of;
use super::vnet;
use crate::netlink::Connection;
use crate::netlink::link::{LinkChange, NO_ARP, UP};
use crate::{ingress, tap_device};

/// An open way out.
#[derive(Debug)]
pub(super) struct TunnelWay {
    tap: OwnedFd,
    _redirection: OwnedFd,
}

impl TunnelWay {
    /// Opens one to the interface `interface_index` in the calling thread's network namespace, where up to `buffer_bytes` may be
    /// under way. A queue behind the interface that is full drops without a word, so this should be less than what it holds.
    ///
    /// # Errors
    /// The kernel is older than Linux 6.17, or refuses the TAP or the program.
    pub(super) fn open(interface_index: u32, buffer_bytes: usize) -> io::Result<TunnelWay> {
        let (tap, index) = tap_device::open_for_tunnels(buffer_bytes)?;
        // First the program, so that the stack behind the TAP never sees a frame.
        let redirection = ingress::redirect_all(index, interface_index)?;
        Connection::open()?.change_link(&LinkChange::of(index).flag(NO_ARP, true).flag(UP, true))?;
        Ok(TunnelWay { tap, _redirection: redirection })
    }

    /// Hands the tunnelled super-frame `frame` to the kernel. Its checksums are begun anew.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] while too much is under way; anything else means that it will never leave by this way.
    pub(super) fn send(&self, frame: &mut [u8], meta: &Meta) -> Result<(), Errno> {
        let plan = plan_of(frame, meta).map_err(|_| Errno::INVAL)?;
        let tunnel = plan.udp_tunnel().ok_or(Errno::INVAL)?;
        plan.begin_checksums(frame).ok_or(Errno::INVAL)?;
        let header = vnet::write_tunnelled(meta, tunnel, frame);
        rustix::io::writev(&self.tap, &[IoSlice::new(&header), IoSlice::new(frame)]).map(drop)
    }
}
