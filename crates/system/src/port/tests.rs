//! Ports against a real kernel: namespaces made here, gone with the test.
//!
//! ```text
//!  stack a        wire                       stack b          guest a           middle            guest b
//!  tap --(ports)-- v1 ======= v2 --(ports)-- tap              g1 ====== m1 --(ports)-- m2 ====== g2
//! ```

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::takeover::Kept;
use bump::{Batch, Bump, Checksum, Ledger, Meta, Side, VlanTag};
use etherparse::{IpHeaders, IpNumber, Ipv4Extensions, Ipv4Header, PacketBuilder};

use super::limits::RING_SLOTS_FEW;
use super::{
    Backlog, PacketOptions, PacketPort, Ports, Receiver, RingSlots, SendCounters, Sender, Sinks, TapPort, TrainOptions,
};
use crate::clock::Clock;
use crate::namespace::{create, run_inside};
use crate::null::NullBump;
use crate::tap_device;
use crate::wait::{PollFd, PollFlags, Waker, wait};

/// Bytes carried each way; enough for hundreds of super-frames.
const TRANSFER_BYTES: usize = 32 << 20;
/// What a transfer takes at 30 Mbit/s; a black hole takes for ever.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whether this test may make namespaces; says loudly when not.
pub(super) fn may_run(name: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("SKIPPED {name}: it makes network namespaces and needs root");
    }
    root
}

