//! A world of link layers (mode `cll`): a scenario draws hosts, their configuration and clocks,
//! faults, traffic and attackers (`scenario`, with a change of the site key in `site_key`, or the
//! fixed one of `rollover`); the run is driven event by event (`world`, `event`), and a judge with
//! books of its own looks at every frame and, after every call, at every link layer (`judge`). The
//! world around the link layers: `stack` and `datagram` (a small kernel), `host` (its clocks, ports
//! and worker), `attacker`, `insider`, `shout` (what is for all), `babble` (what nobody carries).

mod attacker;
mod babble;
pub(super) mod datagram;
mod event;
mod host;
mod insider;
mod judge;
mod ring;
mod rollover;
mod scenario;
mod shout;
pub(super) mod site;
mod site_key;
pub(super) mod stack;
#[cfg(test)]
mod tests;
mod world;

use cll::Weaken;

use super::course;
use super::report::Report;
use crate::failure::Failure;
use scenario::Scenario;
pub(crate) use site::pool as identities;
use world::World;
pub(super) use world::generator;

/// One run. `weaken` is what is switched off on the honest hosts.
///
/// # Errors
/// The simulated site could not be made.
pub fn simulate(seed: u64, weaken: Weaken, tells: bool) -> Result<Report, Failure> {
    Ok(course::run(World::new(seed, site::pool()?, weaken, tells)))
}

/// One run with ML-KEM on half of the hosts. The library draws randomness of its own for it, so
/// bytes differ from run to run; what happens, and when, does not.
///
/// # Errors
/// The simulated site could not be made.
pub fn simulate_post_quantum(seed: u64, weaken: Weaken, tells: bool) -> Result<Report, Failure> {
    let mut random = world::generator(seed);
    let scenario = Scenario::draw(&mut random).with_post_quantum(&mut random);
    Ok(course::run(World::of(scenario, random, site::pool()?, weaken, tells)))
}

/// One run of an hour in which keys are replaced all the time.
///
/// # Errors
/// The simulated site could not be made.
pub fn simulate_rollover(seed: u64, weaken: Weaken, tells: bool) -> Result<Report, Failure> {
    let scenario = rollover::scenario(rollover::SPAN);
    Ok(course::run(World::of(scenario, world::generator(seed), site::pool()?, weaken, tells)))
}

/// One run in which one site key follows another.
///
/// # Errors
/// The simulated site could not be made.
pub fn simulate_site_key(seed: u64, weaken: Weaken, tells: bool) -> Result<Report, Failure> {
    let mut random = world::generator(seed);
    let scenario = site_key::scenario(&mut random);
    Ok(course::run(World::of(scenario, random, site::pool()?, weaken, tells)))
}
