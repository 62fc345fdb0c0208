//! From a plan to a guarded interface, whatever the mode.
//!
//! Everything that can be wrong with files is found before the interface is touched. Then: take over, open the ports,
//! flush what the stack had learned, drop privileges, and only then read the first frame.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use identity::HostIdentity;
use system::clock::Clock;
use system::port::{PacketOptions, PacketPort, Ports, TapPort, TrainOptions};
use system::privilege::Capability;
use system::sandbox::{Calls, Sandbox};
use system::takeover::{
    self, Admitted, Fence, Follower, Inner, Kept, Request, StackSide, Taken, TakeoverError, Way, state,
};
use system::xdp;
use wire::cll::data::OVERHEAD_MAX;
use wire::cll::train;

use super::identity::check_interface;
use super::interface::{Beside, Held, Interface};
use super::kernel::{AttachToCard, Front, Standing};
use super::release::give_back;
use super::{revert, rights};
use crate::config::{HookName, RealTime};
use crate::daemon::companions::Companions;
use crate::daemon::{Here, Load, Precedence, Supervisor};
use crate::failure::Failure;
use crate::modes::cll::config::Trains;
use crate::modes::file::Config;
use crate::monitor::Disk;

/// What of a mode decides how its interface is taken and opened.
#[derive(Clone, Copy)]
pub(crate) struct Needs {
    /// What alone comes to this program, where the kernel can carry the rest; nothing where all
    /// does.
    pub(crate) kept: Option<Kept>,
    /// How the ports are opened beside that.
    pub(crate) ports: fn(PacketOptions) -> PacketOptions,
    /// What passes as it came, for anybody to forge.
    pub(crate) not_protected: &'static [&'static str],
    /// System calls beside those that frames take.
    pub(crate) calls: Calls,
}

/// A taken interface, and all that a bump needs beside its plan.
pub(crate) struct Start<'a> {
    pub(crate) file: &'a Path,
    pub(crate) config: &'a Config,
    pub(crate) disk: &'a Disk,
    pub(crate) clock: Clock,
    pub(super) needs: Needs,
    pub(super) companions: Companions,
    pub(super) taken: Taken,
    pub(super) was_taken: bool,
    pub(super) revert_after: Option<Duration>,
}

/// What is ready when the first frame may be read.
pub(crate) struct Ready<M, B> {
    pub(crate) ports: Opened,
    /// The cheap checks in the kernel, if it makes them.
    pub(crate) maps: Option<M>,
    pub(crate) supervisor: Supervisor<Interface<B>>,
    pub(crate) clock: Clock,
    precedence: Precedence,
}

impl<M, B> Ready<M, B> {
    /// As [`Load::new`] or another, with the priority that the data path got.
    pub(crate) fn load(&self, load: Load) -> Load {
        load.with(self.precedence.clone())
    }
}

/// Where a program in the kernel may stand: in front of the wire's port or card.
pub(crate) struct Ground<'a> {
    pub(crate) ports: &'a Opened,
    pub(crate) taken: &'a Taken,
    attach_to_card: &'a AttachToCard<'a>,
}

