//! From the configuration to a guarded interface.
//!
//! Everything that can be wrong with files is found before the interface is touched. Then: take over, open the ports,
//! flush what the stack had learned, drop privileges, and only then read the first frame.

use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cll::Remembered;
use identity::HostIdentity;
use identity::token::NumberKey;
use shield::ipsec::Shield;
use shield::kernel::{HintKeys, Own};
use shield::sarp::Keeps;
use system::bpf::Program;
use system::clock::Clock;
use system::ingress;
use system::null::NullBump;
use system::port::limits::SOCKET_BUFFER_BYTES;
use system::port::{PacketOptions, PacketPort, Ports, RingSlots, TapPort, TrainOptions};
use system::privilege::Capability;
use system::random::KernelSource;
use system::sandbox::{Calls, Sandbox};
use system::takeover::{self, Admitted, Fence, Follower, Inner, Kept, Request, StackSide, Taken, Way, state};
use system::xdp;
use wire::EtherType;
use wire::MacAddress;
use wire::cll::data::OVERHEAD_MAX;
use wire::cll::handshake::CERTIFICATE_LEN_MAX_V6;
use wire::cll::train;

use super::interface::Interface;
use super::outpost::{self, AttachToCard, Front, IpsecMaps, Outpost, SarpMaps, Standing};
use super::plan::{Duty, Plan, Sealing, SignedArp};
use super::revert;
use super::tickets::TicketFiles;
use crate::companion::Companions;
use crate::config::{Config, HookName, Keeper, Mode, OnExit, RealTime, Trains};
use crate::daemon::{Here, Load, Precedence, Supervisor, Tools, serve};
use crate::failure::Failure;
use crate::monitor::{Back, Charge, Disk};
use crate::randomness::generator;
use crate::shield::KeyWatch;

/// The smallest MTU on which a kernel speaks IPv6 (RFC 8200, section 5).
const IPV6_MTU_MIN: u32 = 1280;
/// Threads that sign for a distributor, at most. One data path feeds no more than these.
const SIGNING_THREADS_MAX: usize = 4;

/// `ringwall host run` and `ringwall akd run`
pub(crate) fn run_daemon(file: &Path, revert_after: Option<Duration>, duty: Duty) -> Result<(), Failure> {
    system::sandbox::forbid_dumps().map_err(Failure::new)?;
    let mut config = Config::load(file)?;
    // Only who may take an interface over may ask; whoever may not is told so there.
    config.kernel_cuts = system::tap_device::kernel_cuts_datagrams().ok();
    config.is_wireless = takeover::is_wireless(&config.host.interface);
    let mut clock = config.clock();
    let disk = Disk::separate(charge(file, &config))?;
    let companions = Companions::start(&config.records, &config.host.interface)?;
    let plan = Plan::make(file, &config, duty, clock.now(), &disk)?;
    let was_taken = state::load(&config.host.state_dir, &config.host.interface)?.is_some();
    if let (Some(identity), Some(mac)) = (plan.identity(), takeover::hardware_address(&config.host.interface)?) {
        check_interface(&config, identity, mac)?;
    }
    let taken = take(&config, was_taken)?;
    log_start(&config, &taken);
    let arm = || match revert_after {
        Some(time) => revert::arm(file, &config, clock.now().since_boot, time),
        None => Ok(()),
    };
    let prepared = prepare(&config, &disk, companions, plan.identity(), taken, arm);
    let prepared = prepared.map_err(|failure| undo(&config, was_taken, failure))?;
    Start { file, config: &config, prepared, clock }.carry_out(plan)
}

