//! Ports: where frames come from and where they go, with everything the kernel says about them.
//!
//! A port is two halves, a receiver that lends frames as a [`bump::Batch`] and a sender whose arena a bump writes into,
//! so that a bump can read one port while it writes to both. [`Ports`] are the two ports of a host.
//!
//! Per-frame system calls are the price of the data path (measured: ten times the encryption), so receivers take many
//! frames or large ones per call, and senders hand over many frames per call (the wire) or join them first (the stack).
//! Nothing here allocates per frame, and a frame is copied once: by whoever writes it into the outgoing arena.

pub(crate) mod arena;
mod auxiliary;
mod big;
pub mod cutter;
pub mod limits;
pub mod packet;
pub mod packet_socket;
mod receive_slab;
mod ring;
mod send_slab;
mod socket;
pub mod tap;
pub mod train;
mod tunnel_way;
pub mod vnet;

use std::io;
use std::time::Duration;

use bump::{Batch, Meta, Side, Sink};

pub use packet::{PacketPort, PacketReceiver, PacketSender};
pub use packet_socket::{PacketOptions, PortError, RingSlots};
pub use tap::{TapPort, TapReceiver, TapSender};
pub use train::TrainOptions;

/// What came in at a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveCounters {
    /// Frames handed to the bump.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Super-frames among what the kernel handed over.
    pub super_frames: u64,
    /// Frames made out of tunnelled super-frames and out of trains; they are counted as frames, too.
    pub segments: u64,
    /// What the kernel handed over and nobody could read: cut short, or of a kind that was never switched on.
    pub unreadable: u64,
    /// Frames the kernel dropped because this program was too slow.
    pub kernel_drops: u64,
}

impl std::ops::Add for ReceiveCounters {
    type Output = ReceiveCounters;

    fn add(self, other: ReceiveCounters) -> ReceiveCounters {
        ReceiveCounters {
            frames: self.frames + other.frames,
            bytes: self.bytes + other.bytes,
            super_frames: self.super_frames + other.super_frames,
            segments: self.segments + other.segments,
            unreadable: self.unreadable + other.unreadable,
            kernel_drops: self.kernel_drops + other.kernel_drops,
        }
    }
}

/// What went out at a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendCounters {
    /// Frames committed by the bump.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Super-frames handed to the kernel.
    pub super_frames: u64,
    /// Frames that left inside a super-frame or a train made of several.
    pub joined: u64,
    /// Times the kernel took no more for the time being.
    pub backlogs: u64,
    /// Frames the kernel refused for good.
    pub errors: u64,
}

/// Whether frames wait because the kernel takes no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backlog {
    /// Nothing waits.
    #[default]
    None,
    /// Flush again when the descriptor is writable.
    UntilWritable,
    /// Flush again after this time: the queue behind the device is full, and the kernel does not say when it drains.
    After(Duration),
}

impl Backlog {
    /// Whether anything waits.
    #[must_use]
    pub fn waits(self) -> bool {
        self != Backlog::None
    }
}

/// The half of a port that frames come in by. The frames of one filling are its [`Batch`].
pub trait Receiver: Batch {
    /// Takes what has arrived, up to a batch; whether there is anything. Ends the batch before it.
    ///
    /// # Errors
    /// The device is gone or the descriptor is broken. A device that is merely down has nothing to give.
    fn fill(&mut self) -> io::Result<bool>;

    /// What came in so far.
    fn counters(&self) -> ReceiveCounters;

    /// Asks the kernel how many frames it dropped since the last call, and enters them into the counters. A device that drops none has
    /// nothing to ask.
    fn count_kernel_drops(&mut self) {}
}

/// The half of a port that frames go out by.
pub trait Sender {
    /// As [`Sink::reserve`].
    fn reserve(&mut self, capacity: usize) -> Option<&mut [u8]>;

    /// As [`Sink::commit`].
    fn commit(&mut self, len: usize, meta: Meta);

    /// Hands everything that waits to the kernel, as far as it takes it. What it refuses for good is counted and gone.
    fn flush(&mut self) -> Backlog;

    /// What the last flush left.
    fn backlog(&self) -> Backlog;

    /// What went out so far.
    fn counters(&self) -> SendCounters;
}

/// The sending halves of two ports, as a bump sees them.
#[derive(Debug)]
pub struct Sinks<'a, I = TapSender, O = PacketSender> {
    /// Towards the stack or the trusted side.
    pub inner: &'a mut I,
    /// Towards the wire or the untrusted side.
    pub outer: &'a mut O,
}

