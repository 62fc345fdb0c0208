//! Commands that ask a running daemon: `status`, `peers`, `events`, `explain`.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bump::DropReason;
use clap::Args;

use crate::config::{self, Profile};
use crate::failure::Failure;
use crate::modes::ConfigFile;
use crate::modes::file::paper_warning;
use crate::output::say;
use crate::protocol::{
    Answer, Ask, Attacks, Compression, Event, Example, GateStatus, Key, Layers, Migration, OwnKey, Pair, Peer,
    REAL_TIME, Sarp, Shield, Signed, SitePolicy, Status,
};
use crate::verdict::{self, Verdict};

/// How long a daemon may take to answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
/// How often a question is put again that the daemon hung up on: it does not wait for who takes half a second to ask.
const ASKED_AGAIN_MAX: usize = 3;
/// How often it is looked whether a daemon has stopped.
const STOP_LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// What the JSON of `status` is called, and its version, which changes when a field goes or means something else.
const STATUS_SCHEMA: &str = "ringwall-status";
const STATUS_VERSION: u32 = 1;
/// How often `events --follow` asks.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(500);

/// Which daemon is meant.
#[derive(Args, Debug, Clone)]
pub(crate) struct DaemonArgs {
    /// Configuration file of the daemon; without it /etc/ringwall/host.toml or, where that is not, gate.toml beside it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The daemon of this interface in /run/ringwall, whatever its file; of a gateway the trusted one.
    #[arg(long, value_name = "NAME", conflicts_with = "config")]
    interface: Option<String>,
}

impl DaemonArgs {
    /// Where the daemon listens.
    pub(crate) fn socket(&self) -> Result<PathBuf, Failure> {
        self.socket_of(config::default_file)
    }

    /// The same, where without file or interface the daemon of `usual` is meant.
    pub(crate) fn socket_or(&self, usual: &str) -> Result<PathBuf, Failure> {
        self.socket_of(|| usual.into())
    }

    /// All daemons of this machine where none is named and several run; otherwise the one that is meant.
    pub(crate) fn sockets(&self) -> Result<Vec<PathBuf>, Failure> {
        let named = self.config.is_some() || self.interface.is_some();
        let running = if named { Vec::new() } else { sockets_in(&config::default_run_dir()) };
        if running.is_empty() { Ok(vec![self.socket()?]) } else { Ok(running) }
    }

    fn socket_of(&self, usual: impl FnOnce() -> PathBuf) -> Result<PathBuf, Failure> {
        if let Some(interface) = &self.interface {
            return Ok(config::socket(&config::default_run_dir(), interface));
        }
        let file = self.config.clone().unwrap_or_else(usual);
        ConfigFile::load(&file)?.socket(&file)
    }
}

/// The command sockets in a directory, by name.
fn sockets_in(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let is_socket = |path: &PathBuf| path.extension().is_some_and(|end| end == "sock");
    let mut sockets: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_socket).collect();
    sockets.sort_unstable();
    sockets
}

/// Options of every question.
#[derive(Args, Debug)]
pub(crate) struct AskArgs {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// Asks the daemon that listens on `socket`.
pub(crate) fn ask(socket: &Path, ask: &Ask) -> Result<Answer, Failure> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            let what = format!("the daemon did not answer within {} s", ANSWER_TIME_MAX.as_secs());
            Failure::file(socket, what, "ask again; if it stays so, see the log of the daemon")
        }
        _ => {
            let remedy = "start the daemon with `ringwall host run` or `ringwall gate run`, and ask as root";
            Failure::file(socket, error, remedy)
        }
    };
    let mut line = serde_json::to_string(ask).map_err(Failure::new)?;
    line.push('\n');
    let is_hung_up = |text: &std::io::Result<String>| match text {
        Ok(text) => text.is_empty(),
        Err(error) => matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset),
    };
    let mut text = exchange(socket, &line);
    for _ in 0..ASKED_AGAIN_MAX {
        if is_hung_up(&text) {
            text = exchange(socket, &line);
        }
    }
    let text = text.map_err(failed)?;
    if text.is_empty() {
        return Err(Failure::file(
            socket,
            "the daemon hung up",
            "ask again; if it stays so, see the log of the daemon",
        ));
    }
    match serde_json::from_str(&text).map_err(|error| Failure::file(socket, error, "use the same version of both"))? {
        Answer::Error { line } => Err(Failure::file(socket, line, "see the log of the daemon")),
        answer => Ok(answer),
    }
}