/// What the monitor of this daemon is there for: the files that are read again while it runs, its
/// own, and the way out.
fn charge(file: &Path, config: &Config) -> Charge {
    let host = &config.host;
    let keys = config.shield.iter().flat_map(|section| &section.peers).filter_map(|peer| peer.keys.clone());
    let named = [file.to_owned(), host.identity.clone(), host.policy_file(&config.cll)].into_iter();
    let named = named.chain(config.cll.revocation_list.clone());
    let (interface, run_dir, state_dir) = (host.interface.clone(), host.run_dir.clone(), host.state_dir.clone());
    let back = (host.on_exit == OnExit::Restore).then_some(Back::Host { interface, run_dir, state_dir });
    Charge { readable: named.chain(keys).collect(), home: Some(super::home(config)), socket: config.socket(), back }
}

/// All that a bump needs beside its plan.
struct Start<'a> {
    file: &'a Path,
    config: &'a Config,
    prepared: Prepared,
    clock: Clock,
}

impl Start<'_> {
    /// Makes the bump that the plan says, and lets it work.
    fn carry_out(self, plan: Plan) -> Result<(), Failure> {
        match plan {
            Plan::Null => self.pass_all(),
            Plan::Shield(settings) => self.shield(*settings),
            Plan::Cll(sealing) => self.seal(*sealing),
            Plan::Sarp(sarp) => self.sign_arp(*sarp),
        }
    }

    /// As [`Load::new`] or another, with the priority that the data path got.
    fn load(&self, load: Load) -> Load {
        load.with(self.prepared.precedence.clone())
    }

    fn trains(&self) -> bool {
        self.config.trains() == Trains::Always
    }

    fn pass_all(self) -> Result<(), Failure> {
        let load = self.load(Load::new(self.trains()));
        let Prepared { ports, supervisor, .. } = self.prepared;
        let null = NullBump::disguised(EtherType(self.config.cll.ethertype));
        serve(null, Tools { here: (), beside: vec![()] }, load, ports.tap()?, self.clock, supervisor)
    }

    fn shield(self, settings: shield::ipsec::Settings) -> Result<(), Failure> {
        let load = self.load(Load::new(false));
        let Prepared { ports, outposts, mut supervisor, disk, .. } = self.prepared;
        supervisor.ward_mut().watch_keys(KeyWatch::new(self.config, &disk));
        let (mut shield, tools) = (Shield::new(settings), Tools { here: (), beside: vec![()] });
        if let Some(maps) = outposts.ipsec {
            shield.set_outpost(Box::new(maps));
        }
        match ports {
            Opened::Tap(ports) | Opened::Beside(ports) => serve(shield, tools, load, ports, self.clock, supervisor),
            Opened::Pair(ports) => serve(shield, tools, load, ports, self.clock, supervisor),
        }
    }

    fn seal(mut self, sealing: Sealing) -> Result<(), Failure> {
        let (config, load) = (self.config, self.load(Load::new(self.trains())));
        let Prepared { ports, outposts, mut supervisor, kept, .. } = self.prepared;
        let Sealing { identity, signed, progress, expiry } = sealing;
        let mut settings = link_layer(config, self.file, identity, supervisor.ward().wire_mtu())?;
        settings.policy = signed.rules().policy.clone();
        settings.legacy = signed.rules().legacy.clone();
        settings.proved = progress.proved().to_vec();
        settings.heard = progress.heard();
        let mut ports = ports.tap()?;
        let mut cll = cll::start(self.clock.now(), settings, generator()?, &mut ports.sinks());
        // There is one lane, and no key yet.
        if let (Some(lane), Some(mut outpost)) = (cll.lanes.first_mut(), outposts.link_layer) {
            progress.proved().iter().for_each(|host| outpost.acquaint(host.mac));
            lane.set_outpost(Box::new(outpost));
        }
        if let Some((files, remembered)) = kept {
            cll::remember(&mut cll, self.clock.now(), remembered, &mut ports.sinks());
            supervisor.ward_mut().keep_tickets(files);
        }
        if let Some(list) = signed.revocations().list() {
            cll::revoke(&mut cll, self.clock.now(), Arc::clone(list), &mut ports.sinks());
        }
        if let Some(policy) = signed.policy() {
            cll::begin_with_policy(&mut cll, self.clock.now(), Arc::clone(policy), &mut ports.sinks());
        }
        supervisor.ward_mut().keep_progress(progress, expiry, signed);
        let tools = Tools { here: KernelSource, beside: vec![KernelSource] };
        serve(cll, tools, load, ports, self.clock, supervisor)
    }

    fn sign_arp(self, sarp: SignedArp) -> Result<(), Failure> {
        let (of_all, of_kept) = (self.load(Load::new(self.trains())), self.load(Load::of_kept()));
        let Prepared { ports, outposts, mut supervisor, signing_threads, .. } = self.prepared;
        let SignedArp { settings, distributors, akd, records, side, .. } = sarp;
        supervisor.ward_mut().name_distributors(distributors);
        supervisor.ward_mut().keep_sarp(side);
        let mut host = sarp::Host::new(Arc::new(settings), akd, generator()?);
        if let Some(maps) = outposts.sarp {
            host.set_outpost(Box::new(maps));
        }
        let workers = if self.config.akd.is_some() { signing_threads } else { 1 };
        let tools = Tools { beside: vec![Arc::clone(&records); workers], here: records };
        match ports {
            Opened::Tap(ports) => serve(host, tools, of_all, ports, self.clock, supervisor),
            Opened::Beside(ports) => serve(host, tools, of_kept, ports, self.clock, supervisor),
            Opened::Pair(ports) => serve(host, tools, of_kept, ports, self.clock, supervisor),
        }
    }
}

