//! What goes wrong in a run without an attacker: on the way of frames, at a worker, and at ports.

use std::time::Duration;

use bump::Generator;

use super::fabric::{Harm, draw_harm};

/// How badly a run treats those in it. All chances are "once in so many", zero for never.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    /// What happens to frames on the LAN.
    pub harm: Harm,
    /// Longest time that a job takes.
    pub job_delay_max: Duration,
    /// A job never ends.
    pub job_lost_one_in: u64,
    /// A port has no room for a frame.
    pub port_full_one_in: u64,
}

impl Faults {
    /// None, but that jobs take their time.
    pub fn none(job_delay_max: Duration) -> Faults {
        Faults { harm: Harm::default(), job_delay_max, job_lost_one_in: 0, port_full_one_in: 0 }
    }

    /// The faults of a run of `random`'s seed.
    pub fn draw(job_delay_max: Duration, random: &mut Generator) -> Faults {
        Faults {
            harm: draw_harm(random),
            job_delay_max,
            job_lost_one_in: if random.chance(3) { 5 + random.below(30) } else { 0 },
            port_full_one_in: if random.chance(4) { 5 + random.below(100) } else { 0 },
        }
    }
}