/// Puts one line to the daemon; what it says is empty if it hung up. Every question may be put twice.
fn exchange(socket: &Path, line: &str) -> std::io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
    stream.write_all(line.as_bytes())?;
    let mut text = String::new();
    BufReader::new(stream).read_line(&mut text)?;
    Ok(text)
}

/// Tells a living daemon, that of `interface`, to stop and waits until it has.
pub(crate) fn stop(socket: &Path, interface: &str, time_max: Duration) -> Result<(), Failure> {
    if ask(socket, &Ask::Stop).is_err() {
        return Ok(());
    }
    let end = Instant::now() + time_max;
    while socket.exists() {
        if Instant::now() > end {
            let line = format!("the daemon of {interface} does not stop; end it by its process id");
            return Err(Failure::new(line));
        }
        std::thread::sleep(STOP_LOOK_INTERVAL);
    }
    Ok(())
}

/// Removes what a killed daemon has left. The lock on its interface has shown that nobody listens there.
pub(crate) fn remove_socket(socket: &Path) -> Result<(), Failure> {
    match std::fs::remove_file(socket) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Failure::file(socket, error, "remove it")),
        _ => Ok(()),
    }
}

pub(crate) fn unexpected(socket: &Path) -> Failure {
    Failure::file(socket, "the daemon answered something else", "use the same version of both")
}

pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    say!("{}", serde_json::to_string_pretty(value).map_err(Failure::new)?);
    Ok(())
}

/// What a daemon says of itself, and what is to be made of it.
enum Told {
    Host(Box<Status>),
    Gate(Box<GateStatus>),
    /// Nobody answers; the name of the socket stands for the daemon.
    Nothing(String, Failure),
}

/// `ringwall status`: the exit status says how it is.
pub(crate) fn status(args: &AskArgs) -> Result<ExitCode, Failure> {
    let sockets = args.daemon.sockets()?;
    let told: Vec<Told> = sockets.iter().map(|socket| ask_status(socket)).collect();
    if let [Told::Nothing(_, _)] = told[..] {
        let failure = told.into_iter().find_map(|one| if let Told::Nothing(_, why) = one { Some(why) } else { None });
        return Err(failure.unwrap_or_else(|| Failure::new("no daemon answers")));
    }
    if args.json {
        print_statuses_json(&told, args.daemon.config.is_some() || args.daemon.interface.is_some())?;
    } else {
        told.iter().for_each(Told::print);
    }
    let worst = told.iter().map(|one| one.verdict().level).max().unwrap_or(verdict::Level::Unknown);
    Ok(ExitCode::from(worst as u8))
}

fn ask_status(socket: &Path) -> Told {
    match ask(socket, &Ask::Status) {
        Ok(Answer::Status(status)) => Told::Host(status),
        Ok(Answer::Gate(status)) => Told::Gate(status),
        Ok(_) => Told::Nothing(stem(socket), unexpected(socket)),
        Err(failure) => Told::Nothing(stem(socket), failure),
    }
}

