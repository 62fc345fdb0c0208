//! Two hosts and a cable, made for one test and removed with it.

use std::fs::File;
use std::net::UdpSocket;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;

use crate::namespace::{open_pin, run_inside};
use crate::netlink::Connection;
use crate::netlink::link::LinkChange;
use crate::takeover::state::{Phase, State};
use crate::takeover::{Admitted, Inner, Kept, Report, Request, Taken, TakeoverError, Way, release, take};

/// Bytes of overhead that the tests ask for.
pub(in crate::takeover) const OVERHEAD: u16 = 40;
/// The guarded host's address.
pub(in crate::takeover) const HOST: &str = "10.9.0.1";
/// The other host's address.
pub(in crate::takeover) const PEER: &str = "10.9.0.2";
/// How long a test waits for what must not come.
const PATIENCE: Duration = Duration::from_millis(300);

/// A name, and what a crash at a certain step leaves.
pub(in crate::takeover) type Spoiler = (&'static str, fn(&Room));

/// What a crash can leave of every take-over by namespace.
pub(in crate::takeover) const BY_NAMESPACE: [Spoiler; 4] = [
    ("the inner device has nothing yet", |room| {
        room.in_host("ip addr flush dev eth0");
        room.in_host("ip link set eth0 down");
    }),
    ("the card has not left yet", |room| {
        room.in_host("ip link del eth0");
        room.move_card_home();
        room.in_host("ip link set eth0 up");
    }),
    ("the card has not left and has no namespace yet", |room| {
        room.in_host("ip link del eth0");
        room.move_card_home();
        crate::namespace::unpin(&room.run_dir().join("eth0.netns")).expect("root may");
    }),
    ("all is done but not written down", |_| {}),
];

/// Makes a room, or skips the test by name.
macro_rules! room {
    () => {
        match Room::new() {
            Some(room) => room,
            None => {
                eprintln!("SKIPPED {}: needs root", std::thread::current().name().unwrap_or("a test"));
                return;
            }
        }
    };
}
pub(in crate::takeover) use room;

pub(in crate::takeover) struct Room {
    pub(in crate::takeover) host: String,
    pub(in crate::takeover) peer: String,
    directory: tempfile::TempDir,
}

impl Room {
    pub(in crate::takeover) fn new() -> Option<Room> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = |role: &str| format!("rwt-{}-{number}-{role}", std::process::id());
        let directory = tempfile::tempdir().expect("a directory");
        let room = Room { host: name("host"), peer: name("peer"), directory };
        room.furnish();
        Some(room)
    }

    fn furnish(&self) {
        run(&["ip", "netns", "add", &self.host]);
        run(&["ip", "netns", "add", &self.peer]);
        run(&[
            "ip", "link", "add", "eth0", "netns", &self.host, "type", "veth", "peer", "name", "peer0", "netns",
            &self.peer,
        ]);
        self.in_peer("ip addr add 10.9.0.2/24 dev peer0");
        self.in_peer("ip link set peer0 up");
        // Duplicate address detection would change flags between two looks at an address.
        self.in_host("sysctl -qw net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.eth0.accept_dad=0");
        self.in_host("sysctl -qw net.ipv4.conf.eth0.rp_filter=2 net.ipv4.conf.eth0.arp_announce=2");
        for line in [
            "link set lo up",
            "link set eth0 up txqueuelen 777",
            "addr add 10.9.0.1/24 brd 10.9.0.255 dev eth0 label eth0:main",
            "addr add 10.9.0.5/24 dev eth0",
            "addr add 192.0.2.1/32 dev eth0 scope link noprefixroute valid_lft 5000 preferred_lft 4000",
            "addr add 10.7.0.1/16 dev eth0 metric 50",
            "addr add 2001:db8::1/64 dev eth0 nodad",
            "addr add 2001:db8::2/64 dev eth0 nodad",
            "route del 10.7.0.0/16 dev eth0",
            "route add default via 10.9.0.2 metric 100",
            "route add 198.51.100.0/24 via 10.9.0.2 src 10.9.0.5 table 77 mtu lock 1400",
            "route append 198.51.100.0/24 via 10.9.0.9 table 77 mtu lock 1400",
            "route add 203.0.113.0/24 via 10.99.99.1 dev eth0 onlink",
            "route add 203.0.114.0/24 nexthop via 10.9.0.2 weight 2 nexthop via 10.9.0.3",
            "route add 203.0.115.0/24 dev lo src 10.9.0.5",
            "-6 route add 2001:db8:1::/48 via 2001:db8::9 metric 7",
            "neigh add 10.9.0.77 lladdr 02:00:00:00:00:77 dev eth0 nud permanent",
        ] {
            self.in_host(&format!("ip {line}"));
        }
    }

    /// Runs a command in the guarded host.
    pub(in crate::takeover) fn in_host(&self, command: &str) -> String {
        inside(&self.host, command)
    }

    /// Runs a command in the other host.
    pub(in crate::takeover) fn in_peer(&self, command: &str) -> String {
        inside(&self.peer, command)
    }

    pub(in crate::takeover) fn run_dir(&self) -> PathBuf {
        self.directory.path().join("run")
    }

    pub(in crate::takeover) fn state_dir(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    pub(in crate::takeover) fn request(&self, way: Way) -> Request {
        Request {
            interface: "eth0".into(),
            run_dir: self.run_dir(),
            state_dir: self.state_dir(),
            overhead_bytes: OVERHEAD,
            way,
            inner: Inner::Tap,
            admitted: Admitted { ethertypes: vec![wire::EtherType::CLL], train_port: 52_000 },
        }
    }

    /// Runs `work` in the guarded host's network namespace.
    pub(in crate::takeover) fn at_host<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let file = File::open(format!("/run/netns/{}", self.host)).expect("the namespace");
        run_inside(file.as_fd(), work).expect("root may enter")
    }

    /// Runs `work` in the other host's network namespace.
    pub(in crate::takeover) fn at_peer<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let file = File::open(format!("/run/netns/{}", self.peer)).expect("the namespace");
        run_inside(file.as_fd(), work).expect("root may enter")
    }

    /// The card's namespace, as long as the interface is taken.
    pub(in crate::takeover) fn pin(&self) -> OwnedFd {
        open_pin(&self.run_dir().join("eth0.netns")).expect("readable").expect("there")
    }

    /// Runs `work` in the card's namespace.
    pub(in crate::takeover) fn at_card<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        run_inside(self.pin().as_fd(), work).expect("root may enter")
    }

    /// Undoes the card's move.
    pub(in crate::takeover) fn move_card_home(&self) {
        let host = self.at_host(crate::namespace::current).expect("readable");
        self.at_card(|| {
            let mut wire = Connection::open().expect("a socket");
            let card = wire.link_by_name("eth0").expect("readable").expect("there");
            wire.change_link(&LinkChange::of(card.index).namespace(host.as_fd(), None)).expect("it moves");
        });
    }

    pub(in crate::takeover) fn take(&self, way: Way) -> Result<Taken, TakeoverError> {
        let request = self.request(way);
        self.at_host(|| take(&request))
    }

    /// Takes with a pair as inner device.
    pub(in crate::takeover) fn take_pair(&self) -> Result<Taken, TakeoverError> {
        let request = Request { inner: Inner::Veth { kept: Kept::Arp }, ..self.request(Way::Namespace) };
        self.at_host(|| take(&request))
    }

    /// Takes in place, with ARP alone kept for the daemon.
    pub(in crate::takeover) fn take_kept(&self) -> Result<Taken, TakeoverError> {
        let request = Request { inner: Inner::Veth { kept: Kept::Arp }, ..self.request(Way::InPlace) };
        self.at_host(|| take(&request))
    }

    pub(in crate::takeover) fn release(&self, interface: &str) -> Result<Report, TakeoverError> {
        self.at_host(|| release(interface, &self.run_dir(), &self.state_dir()))
    }

    /// Link, addresses, routes, neighbours and settings of the guarded host, as `ip` tells them.
    pub(in crate::takeover) fn picture(&self) -> Vec<(String, Value)> {
        let questions = [
            "ip -j link show dev eth0",
            "ip -j addr show dev eth0",
            "ip -j route show table all",
            "ip -j -6 route show table all",
            "ip -j neigh show dev eth0 nud permanent",
        ];
        let mut answers: Vec<_> = questions.map(|question| self.answer(question)).into();
        let settings = self.in_host("sysctl -a -r net.ipv[46].(conf|neigh).eth0");
        answers.push(("settings".into(), Value::String(settings)));
        answers
    }

    fn answer(&self, question: &str) -> (String, Value) {
        let mut value: Value = serde_json::from_str(&self.in_host(question)).expect("JSON");
        forget_time(&mut value);
        if let (true, Some(neighbours)) = (question.contains("neigh"), value.as_array_mut()) {
            // The kernel's table of them has no order.
            neighbours.sort_by_key(Value::to_string);
        }
        (question.to_owned(), value)
    }

    /// Frames that have arrived on the other end of the cable.
    pub(in crate::takeover) fn frames_at_peer(&self) -> u64 {
        let text = self.in_peer("ip -j -s link show dev peer0");
        let value: Value = serde_json::from_str(&text).expect("JSON");
        value[0]["stats64"]["rx"]["packets"].as_u64().expect("a count")
    }

    /// Whether plain UDP from the other host reaches a socket of the guarded host, whose hardware address it knows.
    pub(in crate::takeover) fn hears_udp(&self) -> bool {
        let socket = self.at_host(|| UdpSocket::bind("0.0.0.0:4000")).expect("a free port");
        socket.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        let file = File::open(format!("/run/netns/{}", self.peer)).expect("the namespace");
        let send = || UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.send_to(b"in clear", (HOST, 4000)));
        run_inside(file.as_fd(), send).expect("root may enter").expect("the frame leaves");
        socket.recv(&mut [0; 16]).is_ok()
    }

    /// Whether the guarded host answers plain ARP.
    pub(in crate::takeover) fn answers_arp(&self) -> bool {
        try_inside(&self.peer, &format!("arping -q -c 1 -w 1 -I peer0 {HOST}")).is_ok()
    }

    /// Lets the other host know the guarded host's hardware address.
    pub(in crate::takeover) fn introduce(&self) {
        let link: Value = serde_json::from_str(&self.in_host("ip -j link show dev eth0")).expect("JSON");
        let mac = link[0]["address"].as_str().expect("an address");
        self.in_peer(&format!("ip neigh replace {HOST} lladdr {mac} dev peer0 nud permanent"));
    }

    /// Lets both hosts know each other's hardware address for good, so that no ARP is needed.
    pub(in crate::takeover) fn acquaint(&self) {
        self.introduce();
        let link: Value = serde_json::from_str(&self.in_peer("ip -j link show dev peer0")).expect("JSON");
        let mac = link[0]["address"].as_str().expect("an address");
        self.in_host(&format!("ip neigh replace {PEER} lladdr {mac} dev eth0 nud permanent"));
    }

    /// Runs a command in the guarded host that may fail.
    pub(in crate::takeover) fn try_in_host(&self, command: &str) {
        let _ = try_inside(&self.host, command);
    }

    /// Makes the guarded host send: ARP, IPv4 and IPv6 of its own accord.
    pub(in crate::takeover) fn speak(&self) {
        for command in [format!("ping -c 2 -W 1 {PEER}"), "ping -6 -c 2 -W 1 2001:db8::9".into()] {
            // Nobody answers; what matters is that the stack tried.
            let _ = try_inside(&self.host, &command);
        }
    }

    /// Puts the state file back to what it was when a step had not yet been written down.
    pub(in crate::takeover) fn set_phase(&self, phase: Phase) {
        self.change_state(|state| state.phase = phase);
    }

    /// Edits the state file.
    pub(in crate::takeover) fn change_state(&self, edit: impl FnOnce(&mut State)) {
        let file = self.state_dir().join("eth0.takeover.json");
        let mut state = State::read(&file).expect("readable").expect("there");
        edit(&mut state);
        state.save(&file).expect("writable");
    }

    /// Spoils what `take` has taken in each of these ways, takes it on or does not, and looks whether it can be given
    /// back exactly.
    pub(in crate::takeover) fn spoil(
        &self,
        spoilers: &[Spoiler],
        take: impl Fn(&Room) -> Result<Taken, TakeoverError>,
    ) {
        let before = self.picture();
        for (name, spoil) in spoilers {
            for phase in [Phase::Taking, Phase::Releasing] {
                for taken_on_first in [false, true] {
                    eprintln!("{name}, {phase:?}, taken on first: {taken_on_first}");
                    drop(take(self).expect("it is whole"));
                    spoil(self);
                    self.set_phase(phase);
                    if taken_on_first {
                        drop(take(self).expect("it can be taken on"));
                    }
                    assert!(self.release("eth0").expect("nothing holds it").nic_found);
                    assert_same(&before, &self.picture());
                    assert!(!self.has_leftovers());
                }
            }
        }
    }

    /// Runs a Python program in the guarded host.
    pub(in crate::takeover) fn run_python(&self, script: &str) -> Result<String, String> {
        output(&["ip", "netns", "exec", &self.host, "python3", "-c", script])
    }

    /// Runs a shell script in the guarded host.
    pub(in crate::takeover) fn run_shell(&self, script: &str) -> Result<String, String> {
        output(&["ip", "netns", "exec", &self.host, "sh", "-c", script])
    }

    /// Whether any file of a take-over is left.
    pub(in crate::takeover) fn has_leftovers(&self) -> bool {
        [self.run_dir(), self.state_dir()]
            .iter()
            .any(|directory| std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some()))
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // What is in the kernel under a name of ours outlives the namespace.
        let _not_taken = self.release("eth0");
        for interface in ["eth0", "br0"] {
            let _ = crate::namespace::unpin(&self.run_dir().join(format!("{interface}.netns")));
        }
        for name in [&self.host, &self.peer] {
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

/// Removes what passes with time: counters of seconds, and that an IPv6 address is still being probed for duplicates.
fn forget_time(value: &mut Value) {
    const PASSING: [&str; 4] = ["valid_life_time", "preferred_life_time", "expires", "tentative"];
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !PASSING.contains(&name.as_str()));
            fields.values_mut().for_each(forget_time);
        }
        Value::Array(values) => values.iter_mut().for_each(forget_time),
        _ => {}
    }
}

