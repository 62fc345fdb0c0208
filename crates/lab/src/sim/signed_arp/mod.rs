//! A world of signed ARP (mode `sarp`): a scenario draws distributors, hosts, DHCP servers and clients, plain hosts, faults
//! and attackers (`scenario`); the run is driven event by event (`world`, `event`), and a judge with books of its own looks at
//! every frame and, after every call, at every bump (`judge`). Around the bumps: `station` (clocks, ports and worker),
//! `stack` (a gullible kernel), `dhcp` (programs that know nothing of S-DHCP), `repository` (the real store, in memory),
//! `attacker`, and `forger` (who has a key that the site believes).

mod attacker;
mod dhcp;
mod event;
mod forger;
mod judge;
mod repository;
mod scenario;
mod site;
mod stack;
mod station;
#[cfg(test)]
mod tests;
mod world;

use sarp::Weaken;

use super::course;
use super::report::Report;
use crate::failure::Failure;
use world::World;

/// One run. `weaken` is what is switched off on the honest hosts.
///
/// # Errors
/// The simulated site could not be made.
pub fn simulate(seed: u64, weaken: Weaken, tells: bool) -> Result<Report, Failure> {
    World::new(seed, weaken, tells).map(course::run)
}