/// What earlier runs have kept to resume associations with. A host that cannot keep any makes handshakes instead.
fn kept_tickets(config: &Config, identity: &HostIdentity, disk: &Disk) -> Option<(TicketFiles, Remembered)> {
    TicketFiles::open(config, identity, disk).unwrap_or_else(|failure| {
        tracing::warn!(interface = config.host.interface, "{failure}");
        None
    })
}

/// What is ready when the first frame may be read.
struct Prepared {
    ports: Opened,
    outposts: Outposts,
    supervisor: Supervisor<Interface>,
    precedence: Precedence,
    disk: Disk,
    /// What earlier runs have kept to resume associations with, in mode `cll`.
    kept: Option<(TicketFiles, Remembered)>,
    signing_threads: usize,
}

/// The cheap checks in the kernel, by what they are in front of.
#[derive(Default)]
struct Outposts {
    link_layer: Option<Outpost>,
    ipsec: Option<IpsecMaps>,
    sarp: Option<SarpMaps>,
}

/// Everything between the take-over and the first frame.
fn prepare(
    config: &Config,
    disk: &Disk,
    companions: Companions,
    identity: Option<&Arc<HostIdentity>>,
    mut taken: Taken,
    arm: impl FnOnce() -> Result<(), Failure>,
) -> Result<Prepared, Failure> {
    if let Some(identity) = identity {
        // Without an inner device, after a crash, the card's address was not known before.
        check_interface(config, identity, taken.inner_mac)?;
    }
    let follower = Follower::open(&taken).map_err(|error| failed(config, "following the card", &error))?;
    let ports = open_ports(config, &mut taken)?;
    let (outposts, standing) = open_outposts(config, identity, &ports, &taken);
    takeover::flush_neighbours(&config.host.interface)?;
    let interface = Interface::new(config, disk, identity.cloned(), taken, follower, standing);
    let told = (here(config, identity), companions);
    let mut supervisor = Supervisor::open(interface, config.socket(), "host.run_dir", disk, told)?;
    arm()?;
    let identity = identity.filter(|_| config.host.mode == Mode::Cll);
    let kept = identity.and_then(|identity| kept_tickets(config, identity, disk));
    let signing_threads = signing_threads();
    let precedence = Precedence::take(config.host.real_time_priority.map(RealTime::priority));
    let entered = sandbox(config).enter();
    supervisor.inside(entered.map_err(|error| failed(config, "entering the sandbox", &error))?);
    Ok(Prepared { ports, outposts, supervisor, precedence, disk: disk.clone(), kept, signing_threads })
}

