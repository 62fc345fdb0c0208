//! What an intrusion detection system beside a gateway gets to see, and in which forms.

use std::net::Ipv4Addr;

use ringwall_lab::failure::Failure;
use ringwall_lab::net::{Direction, Frame, Namespace, Watch, process};
use rustix::process::Signal;

use super::life::say;
use super::{PATIENCE, Path, TRUSTED, UNTRUSTED, perform_between, perform_with};
use crate::stage::{Outcome, SOON};
use crate::wire::Stream;

/// What each stream of a test carries.
const BULK: u64 = 1 << 20;
/// As many that all come to one of two readers happen once in 30,000 runs.
const CONNECTIONS: usize = 16;
/// Readers that share a mirror in turn of connections: two sockets of one fan-out group (packet(7)).
/// They say for each connection, however it is turned, how many of its packets each got. They end
/// once they know as many as they are told.
const READERS: &str = r#"
import collections, socket, struct, sys, time
sockets = []
for _ in range(2):
    one = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
    one.bind((sys.argv[1], 3))
    one.setsockopt(263, 18, 7)
    one.settimeout(0.05)
    sockets.append(one)
print("ready", flush=True)
seen = collections.defaultdict(lambda: [0, 0])
wanted, end = int(sys.argv[2]), time.monotonic() + 25
while sum(sum(counts) >= 10 for counts in seen.values()) < wanted and time.monotonic() < end:
    for number, one in enumerate(sockets):
        try:
            packet = one.recv(1 << 16)
        except TimeoutError:
            continue
        if packet[0] >> 4 == 4 and packet[9] == 6:
            at = (packet[0] & 15) * 4
            ends = sorted([packet[12:16] + packet[at:at + 2], packet[16:20] + packet[at + 2:at + 4]])
            seen[b"".join(ends).hex()][number] += 1
for connection, counts in seen.items():
    print(connection, *counts)
"#;

impl Path {
    /// Starts the gateway anew with a mirror: the card `mirror` of its namespace, and these `lines`.
    fn mirror_to(&mut self, mirror: &str, lines: &str) -> Outcome {
        self.stop(Signal::TERM);
        process::must(self.command(&["gate", "release"]))?;
        let mut config = std::fs::read_to_string(self.config()).map_err(Failure::io("reading"))?;
        config.push_str(&format!("mirror = \"{mirror}\"\n{lines}"));
        std::fs::write(self.config(), config).map_err(Failure::io("writing"))?;
        self.start()
    }

    /// A pair of devices, one the mirror's and the other a reader's.
    fn lay_mirror(&self) -> Outcome {
        self.gate.ip("link add seen0 type veth peer name seen")?;
        self.gate.ip("link set seen0 up mtu 1508")?;
        self.gate.ip("link set seen up mtu 1508")?;
        Ok(())
    }

    fn assert_nothing_lost(&self, mirror: &str) -> Outcome {
        let status = self.status()?;
        assert_eq!(status["ports"]["mirror_lost_frames"], 0, "{status}");
        assert_eq!(status["mirror"]["interface"], mirror, "{status}");
        Ok(())
    }
}

fn watch(path: &Path, place: &Namespace, card: &str) -> Result<Watch, Failure> {
    Watch::start(place, card, Direction::In, &path.run.directory(), "mirror")
}

/// Waits until both hosts' packets are there.
fn await_both(watch: &Watch, source: impl Fn(&Frame) -> Option<Ipv4Addr>) -> Outcome {
    process::until("the ping and its answer at the mirror", SOON, || {
        let seen: Vec<_> = watch.so_far()?.iter().filter_map(&source).collect();
        Ok(seen.contains(&UNTRUSTED) && seen.contains(&TRUSTED))
    })
}

#[test]
fn a_mirror_sees_both_directions() {
    perform_between("", |path| {
        path.lay_mirror()?;
        path.mirror_to("seen0", "")?;
        let watch = watch(path, &path.gate, "seen")?;
        assert!(path.pings("")?);
        await_both(&watch, Frame::ipv4_source)?;
        drop(watch.stop()?);
        path.assert_nothing_lost("seen0")
    });
}

/// The VLAN of a frame with one tag, and the source of the packet behind it.
fn behind_tag(frame: &Frame) -> Option<(u16, Ipv4Addr)> {
    let rest = frame.0.get(12..)?.strip_prefix(&[0x81, 0])?;
    let (tag, packet) = (rest.first_chunk::<2>()?, rest.get(2..)?.strip_prefix(&[8, 0])?);
    let source = packet.get(12..16)?.first_chunk::<4>()?;
    Some((u16::from_be_bytes(*tag), Ipv4Addr::from(*source)))
}