impl<'a> Ground<'a> {
    pub(crate) fn front(&self, wanted: HookName, port: &'a PacketPort) -> Front<'a> {
        Front { wanted: wanted.hook(), port, attach_to_card: self.attach_to_card }
    }
}

/// The maps of a mode's program, if the kernel took it, and how that is; nothing where a mode has
/// none.
pub(crate) type Checks<M> = Option<(Option<M>, Standing)>;

impl<'a> Start<'a> {
    /// Everything between the take-over and the first frame. `checks` puts a mode's program into
    /// the kernel.
    pub(crate) fn prepare<M, B: Beside>(
        self,
        identity: Option<&Arc<HostIdentity>>,
        beside: B,
        checks: impl FnOnce(&Ground<'_>) -> Checks<M>,
    ) -> Result<Ready<M, B>, Failure> {
        let (config, was_taken) = (self.config, self.was_taken);
        self.open(identity, beside, checks).map_err(|failure| undo(config, was_taken, failure))
    }

    fn open<M, B: Beside>(
        mut self,
        identity: Option<&Arc<HostIdentity>>,
        beside: B,
        checks: impl FnOnce(&Ground<'_>) -> Checks<M>,
    ) -> Result<Ready<M, B>, Failure> {
        let (config, disk, needs) = (self.config, self.disk, self.needs);
        if let Some(identity) = identity {
            // Without an inner device, after a crash, the card's address was not known before.
            check_interface(config, identity, self.taken.inner_mac)?;
        }
        let follower = Follower::open(&self.taken).map_err(|error| failed(config, "following the card", &error))?;
        let ports = self.open_ports()?;
        let (maps, standing) = self.check_in_kernel(&ports, checks);
        takeover::flush_neighbours(&config.host.interface)?;
        let mut interface = Interface {
            held: Held {
                config: config.clone(),
                disk: disk.clone(),
                identity: identity.cloned(),
                taken: self.taken,
                follower,
                standing,
                kept: needs.kept,
                not_protected: needs.not_protected,
                carrier: true,
            },
            beside,
        };
        interface.beside.begin(&mut interface.held);
        let told = (here(config, identity), self.companions);
        let mut supervisor = Supervisor::open(interface, config.socket(), "host.run_dir", disk, told)?;
        if let Some(time) = self.revert_after {
            revert::arm(self.file, config, self.clock.now().since_boot, time)?;
        }
        let precedence = Precedence::take(config.host.real_time_priority.map(RealTime::priority));
        // The one privilege that remains is for following the card's changes.
        let entered = Sandbox { capabilities: &[Capability::NetAdmin], calls: needs.calls }.enter();
        supervisor.inside(entered.map_err(|error| failed(config, "entering the sandbox", &error))?);
        Ok(Ready { ports, maps, supervisor, clock: self.clock, precedence })
    }

    /// Has a mode's checks made in the kernel, and says why if that does not.
    fn check_in_kernel<M>(
        &self,
        ports: &Opened,
        checks: impl FnOnce(&Ground<'_>) -> Checks<M>,
    ) -> (Option<M>, Option<Standing>) {
        let (taken, index) = (&self.taken, self.taken.wire_index);
        let attach_to_card: &AttachToCard<'_> =
            &|program, mode| takeover::in_wire_namespace(taken, || xdp::attach(program, index, mode))?;
        let Some((maps, standing)) = checks(&Ground { ports, taken, attach_to_card }) else { return (None, None) };
        if let Some(reason) = &standing.reason {
            let interface = self.config.host.interface.as_str();
            tracing::warn!(interface, "{reason}; forged frames are dropped {} instead", standing.who());
        }
        (maps, Some(standing))
    }

    fn open_ports(&self) -> Result<Opened, Failure> {
        match (&self.taken.stack, self.needs.kept) {
            (StackSide::Tap { .. }, Some(kept)) => self.open_beside(kept).map(Opened::Tap),
            (StackSide::Tap { .. }, None) => self.open_tap().map(Opened::Tap),
            (StackSide::Veth { outer_index, .. }, kept) => {
                let (outer, wire, kept) = (*outer_index, self.taken.wire_index, kept.unwrap_or(Kept::Arp));
                let port = |index: u32| self.open_packet_port(&self.of_kept(kept, index));
                Ok(Opened::Pair(Ports { stack: port(outer)?, wire: port(wire)? }))
            }
        }
    }

    /// What is kept for this program, through a TAP beside the card and a packet socket on it.
    fn open_beside(&self, kept: Kept) -> Result<Ports, Failure> {
        let options = PacketOptions {
            mark: self.taken.mark,
            filter: Some(takeover::not_opened(Some(kept))),
            ..self.of_kept(kept, self.taken.wire_index)
        };
        Ok(Ports { wire: self.open_packet_port(&options)?, stack: stack_port(&self.taken)? })
    }

    fn of_kept(&self, kept: Kept, index: u32) -> PacketOptions {
        (self.needs.ports)(PacketOptions { all_multicast: true, ..PacketOptions::kept(kept, index) })
    }

    fn open_tap(&self) -> Result<Ports, Failure> {
        let (config, taken) = (self.config, &self.taken);
        let options = PacketOptions {
            mark: taken.mark,
            all_multicast: true,
            trains: self.needs.kept.is_none().then(|| TrainOptions {
                ethertype: config.cll.ethertype.ethertype(),
                wire_mtu: u16::try_from(taken.nic_mtu).unwrap_or(u16::MAX),
                couple: config.trains() != Trains::Off,
            }),
            filter: taken.fence.is_some().then(|| takeover::not_opened(None)),
            ..PacketOptions::new(taken.wire_index)
        };
        let mut wire = self.open_packet_port(&options)?;
        if let Some(clear) = self.taken.fence.as_ref().and_then(Fence::clear) {
            wire.receive_also(clear);
        }
        Ok(Ports { stack: stack_port(&self.taken)?, wire })
    }

    fn open_packet_port(&self, options: &PacketOptions) -> Result<PacketPort, Failure> {
        takeover::in_wire_namespace(&self.taken, || PacketPort::open(options))
            .map_err(|error| failed(self.config, "entering the card's namespace", &error))?
            .map_err(|error| failed(self.config, "opening the card", &error))
    }
}

/// The two ports, by what the stack's side is.
pub(crate) enum Opened {
    /// A TAP. All frames pass through this program, or those that are kept for it where the card
    /// stays in place.
    Tap(Ports),
    /// The kernel joins card and stack by itself, and only what is kept comes here.
    Pair(Ports<PacketPort>),
}

impl Opened {
    pub(crate) fn wire(&self) -> &PacketPort {
        match self {
            Opened::Tap(ports) => &ports.wire,
            Opened::Pair(ports) => &ports.wire,
        }
    }

    pub(crate) fn tap(self) -> Result<Ports, Failure> {
        match self {
            Opened::Tap(ports) => Ok(ports),
            Opened::Pair(_) => Err(Failure::new("the inner device passes frames by, which this mode must not have")),
        }
    }
}

fn stack_port(taken: &Taken) -> Result<TapPort, Failure> {
    let queue = taken.queue().ok_or_else(|| Failure::new("the inner device is no TAP"))?;
    queue.try_clone().map(TapPort::new).map_err(|error| Failure::new(format!("the inner device's queue: {error}")))
}

/// Whose attacks are told.
fn here(config: &Config, identity: Option<&Arc<HostIdentity>>) -> Here {
    let host = identity.map_or_else(system::host_name, |identity| identity.certificate().name().to_owned());
    Here { host, interface: config.host.interface.clone(), mode: config.host.mode.word().to_owned() }
}

/// A start that failed leaves nothing half done: what it took goes back. An interface that had been closed before stays
/// closed.
fn undo(config: &Config, was_taken: bool, failure: Failure) -> Failure {
    let is_taken = !matches!(state::load(&config.host.state_dir, &config.host.interface), Ok(None));
    if was_taken || !is_taken {
        return failure;
    }
    match give_back(config) {
        Ok(()) => failure,
        Err(error) => Failure::new(format!("{failure}; and it could not be given back: {error}")),
    }
}

/// Takes the interface over.
pub(super) fn take(config: &Config, kept: Option<Kept>, was_taken: bool) -> Result<Taken, Failure> {
    try_to_take(config, kept, was_taken).map_err(|untaken| match untaken {
        Untaken::Others(failure) => failure,
        Untaken::Failed(failure) => undo(config, was_taken, failure),
    })
}

/// Why an interface was not taken over.
enum Untaken {
    /// Another daemon has it, so there is nothing of ours to give back.
    Others(Failure),
    Failed(Failure),
}

impl From<TakeoverError> for Untaken {
    fn from(error: TakeoverError) -> Untaken {
        let is_others = matches!(error, TakeoverError::Busy { .. });
        let untaken = if is_others { Untaken::Others } else { Untaken::Failed };
        untaken(error.into())
    }
}

impl From<Failure> for Untaken {
    fn from(failure: Failure) -> Untaken {
        Untaken::Failed(failure)
    }
}

/// Where it cannot be guarded in place and was not yet, "auto" has another way.
fn try_to_take(config: &Config, kept: Option<Kept>, was_taken: bool) -> Result<Taken, Untaken> {
    let (way, against) = config.way();
    let request = request(config, kept, way);
    if let Some(what) = against {
        tracing::info!(interface = request.interface, "does not stay in place: that does not go with {what}");
    }
    match takeover::take(&request) {
        Err(error) if error.is_of_the_way() && !was_taken && way == Way::InPlace && config.host.takeover.is_open() => {
            tracing::warn!(interface = request.interface, "{error}; taken over by namespace");
            if state::load(&request.state_dir, &request.interface)?.is_some() {
                takeover::release(&request.interface, &request.run_dir, &request.state_dir)?;
            }
            rights::go_over(config, &error.to_string())?;
            Ok(takeover::take(&Request { way: Way::Namespace, ..request })?)
        }
        taken => {
            let taken = taken?;
            match taken.way {
                Way::InPlace => rights::forget(config)?,
                Way::Namespace | Way::Filter => rights::stays_over(config)?,
            }
            Ok(taken)
        }
    }
}

fn request(config: &Config, kept: Option<Kept>, way: Way) -> Request {
    Request {
        interface: config.host.interface.clone(),
        run_dir: config.host.run_dir.clone(),
        state_dir: config.host.state_dir.clone(),
        overhead_bytes: kept.map_or_else(|| u16::try_from(overhead(config)).unwrap_or(u16::MAX), |_| 0),
        way,
        inner: kept.map_or(Inner::Tap, |kept| Inner::Veth { kept }),
        admitted: admitted(config),
    }
}

/// What comes to this program from a card that stays in place: what is sealed, and what passes in
/// clear by configuration.
fn admitted(config: &Config) -> Admitted {
    let ethertypes = std::iter::once(config.cll.ethertype.ethertype()).chain(config.passing()).collect();
    Admitted { ethertypes, train_port: train::PORT }
}

/// What sealing adds to a frame, in bytes, where all frames come to this program.
pub(crate) fn overhead(config: &Config) -> usize {
    match config.trains() {
        Trains::Off => OVERHEAD_MAX,
        Trains::Auto | Trains::Always => OVERHEAD_MAX + train::OVERHEAD,
    }
}

fn failed(config: &Config, what: &str, error: &dyn std::fmt::Display) -> Failure {
    let interface = &config.host.interface;
    Failure::new(format!("{interface}: {what}: {error}; run as root, and see `ringwall host release` to undo"))
}