/// Whose attacks are told.
fn here(config: &Config, identity: Option<&Arc<HostIdentity>>) -> Here {
    let host = identity.map_or_else(system::host_name, |identity| identity.certificate().name().to_owned());
    Here { host, interface: config.host.interface.clone(), mode: config.host.mode.word().to_owned() }
}

/// The cheap checks in front of the wire's port or card. Where every frame passes this program, the kernel says of none what is IPsec, and
/// checks none of it.
fn open_outposts(
    config: &Config,
    identity: Option<&Arc<HostIdentity>>,
    ports: &Opened,
    taken: &Taken,
) -> (Outposts, Option<Standing>) {
    let index = taken.wire_index;
    let attach_to_card: &AttachToCard<'_> =
        &|program, mode| takeover::in_wire_namespace(taken, || xdp::attach(program, index, mode))?;
    let front = |wanted: HookName, port| Front { wanted: wanted.hook(), port, attach_to_card };
    let (outposts, standing) = match (config.host.mode, ports, identity, &config.shield) {
        (Mode::Cll, Opened::Tap(ports), Some(identity), _) => {
            let (mac, ethertype) = (identity.certificate().mac(), EtherType(config.cll.ethertype));
            let hint_keys = hint_keys(config, identity);
            let rates = config.kernel_rates();
            let own = Own { mac, ethertype, strangers_pass: false, joined_unmarked: false, hint_keys, rates };
            let (link_layer, standing) =
                outpost::open(config.layers(), own, &front(config.cll.kernel_hook, &ports.wire));
            (Outposts { link_layer, ..Outposts::default() }, standing)
        }
        (Mode::Shield, Opened::Pair(ports), _, Some(section)) => {
            let attach =
                |program: &Program| takeover::in_wire_namespace(taken, || ingress::attach_loaded(program, index))?;
            let way = taken.outer_index().map(|outer| outpost::Way { attach: &attach, outer });
            let front = front(section.kernel_hook, &ports.wire);
            let (ipsec, standing) = outpost::open_for_ipsec(section.kernel, &front, way.as_ref());
            (Outposts { ipsec, ..Outposts::default() }, standing)
        }
        (Mode::Sarp, ports, Some(identity), _) => {
            let front = front(config.sarp.kernel_hook, ports.wire());
            let own = own_for_sarp(config, identity, ports);
            let (sarp, standing) = outpost::open_for_sarp(config.sarp_in_kernel(), &own, &front);
            (Outposts { sarp, ..Outposts::default() }, standing)
        }
        _ => return (Outposts::default(), None),
    };
    if let Some(reason) = &standing.reason {
        let interface = config.host.interface.as_str();
        tracing::warn!(interface, "{reason}; forged frames are dropped {} instead", standing.who());
    }
    (outposts, Some(standing))
}

/// By what the kernel tells tags of the site until the data path says it again.
fn hint_keys(config: &Config, identity: &HostIdentity) -> HintKeys {
    let unix_s = config.clock().now().trusted_unix_ms().unwrap_or(0) / 1000;
    let unix_s = unix_s.max(identity.certificate().not_before_unix());
    identity.site_keys().accepted(unix_s).map(|(_, key)| key.hint_key()).collect()
}

/// What the kernel must know of a host that signs ARP.
fn own_for_sarp(config: &Config, identity: &HostIdentity, ports: &Opened) -> shield::sarp::Own {
    shield::sarp::Own {
        numbers: numbers(config, identity),
        keeps: keeps(config, ports),
        answers_per_source_per_second: sarp::limits::ANSWERS_PER_SOURCE_PER_SECOND,
        strangers_answered_per_second: sarp::limits::STRANGERS_ANSWERED_PER_SECOND,
        checks_per_token_per_second: sarp::limits::ENROLMENT_CHECKS_PER_TOKEN_PER_SECOND,
    }
}