pub(super) fn namespace() -> OwnedFd {
    create(|| std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")).expect("a namespace")
}

pub(super) fn ip(namespace: &OwnedFd, arguments: &str) {
    run_inside(namespace.as_fd(), || {
        let (program, arguments) = arguments.split_once(' ').expect("a command");
        let output = Command::new(program).args(arguments.split(' ')).output().expect(program);
        assert!(output.status.success(), "{program} {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    })
    .expect("inside");
}

pub(super) fn packet_port(
    namespace: &OwnedFd,
    name: &str,
    adjust: impl FnOnce(&mut PacketOptions) + Send,
) -> PacketPort {
    run_inside(namespace.as_fd(), || {
        let mut options = PacketOptions::new(interface_index(name).expect(name));
        adjust(&mut options);
        PacketPort::open(&options).expect("a packet port")
    })
    .expect("inside")
}

/// From `ip`, because /sys shows the namespace in which it was mounted.
fn interface_index(name: &str) -> Option<u32> {
    let output = Command::new("ip").args(["-o", "link", "show", "dev", name]).output().ok()?;
    String::from_utf8(output.stdout).ok()?.split(':').next()?.trim().parse().ok()
}

fn tap_port(namespace: &OwnedFd, address: &str) -> TapPort {
    let opened = run_inside(namespace.as_fd(), || tap_device::open("tap", None));
    let (queue, _) = opened.expect("inside").expect("a TAP");
    ip(namespace, &format!("ip address add {address} dev tap"));
    ip(namespace, "ip link set tap up");
    TapPort::new(queue)
}

/// A veth pair `a`, `b` in `namespace`, both up and carrying.
pub(super) fn veth(namespace: &OwnedFd, a: &str, b: &str) {
    ip(namespace, &format!("ip link add {a} type veth peer name {b}"));
    ip(namespace, &format!("ip link set {a} up"));
    ip(namespace, &format!("ip link set {b} up"));
    await_carrier(namespace, a);
    await_carrier(namespace, b);
}

/// Waits until the kernel has noticed that `name` has a carrier. A worker of its own does that, later on a busy machine; before,
/// a device with a carrier swallows what it is given and says that all was sent.
fn await_carrier(namespace: &OwnedFd, name: &str) {
    let end = Instant::now() + PATIENCE;
    while !run_inside(namespace.as_fd(), || is_operational(name)).expect("inside") {
        assert!(Instant::now() < end, "{name} is still without a carrier");
        thread::sleep(Duration::from_millis(1));
    }
}

fn is_operational(name: &str) -> bool {
    let output = Command::new("ip").args(["-o", "link", "show", "dev", name]).output().expect("ip");
    String::from_utf8_lossy(&output.stdout).contains(" state UP ")
}

/// Two ports and a null bump between them, on a thread, until dropped.
struct Forwarder {
    stop: Waker,
    thread: Option<thread::JoinHandle<Ledger>>,
}

impl Forwarder {
    /// Forwards between `inner` and `outer`; the counters come back by `report` at the end.
    fn start<IR, IS, OR, OS>(mut inner: (IR, IS), mut outer: (OR, OS), report: mpsc::Sender<Totals>) -> Forwarder
    where
        IR: Receiver + AsFd + Send + 'static,
        IS: Sender + Send + 'static,
        OR: Receiver + AsFd + Send + 'static,
        OS: Sender + Send + 'static,
    {
        let stop = Waker::new().expect("eventfd");
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            let mut bump = NullBump::new();
            let mut clock = Clock::new();
            while !forward_once(&mut bump, &mut clock, &mut inner, &mut outer, &stopped) {}
            let totals = Totals {
                received: [inner.0.counters(), outer.0.counters()],
                sent: [inner.1.counters(), outer.1.counters()],
            };
            let _ = report.send(totals);
            let mut ledger = Ledger::new();
            bump.add_to_ledger(&mut ledger);
            ledger
        });
        Forwarder { stop, thread: Some(thread) }
    }

    fn finish(mut self) -> Ledger {
        self.stop.wake();
        self.thread.take().expect("not finished").join().expect("the forwarder")
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.stop.wake();
    }
}

#[derive(Debug)]
pub(super) struct Totals {
    pub(super) received: [super::ReceiveCounters; 2],
    pub(super) sent: [super::SendCounters; 2],
}

/// One turn of the loop; true when it was told to stop.
fn forward_once<IR: Receiver + AsFd, IS: Sender, OR: Receiver + AsFd, OS: Sender>(
    bump: &mut NullBump,
    clock: &mut Clock,
    inner: &mut (IR, IS),
    outer: &mut (OR, OS),
    stop: &Waker,
) -> bool {
    let flags = |send_waits: bool, other_waits: bool| {
        let read = if other_waits { PollFlags::empty() } else { PollFlags::IN };
        read | if send_waits { PollFlags::OUT } else { PollFlags::empty() }
    };
    let (inner_waits, outer_waits) = (inner.1.backlog().waits(), outer.1.backlog().waits());
    let mut polled = [
        PollFd::new(&inner.0, flags(inner_waits, outer_waits)),
        PollFd::new(&outer.0, flags(outer_waits, inner_waits)),
        PollFd::new(stop, PollFlags::IN),
    ];
    let timeout = (inner_waits || outer_waits).then_some(Duration::from_millis(1));
    wait(&mut polled, timeout).expect("poll");
    let stopped = !polled[2].revents().is_empty();
    let now = clock.now();
    let mut sinks = Sinks { inner: &mut inner.1, outer: &mut outer.1 };
    if !outer_waits && inner.0.fill().expect("inner") {
        bump.process(now, Side::Inner, &mut inner.0, &mut sinks);
    }
    if !inner_waits && outer.0.fill().expect("outer") {
        bump.process(now, Side::Outer, &mut outer.0, &mut sinks);
    }
    sinks.flush();
    stopped
}

/// Sends a pattern to `address` from namespace `from` into namespace `to`, checks every byte, and returns Gbit/s.
fn transfer(from: &OwnedFd, to: &OwnedFd, address: &str, bytes: usize) -> f64 {
    let listener = run_inside(to.as_fd(), || TcpListener::bind((address, 5001)).expect("bind")).expect("inside");
    let server = thread::spawn(move || receive_pattern(&listener, bytes));
    let begin = Instant::now();
    run_inside(from.as_fd(), || {
        let mut stream = connect((address, 5001));
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        let block = pattern();
        for _ in 0..bytes / block.len() {
            stream.write_all(&block).expect("written in time");
        }
    })
    .expect("inside");
    assert!(server.join().expect("the receiver"), "bytes arrived damaged");
    bytes as f64 * 8.0 / begin.elapsed().as_secs_f64() / 1e9
}

fn connect((address, port): (&str, u16)) -> TcpStream {
    let target = std::net::SocketAddr::new(address.parse().expect("an address"), port);
    let stream = TcpStream::connect_timeout(&target, PATIENCE).expect("connected");
    stream.set_nodelay(true).expect("an option");
    stream
}

/// 251 does not divide the length of any buffer on the way, so that a misplaced segment shows.
fn pattern() -> Vec<u8> {
    (0..251 * 1024_usize).map(|at| (at % 251) as u8).collect()
}

fn receive_pattern(listener: &TcpListener, bytes: usize) -> bool {
    let (mut stream, _) = listener.accept().expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let block = pattern();
    let mut buffer = vec![0; block.len()];
    for _ in 0..bytes / block.len() {
        stream.read_exact(&mut buffer).expect("read in time");
        if buffer != block {
            return false;
        }
    }
    true
}

/// Two stacks behind TAPs, joined by a wire.
#[test]
fn tcp_crosses_two_taps_and_a_wire_cut_and_joined() {
    if !may_run("tcp_crosses_two_taps_and_a_wire_cut_and_joined") {
        return;
    }
    let (wire, stack_a, stack_b) = (namespace(), namespace(), namespace());
    veth(&wire, "v1", "v2");
    let ports = |stack: &OwnedFd, address: &str, end: &str| Ports {
        stack: tap_port(stack, address),
        wire: packet_port(&wire, end, |_| {}),
    };
    let (a, b) = (ports(&stack_a, "10.9.0.1/24", "v1"), ports(&stack_b, "10.9.0.2/24", "v2"));
    let (report_a, totals_a) = mpsc::channel();
    let (report_b, totals_b) = mpsc::channel();
    let start = |ports: Ports, report| {
        let Ports { stack, wire } = ports;
        Forwarder::start((stack.receiver, stack.sender), (wire.receiver, wire.sender), report)
    };
    let forwarders = [start(a, report_a), start(b, report_b)];
    let there = transfer(&stack_a, &stack_b, "10.9.0.2", TRANSFER_BYTES);
    let back = transfer(&stack_b, &stack_a, "10.9.0.1", TRANSFER_BYTES);
    eprintln!("{there:.2} Gbit/s there, {back:.2} Gbit/s back");
    for forwarder in forwarders {
        let ledger = forwarder.finish();
        assert_eq!(ledger.balance(), 0);
        assert_eq!(ledger.drops(bump::DropReason::BadSuperFrame), 0);
        assert!(ledger.emitted[1] > 2 * ledger.forwarded[0], "super-frames were cut: {ledger:?}");
    }
    for totals in [totals_a.recv().expect("a report"), totals_b.recv().expect("a report")] {
        let [from_stack, from_wire] = totals.received;
        let [to_stack, to_wire] = totals.sent;
        assert!(from_stack.super_frames > 100, "{totals:?}");
        assert_eq!(from_wire.super_frames, 0, "{totals:?}");
        assert!(to_stack.joined > to_stack.frames / 2 && to_stack.super_frames > 100, "{totals:?}");
        assert_eq!((to_stack.errors, to_wire.errors, from_wire.unreadable), (0, 0, 0), "{totals:?}");
    }
}

/// Datagrams that follow each other go up in one piece, and whoever listens hears each as it was.
#[test]
fn datagrams_are_joined_on_their_way_to_the_stack() {
    if !may_run("datagrams_are_joined_on_their_way_to_the_stack") {
        return;
    }
    let stack = namespace();
    let mut port = tap_port(&stack, "10.9.0.1/24");
    ip(&stack, "ip link set tap address 02:00:00:00:00:01");
    let listener = run_inside(stack.as_fd(), || UdpSocket::bind("10.9.0.1:5001").expect("bind")).expect("inside");
    listener.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let lens = [900; 20].into_iter().chain([333, 900]);
    let payloads: Vec<Vec<u8>> = lens.enumerate().map(|(at, len)| vec![at as u8; len]).collect();
    let deliver = |port: &mut TapPort| {
        for (at, payload) in payloads.iter().enumerate() {
            let frame = datagram(at as u16, payload);
            port.sender.reserve(frame.len()).expect("room").copy_from_slice(&frame);
            port.sender.commit(frame.len(), Meta { checksum: Checksum::Complete, ..Meta::plain() });
        }
        port.sender.flush();
        let mut buffer = [0; 2000];
        for payload in &payloads {
            let len = listener.recv(&mut buffer).expect("a datagram");
            assert_eq!(&buffer[..len], payload);
        }
        let SendCounters { super_frames, joined, errors, .. } = port.sender.counters();
        (super_frames, joined, errors)
    };
    // The shorter one ends what the first began; the last is alone.
    assert_eq!(deliver(&mut port), (1, 21, 0));
    port.sender.leave_datagrams_single();
    assert_eq!(deliver(&mut port), (1, 21, 0), "nothing was joined beyond that");
}

/// A datagram to the stack behind [`tap_port`], from a neighbour.
fn datagram(identification: u16, payload: &[u8]) -> Vec<u8> {
    let ip = Ipv4Header::new(0, 64, IpNumber::UDP, [10, 9, 0, 2], [10, 9, 0, 1]).expect("short");
    let ip = Ipv4Header { identification, dont_fragment: false, ..ip };
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1])
        .ip(IpHeaders::Ipv4(ip, Ipv4Extensions::default()))
        .udp(5002, 5001)
        .write(&mut frame, payload)
        .expect("a packet");
    frame
}

