//! Mode `null`: the null bump, with the ports of mode `cll` and no protection. For benchmarks.

pub(crate) mod config;

use std::convert::Infallible;

use bump::{Instant, Now, Sink};
use system::null::NullBump;
use system::sandbox::Calls;
use system::takeover::Taken;

use super::contract::{HostMode, Plan, Surroundings};
use super::file::Config;
use crate::daemon::{Crew, Described, Guard, Journal, Kind, Load, Snapshot, serve};
use crate::failure::Failure;
use crate::host::interface::{Beside, Held};
use crate::host::start::{Needs, Start};
use crate::modes::cll::config::Trains;
use crate::protocol::Answer;

/// The mode.
pub(crate) struct Unprotected;

impl HostMode for Unprotected {
    fn plan(&self, _surroundings: &Surroundings<'_>) -> Result<Box<dyn Plan>, Failure> {
        Ok(Box::new(Unprotected))
    }

    fn needs(&self, _config: &Config) -> Needs {
        Needs { kept: None, ports: |options| options, not_protected: &["everything"], calls: Calls::Frames }
    }

    fn warn(&self, config: &Config, _taken: &Taken) {
        tracing::warn!(interface = config.host.interface, "mode null: this host is NOT protected");
    }
}

impl Plan for Unprotected {
    fn carry_out(self: Box<Self>, start: Start<'_>) -> Result<(), Failure> {
        let (trains, ethertype) = (start.config.trains() == Trains::Always, start.config.cll.ethertype.ethertype());
        let ready = start.prepare::<(), _>(None, Nothing, |_| None)?;
        let load = ready.load(Load::new(trains));
        serve(NullBump::disguised(ethertype), Crew::none(), load, ready.ports.tap()?, ready.clock, ready.supervisor)
    }
}

/// What it keeps beside its frames.
struct Nothing;

impl Kind for Nothing {
    type Order = Infallible;
    type Report = ();
    type Effect = Infallible;
}

impl Beside for Nothing {
    type Kind = Nothing;

    fn carry_out(&mut self, _held: &Held, effect: Infallible, _journal: &mut Journal) {
        match effect {}
    }

    fn known(&self, _snapshot: &Snapshot<Nothing>) -> Answer {
        Answer::Peers { peers: Vec::new() }
    }
}

impl Guard<Nothing> for NullBump {
    fn describe(event: &Infallible) -> Described {
        match *event {}
    }

    fn obey(&mut self, _now: Now, order: Infallible, _sink: &mut dyn Sink) {
        match order {}
    }

    fn report(&self, _now: Instant) {}
}