/// By what the kernel tells the number of a token, if this host is a distributor. Which master is over
/// it hears from the data path.
fn numbers(config: &Config, identity: &HostIdentity) -> Vec<shield::sarp::Key> {
    let masters = identity.request_masters().filter(|_| config.akd.is_some());
    let masters = masters.into_iter().flat_map(|masters| masters.iter());
    masters.map(|(_, master)| NumberKey::of(master).bytes().clone()).collect()
}

/// What the wire's socket hears of a host that signs ARP.
fn keeps(config: &Config, ports: &Opened) -> Keeps {
    match (ports, kept(config)) {
        (Opened::Tap(_), _) => Keeps::All,
        (Opened::Pair(_) | Opened::Beside(_), Kept::ArpAndDhcp) => Keeps::ArpAndDhcp,
        (Opened::Pair(_) | Opened::Beside(_), _) => Keeps::Arp,
    }
}

/// A start that failed leaves nothing half done: what it took goes back. An interface that had been closed before stays
/// closed.
fn undo(config: &Config, was_taken: bool, failure: Failure) -> Failure {
    if was_taken {
        return failure;
    }
    match super::give_back(config) {
        Ok(()) => failure,
        Err(error) => Failure::new(format!("{failure}; and it could not be given back: {error}")),
    }
}

/// Threads on which a distributor signs: one for each processor, as far as it can feed them.
fn signing_threads() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get).min(SIGNING_THREADS_MAX)
}

/// Takes the interface over. Where it cannot be guarded in place and was not yet, "auto" has another way.
fn take(config: &Config, was_taken: bool) -> Result<Taken, Failure> {
    let (way, against) = config.way();
    let request = request(config, way);
    if let Some(what) = against {
        tracing::info!(interface = request.interface, "does not stay in place: that does not go with {what}");
    }
    match takeover::take(&request) {
        Err(error) if error.is_of_the_way() && !was_taken && request.way != config.host.takeover => {
            tracing::warn!(interface = request.interface, "{error}; taken over in another way");
            if state::load(&request.state_dir, &request.interface)?.is_some() {
                takeover::release(&request.interface, &request.run_dir, &request.state_dir)?;
            }
            Ok(takeover::take(&Request { way: config.host.takeover, ..request })?)
        }
        taken => Ok(taken?),
    }
}

fn request(config: &Config, way: Way) -> Request {
    Request {
        interface: config.host.interface.clone(),
        run_dir: config.host.run_dir.clone(),
        state_dir: config.host.state_dir.clone(),
        overhead_bytes: u16::try_from(overhead(config)).unwrap_or(u16::MAX),
        way,
        inner: match config.host.mode {
            Mode::Sarp | Mode::Shield => Inner::Veth { kept: kept(config) },
            Mode::Cll | Mode::Null => Inner::Tap { queues: 1 },
        },
        admitted: admitted(config),
    }
}

/// What comes to this program from a card that stays in place: what is sealed, and what passes in
/// clear by configuration.
fn admitted(config: &Config) -> Admitted {
    let ethertypes = std::iter::once(EtherType(config.cll.ethertype)).chain(config.pass_list()).collect();
    Admitted { ethertypes, train_port: train::PORT }
}

/// What the kernel leaves to this program where it can join card and stack.
fn kept(config: &Config) -> Kept {
    if config.host.mode == Mode::Shield {
        return Kept::Ipsec;
    }
    if config.dhcp.client || config.dhcp.server { Kept::ArpAndDhcp } else { Kept::Arp }
}

/// What sealing adds to a frame, in bytes; nothing where frames pass as they are.
fn overhead(config: &Config) -> usize {
    match (config.host.mode, config.trains()) {
        (Mode::Sarp | Mode::Shield, _) => 0,
        (Mode::Cll | Mode::Null, Trains::Off) => OVERHEAD_MAX,
        (Mode::Cll | Mode::Null, Trains::Auto | Trains::Always) => OVERHEAD_MAX + train::OVERHEAD,
    }
}

