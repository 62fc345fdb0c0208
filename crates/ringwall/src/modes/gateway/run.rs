//! `ringwall gate run` and `release`: from the configuration to two cards with a scrubber between
//! them, and back.
//!
//! Everything that can be wrong with files is found before a card is touched. Then: take both
//! cards, open the ports, drop privileges, and only then read the first frame.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use pair::Secret;
use scrub::carried::Carrier;
use scrub::settings::Adopt;
use scrub::{Keys, Scrubber, Settings};
use system::clock::Clock;
use system::null::NullBump;
use system::port::{PacketOptions, PacketPort, Ports};
use system::sandbox::{Calls, Sandbox};
use system::takeover::{
    Gateway, GatewayFollower, GatewayRequest, Role, hold_gateway, let_gateway_go, release_gateway, take_gateway,
};

use super::cards::Cards;
use super::config::{Gate, GateConfig, Mtu, PresetName};
use super::kernel;
use super::keys::{self, Kept};
use super::kind::Scrubbed;
use super::mirror::Mirrored;
use super::paired::start::Joined;
use super::paired::{self, HasScrubber, Paired};
use crate::client;
use crate::config::{self, DEFAULT_GATE_FILE, OnExit, RealTime};
use crate::daemon::companions::Companions;
use crate::daemon::{Crew, Guard, Here, Jobs, Load, NoJobs, Precedence, Supervisor, serve};
use crate::failure::Failure;
use crate::host::STOP_TIME_MAX;
use crate::monitor::{Back, Charge, Disk};
use crate::output::{complain, say};

/// Options of `ringwall gate run`
#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// Interface towards the hosts that are protected.
    #[arg(long, value_name = "NAME")]
    trusted: Option<String>,
    /// Interface towards everybody else.
    #[arg(long, value_name = "NAME")]
    untrusted: Option<String>,
    /// Interface that gets a copy of all that leaves, both ways.
    #[arg(long, value_name = "NAME")]
    mirror: Option<String>,
    /// Which rules are on: paper, balanced or strict.
    #[arg(long, value_name = "PRESET")]
    preset: Option<PresetName>,
    /// Configuration file; without it /etc/ringwall/gate.toml if that is there.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Puts the null bump in the scrubber's place: same ports, nothing is looked at. For
    /// benchmarks.
    #[arg(long, hide = true)]
    null: bool,
}

/// Options of `ringwall gate release`
#[derive(Args, Debug)]
pub(crate) struct ReleaseArgs {
    /// The trusted interface of the gateway, where no file names it.
    #[arg(long, value_name = "NAME")]
    trusted: Option<String>,
    /// Configuration file; without it /etc/ringwall/gate.toml if that is there.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Options of `ringwall gate hold`
#[derive(Args, Debug)]
pub(crate) struct HoldArgs {
    /// Configuration file.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// The namespace goes, unless interfaces are in it.
    #[arg(long)]
    end: bool,
}

/// A gateway as file and command line together have it.
struct Plan {
    /// Where its settings come from, for messages.
    file: PathBuf,
    gate: Gate,
    /// The file as it was read, without what the command line says.
    as_read: GateConfig,
    trusted: String,
    untrusted: String,
}

/// The file that is named or that is in its usual place; without one, what an empty file means.
fn load(config: Option<&Path>) -> Result<(PathBuf, GateConfig), Failure> {
    let usual = Path::new(DEFAULT_GATE_FILE);
    match config.or(Some(usual).filter(|usual| usual.exists())) {
        Some(file) => Ok((file.to_owned(), GateConfig::load(file)?)),
        None => Ok((PathBuf::from("the command line"), GateConfig::default())),
    }
}

impl RunArgs {
    fn plan(&self) -> Result<Plan, Failure> {
        let (file, as_read) = load(self.config.as_deref())?;
        let mut gate = as_read.gate.clone();
        gate.trusted = self.trusted.clone().or(gate.trusted);
        gate.untrusted = self.untrusted.clone().or(gate.untrusted);
        gate.mirror = self.mirror.clone().or(gate.mirror);
        gate.preset = self.preset.unwrap_or(gate.preset);
        gate.check_interfaces(&file)?;
        let named = |key: &str, name: &Option<String>| {
            let remedy = format!("write gate.{key}, or name it with --{key}");
            name.clone().ok_or_else(|| Failure::file(&file, format!("no {key} interface is named"), &remedy))
        };
        let (trusted, untrusted) = (named("trusted", &gate.trusted)?, named("untrusted", &gate.untrusted)?);
        if as_read.mirror.vlans.is_some() {
            named("mirror", &gate.mirror)?;
        }
        Ok(Plan { file, gate, as_read, trusted, untrusted })
    }
}

/// `ringwall gate run`
pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    system::sandbox::forbid_dumps().map_err(Failure::new)?;
    let plan = args.plan()?;
    let disk = Disk::separate(charge(&plan))?;
    let companions = Companions::start(&plan.as_read.records, &plan.trusted)?;
    let gate = &plan.gate;
    let request = GatewayRequest {
        trusted: plan.trusted.clone(),
        untrusted: plan.untrusted.clone(),
        mirror: gate.mirror.clone(),
        run_dir: gate.run_dir.clone(),
        state_dir: gate.state_dir.clone(),
    };
    let gateway = take_gateway(&request)?;
    let adopted = gateway.adopted;
    let prepared = prepare(&plan, &disk, companions, gateway, args.null);
    let Prepared { keys, settings, ports, mirror, supervisor, precedence, joined, carrier } =
        prepared.map_err(|failure| undo(&plan, adopted, failure))?;
    let load = Load::new(false).with(precedence);
    let mirror = mirror.map(|port| (port, plan.as_read.mirror.vlans()));
    let way = Way { mirror, joined, ports, load, supervisor };
    if args.null {
        return start(NullBump::passing(), way);
    }
    let mut scrubber = Scrubber::new(settings, keys);
    carrier.into_iter().for_each(|carrier| scrubber.carry_by(carrier));
    // What is over before the supervisor asks first is kept as well.
    scrubber.take_ended(plan.as_read.records.flows_per_s as usize);
    start(scrubber, way)
}

