//! What connections cost that say nothing: one million of them, opened through the gateway by frames of our own on both sides.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::time::{Duration, Instant};

use bump::{Batch, Meta};
use system::port::{PacketPort, Receiver, Sender};
use wire::{ethernet, ipv4, tcp};

use super::NAME;
use super::forge::{self, ACK, SYN, Segment};
use super::track::{Track, Way};
use crate::bench::Schedule;
use crate::bench::row::Row;
use crate::cleanup::Run;
use crate::failure::Failure;
use crate::net::lan::INTERFACE;
use crate::net::{Host, link, process};

/// Connections that are held, and those where only the working is to be seen.
const HELD: u32 = 1_000_000;
const HELD_QUICKLY: u32 = 200_000;
/// One connection of so many is asked whether it still carries data.
const ASKED_ONE_IN: usize = 1000;
/// Frames sent before the answers are looked at.
const AHEAD: u32 = 128;
/// After so long without an answer, what is missing is sent again.
const PATIENCE: Duration = Duration::from_millis(50);
/// The whole must not take longer.
const LIMIT: Duration = Duration::from_secs(120);
/// First port of the clients, and how many ports each has: less than one host may hold of a table
/// that is nearly full.
const FIRST_PORT: u32 = 1024;
const PORTS: u32 = 500;
const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 10), 80);
/// Networks for benchmarks (RFC 2544).
const CLIENTS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);

/// Fills the table; how many are held, and what one costs.
///
/// # Errors
/// The gateway does not start, or the lab is interrupted.
pub fn measure(run: &Run, program: &Path, schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let count = if schedule.quick { HELD_QUICKLY } else { HELD };
    let track = Track::open(run, Way::Scrubber, Some(program))?;
    let mut ends = Ends::open(&track, count)?;
    let before = track.resident_bytes()?;
    eprintln!("ringwall-lab: memory, opening {count} connections");
    ends.until(0..count, 0, Ends::open_connection)?;
    let resident = track.resident_bytes()?;
    let retained = track.status()?["memory_bytes"].as_f64().unwrap_or(0.0);
    ends.until((0..count).step_by(ASKED_ONE_IN), 1, Ends::ask)?;
    let flows = track.status()?["flows"].as_f64();
    let held = Row::new(NAME, "connections_held", "connections", &vec![flows]);
    let cost = (resident - before - retained) / f64::from(count);
    let cost = Row::new(NAME, "bytes_per_idle_connection", "bytes", &vec![Some(cost)]);
    let asked = (count as usize / ASKED_ONE_IN) as f64;
    let rows = [held.map(|row| row.with_stat("asked_and_alive", Some(asked))), cost];
    Ok(rows.into_iter().flatten().collect())
}

/// Both sides of the gateway, by frames.
struct Ends {
    trusted: PacketPort,
    untrusted: PacketPort,
    /// What the clients acknowledge, once the server has spoken.
    acknowledged: Vec<u32>,
    /// Which connections have not yet done what they are to do, and how many they are.
    missing: Vec<bool>,
    left: u32,
    /// Bytes of data in what is awaited from each: what was awaited before may still come, twice.
    awaited_bytes: usize,
}

impl Ends {
    fn open(track: &Track, count: u32) -> Result<Ends, Failure> {
        let port = |host: &Host| host.namespace.enter(|| link::open(INTERFACE));
        let (trusted, untrusted) = (port(&track.trusted)?, port(&track.untrusted)?);
        Ok(Ends {
            trusted,
            untrusted,
            acknowledged: vec![0; count as usize],
            missing: Vec::new(),
            left: 0,
            awaited_bytes: 0,
        })
    }

    /// Lets every connection of `wanted` do `act`, again and again until the server has heard so many bytes of each.
    fn until(
        &mut self,
        wanted: impl Iterator<Item = u32> + Clone,
        awaited_bytes: usize,
        act: fn(&mut Ends, u32),
    ) -> Result<(), Failure> {
        let start = Instant::now();
        self.awaited_bytes = awaited_bytes;
        self.missing = vec![false; self.acknowledged.len()];
        wanted.clone().for_each(|number| self.missing[number as usize] = true);
        self.left = wanted.clone().count() as u32;
        while self.left > 0 {
            for (turn, number) in (1..).zip(wanted.clone()) {
                if self.missing[number as usize] {
                    act(self, number);
                }
                if turn % AHEAD == 0 {
                    self.hear()?;
                }
            }
            let last = Instant::now();
            while self.left > 0 && last.elapsed() < PATIENCE {
                self.hear()?;
            }
            process::pause(Duration::ZERO)?;
            if start.elapsed() > LIMIT {
                return Err(Failure::Late {
                    what: format!("the rest of the connections, {},", self.left),
                    limit: LIMIT,
                });
            }
        }
        Ok(())
    }

    /// Sends a SYN.
    fn open_connection(&mut self, number: u32) {
        let segment = Segment { flags: SYN, sequence: number, ..Segment::default() };
        put(&mut self.untrusted, &forge::tcp(path(number), segment));
    }

    /// Sends a byte of data.
    fn ask(&mut self, number: u32) {
        let acknowledgement = self.acknowledged[number as usize];
        let segment = Segment { flags: ACK, sequence: number.wrapping_add(1), acknowledgement, data: &[7] };
        put(&mut self.untrusted, &forge::tcp(path(number), segment));
    }