/// The certificate is for this card.
fn check_interface(config: &Config, identity: &HostIdentity, mac: MacAddress) -> Result<(), Failure> {
    let bound = identity.certificate().mac();
    if bound == mac || (config.is_wireless && is_permanent(bound, &config.host.interface)?) {
        return Ok(());
    }
    let what = format!("the certificate is for {bound}, but {} is {mac}", config.host.interface);
    Err(Failure::file(&config.host.identity, what, "issue a certificate for this interface"))
}

/// Whether the card was made with this address. Network managers give a wireless one made-up
/// addresses while it looks for a network, and its own when it joins: the guard stands before that.
fn is_permanent(mac: MacAddress, interface: &str) -> Result<bool, Failure> {
    Ok(takeover::card(interface)?.is_some_and(|card| card.permanent_mac == Some(mac)))
}

/// The two ports, by what the stack's side is.
enum Opened {
    /// All frames pass through this program.
    Tap(Ports),
    /// The kernel joins card and stack by itself, and only ARP comes here.
    Pair(Ports<PacketPort>),
    /// The same, of a card that stays in place with a TAP beside it.
    Beside(Ports),
}

impl Opened {
    fn wire(&self) -> &PacketPort {
        match self {
            Opened::Tap(ports) | Opened::Beside(ports) => &ports.wire,
            Opened::Pair(ports) => &ports.wire,
        }
    }

    fn tap(self) -> Result<Ports, Failure> {
        match self {
            Opened::Tap(ports) => Ok(ports),
            Opened::Pair(_) | Opened::Beside(_) => {
                Err(Failure::new("the inner device passes frames by, which this mode must not have"))
            }
        }
    }
}

fn open_ports(config: &Config, taken: &mut Taken) -> Result<Opened, Failure> {
    match taken.stack {
        StackSide::Tap { .. } if taken.fence.is_some() && config.host.mode == Mode::Sarp => {
            open_beside(config, taken).map(Opened::Beside)
        }
        StackSide::Tap { .. } => open_tap(config, taken).map(Opened::Tap),
        StackSide::Veth { outer_index, .. } => {
            let port = |index: u32| open_packet_port(config, taken, &of_kept(config, index));
            Ok(Opened::Pair(Ports { stack: port(outer_index)?, wire: port(taken.wire_index)? }))
        }
    }
}

/// What is kept for this program, through a TAP beside the card and a packet socket on it.
fn open_beside(config: &Config, taken: &mut Taken) -> Result<Ports, Failure> {
    let options = PacketOptions {
        mark: taken.mark,
        filter: Some(takeover::not_opened(Some(kept(config)))),
        ..of_kept(config, taken.wire_index)
    };
    Ok(Ports { wire: open_packet_port(config, taken, &options)?, stack: stack_port(taken)? })
}

fn of_kept(config: &Config, index: u32) -> PacketOptions {
    for_load(config, PacketOptions { all_multicast: true, ..PacketOptions::kept(kept(config), index) })
}

/// A distributor is asked by everybody. All of IPsec passes a shield, super-frames too, which no slot of a ring holds.
fn for_load(config: &Config, options: PacketOptions) -> PacketOptions {
    let ring = match (config.host.mode, &config.akd) {
        (Mode::Shield, _) => None,
        (_, Some(_)) => Some(RingSlots::Many),
        (_, None) => return options,
    };
    PacketOptions { buffer_bytes: SOCKET_BUFFER_BYTES, ring, ..options }
}

fn open_packet_port(config: &Config, taken: &Taken, options: &PacketOptions) -> Result<PacketPort, Failure> {
    takeover::in_wire_namespace(taken, || PacketPort::open(options))
        .map_err(|error| failed(config, "entering the card's namespace", &error))?
        .map_err(|error| failed(config, "opening the card", &error))
}