/// Two guests with all their offloads, joined by two packet sockets; `tunnel` puts VXLAN between them, whose super-frames the
/// sockets keep whole if `keeps` says so.
pub(super) fn through_the_middle(tunnel: bool, keeps: bool) -> Totals {
    let (guest_a, middle, guest_b) = (namespace(), namespace(), namespace());
    let mut addresses = ["10.9.1.1", "10.9.1.2"];
    for (guest, name, address) in [(&guest_a, "1", addresses[0]), (&guest_b, "2", addresses[1])] {
        veth(&middle, &format!("m{name}"), &format!("g{name}"));
        let fd = std::os::fd::AsRawFd::as_raw_fd(guest);
        ip(&middle, &format!("ip link set g{name} netns /proc/{}/fd/{fd}", std::process::id()));
        ip(guest, &format!("ip address add {address}/24 dev g{name}"));
        ip(guest, &format!("ip link set g{name} up"));
    }
    if tunnel {
        for (guest, name, other) in [(&guest_a, "1", addresses[1]), (&guest_b, "2", addresses[0])] {
            ip(guest, &format!("ip link add x type vxlan id 42 dstport 4789 remote {other} dev g{name}"));
            ip(guest, &format!("ip address add 10.9.2.{name}/24 dev x"));
            ip(guest, "ip link set x up");
        }
        addresses = ["10.9.2.1", "10.9.2.2"];
    }
    let open = |name| packet_port(&middle, name, |options| options.tunnels = keeps);
    let (mut a, mut b) = (open("m1"), open("m2"));
    if keeps {
        a.receiver.keep_tunnels();
        b.receiver.keep_tunnels();
    }
    let (report, totals) = mpsc::channel();
    let forwarder = Forwarder::start((a.receiver, a.sender), (b.receiver, b.sender), report);
    let there = transfer(&guest_a, &guest_b, addresses[1], TRANSFER_BYTES);
    let back = transfer(&guest_b, &guest_a, addresses[0], TRANSFER_BYTES);
    eprintln!("tunnel {tunnel}: {there:.2} Gbit/s there, {back:.2} Gbit/s back");
    assert_eq!(forwarder.finish().balance(), 0);
    totals.recv().expect("a report")
}