/// What is ready before the first frame.
struct Prepared {
    keys: Keys,
    settings: Settings,
    ports: Ports<PacketPort>,
    mirror: Option<PacketPort>,
    supervisor: Supervisor<Cards>,
    precedence: Precedence,
    /// What makes it one of two.
    joined: Option<Joined>,
    /// The kernel, where it carries connections.
    carrier: Option<Carrier>,
}

/// What a bump is driven with.
struct Way {
    /// Where copies go, and in which VLANs.
    mirror: Option<(PacketPort, Option<[u16; 2]>)>,
    joined: Option<Joined>,
    ports: Ports<PacketPort>,
    load: Load,
    supervisor: Supervisor<Cards>,
}

fn prepare(
    plan: &Plan,
    disk: &Disk,
    companions: Companions,
    gateway: Gateway,
    null: bool,
) -> Result<Prepared, Failure> {
    let gate = &plan.gate;
    let secret = plan.as_read.pair.as_ref().map(|pair| paired::start::secret(&pair.key_file)).transpose()?;
    let (keys, settings) = keys_and_settings(plan, &gateway, secret.as_ref())?;
    let mut ports = Ports { stack: port(plan, &gateway, Role::Trusted)?, wire: port(plan, &gateway, Role::Untrusted)? };
    let mut mirror = gate.mirror.as_ref().map(|_| port(plan, &gateway, Role::Mirror)).transpose()?;
    let tunnels = keep_tunnels([&mut ports.stack, &mut ports.wire].into_iter().chain(&mut mirror));
    let carrier = carrier(plan, &gateway, &ports, &settings, null);
    let carries = match &carrier {
        Ok(_) => "yes, clean segments of established connections".to_owned(),
        Err(why) => format!("no: {why}"),
    };
    let probes = BTreeMap::from([("carries".to_owned(), carries), ("tunnels".to_owned(), tunnels)]);
    let follower = GatewayFollower::open(&gateway).map_err(|error| failed(plan, "following the cards", &error))?;
    let mut warnings = warnings(&gateway, null);
    if let (Some(true), Err(why)) = (plan.as_read.kernel.carry, &carrier) {
        warnings.push(format!("the kernel carries no connection, though kernel.carry is true: {why}"));
    }
    let carrier = carrier.ok();
    log_start(plan, &gateway, &warnings);
    let section = plan.as_read.pair.as_ref();
    let joined = section.zip(secret).map(|(section, secret)| paired::start::join(section, secret, &gateway));
    let (joined, sync) = joined.transpose()?.unzip();
    let mut cards = Cards::new(gate.clone(), disk, &plan.trusted, gateway, follower, probes, warnings);
    cards.follow_file(plan.as_read.clone());
    if let Some((section, sync)) = section.zip(sync) {
        cards.pair_on(sync, section.heartbeat());
    }
    let here = Here { host: system::host_name(), interface: plan.trusted.clone(), mode: "gate".to_owned() };
    let socket = config::socket(&gate.run_dir, &plan.trusted);
    let mut supervisor = Supervisor::open(cards, socket, "gate.run_dir", disk, (here, companions))?;
    let precedence = Precedence::take(gate.real_time_priority.map(RealTime::priority));
    let entered = Sandbox { capabilities: &[], calls: Calls::Frames }.enter();
    supervisor.inside(entered.map_err(|error| failed(plan, "entering the sandbox", &error))?);
    Ok(Prepared { keys, settings, ports, mirror, supervisor, precedence, joined, carrier })
}

