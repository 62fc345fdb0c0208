//! The program that carries clean segments of established connections past the daemon, and its
//! maps.
//!
//! It stands in front of both sockets and behind them as long as the daemon holds it. Without a daemon
//! nothing passes.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU64;

use scrub::Settings;
use scrub::carried::{Carrier, Words, layout};
use system::bpf::{Instruction, Keys, Kind, Map, Program, Shape, Shared};
use system::card_features;
use system::ingress;
use system::port::{PacketPort, Ports};
use system::takeover::{Gateway, Role};

/// What a lister of the kernel's programs reads.
const NAME: &str = "ringwall_carry";

/// Since then the kernel refuses super-frames whose checksum is to be made over something else than TCP,
/// and has the hook for programs behind the sockets (Linux 6.6).
const LINUX_MIN: (u32, u32) = (6, 11);
/// Says if a thread of higher priority may come between the two programs: the words of a kernel for
/// real time.
const BUILD: &str = "/proc/sys/kernel/version";
const REAL_TIME: [&str; 2] = ["PREEMPT_RT", "PREEMPT RT"];
/// With this a card's segments come joined in a way that keeps the header of each, and only the
/// first would be rewritten.
const LISTS: &str = "rx-gro-list";

/// Memory of a map, and what must stay open as long as it is used.
#[derive(Debug)]
struct Memory {
    shared: Shared,
    _held: Vec<OwnedFd>,
}

impl Words for Memory {
    fn words(&self) -> &[AtomicU64] {
        self.shared.words()
    }
}

/// Has the kernel carry between the two cards, whose sockets are `ports`.
///
/// # Errors
/// The kernel is too old, or one for real time, or refuses the programs.
pub(super) fn open(gateway: &Gateway, ports: &Ports<PacketPort>, settings: &Settings) -> io::Result<Carrier> {
    usable(&read("/proc/sys/kernel/osrelease"), &read(BUILD)).map_err(io::Error::other)?;
    for card in gateway.cards.iter().filter(|card| card.role != Role::Mirror) {
        if gateway.inside(|| card_features::is_active(&card.name, LISTS))?? {
            let remedy = format!("switch it off (ethtool -K {} {LISTS} off) and start again", card.name);
            return Err(io::Error::other(format!("{} joins segments by {LISTS}; {remedy}", card.name)));
        }
    }
    let index = |role| gateway.card(role).map(|card| card.index).ok_or(io::Error::from(io::ErrorKind::NotFound));
    let interfaces = [index(Role::Trusted)?, index(Role::Untrusted)?];
    let seed = u64::from_ne_bytes(*system::random::seed()?.first_chunk().unwrap_or(&[0; 8]));
    let maps = maps(interfaces, settings, seed)?;
    let in_front = Program::load(Kind::SocketFilter, NAME, &Instruction::read(layout::IN_FRONT), &maps)?;
    let onward = Program::load(ingress::KIND, NAME, &Instruction::read(layout::ONWARD), &maps)?;
    // What the first program takes in hand the second must be there to carry on.
    let links = gateway.inside(|| interfaces.map(|interface| ingress::attach_loaded(&onward, interface)))?;
    let mut held = links.into_iter().collect::<io::Result<Vec<_>>>()?;
    let (entries, pool) = (maps[layout::ENTRIES].share()?, maps[layout::POOL].share()?);
    for port in [&ports.stack, &ports.wire] {
        held.extend(port.filter_by(&in_front)?);
    }
    let entries = Memory { shared: entries, _held: held };
    Ok(Carrier::new(Box::new(entries), Box::new(Memory { shared: pool, _held: Vec::new() }), seed))
}

fn read(file: &str) -> String {
    std::fs::read_to_string(file).unwrap_or_default()
}

/// Whether a kernel of this release and build can carry segments; why not.
fn usable(release: &str, build: &str) -> Result<(), String> {
    let mut numbers = release.trim().split(['.', '-', '+']).map_while(|number| number.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version < LINUX_MIN {
        let (major, minor) = LINUX_MIN;
        return Err(format!("Linux {major}.{minor} or newer is needed, and this is {}", release.trim()));
    }
    if REAL_TIME.iter().any(|words| build.contains(words)) {
        return Err("this is a kernel for real time".to_owned());
    }
    Ok(())
}

/// The maps, with what the program is told once.
fn maps(interfaces: [u32; 2], settings: &Settings, seed: u64) -> io::Result<Vec<Map>> {
    let make = |(value_len, entries, shared)| {
        Map::create(Shape { keys: Keys::Places, shared, key_len: size_of::<u32>(), value_len, entries })
    };
    let maps = layout::MAPS.into_iter().map(make).collect::<io::Result<Vec<_>>>()?;
    maps[layout::SETTINGS].put(&[0; 4], &layout::settings(interfaces, settings, seed))?;
    Ok(maps)
}

#[cfg(test)]
mod tests;