#[test]
fn super_frames_of_guests_pass_whole_inward_and_cut_outward() {
    if !may_run("super_frames_of_guests_pass_whole_inward_and_cut_outward") {
        return;
    }
    let totals = through_the_middle(false, false);
    assert!(totals.received.iter().all(|side| side.super_frames > 100 && side.segments == 0), "{totals:?}");
    assert!(totals.sent[0].super_frames > 100, "{totals:?}");
    assert_eq!(totals.sent[1].super_frames, 0, "{totals:?}");
    assert!(totals.sent.iter().all(|side| side.errors == 0), "{totals:?}");
}

#[test]
fn tunnelled_super_frames_are_cut_by_the_port() {
    if !may_run("tunnelled_super_frames_are_cut_by_the_port") {
        return;
    }
    let totals = through_the_middle(true, false);
    assert!(totals.received.iter().all(|side| side.super_frames > 100 && side.segments > 1000), "{totals:?}");
    assert!(totals.received.iter().all(|side| side.unreadable == 0), "{totals:?}");
    assert!(totals.sent.iter().all(|side| side.super_frames == 0 && side.errors == 0), "{totals:?}");
}

/// A numbered frame of `len` bytes.
pub(super) fn frame(number: u32, len: usize) -> Vec<u8> {
    let mut frame = vec![0x5a; len];
    frame[..6].fill(0xff);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame[14..18].copy_from_slice(&number.to_be_bytes());
    frame
}

pub(super) fn send(port: &mut PacketPort, bytes: &[u8], meta: Meta) {
    port.sender.reserve(bytes.len()).expect("room").copy_from_slice(bytes);
    port.sender.commit(bytes.len(), meta);
}

/// The frames of our own EtherType that arrive until `count` are there or patience ends.
fn receive(port: &mut PacketPort, count: usize) -> Vec<(Vec<u8>, Meta)> {
    let mut frames = Vec::new();
    let end = Instant::now() + PATIENCE;
    while frames.len() < count && Instant::now() < end {
        wait(&mut [PollFd::new(&port.receiver, PollFlags::IN)], Some(Duration::from_millis(100))).expect("poll");
        port.receiver.fill().expect("filled");
        while let Some(frame) = port.receiver.next_frame() {
            if frame.bytes[12..14] == [0x88, 0xb5] {
                frames.push((frame.bytes.to_vec(), frame.meta));
            }
        }
    }
    frames
}