pub(crate) fn stem(socket: &Path) -> String {
    socket.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// One that was named is an object; all of a machine are a list in one.
fn print_statuses_json(told: &[Told], is_named: bool) -> Result<(), Failure> {
    let all: Vec<_> = told.iter().map(Told::json).collect::<Result<_, _>>()?;
    match &all[..] {
        [one] if is_named => print_json(one),
        _ => print_json(&serde_json::json!({
            "schema": STATUS_SCHEMA, "schema_version": STATUS_VERSION, "daemons": all,
        })),
    }
}

impl Told {
    fn verdict(&self) -> Verdict {
        match self {
            Told::Host(status) => verdict::of_host(status),
            Told::Gate(status) => verdict::of_gate(status),
            Told::Nothing(_, failure) => Verdict::unknown(&failure.to_string()),
        }
    }

    fn print(&self) {
        let verdict = self.verdict();
        match self {
            Told::Host(status) => {
                say!("{}", verdict.line(&status.interface));
                print_attacks(&status.attacks);
                print_status(status);
            }
            Told::Gate(status) => {
                say!("{}", verdict.line(&status.interface));
                print_attacks(&status.attacks);
                print_gate(status);
            }
            Told::Nothing(name, _) => say!("{}", verdict.line(name)),
        }
    }

    fn json(&self) -> Result<serde_json::Value, Failure> {
        let mut value = match self {
            Told::Host(status) => serde_json::to_value(status).map_err(Failure::new)?,
            Told::Gate(status) => serde_json::to_value(status).map_err(Failure::new)?,
            Told::Nothing(name, _) => serde_json::json!({ "interface": name, "state": "silent" }),
        };
        let verdict = serde_json::to_value(self.verdict()).map_err(Failure::new)?;
        if let Some(fields) = value.as_object_mut() {
            fields.insert("schema".to_owned(), STATUS_SCHEMA.into());
            fields.insert("schema_version".to_owned(), STATUS_VERSION.into());
            fields.insert("verdict".to_owned(), verdict);
        }
        Ok(value)
    }
}

/// Who attacks, one line each, and what to do.
fn print_attacks(attacks: &Attacks) {
    for attack in &attacks.open {
        say!("attack {}, {}: {} Last {}.", attack.number, attack.sort.kind, attack.sentence, attack.span.last);
        say!("  do: {}", attack.sort.advice);
    }
    if attacks.opened > attacks.open.len() as u64 {
        say!("attacks since the start: {}, of which {} go on", attacks.opened, attacks.open.len());
    }
}

fn print_gate(status: &GateStatus) {
    say!("gateway {} {}: up {} s, ringwall {}", status.interface, status.state, status.uptime_s, status.version);
    for warning in &status.warnings {
        say!("warning: {warning}");
    }
    for (role, card) in [("trusted", &status.trusted), ("untrusted", &status.untrusted), ("mirror", &status.mirror)] {
        let Some(card) = card else { continue };
        let carrier = if card.carrier { "on" } else { "off" };
        say!("{role}: {} ({}), carrier {carrier}, MTU {}", card.interface, card.mac, card.mtu);
    }
    let taken = if status.adopted { "adopted" } else { "new" };
    say!("cards: {taken}, on exit {}; what is cut anew fits {} bytes", status.on_exit, status.mtu);
    for (probe, outcome) in &status.probes {
        say!("{probe}: {outcome}");
    }
    let changed: Vec<_> = status.changed_rules.iter().map(|(rule, action)| format!("{rule} = {action}")).collect();
    let changed = if changed.is_empty() { String::new() } else { format!(", but {}", changed.join(", ")) };
    say!("preset: {}{changed}", status.preset);
    let frames = &status.frames;
    say!(
        "from the trusted side: {} received, {} forwarded; from the untrusted: {} received, {} forwarded",
        frames.received_from_trusted,
        frames.forwarded_to_untrusted,
        frames.received_from_untrusted,
        frames.forwarded_to_trusted
    );
    say!(
        "answered {}, consumed {}, held {}, dropped {}",
        frames.answered,
        frames.consumed,
        frames.held,
        frames.dropped
    );
    let (held, idle) = (status.memory_bytes, status.memory_idle_bytes);
    say!("TCP connections: {}; memory held: {held} bytes, kept for the next: {idle} bytes", status.flows);
    for (title, counts) in [("dropped, by reason:", &status.drops), ("rules that acted:", &status.rules)] {
        say!("{title}");
        print_counts(counts);
    }
}

fn print_counts(counts: &BTreeMap<String, u64>) {
    for (name, count) in counts.iter().filter(|(_, count)| **count > 0) {
        say!("  {count:>10}  {name}");
    }
}

fn print_status(status: &Status) {
    let takeover = &status.takeover;
    say!(
        "{} {}: mode {}, up {} s, ringwall {}",
        status.interface,
        status.state,
        status.mode,
        status.uptime_s,
        status.version
    );
    if !status.weakened.is_empty() || status.mode == "null" {
        say!("NOT PROTECTED: profile {}, switched off: {}", status.profile, status.weakened.join(", "));
    }
    if status.profile == Profile::Paper.word() {
        say!("NOT PROTECTED: {}", paper_warning(&status.mode));
    }
    if let Some(migration) = &status.migration {
        print_migration(migration);
    }
    if let Some(identity) = &status.identity {
        let addresses = identity.addresses.join(", ");
        say!("this host: {} of site {} ({}, {addresses})", identity.name, identity.site, identity.mac);
        say!("certificate: {} days left; clock: {}", identity.certificate_days_left, status.clock);
    }
    say!(
        "taken over by {} ({}), carrier {}, MTU {} of {}, on exit {}",
        takeover.way,
        if takeover.adopted { "adopted" } else { "new" },
        if takeover.carrier { "on" } else { "off" },
        takeover.inner_mtu,
        takeover.wire_mtu,
        takeover.on_exit
    );
    if let Some(seconds) = takeover.reverts_in_s {
        say!("GIVEN BACK in {seconds} s unless you run `ringwall host confirm`");
    }
    for warning in takeover.warnings.iter().chain(&status.warnings) {
        say!("warning: {warning}");
    }
    say!("peers: {}", status.peers);
    if let Some(layers) = &status.layers {
        print_layers(layers);
    }
    if let Some(outcome) = takeover.probes.get(REAL_TIME) {
        say!("{REAL_TIME}: {outcome}");
    }
    if let Some(compression) = &status.compression {
        print_compression(compression);
    }
    for lease in &status.leases {
        let whose = if lease.given { format!("given to {}", lease.mac) } else { "this host's".to_owned() };
        say!("lease: {}, {whose}, {}", lease.address, lease_end(lease.remaining_s));
    }
    print_signed(&status.signed);
    if let Some(sarp) = &status.sarp {
        print_sarp(sarp);
    }
    if let Some(shield) = &status.shield {
        print_shield(shield);
    }
    print_frames(status);
    if !status.not_carried.is_empty() {
        say!("not carried in this version: {}", status.not_carried.join("; "));
    }
    if !status.not_protected.is_empty() {
        say!("not protected: {}", status.not_protected.join("; "));
    }
}

/// What of the site's authority is in force.
fn print_signed(signed: &Signed) {
    if let Some(revoked) = signed.revoked {
        say!("revoked certificates: {revoked}");
    }
    if let Some(policy) = &signed.policy {
        print_policy(policy);
    }
}

/// Which version of the site's policy runs, since when, and where this host's own file differs.
fn print_policy(policy: &SitePolicy) {
    match (policy.version, &policy.since) {
        (Some(version), Some(since)) => {
            say!("site policy: version {version}, in force since {since}, {}", policy.origin)
        }
        (Some(version), None) => say!("site policy: version {version}, {}", policy.origin),
        (None, _) => say!("site policy: none"),
    }
    if let (Some(group), Some(mode)) = (&policy.group, &policy.mode) {
        let changes = policy.changes.as_ref().map_or_else(String::new, |changes| format!(", {changes}"));
        say!("site policy for this host (group {group}): {mode}{changes}");
    }
    for note in &policy.own_file {
        say!("own file: {note}");
    }
    if !policy.refused.is_empty() {
        say!("site policies refused:");
        print_counts(&policy.refused);
    }
}

/// How far the move to sealed frames is.
fn print_migration(migration: &Migration) {
    if migration.mode == "observe" {
        say!("NOT PROTECTED: cll.migration = \"observe\", whoever speaks in clear is believed");
    }
    say!(
        "migration: {}; {} hosts have proved themselves, {} speak in clear",
        migration.mode,
        migration.proved,
        migration.in_clear
    );
    for (mac, mode) in &migration.exceptions {
        say!("exception: {mac} is treated by mode {mode}");
    }
    for manager in &migration.management {
        say!("management machine, reachable in clear: {manager}");
    }
    if !migration.would_drop.is_empty() {
        say!("let pass, would be dropped in mode enforce:");
        print_counts(&migration.would_drop);
    }
}

fn print_shield(shield: &Shield) {
    say!(
        "shield: {} peers with one, {} without; SPIs known: {} of {:08x} to {:08x}",
        shield.peers_with_shield,
        shield.peers_without_shield,
        shield.known_spis,
        shield.spi_min,
        shield.spi_max
    );
}

/// Where forged frames end, and how many did so in the kernel.
fn print_layers(layers: &Layers) {
    let hook = layers.hook.as_ref().map_or_else(String::new, |hook| format!(", hook {hook}"));
    let reason = match &layers.reason {
        None => String::new(),
        // The layers are those that were wanted, and their place is another.
        Some(reason) if layers.wanted == layers.in_force => format!(" ({reason})"),
        Some(reason) => format!(" (wanted: {}; {reason})", layers.wanted),
    };
    say!("layers: {}{hook}{reason}", layers.in_force);
    let counts = layers.dropped_in_kernel.iter().filter(|(_, count)| **count > 0);
    let counts: Vec<_> = counts.map(|(reason, count)| format!("{reason} {count}")).collect();
    if !counts.is_empty() {
        say!("dropped in the kernel: {}", counts.join(", "));
    }
}

fn print_compression(compression: &Compression) {
    say!(
        "compression: {} frames out compressed, {} left as they were, {} bytes became {}; {} frames in, {} bytes became {}",
        compression.compressed_frames,
        compression.left_frames,
        compression.bytes_before,
        compression.bytes_after,
        compression.expanded_frames,
        compression.expanded_bytes_before,
        compression.expanded_bytes_after
    );
}

fn print_sarp(sarp: &Sarp) {
    let clock = sarp.clock_unix_s.map_or_else(|| "not set yet".to_owned(), |seconds| format!("{seconds} s"));
    say!(
        "S-ARP clock: {clock}, window {} s; keys: {}; requests open: {}",
        sarp.window_s,
        sarp.keys,
        sarp.open_requests
    );
    if let Some(key) = &sarp.own_key {
        say!("own key: {}", own_key(key));
    }
    if sarp.distributes {
        say!("this host distributes keys");
    }
    for distributor in &sarp.distributors {
        let first = sarp.asked_first.as_ref() == Some(&distributor.name);
        let note = if first { ", asked first" } else { "" };
        let days = distributor.certificate_days_left;
        say!(
            "key distributor: {} ({}, {}), {days} days left{note}",
            distributor.name,
            distributor.address,
            distributor.mac
        );
    }
    for lease in &sarp.leases {
        let whose = if lease.given { format!("given to host number {}", lease.host) } else { "this host's".to_owned() };
        say!("lease: {}, {whose}, {}", lease.address, lease_end(lease.remaining_s));
    }
    if sarp.distributors_silent {
        say!("NO KEY DISTRIBUTOR ANSWERS: keys that are known go on working, others cannot be fetched");
    }
}

fn lease_end(remaining_s: Option<u64>) -> String {
    remaining_s.map_or_else(|| "for ever".to_owned(), |seconds| format!("{seconds} s left"))
}

/// How old this host's key is, and when the next takes its place.
fn own_key(key: &OwnKey) -> String {
    let age = key.age_s.map_or_else(|| "of unknown age".to_owned(), |seconds| format!("{} old", long_time(seconds)));
    match (key.is_changing, key.changes_in_s) {
        (true, _) => format!("{age}, being changed now"),
        (false, Some(0)) => format!("{age}, to be changed now"),
        (false, Some(seconds)) => format!("{age}, changed in {}", long_time(seconds)),
        (false, None) => age,
    }
}

/// A time in the largest unit of which there are two at least.
fn long_time(seconds: u64) -> String {
    match seconds {
        172_800.. => format!("{} days", seconds / 86_400),
        7200.. => format!("{} h", seconds / 3600),
        _ => format!("{seconds} s"),
    }
}

fn print_frames(status: &Status) {
    let frames = &status.frames;
    say!(
        "to the wire: {} received, {} forwarded in {} frames; to the stack: {} received, {} forwarded",
        frames.received_from_stack,
        frames.forwarded_to_wire,
        frames.emitted_to_wire,
        frames.received_from_wire,
        frames.forwarded_to_stack
    );
    say!(
        "answered {}, consumed {}, held {}, dropped {}",
        frames.answered,
        frames.consumed,
        frames.held,
        frames.dropped
    );
    print_counts(&status.drops);
}

/// `ringwall peers`
pub(crate) fn peers(args: &AskArgs) -> Result<(), Failure> {
    let socket = args.daemon.socket()?;
    let peers = match ask(&socket, &Ask::Peers)? {
        Answer::Peers { peers } => peers,
        Answer::Keys { keys } => return print_keys(&keys, args.json),
        Answer::Pairs { pairs } => return print_pairs(&pairs, args.json),
        _ => return Err(unexpected(&socket)),
    };
    if args.json {
        return print_json(&peers);
    }
    say!(
        "{:<16} {:<18} {:<16} {:<12} {:>7} {:>7}  sends / receives, keys from",
        "name",
        "mac",
        "addresses",
        "state",
        "age",
        "heard"
    );
    for peer in &peers {
        print_peer(peer);
    }
    if peers.iter().any(|peer| peer.resumed) {
        say!("* resumed by a ticket");
    }
    Ok(())
}

fn print_keys(keys: &[Key], json: bool) -> Result<(), Failure> {
    if json {
        return print_json(&keys);
    }
    say!("{:<16} {:<18} {:>9}  heard", "address", "bound to", "fetched");
    for key in keys {
        let mac = key.mac.as_deref().unwrap_or("any");
        say!("{:<16} {mac:<18} {:>5} s ago  {}", key.address, key.fetched_s, if key.heard { "yes" } else { "no" });
    }
    Ok(())
}

fn print_pairs(pairs: &[Pair], json: bool) -> Result<(), Failure> {
    if json {
        return print_json(&pairs);
    }
    say!("{:<40} {:<10} {:>5} {:>12} {:>12} {:>12}", "address", "epochs", "SPIs", "sealed", "passed", "dropped");
    for pair in pairs {
        let epochs = pair.epochs.iter().map(|number| match pair.send_epoch {
            Some(send) if send == *number => format!("{number}*"),
            _ => number.to_string(),
        });
        let epochs = if pair.has_shield { epochs.collect::<Vec<_>>().join(",") } else { "no shield".to_owned() };
        let packets = &pair.packets;
        let dropped = packets.unknown + packets.out_of_range + packets.used + packets.far + packets.over_budget;
        say!(
            "{:<40} {epochs:<10} {:>5} {:>12} {:>12} {dropped:>12}",
            pair.address.to_string(),
            pair.known_spis,
            packets.sealed,
            packets.passed
        );
    }
    Ok(())
}

fn print_peer(peer: &Peer) {
    let heard = peer.last_opened_s.map_or_else(|| "never".to_owned(), |seconds| format!("{seconds} s"));
    say!(
        "{:<16} {:<18} {:<16} {:<12} {:>5} s {:>7}  {} / {}, {}",
        peer.name,
        peer.mac,
        peer.addresses.join(","),
        if peer.resumed { format!("{}*", peer.state) } else { peer.state.clone() },
        peer.age_s,
        heard,
        peer.sends,
        peer.receives,
        peer.agreement
    );
    for (reason, count) in &peer.in_clear.would_drop {
        say!("{:<16} would be dropped in mode enforce: {count} {reason}", "");
    }
}

/// Options of `ringwall events`
#[derive(Args, Debug)]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    ask: AskArgs,
    /// Goes on until it is interrupted.
    #[arg(long, short)]
    follow: bool,
}