    /// Hands over what was sent, and answers what has arrived on either side.
    fn hear(&mut self) -> Result<(), Failure> {
        self.untrusted.sender.flush();
        let lost = || Failure::io("hearing the gateway");
        while self.trusted.receiver.fill().map_err(lost())? {
            while let Some(arrived) = self.trusted.receiver.next_frame().map(|frame| Arrived::read(frame.bytes)) {
                arrived.into_iter().for_each(|arrived| self.serve(&arrived));
            }
        }
        self.trusted.sender.flush();
        while self.untrusted.receiver.fill().map_err(lost())? {
            while let Some(arrived) = self.untrusted.receiver.next_frame().map(|frame| Arrived::read(frame.bytes)) {
                arrived.into_iter().for_each(|arrived| self.complete(&arrived));
            }
        }
        self.untrusted.sender.flush();
        Ok(())
    }

    /// The server: answers a SYN, and notes what else came through.
    fn serve(&mut self, arrived: &Arrived) {
        if arrived.flags == SYN {
            let (flags, acknowledgement) = (SYN | ACK, arrived.sequence.wrapping_add(1));
            let answer = Segment { flags, sequence: 7, acknowledgement, data: &[] };
            put(&mut self.trusted, &forge::tcp(arrived.path.back(), answer));
            return;
        }
        let missing = number(arrived.path.source).and_then(|number| self.missing.get_mut(number));
        if let Some(missing) = missing.filter(|_| arrived.bytes == self.awaited_bytes) {
            self.left -= u32::from(std::mem::take(missing));
        }
    }

    /// The client: completes the handshake with the number that the gateway made of the server's.
    fn complete(&mut self, arrived: &Arrived) {
        let Some(number) = number(arrived.path.destination).filter(|_| arrived.flags == SYN | ACK) else { return };
        let Some(acknowledged) = self.acknowledged.get_mut(number) else { return };
        *acknowledged = arrived.sequence.wrapping_add(1);
        let (sequence, acknowledgement) = (arrived.acknowledgement, *acknowledged);
        let answer = Segment { flags: ACK, sequence, acknowledgement, data: &[] };
        put(&mut self.untrusted, &forge::tcp(arrived.path.back(), answer));
    }
}

/// A segment that arrived.
struct Arrived {
    path: forge::Path,
    flags: u8,
    sequence: u32,
    acknowledgement: u32,
    /// Of its data.
    bytes: usize,
}

impl Arrived {
    fn read(frame: &[u8]) -> Option<Arrived> {
        let packet = ipv4::View::new(frame.get(ethernet::HEADER_LEN..)?).ok()?;
        let segment = tcp::View::new(packet.payload()).ok()?;
        let path = forge::Path {
            source: SocketAddrV4::new(packet.source(), segment.source_port()),
            destination: SocketAddrV4::new(packet.destination(), segment.destination_port()),
        };
        let (sequence, acknowledgement) = (segment.sequence(), segment.acknowledgement());
        let bytes = segment.payload().len();
        Some(Arrived { path, flags: segment.flags(), sequence, acknowledgement, bytes })
    }
}

/// The way of connection `number` from its client to the server.
fn path(number: u32) -> forge::Path {
    let address = Ipv4Addr::from(CLIENTS.to_bits() + number / PORTS);
    let source = SocketAddrV4::new(address, (FIRST_PORT + number % PORTS) as u16);
    forge::Path { source, destination: SERVER }
}

/// Which connection has this client.
fn number(client: SocketAddrV4) -> Option<usize> {
    let host = client.ip().to_bits().checked_sub(CLIENTS.to_bits())?;
    let port = u32::from(client.port()).checked_sub(FIRST_PORT)?;
    Some((host.checked_mul(PORTS)? + port) as usize)
}

/// Puts a frame where the next flush finds it, after one where there is no room. What is lost all the same is sent again.
pub(super) fn put(port: &mut PacketPort, frame: &[u8]) {
    if port.sender.reserve(frame.len()).is_none() {
        port.sender.flush();
    }
    let Some(room) = port.sender.reserve(frame.len()) else { return };
    room[..frame.len()].copy_from_slice(frame);
    port.sender.commit(frame.len(), Meta::plain());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_connection_has_a_client_of_its_own() {
        for at in [0, 1, PORTS - 1, PORTS, HELD - 1] {
            assert_eq!(number(path(at).source), Some(at as usize));
        }
        assert_eq!(number(SERVER), None, "an address in front of the clients");
    }

    #[test]
    fn a_forged_segment_is_read_as_it_was_written() {
        let segment = Segment { flags: SYN | ACK, sequence: 7, acknowledgement: 9, data: &[1] };
        let arrived = Arrived::read(&forge::tcp(path(3), segment)).unwrap();
        assert_eq!((arrived.flags, arrived.sequence, arrived.acknowledgement), (SYN | ACK, 7, 9));
        assert_eq!(arrived.bytes, 1);
        assert_eq!(arrived.path.source, path(3).source);
        assert!(Arrived::read(&[0; 20]).is_none());
    }
}