#[test]
fn tags_travel_as_metadata_and_return_into_the_frame() {
    if !may_run("tags_travel_as_metadata_and_return_into_the_frame") {
        return;
    }
    let wire = namespace();
    veth(&wire, "v1", "v2");
    let (mut a, mut b) = (packet_port(&wire, "v1", |_| {}), packet_port(&wire, "v2", |_| {}));
    let tags = [None, Some(VlanTag { tpid: 0x8100, tci: 0x6007 }), Some(VlanTag { tpid: 0x88a8, tci: 9 })];
    for (number, vlan) in tags.into_iter().enumerate() {
        send(&mut a, &frame(number as u32, 200), Meta { vlan, ..Meta::default() });
    }
    assert!(!a.sender.flush().waits());
    let received = receive(&mut b, 3);
    assert_eq!(received.iter().map(|(_, meta)| meta.vlan).collect::<Vec<_>>(), tags);
    for (number, (bytes, meta)) in received.iter().enumerate() {
        assert_eq!(*bytes, frame(number as u32, 200));
        assert!(!matches!(meta.checksum, Checksum::Partial { .. }));
    }
    assert!(receive_now(&mut a).is_empty(), "our own frames come back");
}

fn receive_now(port: &mut PacketPort) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    while port.receiver.fill().expect("filled") {
        while let Some(frame) = port.receiver.next_frame() {
            frames.push(frame.bytes.to_vec());
        }
    }
    frames
}

/// Sends more than the kernel takes at once through a slow link and expects every frame, in order.
fn through_a_slow_link(buffer_bytes: usize) -> super::SendCounters {
    const COUNT: u32 = 400;
    let wire = namespace();
    veth(&wire, "v1", "v2");
    // A veth hands frames over on the processor that sent them, so two processors' frames may overtake each other; one
    // with a NAPI of its own has one queue.
    ip(&wire, "ethtool -K v1 tso off gso off");
    ip(&wire, "ethtool -K v2 gro on");
    ip(&wire, "tc qdisc add dev v1 root tbf rate 20mbit burst 5kb limit 100kb");
    let mut a = packet_port(&wire, "v1", |options| options.buffer_bytes = buffer_bytes);
    let mut b = packet_port(&wire, "v2", |_| {});
    for number in 0..COUNT {
        send(&mut a, &frame(number, 1000), Meta::plain());
    }
    assert!(a.sender.flush().waits());
    let slow_reader = thread::spawn(move || receive(&mut b, COUNT as usize));
    let end = Instant::now() + PATIENCE;
    while a.sender.backlog().waits() && Instant::now() < end {
        let pause = match a.sender.backlog() {
            super::Backlog::After(pause) => pause,
            _ => {
                wait(&mut [PollFd::new(&a.sender, PollFlags::OUT)], Some(PATIENCE)).expect("poll");
                Duration::ZERO
            }
        };
        thread::sleep(pause);
        a.sender.flush();
    }
    let received = slow_reader.join().expect("the reader");
    // Numbers first: a list of them can be read when it is not what it should be, 400 frames cannot.
    let numbers: Vec<_> =
        received.iter().map(|(bytes, _)| u32::from_be_bytes([bytes[14], bytes[15], bytes[16], bytes[17]])).collect();
    assert_eq!(numbers, (0..COUNT).collect::<Vec<_>>());
    assert!(received.iter().zip(0..).all(|((bytes, _), number)| *bytes == frame(number, 1000)), "a frame was changed");
    a.sender.counters()
}

#[test]
fn a_full_socket_or_queue_delays_frames_and_loses_none() {
    if !may_run("a_full_socket_or_queue_delays_frames_and_loses_none") {
        return;
    }
    let full_socket = through_a_slow_link(16 << 10);
    let full_queue = through_a_slow_link(8 << 20);
    for counters in [full_socket, full_queue] {
        assert!(counters.backlogs > 0 && counters.errors == 0 && counters.frames == 400, "{counters:?}");
    }
}

#[test]
fn frames_that_can_never_leave_are_counted_and_do_not_block_the_others() {
    if !may_run("frames_that_can_never_leave_are_counted_and_do_not_block_the_others") {
        return;
    }
    let wire = namespace();
    veth(&wire, "v1", "v2");
    let (mut a, mut b) = (packet_port(&wire, "v1", |_| {}), packet_port(&wire, "v2", |_| {}));
    send(&mut a, &frame(0, 100), Meta::plain());
    send(&mut a, &frame(1, 9000), Meta::plain());
    send(&mut a, &frame(2, 100), Meta::plain());
    assert!(!a.sender.flush().waits());
    assert_eq!(receive(&mut b, 2).len(), 2);
    assert_eq!(a.sender.counters().errors, 1);
    assert!(a.sender.last_error().is_some());
    ip(&wire, "ip link set v1 down");
    send(&mut a, &frame(3, 100), Meta::plain());
    assert!(!a.sender.flush().waits());
    assert_eq!(a.sender.counters().errors, 2);
    assert!(!a.receiver.fill().expect("a device that is down has nothing to give"));
}