fn open_tap(config: &Config, taken: &mut Taken) -> Result<Ports, Failure> {
    let options = PacketOptions {
        mark: taken.mark,
        all_multicast: true,
        trains: matches!(config.host.mode, Mode::Cll | Mode::Null).then(|| TrainOptions {
            ethertype: EtherType(config.cll.ethertype),
            wire_mtu: u16::try_from(taken.nic_mtu).unwrap_or(u16::MAX),
            couple: config.trains() != Trains::Off,
        }),
        filter: taken.fence.is_some().then(|| takeover::not_opened(None)),
        ..PacketOptions::new(taken.wire_index)
    };
    let mut wire = open_packet_port(config, taken, &options)?;
    if let Some(clear) = taken.fence.as_ref().and_then(Fence::clear) {
        wire.receive_also(clear);
    }
    Ok(Ports { stack: stack_port(taken)?, wire })
}

fn stack_port(taken: &mut Taken) -> Result<TapPort, Failure> {
    taken.take_queue().map(TapPort::new).ok_or_else(|| Failure::new("the inner device has no queue"))
}

/// The one privilege that remains is for following the card's changes. A distributor also works
/// with its repository.
fn sandbox(config: &Config) -> Sandbox {
    let calls = match config.akd.as_ref().map(|section| section.keeper()) {
        None => Calls::Frames,
        Some(Keeper::File(_)) => Calls::Database,
        Some(Keeper::Cluster(_)) => Calls::Connections,
    };
    Sandbox { capabilities: &[Capability::NetAdmin], calls }
}

fn failed(config: &Config, what: &str, error: &dyn std::fmt::Display) -> Failure {
    let interface = &config.host.interface;
    Failure::new(format!("{interface}: {what}: {error}; run as root, and see `ringwall host release` to undo"))
}

/// What the link layer goes by on a wire with this MTU.
fn link_layer(
    config: &Config,
    file: &Path,
    identity: Arc<HostIdentity>,
    wire_mtu: u16,
) -> Result<cll::Settings, Failure> {
    let ipv6 = config.cll.ipv6 && fits_ipv6(&identity);
    let dhcp = super::leases::settings(config, &identity, ipv6, wire_mtu)?;
    let kept_free = u16::try_from(overhead(config).saturating_sub(OVERHEAD_MAX)).unwrap_or(0);
    Ok(cll::Settings { dhcp, ipv6, kept_free, ..config.settings(file, identity, wire_mtu)? })
}

/// Whether handshakes about IPv6 addresses have room for this host's certificate.
fn fits_ipv6(identity: &HostIdentity) -> bool {
    let (len, most) = (identity.certificate().der().len(), CERTIFICATE_LEN_MAX_V6);
    if len > most {
        tracing::warn!(
            "IPv6 is off: the certificate has {len} bytes, {most} fit; issue one with fewer names or a smaller key"
        );
    }
    len <= most
}

fn log_start(config: &Config, taken: &Taken) {
    let interface = config.host.interface.as_str();
    tracing::info!(interface, way = ?taken.way, adopted = taken.adopted, mtu = taken.inner_mtu, "taken over");
    let weakened = config.weakened();
    if !weakened.is_empty() {
        tracing::warn!(interface, ?weakened, "switched off by [lab]: this host is NOT protected");
    }
    if config.host.mode == Mode::Null {
        tracing::warn!(interface, "mode null: this host is NOT protected");
    }
    for warning in config.warnings().iter().chain(&taken.warnings) {
        tracing::warn!(interface, "{warning}");
    }
    if config.host.mode == Mode::Cll && config.cll.ipv6 && taken.inner_mtu < IPV6_MTU_MIN {
        let remedy = "raise the MTU of the card, or set ipv6 = false in [cll]";
        tracing::warn!(
            interface,
            mtu = taken.inner_mtu,
            "IPv6 needs an MTU of {IPV6_MTU_MIN}: the kernel uses none here; {remedy}"
        );
    }
}
