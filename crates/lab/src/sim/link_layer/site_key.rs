//! One site key follows another under load, with all that goes wrong in other runs and an attacker
//! who has the old one and never forgets it. Hosts are given both keys at different moments, send
//! with the old one until the change, and are rid of it after its end; from then on what the
//! attacker makes with it is worth nothing (record 0064).

use std::time::Duration;

use bump::Generator;

use super::scenario::{Part, Scenario, Step};
use crate::sim::agenda::START;
use crate::sim::clock::Clock;

/// When the first hosts are given the keys, and within how long all of them are.
const GIVEN_FROM: Duration = Duration::from_secs(1);
const GIVEN_WITHIN_MILLIS: u64 = 5_000;

/// How far off a wall clock is at most, in either direction. One that is off by more than the old
/// key is accepted for is not heard by groups.
const CLOCK_ERROR_MAX_MILLIS: u64 = 400;
/// The attacker's usual pace, where a seed drew none.
const ATTACK_EVERY: Duration = Duration::from_millis(20);

/// What a seed draws for any run of link layers, with the change.
pub fn scenario(random: &mut Generator) -> Scenario {
    let mut scenario = Scenario::draw(random);
    scenario.changes_site_key = true;
    scenario.steps.retain(|(_, _, step)| !matches!(step, Step::SetClock(_)));
    for host in &mut scenario.hosts {
        let error_ms = random.below(2 * CLOCK_ERROR_MAX_MILLIS) as i64 - CLOCK_ERROR_MAX_MILLIS as i64;
        host.clock = Clock::Off(error_ms);
    }
    if !scenario.clean {
        scenario.attack_every.get_or_insert(ATTACK_EVERY);
    }
    for host in 0..scenario.hosts.len() {
        if scenario.hosts[host].part != Part::Legacy {
            let at = START + GIVEN_FROM + Duration::from_millis(random.below(GIVEN_WITHIN_MILLIS));
            scenario.steps.push((at, host, Step::Share));
        }
    }
    scenario
}