#[test]
fn tags_tell_who_sent_of_pings_and_of_streams() {
    perform_between("", |path| {
        path.lay_mirror()?;
        path.mirror_to("seen0", "[mirror]\nvlans = [10, 20]\n")?;
        let watch = watch(path, &path.gate, "seen")?;
        assert!(path.pings("")?);
        await_both(&watch, |frame| behind_tag(frame).map(|(_, source)| source))?;
        Stream::start(&path.untrusted, &path.trusted, TRUSTED, 5021)?.await_progress(BULK, PATIENCE)?;
        Stream::start(&path.trusted, &path.untrusted, UNTRUSTED, 5022)?.await_progress(BULK, PATIENCE)?;
        let frames = watch.stop()?;
        let tagged: Vec<_> = frames.iter().filter_map(behind_tag).collect();
        assert!(tagged.len() > 20, "{} of {}", tagged.len(), frames.len());
        assert!(tagged.iter().all(|(vlan, source)| *vlan == if *source == TRUSTED { 10 } else { 20 }), "{tagged:?}");
        assert!(frames.iter().all(|frame| frame.0.get(12..14) == Some(&[0x81, 0])), "all have a tag");
        Ok(())
    });
}

#[test]
fn a_mirror_may_be_the_end_of_a_tunnel_to_a_sensor() {
    perform_between("", |path| {
        let sensor = Namespace::create(path.run, "s")?;
        path.gate.ip(&format!("link add far type veth peer name e0 netns {}", sensor.name()))?;
        for (place, card, own, other) in [(&path.gate, "far", 1, 2), (&sensor, "e0", 2, 1)] {
            place.ip(&format!("address add 10.9.0.{own}/24 dev {card}"))?;
            place.ip(&format!("link set {card} up mtu 1600"))?;
            let tunnel = format!("id 7 local 10.9.0.{own} remote 10.9.0.{other} dstport 4789 dev {card}");
            place.ip(&format!("link add vx0 type vxlan {tunnel}"))?;
            place.ip("link set vx0 up")?;
        }
        path.mirror_to("vx0", "")?;
        let watch = watch(path, &sensor, "vx0")?;
        assert!(path.pings("")?);
        await_both(&watch, Frame::ipv4_source)?;
        Stream::start(&path.untrusted, &path.trusted, TRUSTED, 5023)?.await_progress(BULK, PATIENCE)?;
        let bulk = |frame: &&Frame| frame.ipv4_source() == Some(UNTRUSTED) && frame.0.len() > 1000;
        process::until("data of the stream at the sensor", SOON, || {
            Ok(watch.so_far()?.iter().filter(bulk).count() > 10)
        })?;
        drop(watch.stop()?);
        path.assert_nothing_lost("vx0")?;
        path.stop(Signal::TERM);
        process::must(path.command(&["gate", "release"]))?;
        sensor.delete()
    });
}

#[test]
fn readers_that_share_a_mirror_have_each_connection_whole() {
    perform_with(&["python3"], "", |path| {
        path.lay_mirror()?;
        path.mirror_to("seen0", "[mirror]\nvlans = [10, 20]\n")?;
        let mut readers = path.gate.command("python3");
        readers.args(["-c", READERS, "seen", &CONNECTIONS.to_string()]);
        let readers = std::thread::spawn(move || process::must(readers));
        process::pause(std::time::Duration::from_secs(1))?;
        for port in 0..CONNECTIONS as u16 {
            // Words, and no bulk, which readers of this kind are too slow for.
            let [mut client, mut server] = path.connect(&path.untrusted, &path.trusted, TRUSTED, 5030 + port)?;
            for _ in 0..5 {
                say(&mut client, &mut server, b"a word").map_err(Failure::io("talking"))?;
                say(&mut server, &mut client, b"another").map_err(Failure::io("talking"))?;
            }
        }
        let said = readers.join().expect("no panic")?;
        let counts: Vec<[u64; 2]> = said.lines().skip(1).filter_map(counts).collect();
        assert!(counts.len() >= CONNECTIONS, "{said}");
        assert!(counts.iter().all(|[one, other]| *one == 0 || *other == 0), "{said}");
        for number in [0, 1] {
            assert!(counts.iter().any(|each| each[number] > 0), "each reader has some: {said}");
        }
        Ok(())
    });
}

/// What the readers say of a connection.
fn counts(line: &str) -> Option<[u64; 2]> {
    let mut words = line.split_whitespace().skip(1).map(|word| word.parse().ok());
    Some([words.next()??, words.next()??])
}
