//! What nmap and p0f, as they come, say about a host.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path as FilePath;
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::path::Path;
use crate::failure::Failure;
use crate::net::{Running, process};
use crate::stacks::standing::{ADDRESS, CALLED_PORT, INTERFACE, OPEN_PORT, PROBER};

/// The tools that the prober cannot do without.
pub(super) const TOOLS: [&str; 2] = ["nmap", "p0f"];
/// Scans that begin no connection.
pub(super) const STEALTHY: [&str; 4] = ["-sF", "-sN", "-sX", "-sA"];
/// A TCP port that is closed, and a UDP port that is.
const CLOSED: u16 = 23;
const CLOSED_UDP: u16 = 9;
/// How long one run of nmap may take.
const NMAP_LIMIT: Duration = Duration::from_secs(120);
/// How long p0f may take to see what it is shown.
const P0F_LIMIT: Duration = Duration::from_secs(20);

/// What nmap's detection of operating systems says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Detection {
    /// Its guesses with their accuracy, in its order; none if it has none.
    pub(super) guesses: Vec<String>,
    /// The fields it measured, by test, for example `WIN`.
    pub(super) fields: BTreeMap<String, String>,
}

fn run(path: &Path, words: &[&str]) -> Result<String, Failure> {
    let mut command = path.prober.command("nmap");
    command.args(["-n", "-Pn"]).args(words).arg(ADDRESS.to_string());
    finish(command, &path.directory.join("nmap.log"))
}

fn finish(command: Command, log: &FilePath) -> Result<String, Failure> {
    let mut nmap = Running::start(command, log)?;
    process::until("the end of nmap", NMAP_LIMIT, || Ok(nmap.ensure_alive().is_err()))?;
    Ok(nmap.output())
}

/// Runs `nmap -O` with an open port, a closed one, and a closed one of UDP.
///
/// # Errors
/// nmap fails or says nothing that can be read.
pub(super) fn detect(path: &Path) -> Result<Detection, Failure> {
    let ports = format!("T:{OPEN_PORT},{CLOSED},U:{CLOSED_UDP}");
    let words = ["-O", "-d", "-sS", "-sU", "-p", &ports, "--osscan-guess", "--max-os-tries", "1", "-oX", "-"];
    read_detection(&run(path, &words)?)
}

fn read_detection(xml: &str) -> Result<Detection, Failure> {
    let mut detection = Detection::default();
    for found in xml.split("<osmatch ").skip(1) {
        let (Some(name), Some(accuracy)) = (attribute(found, "name"), attribute(found, "accuracy")) else { continue };
        detection.guesses.push(format!("{name} ({accuracy}%)"));
    }
    let text = xml.split("<osfingerprint ").nth(1).and_then(|found| attribute(found, "fingerprint"));
    let Some(text) = text else { return Err(Failure::Unreadable("nmap printed no fingerprint".to_owned())) };
    let text = text.replace("&#xa;", "").replace("OS:", "").replace('\n', "");
    for test in text.split(')') {
        if let Some((name, values)) = test.split_once('(') {
            detection.fields.insert(name.trim().to_owned(), values.to_owned());
        }
    }
    Ok(detection)
}

/// The value of `name` in the first element of `xml`.
fn attribute<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let element = xml.split('>').next()?;
    let (_, behind) = element.split_once(&format!("{name}=\""))?;
    behind.split('"').next()
}

/// What the scan `kind` says about the open port and the closed one.
///
/// # Errors
/// nmap fails.
pub(super) fn scan(path: &Path, kind: &str) -> Result<[String; 2], Failure> {
    let ports = format!("{OPEN_PORT},{CLOSED}");
    let said = run(path, &[kind, "-T5", "--max-retries", "1", "-p", &ports, "-oG", "-"])?;
    let state = |port: u16| {
        let at = said.split_once(&format!(" {port}/")).and_then(|(_, behind)| behind.split('/').next());
        at.map(str::to_owned).ok_or_else(|| Failure::Unreadable(format!("nmap {kind} says nothing of port {port}")))
    };
    Ok([state(OPEN_PORT)?, state(CLOSED)?])
}