#[test]
fn what_the_kernel_drops_is_counted() {
    if !may_run("what_the_kernel_drops_is_counted") {
        return;
    }
    let wire = namespace();
    veth(&wire, "v1", "v2");
    let mut a = packet_port(&wire, "v1", |_| {});
    let mut b = packet_port(&wire, "v2", |options| options.buffer_bytes = 4096);
    for number in 0..200 {
        send(&mut a, &frame(number, 1000), Meta::plain());
    }
    a.sender.flush();
    b.receiver.count_kernel_drops();
    let received = receive_now(&mut b).len() as u64;
    assert!(received > 0 && b.receiver.counters().kernel_drops + received == 200, "{received}");
}

#[test]
fn a_missing_interface_is_named() {
    if !may_run("a_missing_interface_is_named") {
        return;
    }
    let error = run_inside(namespace().as_fd(), || PacketPort::open(&PacketOptions::new(4321)).err()).expect("inside");
    let line = error.expect("no such interface").to_string();
    assert!(line.starts_with("cannot bind the packet socket") && line.contains("interface"), "{line}");
    assert!(!line.contains('\n'));
}

/// What `port` hears, as EtherTypes.
fn types(port: &mut PacketPort) -> Vec<u16> {
    receive_now(port).iter().map(|frame| u16::from_be_bytes([frame[12], frame[13]])).collect()
}

#[test]
fn a_port_for_what_is_kept_hears_nothing_else_and_not_itself() {
    if !may_run("a_port_for_what_is_kept_hears_nothing_else_and_not_itself") {
        return;
    }
    let wire = namespace();
    veth(&wire, "v1", "v2");
    let mut sender = packet_port(&wire, "v1", |_| {});
    let only = |options: &mut PacketOptions| *options = PacketOptions::kept(Kept::Arp, options.interface_index);
    let mut port = packet_port(&wire, "v2", only);
    let mut beside = packet_port(&wire, "v2", |_| {});
    for ethertype in [0x0800_u16, 0x0806, 0x88b5] {
        let frame = [&[0xff; 6][..], &[2; 6], &ethertype.to_be_bytes(), &[7; 46]].concat();
        send(&mut sender, &frame, Meta::plain());
        send(&mut port, &frame, Meta::plain());
    }
    assert!(!sender.sender.flush().waits() && !port.sender.flush().waits());
    assert_eq!(types(&mut port), [0x0806]);
    assert_eq!(types(&mut beside).len(), 3, "a neighbour on the same interface hears what comes, not what leaves");
    assert_eq!(types(&mut sender), [0x0800, 0x0806, 0x88b5], "what is sent is not limited");
}

/// Ends of a wire whose second hears what arrives in a ring.
fn ring_ports(wire: &OwnedFd) -> (PacketPort, PacketPort) {
    veth(wire, "v1", "v2");
    let ring = |options: &mut PacketOptions| options.ring = Some(RingSlots::Few);
    (packet_port(wire, "v1", |_| {}), packet_port(wire, "v2", ring))
}

/// Left out that slots go back, that the tag is beside the frame, and the headroom: each was seen.
#[test]
fn a_ring_gives_frames_whole_in_their_order_round_after_round() {
    if !may_run("a_ring_gives_frames_whole_in_their_order_round_after_round") {
        return;
    }
    let wire = namespace();
    let (mut a, mut b) = ring_ports(&wire);
    let tagged = Meta { vlan: Some(VlanTag { tpid: 0x8100, tci: 0x2007 }), ..Meta::plain() };
    for round in 0..40_u32 {
        let lens = [60, 61, 110, 640, 1514];
        let frames: Vec<_> = (0..20_u32).map(|at| frame(round * 20 + at, lens[at as usize % 5])).collect();
        for (at, bytes) in frames.iter().enumerate() {
            send(&mut a, bytes, if at == 7 { tagged } else { Meta::plain() });
        }
        assert_eq!(a.sender.flush(), Backlog::None);
        let received = receive(&mut b, frames.len());
        assert_eq!(received.iter().map(|(bytes, _)| bytes).collect::<Vec<_>>(), frames.iter().collect::<Vec<_>>());
        let tags: Vec<_> = received.iter().map(|(_, meta)| meta.vlan).collect();
        assert!(tags.iter().enumerate().all(|(at, tag)| *tag == if at == 7 { tagged.vlan } else { None }), "{tags:?}");
    }
    assert_eq!((b.receiver.counters().frames, b.receiver.counters().unreadable), (800, 0));
    assert!(!b.receiver.fill().expect("up"), "a ring that was read is empty");
}