/// The keys of the run before, or new ones, with which connections are adopted otherwise. Where
/// they are the same and nobody says otherwise, connections of the run before go on: an update of
/// the gateway is no reason to hang them.
fn keys_and_settings(plan: &Plan, gateway: &Gateway, secret: Option<&Secret>) -> Result<(Keys, Settings), Failure> {
    let gate = &plan.gate;
    let file = gate.run_dir.join(format!("{}.keys", plan.trusted));
    let kept = match secret {
        Some(secret) => keys::shared(&file, paired::start::keys(secret))?,
        None => keys::load_or_make(&file)?,
    };
    if gate.mtu.is_none() {
        let wrong = |what| Failure::file(&plan.file, format!("MTU of the cards: {what}"), "set gate.mtu");
        Mtu::try_from(u64::from(gateway.mtu())).map_err(wrong)?;
    }
    let mut settings = gate.settings(gateway.mtu() as usize);
    plan.as_read.shares.enter(&mut settings.flows);
    // Another gateway may know the connection, and tell of it later.
    if secret.is_some() && settings.adopt == Adopt::End {
        settings.adopt = Adopt::No;
    }
    match kept {
        Kept::Before(keys) => {
            if gate.adopt.is_none() {
                settings.adopt = Adopt::All;
            }
            Ok((keys, settings))
        }
        Kept::New(keys) => {
            settings.adopt = settings.adopt.with_new_keys();
            Ok((keys, settings))
        }
    }
}

/// A port on the card with `role`. Frames for every address pass a gateway; a mirror hears nothing.
fn port(plan: &Plan, gateway: &Gateway, role: Role) -> Result<PacketPort, Failure> {
    let Some(card) = gateway.card(role) else {
        return Err(Failure::new(format!("the gateway has no {} card", role.word())));
    };
    let hears = role != Role::Mirror;
    let options = PacketOptions {
        promiscuous: hears,
        all_multicast: hears,
        deaf: !hears,
        tunnels: true,
        ..PacketOptions::new(card.index)
    };
    gateway
        .inside(|| PacketPort::open(&options))
        .map_err(|error| failed(plan, "entering the cards' namespace", &error))?
        .map_err(|error| failed(plan, &format!("opening {}", card.name), &error))
}

/// Has super-frames inside of tunnels stay whole, if they can leave by every port in one piece;
/// whether they do, or why not.
fn keep_tunnels<'a>(ports: impl Iterator<Item = &'a mut PacketPort>) -> String {
    let mut ports: Vec<_> = ports.collect();
    if let Some(error) = ports.iter().find_map(|port| port.sender.tunnels_refused()) {
        return format!("no: cut into plain frames, because the kernel (before Linux 6.17) refuses: {error}");
    }
    ports.iter_mut().for_each(|port| port.receiver.keep_tunnels());
    "yes, in one piece".to_owned()
}

/// The kernel as the one that carries clean segments, if it is to be, or why it does not.
fn carrier(
    plan: &Plan,
    gateway: &Gateway,
    ports: &Ports<PacketPort>,
    settings: &Settings,
    null: bool,
) -> Result<Carrier, String> {
    if null {
        return Err("the null bump carries nothing".to_owned());
    }
    match plan.as_read.kernel.carry {
        Some(false) => return Err("kernel.carry is false".to_owned()),
        Some(true) => {}
        None => have_devices(gateway)?,
    }
    if plan.gate.mirror.is_some() || plan.as_read.pair.is_some() {
        return Err("a mirror, or the other gateway, has to hear of each segment".to_owned());
    }
    if !settings.may_be_carried() {
        return Err("by these rules the daemon has to see each segment".to_owned());
    }
    kernel::open(gateway, ports, settings).map_err(|error| error.to_string())
}

/// Whoever shares memory with this machine can change a frame after it was looked at, and who sends
/// into a device without a driver of its own may be on the same machine.
fn have_devices(gateway: &Gateway) -> Result<(), String> {
    let mut sides = gateway.cards.iter().filter(|card| card.role != Role::Mirror);
    sides.find(|card| !card.has_device).map_or(Ok(()), |card| {
        let name = &card.name;
        Err(format!("{name} is a virtual device; kernel.carry = true if nobody on this machine sends into it"))
    })
}

