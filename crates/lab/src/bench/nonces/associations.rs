//! What the checks in front of the tag cost where a host has very many associations: the table of receiver indices no longer fits a
//! cache, nor do keys and windows. In this program and without a wire.
//!
//! The table is of the kind that a lane has; frames come with any of the indices in turn, which is the worst for caches.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use bump::Generator;
use shield::spin::KEY_LEN;
use shield::{Checks, NonceKeys, Nonces, Switches, Window};
use wire::MacAddress;
use wire::cll::DataHeader;

use super::NAME;
use super::flood::Attack;
use crate::bench::Schedule;
use crate::bench::row::Row;
use crate::bench::stats::Series;

/// Associations: one, and as many receiver indices as the kernel's program knows.
const COUNTS: [u32; 2] = [1, shield::limits::KERNEL_RECEIVERS_MAX];
/// Frames made ahead, in turn of the associations, and rounds in which they come again.
const FRAMES: usize = 1 << 16;
const ROUNDS: usize = 16;
/// The number that each association has seen last.
const NEWEST: u32 = 1_000_000;
/// All layers, as in the daemon.
const SWITCHES: Switches = Switches { nonces_first: true, nonces_last: false, window: true };
/// What a check tells; a wrong tag passes all of them, and is what an honest frame costs here.
const ATTACKS: [Attack; 4] = Attack::ALL;

/// The associations of a host.
struct Table {
    checks: BTreeMap<u32, Checks>,
    senders: Vec<(u32, MacAddress, Nonces)>,
}

impl Table {
    fn of(count: u32) -> Table {
        let mut random = Generator::from_seed([5; 32]);
        let mut table = Table { checks: BTreeMap::new(), senders: Vec::new() };
        while table.senders.len() < count as usize {
            let (index, mac) = (random.number(), MacAddress(random.bytes()));
            let keys = NonceKeys { spin: random.bytes::<KEY_LEN>().into(), slow: None };
            let nonces = Nonces::new(&keys);
            let mut checks = Checks::new(mac, &keys, Window::new());
            // It sets the window where a peer has been for some time; the nonces behind the tag are not compared.
            let entered = checks.after_tag(&nonces.header(index, NEWEST), SWITCHES);
            if entered.is_ok() && table.checks.insert(index, checks).is_none() {
                table.senders.push((index, mac, nonces));
            }
        }
        table
    }

    /// Headers with the hardware address of their sender, as they stand in frames of an attack.
    fn forged(&self, attack: Attack) -> Vec<(MacAddress, Vec<u8>)> {
        let senders = self.senders.iter().cycle();
        let forge = |((index, mac, nonces), number): (&(u32, MacAddress, Nonces), u32)| {
            let sequence = if attack == Attack::Replayed { NEWEST } else { NEWEST + 1 + number % 1000 };
            let mut header = nonces.header(*index, sequence);
            match attack {
                Attack::WrongIndex => header.receiver_index ^= 0x5a5a_5a5a,
                Attack::WrongNonce => header.spin = !header.spin,
                Attack::Replayed | Attack::WrongKey => {}
            }
            let mut bytes = vec![0; nonces.header_len()];
            header.emit(&mut bytes);
            (*mac, bytes)
        };
        senders.zip(0..FRAMES as u32).map(forge).collect()
    }

    /// Whether the checks let a frame with this header come to its tag.
    fn pass(&self, mac: MacAddress, header: &[u8]) -> bool {
        let Ok((header, _)) = DataHeader::parse(header) else { return false };
        let Some(checks) = self.checks.get(&header.receiver_index) else { return false };
        checks.before_tag(mac, &header, SWITCHES).is_ok()
    }
}

/// Nanoseconds for a frame of each attack, with one association and with many.
pub fn measure(schedule: Schedule) -> Vec<Row> {
    let rows = COUNTS.into_iter().flat_map(|count| {
        let table = Table::of(count);
        ATTACKS.map(|attack| {
            let series = series(&table, attack, schedule);
            Row::new(NAME, format!("checks/{}/{count}_associations", attack.name()), "ns", &series)
        })
    });
    rows.flatten().collect()
}

fn series(table: &Table, attack: Attack, schedule: Schedule) -> Series {
    let frames = table.forged(attack);
    let rounds = if schedule.quick { 1 } else { ROUNDS };
    let time = || {
        let start = Instant::now();
        for (mac, header) in (0..rounds).flat_map(|_| &frames) {
            black_box(table.pass(*mac, black_box(header)));
        }
        start.elapsed().as_secs_f64() * 1e9 / (rounds * frames.len()) as f64
    };
    (0..schedule.pairs).map(|_| Some(time())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only what a tag must tell passes, whichever association it is of.
    #[test]
    fn each_attack_ends_at_its_layer() {
        let table = Table::of(50);
        for attack in ATTACKS {
            let frames = table.forged(attack);
            let passed = frames.iter().take(1000).filter(|(mac, header)| table.pass(*mac, header)).count();
            assert_eq!(passed, if attack == Attack::WrongKey { 1000 } else { 0 }, "{attack:?}");
        }
    }
}