#[test]
fn a_full_ring_counts_what_it_cannot_hold_and_goes_on() {
    if !may_run("a_full_ring_counts_what_it_cannot_hold_and_goes_on") {
        return;
    }
    let wire = namespace();
    let (mut a, mut b) = ring_ports(&wire);
    for number in 0..300 {
        send(&mut a, &frame(number, 100), Meta::plain());
    }
    assert_eq!(a.sender.flush(), Backlog::None);
    assert_eq!(receive_now(&mut b).len(), RING_SLOTS_FEW);
    b.receiver.count_kernel_drops();
    assert_eq!(b.receiver.counters().kernel_drops, 300 - RING_SLOTS_FEW as u64);
    send(&mut a, &frame(300, 100), Meta::plain());
    a.sender.flush();
    assert_eq!(receive(&mut b, 1)[0].0, frame(300, 100));
}

#[test]
fn what_does_not_fit_into_a_slot_is_unreadable() {
    if !may_run("what_does_not_fit_into_a_slot_is_unreadable") {
        return;
    }
    let wire = namespace();
    let (mut a, mut b) = ring_ports(&wire);
    for end in ["v1", "v2"] {
        ip(&wire, &format!("ip link set {end} mtu 4000"));
    }
    for len in [3000, 1514] {
        send(&mut a, &frame(1, len), Meta::plain());
    }
    a.sender.flush();
    assert_eq!(receive(&mut b, 1)[0].0, frame(1, 1514));
    assert_eq!(b.receiver.counters().unreadable, 1);
}

/// Left `take_error` out: waiting ended at once for ever.
#[test]
fn a_ring_sleeps_while_its_interface_is_down() {
    if !may_run("a_ring_sleeps_while_its_interface_is_down") {
        return;
    }
    let wire = namespace();
    let (mut a, mut b) = ring_ports(&wire);
    ip(&wire, "ip link set v2 down");
    for _ in 0..2 {
        assert!(!b.receiver.fill().expect("a device that is down has nothing to give"));
    }
    let mut watched = [PollFd::new(&b.receiver, PollFlags::IN)];
    wait(&mut watched, Some(Duration::from_millis(1))).expect("poll");
    assert!(watched[0].revents().is_empty(), "{:?}", watched[0].revents());
    ip(&wire, "ip link set v2 up");
    await_carrier(&wire, "v1");
    send(&mut a, &frame(2, 60), Meta::plain());
    a.sender.flush();
    assert_eq!(receive(&mut b, 1)[0].0, frame(2, 60));
}

