//! A world in migration (mode `cll`, `cll.migration`): guarded hosts in modes observe, prefer and enforce, which change and whose
//! programs die and start again, a printer that knows nothing of all this, and an attacker who speaks in clear in the names of
//! guarded hosts to have others fall back. What holds (`judge`): nobody who must not hears or speaks to a host in clear that has
//! proved itself; who may talk is never cut for long; and all of them do talk.
//!
//! Stacks, datagrams and the site are those of the world of link layers. In tests one thing in the world is broken on purpose
//! (`Plant`), and the judge must notice.

mod event;
mod host;
mod judge;
mod parcels;
mod scenario;
#[cfg(test)]
mod tests;
mod world;

use super::course;
use super::link_layer::site;
use super::report::Report;
use crate::failure::Failure;
use scenario::Scenario;
use world::World;

/// Something in the world that is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// Who has proved himself is lost with the program.
    ForgetfulDisk,
    /// A host's program never comes to the work of a handshake, once it was started again.
    IdleWorker,
    /// The printer hears nothing.
    DeafPrinter,
    /// A running program never hears that its mode was changed.
    LostOrder,
    /// What a guarded stack sends also finds a way past the link layer.
    SideDoor,
}

/// One run.
///
/// # Errors
/// The simulated site could not be made.
pub fn simulate(seed: u64, tells: bool) -> Result<Report, Failure> {
    simulate_with(seed, None, tells)
}

fn simulate_with(seed: u64, plant: Option<Plant>, tells: bool) -> Result<Report, Failure> {
    let mut random = super::link_layer::generator(seed);
    let scenario = Scenario::draw(&mut random, plant);
    Ok(course::run(World::new(scenario, random, site::pool()?, tells)))
}