/// What is allowed and yet worth knowing, one line each.
fn warnings(gateway: &Gateway, null: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    if null {
        warnings.push("the null bump: NOTHING is scrubbed".to_owned());
    }
    let mtus: Vec<_> = gateway.cards.iter().filter(|card| card.role != Role::Mirror).map(|card| card.mtu).collect();
    if mtus.windows(2).any(|pair| pair[0] != pair[1]) {
        warnings.push(format!(
            "the two sides have different MTUs ({} and {}); what is cut anew fits both",
            mtus[0], mtus[1]
        ));
    }
    warnings
}

fn start<G>(bump: G, mut way: Way) -> Result<(), Failure>
where
    G: Guard<Scrubbed> + HasScrubber + Send + 'static,
    NoJobs: Jobs<G> + Jobs<Mirrored<G>> + Jobs<Paired<G>> + Jobs<Paired<Mirrored<G>>>,
    G::Job: Send + 'static,
    G::Completion: Send + 'static,
{
    match way.mirror.take() {
        Some((port, vlans)) => start_in_pair(Mirrored::new(bump, port, vlans), way),
        None => start_in_pair(bump, way),
    }
}

/// With the other gateway, if there is one.
fn start_in_pair<G>(bump: G, way: Way) -> Result<(), Failure>
where
    G: Guard<Scrubbed> + HasScrubber + Send + 'static,
    NoJobs: Jobs<G> + Jobs<Paired<G>>,
    G::Job: Send + 'static,
    G::Completion: Send + 'static,
{
    let Way { joined, ports, load, supervisor, .. } = way;
    match joined {
        Some(joined) => serve(Paired::new(bump, joined), Crew::none(), load, ports, Clock::new(), supervisor),
        None => serve(bump, Crew::none(), load, ports, Clock::new(), supervisor),
    }
}

/// A start that failed leaves nothing half done. Cards that an earlier start had taken stay closed.
fn undo(plan: &Plan, adopted: bool, failure: Failure) -> Failure {
    if adopted {
        return failure;
    }
    match release_gateway(&plan.trusted, &plan.gate.run_dir, &plan.gate.state_dir) {
        Ok(_) => failure,
        Err(error) => Failure::new(format!("{failure}; and the cards could not be given back: {error}")),
    }
}

/// What the monitor of this daemon is there for. A gateway has no files of its own, and reads its
/// configuration again, where it is a file.
fn charge(plan: &Plan) -> Charge {
    let (gate, trusted) = (&plan.gate, plan.trusted.clone());
    let (run_dir, state_dir) = (gate.run_dir.clone(), gate.state_dir.clone());
    let socket = config::socket(&run_dir, &trusted);
    let back = (gate.on_exit == OnExit::Restore).then_some(Back::Gateway { trusted, run_dir, state_dir });
    let readable = Some(plan.file.clone()).filter(|file| file.is_file()).into_iter().collect();
    Charge { readable, socket, back, ..Charge::default() }
}

fn failed(plan: &Plan, what: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("{}: {what}: {error}; run as root, and see `ringwall gate release` to undo", plan.trusted))
}

fn log_start(plan: &Plan, gateway: &Gateway, warnings: &[String]) {
    let (trusted, untrusted) = (plan.trusted.as_str(), plan.untrusted.as_str());
    let preset = plan.gate.preset.word();
    tracing::info!(trusted, untrusted, preset, adopted = gateway.adopted, mtu = gateway.mtu(), "gateway");
    for warning in warnings {
        tracing::warn!(trusted, "{warning}");
    }
}

/// `ringwall gate release`
pub(crate) fn release(args: &ReleaseArgs) -> Result<(), Failure> {
    let (file, GateConfig { gate, .. }) = load(args.config.as_deref())?;
    let trusted = args.trusted.clone().or(gate.trusted);
    let trusted =
        trusted.ok_or_else(|| Failure::file(&file, "no trusted interface is named", "name it with --trusted"))?;
    let socket = config::socket(&gate.run_dir, &trusted);
    client::stop(&socket, &trusted, STOP_TIME_MAX)?;
    let report = release_gateway(&trusted, &gate.run_dir, &gate.state_dir)?;
    for warning in &report.warnings {
        complain(format_args!("{warning}"));
    }
    client::remove_socket(&socket)?;
    if !report.nic_found {
        complain(format_args!("{trusted}: a card of the gateway is gone; everything else is cleaned up"));
    }
    say!("the cards of the gateway {trusted} are given back; nothing is scrubbed");
    Ok(())
}

/// `ringwall gate hold`: without a trusted interface the daemon says what is wrong.
pub(crate) fn hold(args: &HoldArgs) -> Result<(), Failure> {
    let gate = GateConfig::load(&args.config)?.gate;
    let Some(trusted) = &gate.trusted else { return Ok(()) };
    let step = if args.end { let_gateway_go } else { hold_gateway };
    Ok(step(trusted, &gate.run_dir, &gate.state_dir)?)
}