/// Compares two pictures question by question.
pub(in crate::takeover) fn assert_same(before: &[(String, Value)], after: &[(String, Value)]) {
    for ((question, was), (_, is)) in before.iter().zip(after) {
        assert_eq!(was, is, "{question}");
    }
}

/// Compares the interface with the inner device that stands in for it.
pub(in crate::takeover) fn assert_stands_in(before: &[(String, Value)], during: &[(String, Value)]) {
    let mut during = during.to_vec();
    // What differs is what the device is and what we own: MTU, queueing, the far end of the cable.
    for (question, value) in &mut during {
        if question.contains("link show") || question.contains("addr show") {
            for field in ["link_index", "link_netnsid", "mtu", "operstate", "qdisc"] {
                let was = before.iter().find(|(other, _)| other == question).map(|(_, was)| was[0][field].clone());
                match was.filter(|was| !was.is_null()) {
                    Some(was) => value[0][field] = was,
                    None => drop(value[0].as_object_mut().and_then(|link| link.remove(field))),
                }
            }
        }
        if question == "settings" {
            let text = value.as_str().expect("text").replace("eth0.mtu = 1460", "eth0.mtu = 1500");
            *value = Value::String(text);
        }
    }
    assert_same(before, &during);
}

/// What a file of the calling thread's namespace says.
pub(in crate::takeover) fn inside_of(file: &str) -> String {
    std::fs::read_to_string(file).expect("readable").trim_end().to_owned()
}

fn inside(namespace: &str, command: &str) -> String {
    try_inside(namespace, command).unwrap_or_else(|error| panic!("{command}: {error}"))
}

fn try_inside(namespace: &str, command: &str) -> Result<String, String> {
    let mut words = vec!["ip", "netns", "exec", namespace];
    words.extend(command.split(' '));
    output(&words)
}

fn run(words: &[&str]) {
    output(words).unwrap_or_else(|error| panic!("{words:?}: {error}"));
}

fn output(words: &[&str]) -> Result<String, String> {
    let output = Command::new(words[0]).args(&words[1..]).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}