/// What p0f says of the stack, as a client and as a server: its guess, and the signature it saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Passive {
    /// Of the SYNs of its calls.
    pub(super) client: [String; 2],
    /// Of its answer to a SYN.
    pub(super) server: [String; 2],
}

/// Lets p0f watch while the stack calls and is called.
///
/// # Errors
/// p0f fails, or saw nothing.
pub(super) fn watch(path: &Path) -> Result<Passive, Failure> {
    let log = path.directory.join("p0f.seen");
    let mut command = path.prober.command("p0f");
    command.args(["-i", INTERFACE, "-o"]).arg(&log);
    let mut p0f = Running::start(command, &path.directory.join("p0f.log"))?;
    p0f.await_output("Entered main event loop", P0F_LIMIT)?;
    let passive = path.prober.enter(|| {
        let _called = TcpListener::bind((PROBER, CALLED_PORT)).map_err(Failure::io("listening"))?;
        let seen = || read_passive(&std::fs::read_to_string(&log).unwrap_or_default());
        process::until("what p0f says", P0F_LIMIT, || {
            // It need not be accepted to be seen.
            let _called = TcpStream::connect_timeout(&SocketAddr::from((ADDRESS, OPEN_PORT)), Duration::from_secs(1));
            thread::sleep(Duration::from_millis(100));
            p0f.ensure_alive()?;
            Ok(seen().is_some())
        })?;
        seen().ok_or_else(|| Failure::Unreadable("p0f said nothing".to_owned()))
    })?;
    p0f.stop(Signal::TERM);
    Ok(passive)
}

fn read_passive(log: &str) -> Option<Passive> {
    let (client, server) = (format!("|cli={ADDRESS}/"), format!("|srv={ADDRESS}/"));
    let find = |kind: &str, whose: &str| {
        let line = log.lines().rfind(|line| line.contains(kind) && line.contains(whose))?;
        let field =
            |name: &str| line.split('|').find_map(|part| part.strip_prefix(name)).map(|value| value.trim().to_owned());
        Some([field("os=")?, field("raw_sig=")?])
    };
    Some(Passive { client: find("mod=syn|", &client)?, server: find("mod=syn+ack|", &server)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detection_is_read_off_nmaps_own_words() {
        let xml = "<os><osmatch name=\"Linux 3.2\" accuracy=\"95\" line=\"1\">\n</osmatch><osfingerprint \
                   fingerprint=\"OS:SCAN(V=7.93%E=4)SEQ(SP=10&#xa;OS:9%TI=Z)WIN(W1=FE88)&#xa;\"/></os>";
        let detection = read_detection(xml).expect("it can be read");
        assert_eq!(detection.guesses, ["Linux 3.2 (95%)"]);
        assert_eq!(detection.fields["SEQ"], "SP=109%TI=Z");
        assert_eq!(detection.fields["WIN"], "W1=FE88");
        assert!(read_detection("<nmaprun/>").is_err());
    }

    #[test]
    fn both_signatures_are_read_off_p0fs_own_words() {
        let log = "[2026/11/22 03:00:00] mod=syn|cli=10.6.0.1/5|srv=10.6.0.2/80|subj=cli|os=???|dist=0|params=none|raw_sig=4:64+0:0\n";
        assert_eq!(read_passive(log), None, "the server is still to come");
        let log = format!("{log}[x] mod=syn+ack|cli=10.6.0.2/6|srv=10.6.0.1/22|subj=srv|os=Linux 3.x|raw_sig=4:64\n");
        let passive = read_passive(&log).expect("both are there");
        assert_eq!(passive.client, ["???", "4:64+0:0"]);
        assert_eq!(passive.server, ["Linux 3.x", "4:64"]);
    }
}