impl<I: Sender, O: Sender> Sinks<'_, I, O> {
    /// Flushes both.
    pub fn flush(&mut self) {
        self.inner.flush();
        self.outer.flush();
    }
}

impl<I: Sender, O: Sender> Sink for Sinks<'_, I, O> {
    #[inline]
    fn reserve(&mut self, to: Side, capacity: usize) -> Option<&mut [u8]> {
        match to {
            Side::Inner => self.inner.reserve(capacity),
            Side::Outer => self.outer.reserve(capacity),
        }
    }

    #[inline]
    fn commit(&mut self, to: Side, len: usize, meta: Meta) {
        match to {
            Side::Inner => self.inner.commit(len, meta),
            Side::Outer => self.outer.commit(len, meta),
        }
    }
}

/// Both halves of one port.
pub trait Port {
    /// The half that frames come in by.
    type Receiver: Receiver;
    /// The half that frames go out by.
    type Sender: Sender;

    /// Both halves.
    fn halves(&self) -> (&Self::Receiver, &Self::Sender);

    /// Both halves, for use at the same time.
    fn halves_mut(&mut self) -> (&mut Self::Receiver, &mut Self::Sender);
}

impl Port for PacketPort {
    type Receiver = PacketReceiver;
    type Sender = PacketSender;

    fn halves(&self) -> (&PacketReceiver, &PacketSender) {
        (&self.receiver, &self.sender)
    }

    fn halves_mut(&mut self) -> (&mut PacketReceiver, &mut PacketSender) {
        (&mut self.receiver, &mut self.sender)
    }
}

impl Port for TapPort {
    type Receiver = TapReceiver;
    type Sender = TapSender;

    fn halves(&self) -> (&TapReceiver, &TapSender) {
        (&self.receiver, &self.sender)
    }

    fn halves_mut(&mut self) -> (&mut TapReceiver, &mut TapSender) {
        (&mut self.receiver, &mut self.sender)
    }
}

/// The two ports of a host: its stack and the wire. Where the inner device is a pair, both are packet ports.
#[derive(Debug)]
pub struct Ports<S = TapPort> {
    /// The inner device.
    pub stack: S,
    /// The interface.
    pub wire: PacketPort,
}

impl<S: Port> Ports<S> {
    /// Frames from the stack, and where frames may go meanwhile.
    pub fn from_stack(&mut self) -> (&mut S::Receiver, Sinks<'_, S::Sender>) {
        let (receiver, inner) = self.stack.halves_mut();
        (receiver, Sinks { inner, outer: &mut self.wire.sender })
    }

    /// Frames from the wire, and where frames may go meanwhile.
    pub fn from_wire(&mut self) -> (&mut PacketReceiver, Sinks<'_, S::Sender>) {
        let sinks = Sinks { inner: self.stack.halves_mut().1, outer: &mut self.wire.sender };
        (&mut self.wire.receiver, sinks)
    }

    /// Where frames may go that answer no frame, such as those of a timer.
    pub fn sinks(&mut self) -> Sinks<'_, S::Sender> {
        Sinks { inner: self.stack.halves_mut().1, outer: &mut self.wire.sender }
    }

    /// Flushes both sides.
    pub fn flush(&mut self) {
        self.sinks().flush();
    }

    /// What waits on `side`. While something does, frames that would go there should not be read.
    #[must_use]
    pub fn backlog(&self, side: Side) -> Backlog {
        match side {
            Side::Inner => self.stack.halves().1.backlog(),
            Side::Outer => self.wire.sender.backlog(),
        }
    }

    /// Asks the kernel what it dropped of what came in, see [`Receiver::count_kernel_drops`].
    pub fn count_kernel_drops(&mut self) {
        self.stack.halves_mut().0.count_kernel_drops();
        self.wire.receiver.count_kernel_drops();
    }

    /// What came in and went out on `side`.
    #[must_use]
    pub fn counters(&self, side: Side) -> (ReceiveCounters, SendCounters) {
        let ((stack_in, stack_out), (wire_in, wire_out)) = (self.stack.halves(), self.wire.halves());
        match side {
            Side::Inner => (stack_in.counters(), stack_out.counters()),
            Side::Outer => (wire_in.counters(), wire_out.counters()),
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tunnel_tests;
