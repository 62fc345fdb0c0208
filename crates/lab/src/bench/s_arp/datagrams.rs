//! What a datagram costs the processor, plain and with signed ARP around the card.
//!
//! Between two ends of a cable in one machine the kernel delivers a datagram on the sender's own
//! thread, so that thread's time holds all that both cards do with it. What a daemon does in a
//! thread of its own is not in it: the row says something of the way in place alone.

use std::io::IoSlice;
use std::net::{SocketAddrV4, UdpSocket};

use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, sendmmsg};
use rustix::time::{ClockId, clock_gettime};

use super::{NAME, Schedule};
use crate::bench::mode::{Arena, Mode, Track};
use crate::bench::row::Row;
use crate::bench::stats::{Series, median};
use crate::bench::{cpu, twice};
use crate::failure::Failure;

/// The payload of a datagram, in bytes.
const LEN: usize = 1400;
/// Datagrams that one call sends.
const BATCH: usize = 32;
/// Calls of a series.
const CALLS: u32 = 300;
/// Series of a sample, whose median counts.
const SERIES: usize = 25;
/// A port to which nobody listens for long: what fills the socket is dropped there.
const PORT: u16 = 7777;

/// The row of plain and that of signed ARP, in turn.
pub(super) fn measure(arena: &Arena, schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let tracks: Vec<&Track> = [Mode::Plain, Mode::Sarp].iter().filter_map(|mode| arena.track(*mode)).collect();
    let mut found: Vec<(Mode, Series)> = tracks.iter().map(|track| (track.mode, Series::new())).collect();
    for _ in 0..schedule.pairs {
        for (track, (mode, series)) in tracks.iter().zip(&mut found) {
            cpu::settle()?;
            series.push(twice(&format!("datagrams, {}", mode.name()), || sample_ns(track))?);
        }
    }
    let Some((_, plain)) = found.first().cloned() else { return Ok(Vec::new()) };
    let row = |(mode, series): &(Mode, Series)| {
        let row = Row::new(NAME, format!("cpu/datagram/{}", mode.name()), "ns", series)?;
        Some(row.against_plain(series, &plain))
    };
    Ok(found.iter().filter_map(row).collect())
}

/// Nanoseconds of the processor for one datagram of `track`.
fn sample_ns(track: &Track) -> Result<f64, Failure> {
    let receiver = SocketAddrV4::new(track.b.ip, PORT);
    let failed = || Failure::io(format!("datagrams to {receiver}"));
    let heard = track.b.namespace.enter(|| UdpSocket::bind(receiver).map_err(failed()))?;
    let series = track.a.namespace.enter(|| {
        let socket = UdpSocket::bind(SocketAddrV4::new(track.a.ip, 0)).map_err(failed())?;
        socket.connect(receiver).map_err(failed())?;
        // The first series finds the neighbour, and does not count.
        series_ns(&socket).map_err(failed())?;
        (0..SERIES).map(|_| series_ns(&socket).map_err(failed())).collect::<Result<Vec<f64>, _>>()
    })?;
    drop(heard);
    median(&series).ok_or_else(|| Failure::Unreadable("no series of datagrams".to_owned()))
}

/// The same of one series.
fn series_ns(socket: &UdpSocket) -> std::io::Result<f64> {
    let payload = [0; LEN];
    let slices = [IoSlice::new(&payload)];
    let mut control: Vec<SendAncillaryBuffer> = (0..BATCH).map(|_| SendAncillaryBuffer::default()).collect();
    let mut batch: Vec<MMsgHdr> = control.iter_mut().map(|control| MMsgHdr::new(&slices, control)).collect();
    let before = thread_ns();
    let mut sent = 0;
    for _ in 0..CALLS {
        sent += sendmmsg(socket, &mut batch, SendFlags::empty())?;
    }
    Ok((thread_ns() - before) / sent as f64)
}

/// The processor time of this thread, in nanoseconds.
fn thread_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