/// `ringwall events`
pub(crate) fn events(args: &EventsArgs) -> Result<(), Failure> {
    let socket = args.ask.daemon.socket()?;
    let mut after = 0;
    loop {
        let Answer::Events { events } = ask(&socket, &Ask::Events { after })? else { return Err(unexpected(&socket)) };
        after = events.last().map_or(after, |event| event.number);
        for event in &events {
            print_event(event, args.ask.json)?;
        }
        if !args.follow {
            return Ok(());
        }
        std::thread::sleep(FOLLOW_INTERVAL);
    }
}

fn print_event(event: &Event, json: bool) -> Result<(), Failure> {
    if json {
        say!("{}", serde_json::to_string(event).map_err(Failure::new)?);
    } else {
        say!(
            "{:>6}  {}.{:03}  {:<12}  {}",
            event.number,
            event.unix_ms / 1000,
            event.unix_ms % 1000,
            event.event,
            event.text
        );
    }
    Ok(())
}

/// Options of `ringwall explain`
#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    ask: AskArgs,
    /// A reason to explain, as `status` names it; without it, what was dropped lately.
    reason: Option<String>,
}

/// `ringwall explain`
pub(crate) fn explain(args: &ExplainArgs) -> Result<(), Failure> {
    if let Some(word) = &args.reason
        && !DropReason::ALL.iter().any(|reason| reason.word() == word)
    {
        let words: Vec<_> = DropReason::ALL.iter().map(|reason| reason.word()).collect();
        return Err(Failure::new(format!("no drop reason \"{word}\"; there are {}", words.join(", "))));
    }
    let socket = args.ask.daemon.socket()?;
    let Answer::Drops { counts, examples } = ask(&socket, &Ask::Drops)? else { return Err(unexpected(&socket)) };
    let wanted = |word: &str| args.reason.as_ref().is_none_or(|reason| reason == word);
    if args.ask.json {
        let examples: Vec<&Example> = examples.iter().filter(|example| wanted(&example.reason)).collect();
        return print_json(&serde_json::json!({ "counts": counts, "examples": examples }));
    }
    for reason in DropReason::ALL {
        let count = counts.get(reason.word()).copied().unwrap_or(0);
        let asked = args.reason.is_some() && wanted(reason.word());
        if asked || (args.reason.is_none() && count > 0) {
            print_reason(*reason, count, &examples);
        }
    }
    Ok(())
}

