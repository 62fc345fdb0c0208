//! Two gateways of a pair under connections that talk all the time, and what a failure of one of
//! them does to those.
//!
//! Reading order: `pair` (who stands where), `talks` (who talks over them), this file (what fails).

pub mod pair;
pub mod talks;

pub use pair::{Gateway, Pair};
pub use talks::{Ended, Outage, Talks};

use rustix::process::Signal;

use crate::failure::Failure;

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The program of the active gateway is killed.
    Kill,
    /// It hangs, and goes on afterwards.
    Hang,
    /// A cable of the active gateway is cut, the one inside and the one outside in turn.
    Cable,
    /// The active gateway's machine is gone: its program, its cards and its sync link.
    Machine,
    /// An operator hands over.
    Handover,
}

impl Fault {
    /// Its word in rows.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Fault::Kill => "kill",
            Fault::Hang => "hang",
            Fault::Cable => "cable",
            Fault::Machine => "machine",
            Fault::Handover => "handover",
        }
    }

    fn strike(self, pair: &mut Pair, active: usize, round: usize) -> Result<(), Failure> {
        match self {
            Fault::Kill => pair.gateways[active].stop(Signal::KILL),
            Fault::Hang => pair.gateways[active].signal(Signal::STOP),
            Fault::Cable => drop(cable(pair, active, round, "down")?),
            Fault::Machine => pair.unplug(active)?,
            Fault::Handover => {
                drop(crate::net::process::must(pair.gateways[active].command(&["gate", "handover"]))?);
            }
        }
        Ok(())
    }

    fn mend(self, pair: &mut Pair, struck: usize, round: usize) -> Result<(), Failure> {
        match self {
            Fault::Kill => pair.gateways[struck].start(),
            Fault::Hang => {
                pair.gateways[struck].signal(Signal::CONT);
                Ok(())
            }
            Fault::Cable => cable(pair, struck, round, "up").map(drop),
            Fault::Machine => pair.plug_in(struck),
            Fault::Handover => Ok(()),
        }
    }

    /// Has the active gateway fail under `talks`, and mends it again.
    ///
    /// # Errors
    /// The other gateway does not take over, the connections do not go on, or it cannot be mended.
    pub fn try_on(self, pair: &mut Pair, talks: &Talks, round: usize) -> Result<Outage, Failure> {
        let active = pair.until_settled()?;
        talks.go_on()?;
        let outage = talks.watch(|| self.strike(pair, active, round))?;
        pair.until_role(1 - active, "active")?;
        self.mend(pair, active, round)?;
        pair.until_settled()?;
        Ok(Outage { struck: active, ..outage })
    }
}

/// Each gateway has the one cable cut and the other one as often.
fn cable(pair: &Pair, active: usize, round: usize, state: &str) -> Result<String, Failure> {
    pair.switches[round / 2 % 2].ip(&format!("link set {} {state}", Pair::port(active)))
}