/// Two packet ports on either side, as beside a pair that the kernel joins.
#[test]
fn both_ports_of_a_host_can_be_packet_ports() {
    if !may_run("both_ports_of_a_host_can_be_packet_ports") {
        return;
    }
    let wire = namespace();
    veth(&wire, "s1", "s2");
    veth(&wire, "w1", "w2");
    let (mut stack, mut far) = (packet_port(&wire, "s1", |_| {}), packet_port(&wire, "w2", |_| {}));
    let mut ports = Ports { stack: packet_port(&wire, "s2", |_| {}), wire: packet_port(&wire, "w1", |_| {}) };
    let (mut bump, mut clock) = (NullBump::new(), Clock::new());
    let frame = |mark: u8| [&[0xff; 6][..], &[2; 6], &[8, 6], &[mark; 46]].concat();
    send(&mut stack, &frame(1), Meta::plain());
    send(&mut far, &frame(2), Meta::plain());
    assert!(!stack.sender.flush().waits() && !far.sender.flush().waits());
    for _ in 0..20 {
        let (receiver, mut sinks) = ports.from_stack();
        if receiver.fill().expect("up") {
            bump.process(clock.now(), Side::Inner, receiver, &mut sinks);
        }
        let (receiver, mut sinks) = ports.from_wire();
        if receiver.fill().expect("up") {
            bump.process(clock.now(), Side::Outer, receiver, &mut sinks);
        }
        ports.flush();
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!((receive_now(&mut far), receive_now(&mut stack)), (vec![frame(1)], vec![frame(2)]));
    let counts = [Side::Inner, Side::Outer].map(|side| ports.counters(side));
    assert_eq!(counts.map(|(received, sent)| (received.frames, sent.frames)), [(1, 1); 2]);
    assert!(!ports.backlog(Side::Inner).waits());
}

/// Ends of a wire `v1`, `v2` whose ports couple frames, and what each was sent.
fn coupling_ports(wire: &OwnedFd) -> (PacketPort, PacketPort) {
    let trains = TrainOptions { ethertype: wire::EtherType(0x88b5), wire_mtu: 1500, couple: true };
    let open = |end| packet_port(wire, end, |options| options.trains = Some(trains));
    (open("v1"), open("v2"))
}

/// Unicast frames of these lengths, numbered.
fn unicast(lens: &[usize]) -> Vec<(Vec<u8>, Meta)> {
    let numbered = |(number, &len): (usize, &usize)| {
        let mut frame = frame(number as u32, len);
        frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
        (frame, Meta::plain())
    };
    lens.iter().enumerate().map(numbered).collect()
}

fn send_all(port: &mut PacketPort, frames: &[(Vec<u8>, Meta)]) {
    for (bytes, meta) in frames {
        send(port, bytes, *meta);
    }
    assert_eq!(port.sender.flush(), Backlog::None);
}

#[test]
fn frames_ride_in_trains_and_arrive_as_they_were_in_their_order() {
    if !may_run("frames_ride_in_trains_and_arrive_as_they_were_in_their_order") {
        return;
    }
    let wire = namespace();
    veth(&wire, "v1", "v2");
    let (mut a, mut b) = coupling_ports(&wire);
    let lens: Vec<usize> = [vec![1400; 20], vec![90], vec![300; 3], vec![1500; 2], vec![61, 62]].concat();
    let frames = unicast(&lens);
    send_all(&mut a, &frames);
    assert_eq!(receive(&mut b, frames.len()), frames);
    let (sent, received) = (a.sender.counters(), b.receiver.counters());
    // Eight, eight, and four with the short one behind; then three. Two are too few, and 1500 leave no room for headers.
    assert_eq!((sent.super_frames, sent.joined), (4, 24), "{sent:?}");
    assert_eq!((received.super_frames, received.segments, received.unreadable), (4, 24, 0), "{received:?}");
}

/// As a card without such offloads has it done.
#[test]
fn a_train_that_the_kernel_cuts_is_unloaded_all_the_same() {
    if !may_run("a_train_that_the_kernel_cuts_is_unloaded_all_the_same") {
        return;
    }
    let wire = namespace();
    veth(&wire, "v1", "v2");
    ip(&wire, "ethtool -K v1 tx off tso off gso off");
    let (mut a, mut b) = coupling_ports(&wire);
    let mut witness = packet_port(&wire, "v2", |_| {});
    let frames = unicast(&[1400, 1400, 1400, 1400, 500]);
    send_all(&mut a, &frames);
    assert_eq!(receive(&mut b, frames.len()), frames);
    let received = b.receiver.counters();
    assert_eq!((received.super_frames, received.segments), (0, 5), "{received:?}");
    // What a stranger hears are datagrams with right checksums, none longer than a packet may be.
    let mut heard = Vec::new();
    witness.receiver.fill().expect("filled");
    while let Some(frame) = witness.receiver.next_frame() {
        heard.extend(wire::cll::train::messages(frame.bytes).map(|range| (range.len(), udp_sum(frame.bytes))));
    }
    assert_eq!(heard, [1386, 1386, 1386, 1386, 486].map(|len| (len, 0)));
}

/// The checksum over an IPv4 frame's UDP datagram and pseudo header, which is zero when the one in it is right (RFC 1071).
fn udp_sum(frame: &[u8]) -> u16 {
    let packet = wire::ipv4::View::new(&frame[14..]).expect("IPv4");
    let datagram = packet.payload();
    let pseudo = wire::checksum::pseudo_header_v4(packet.source(), packet.destination(), 17, datagram.len() as u16);
    pseudo.bytes(datagram).checksum()
}

#[test]
fn a_kernel_that_refuses_trains_gets_frames_from_then_on() {
    if !may_run("a_kernel_that_refuses_trains_gets_frames_from_then_on") {
        return;
    }
    let wire = namespace();
    veth(&wire, "v1", "v2");
    let (mut a, mut b) = coupling_ports(&wire);
    let frames = unicast(&[1000; 5]);
    send_all(&mut a, &frames);
    assert_eq!(receive(&mut b, 5), frames);
    a.sender.refuse_trains_as_an_old_kernel_does();
    assert!(!a.sender.may_couple());
    send_all(&mut a, &frames);
    assert_eq!(receive(&mut b, 5), frames);
    assert_eq!(a.sender.counters().super_frames, 1);
    assert_eq!((a.sender.counters().errors, b.receiver.counters().frames), (0, 10));
}