fn print_reason(reason: DropReason, count: u64, examples: &[Example]) {
    let lines = reason_lines(reason, count, examples);
    lines.iter().enumerate().for_each(|(at, line)| say!("{}{line}", if at == 0 { "" } else { "  " }));
}

/// What a drop reason means, what to do, and who was dropped for it lately.
pub(crate) fn reason_lines(reason: DropReason, count: u64, examples: &[Example]) -> Vec<String> {
    let mut lines = vec![
        format!("{} ({count} frames)", reason.word()),
        format!("what: {}", reason.meaning()),
        format!("do:   {}", reason.remedy()),
    ];
    for example in examples.iter().filter(|example| example.reason == reason.word()) {
        let packet = example.packet.as_ref().map_or_else(String::new, |packet| format!(": {packet}"));
        lines.push(format!(
            "seen {} ms ago from the {}: {} -> {}, {}, {} bytes{packet}",
            example.ago_ms, example.from, example.source, example.destination, example.ethertype, example.len
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_says_how_old_the_own_key_is_and_when_it_changes() {
        let said = |age_s, changes_in_s, is_changing| own_key(&OwnKey { age_s, changes_in_s, is_changing });
        assert_eq!(said(Some(12 * 86_400 + 5), Some(18 * 86_400), false), "12 days old, changed in 18 days");
        assert_eq!(said(Some(86_400), None, false), "24 h old");
        assert_eq!(said(Some(7199), Some(0), false), "7199 s old, to be changed now");
        assert_eq!(said(Some(31 * 86_400), Some(600), true), "31 days old, being changed now");
        assert_eq!(said(None, None, false), "of unknown age");
    }
}
