//! Attacks 42, 47 and 48: a frame that was honest once is put on the wire again, as it was, back to its sender, or to a
//! third host. On a bare LAN the attacker corrects the addresses inside too; what is sealed cannot be corrected.

use std::time::Duration;

use crate::attack::scene::{Finding, MARKED_LEN, Scene, count};
use crate::failure::Failure;
use crate::net::talk::Mailbox;
use crate::net::{Frame, Host, process};

/// The port of every host between which the payload goes, so that it fits both directions.
const PORT: u16 = 9042;
/// How often the frame is put on the wire.
const COPIES: usize = 5;
const PER_SECOND: u32 = 20;
const CAPTURE_LIMIT: Duration = Duration::from_secs(5);

/// Attack 42: b's frame to a, again.
pub fn replayed_frame(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, b) = (scene.host("a")?, scene.host("b")?);
    let stage = Stage { sender: &b, receiver: &a, victim: &a };
    stage.play(scene, Clone::clone, |count| format!("{count} copies of b's datagram delivered again"))
}

/// Attack 47: a's frame to b, sent back to a as if b had said it.
pub fn reflection(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, b) = (scene.host("a")?, scene.host("b")?);
    let stage = Stage { sender: &a, receiver: &b, victim: &a };
    let turn = |frame: &Frame| frame.with_addresses(b.mac, a.mac).with_ipv4(b.ip, a.ip);
    stage.play(scene, turn, |count| format!("a took {count} of its own datagrams for b's"))
}

/// Attack 48: b's frame to a, sent to c.
pub fn splice(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, b, c) = (scene.host("a")?, scene.host("b")?, scene.host("c")?);
    scene.lan.acquaint(&b, &c)?;
    let stage = Stage { sender: &b, receiver: &a, victim: &c };
    let divert = |frame: &Frame| frame.with_addresses(b.mac, c.mac).with_ipv4(b.ip, c.ip);
    stage.play(scene, divert, |count| format!("c received {count} datagrams that b sent to a"))
}

struct Stage<'a> {
    sender: &'a Host,
    receiver: &'a Host,
    victim: &'a Host,
}

impl Stage<'_> {
    fn play(
        &self,
        scene: &Scene<'_>,
        change: impl Fn(&Frame) -> Frame,
        say: impl Fn(usize) -> String,
    ) -> Result<Finding, Failure> {
        let token = scene.token("payload");
        let inbox = Mailbox::open(self.victim, PORT)?;
        let captured = self.capture(scene, &token, &inbox)?;
        let changed = change(&captured);
        let window = scene.open()?;
        scene.replay(&vec![changed.clone(); COPIES], PER_SECOND)?;
        process::pause(Duration::from_millis(200))?;
        let record = scene.close(window)?;
        let delivered = inbox.take()?.iter().filter(|(_, payload)| *payload == token).count();
        Ok(Finding {
            reached: delivered > 0,
            harmless: delivered == 0 && count(&record.inside, |frame| frame.contains(&token)) == 0,
            struck: count(&record.wire, |frame| *frame == changed),
            said: say(delivered),
            record,
        })
    }

    /// Lets the sender say `token` to the receiver once, takes the frame off the wire, and empties `inbox`.
    fn capture(&self, scene: &Scene<'_>, token: &[u8], inbox: &Mailbox) -> Result<Frame, Failure> {
        let (sender, receiver) = (self.sender, self.receiver);
        scene.lan.acquaint(sender, receiver)?;
        let spy = scene.spy()?;
        let said = |frame: &Frame| frame.is_between(sender.mac, receiver.mac) && frame.0.len() >= MARKED_LEN;
        if self.victim.name == sender.name {
            inbox.send(receiver, PORT, token);
        } else {
            Mailbox::open(sender, PORT)?.send(receiver, PORT, token);
        }
        let captured = spy.await_frame("the frame to be replayed", CAPTURE_LIMIT, said)?;
        process::pause(Duration::from_millis(100))?;
        inbox.take()?;
        Ok(captured)
    }
}
