//! The link layer of two hosts, a hostile wire between them, and stacks of which one may lie.
//!
//! The input is a script: stacks send frames and ARP, the wire loses, repeats, reflects, changes, splices and invents
//! frames (also with a right site tag, as an insider could), jobs are late or lost, hosts restart, time passes. After
//! every call the books balance and what is held is bounded; a stack is given only what the other host sealed for it,
//! once, and only ARP and neighbour discovery that a certificate bears out. When the wire is honest again, so are its effects: the hosts talk.

mod frames;
mod host;
mod world;

use crate::input::Input;
use world::World;

/// Steps of one script.
const STEPS_MAX: usize = 200;

/// Runs one script.
pub fn cll_bump(data: &[u8]) {
    let mut input = Input::new(data);
    let mut world = World::new(&mut input);
    for _ in 0..STEPS_MAX {
        if input.is_empty() {
            break;
        }
        world.step(&mut input);
    }
    world.recover();
}
