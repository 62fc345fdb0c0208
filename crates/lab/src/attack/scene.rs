//! One attack under one guard: a new LAN, the witnesses, the honest traffic, the judgement.
//!
//! *Blocked* is positive. The attack's frames were counted on the victim's wire, nothing it aims at happened, a drop
//! counter that names it rose, and honest hosts talked to each other in the same window. A dead daemon blocks nothing.
//! And somebody is told who it was, by an attack record with the attacker's own hardware address, unless the attack's
//! row in the catalogue says why no record can have it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use identity::HostIdentity;
use serde::Serialize;

use wire::EtherType;

use crate::attack::ready::{await_addresses, port, switch_ipv6_on};
use crate::attack::told::{self, Told};
use crate::attack::{Attack, Network, PYTHON};
use crate::cleanup::{self, Run};
use crate::failure::Failure;
use crate::guard::{DHCP_CLIENT, DHCP_SERVER, DISTRIBUTOR, Daemon, Guard, Setting, Site, is_in_place};
use crate::hindrance::refused_calls;
use crate::net::lan::{INTERFACE, set_offloads};
use crate::net::talk::{Ping, PingTally};
use crate::net::{Direction, Frame, Host, Lan, LanPlan, Running, Watch, process};

pub use crate::attack::ready::MARKED_LEN;

/// Shortest window: long enough for the honest pings to mean something.
const WINDOW_MIN: Duration = Duration::from_millis(1500);

/// What an attack came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It did all that it aims at.
    Succeeded,
    /// It did nothing of it, although it was tried and the hosts were alive.
    Blocked,
    /// Neither can be said.
    Unproved,
    /// A tool is missing.
    Skipped,
    /// This machine's kernel lacks what the attack needs.
    #[serde(rename = "not testable here")]
    NotTestable,
    /// What the attack is about does not exist under this guard.
    #[serde(rename = "does not apply")]
    DoesNotApply,
}

impl Outcome {
    /// The outcome as the table shows it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Succeeded => "succeeded",
            Outcome::Blocked => "blocked",
            Outcome::Unproved => "unproved",
            Outcome::Skipped => "skipped",
            Outcome::NotTestable => "not testable here",
            Outcome::DoesNotApply => "does not apply",
        }
    }

    /// Whether it was tried at all.
    #[must_use]
    pub fn is_tried(self) -> bool {
        !matches!(self, Outcome::Skipped | Outcome::NotTestable | Outcome::DoesNotApply)
    }
}

/// One line of the demo's file.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Number and name of the attack.
    pub attack: String,
    /// What carried it out.
    pub tool: String,
    /// What guarded the hosts.
    pub guard: Guard,
    /// What came of it.
    pub outcome: Outcome,
    /// What was seen.
    pub evidence: String,
    /// What the daemons wrote of attacks, as lines of EVE.
    #[serde(skip)]
    pub eve: String,
}

impl Row {
    /// Whether this is how it must be: unguarded the attack succeeds, guarded it is blocked, and where it was not tried the reason
    /// is there.
    #[must_use]
    pub fn is_as_it_must_be(&self) -> bool {
        match self.outcome {
            Outcome::NotTestable | Outcome::DoesNotApply => !self.evidence.is_empty(),
            outcome => outcome == if self.guard.is_whole() { Outcome::Blocked } else { Outcome::Succeeded },
        }
    }
}

/// What the witnesses saw while an attack went on.
#[derive(Debug)]
pub struct Record {
    /// What the bridge sent towards the victim.
    pub wire: Vec<Frame>,
    /// What the victim's stack was given.
    pub inside: Vec<Frame>,
    /// What the attacker received.
    pub loot: Vec<Frame>,
    /// How the honest hosts fared.
    pub ping: PingTally,
    /// By how much the victim's counters rose: drops by reason, and frames answered.
    pub drops: BTreeMap<String, u64>,
    /// The attack records that daemons have opened.
    pub told: Vec<Told>,
}

/// What a strike found.
#[derive(Debug)]
pub struct Finding {
    /// It did all that it aims at.
    pub reached: bool,
    /// It did nothing of what it aims at.
    pub harmless: bool,
    /// Frames of the attack that passed where it had to pass.
    pub struck: usize,
    /// What was seen, in a few words.
    pub said: String,
    /// What the witnesses saw.
    pub record: Record,
}

/// How many of `frames` satisfy `wanted`.
#[must_use]
pub fn count(frames: &[Frame], wanted: impl Fn(&Frame) -> bool) -> usize {
    frames.iter().filter(|frame| wanted(frame)).count()
}

/// A LAN with an attack about to happen.
#[derive(Debug)]
pub struct Scene<'a> {
    /// The attack.
    pub attack: &'a Attack,
    /// What guards the hosts.
    pub guard: Guard,
    /// Daemons of the enrolled hosts; declared before the LAN so that they end before their interfaces go.
    pub daemons: Vec<Daemon>,
    /// The LAN.
    pub lan: Lan,
    seed: u64,
    site: Option<&'a Site>,
}

/// The witnesses at work.
#[derive(Debug)]
pub struct Window {
    wire: Watch,
    inside: Watch,
    /// ARP that the daemon lets the stack hear, where the victim's card stays in place for it.
    told: Option<Watch>,
    loot: Watch,
    ping: Ping,
    before: BTreeMap<String, u64>,
    opened: Instant,
}

impl Window {
    /// What the attacker has received so far.
    ///
    /// # Errors
    /// The capture file cannot be read.
    pub fn loot_so_far(&self) -> Result<Vec<Frame>, Failure> {
        self.loot.so_far()
    }
}

/// Runs `attack` under `guard` on a LAN of its own and judges it. `site` is needed for every guard but none.
///
/// # Errors
/// [`Failure::Interrupted`]. Any other failure of the LAN, the daemons or the witnesses makes the row unproved.
pub fn play(attack: &Attack, guard: Guard, run: &Run, site: Option<&Site>, seed: u64) -> Result<Row, Failure> {
    let row = |outcome, evidence| Row {
        attack: format!("{} {}", attack.number, attack.name),
        tool: attack.tools.join(", "),
        guard,
        outcome,
        evidence,
        eve: String::new(),
    };
    if let Some(untried) = attack.untried.iter().find(|untried| untried.guard == guard) {
        return Ok(row(untried.outcome, untried.because.to_owned()));
    }
    if let Some(tool) = attack.missing_tool() {
        // A probe that was interrupted has found nothing, either.
        drop(cleanup::permit()?);
        return Ok(row(Outcome::Skipped, format!("{tool} is not installed")));
    }
    let struck = Scene::set(attack, guard, run, site, seed).and_then(|mut scene| {
        let finding = (attack.strike)(&mut scene)?;
        Ok((finding, scene.end()))
    });
    match struck {
        Ok((finding, eve)) => Ok(Row { eve, ..row(judge(attack, guard, &finding), evidence(attack, guard, &finding)) }),
        Err(Failure::Interrupted) => Err(Failure::Interrupted),
        Err(Failure::NotTestable(because)) => Ok(row(Outcome::NotTestable, because)),
        Err(failure) => Ok(row(Outcome::Unproved, failure.to_string())),
    }
}

fn judge(attack: &Attack, guard: Guard, finding: &Finding) -> Outcome {
    let record = &finding.record;
    let listens = attack.reasons.is_empty();
    let noticed = listens || attack.reasons.iter().any(|&word| record.drops.contains_key(word));
    // A reason why nobody can be named is refuted by a record that names him.
    let is_told = told::names_attacker(&record.told) != attack.anonymity(guard).is_some();
    if finding.struck == 0 {
        Outcome::Unproved
    } else if finding.reached {
        Outcome::Succeeded
    } else if finding.harmless && guard != Guard::None && noticed && is_told && record.ping.lived() {
        Outcome::Blocked
    } else {
        Outcome::Unproved
    }
}

fn evidence(attack: &Attack, guard: Guard, finding: &Finding) -> String {
    let record = &finding.record;
    let place =
        if attack.reasons.is_empty() { "overheard".to_owned() } else { format!("on the wire of {}", attack.victim) };
    let mut parts = vec![finding.said.clone(), format!("{place}: {}", finding.struck)];
    if guard != Guard::None {
        let drops: Vec<String> = record.drops.iter().map(|(word, rise)| format!("{word} +{rise}")).collect();
        let drops = if drops.is_empty() { "none".to_owned() } else { drops.join(" ") };
        let (PingTally { sent, received }, (from, to)) = (record.ping, attack.honest);
        parts.push(format!("counters of {}: {drops}", attack.victim));
        parts.push(format!("ping {from}-{to} {received}/{sent}"));
        if guard.is_whole() {
            parts.push(told::sentence(&record.told, attack.anonymity(guard)));
        }
    }
    parts.join("; ")
}

impl<'a> Scene<'a> {
    fn set(
        attack: &'a Attack,
        guard: Guard,
        run: &Run,
        site: Option<&'a Site>,
        seed: u64,
    ) -> Result<Scene<'a>, Failure> {
        let impaired = attack.is_on_path().then(|| port(attack.number, guard, seed));
        let mut hosts = attack.hosts().to_vec();
        hosts.extend(attack.signs_arp(guard).then_some(DISTRIBUTOR));
        let plan = LanPlan { hosts, forwarding: attack.forwarding, impaired, ..LanPlan::default() };
        let lan = Lan::create(run, &plan)?;
        let mut scene = Scene { attack, guard, daemons: Vec::new(), lan, seed, site };
        if attack.network == Network::Leases {
            scene.host(DHCP_CLIENT)?.namespace.ip(&format!("address flush dev {INTERFACE}"))?;
        }
        if attack.network == Network::Ipv6 {
            switch_ipv6_on(&scene.lan)?;
        }
        match site.filter(|_| guard != Guard::None) {
            Some(site) => scene.start_daemons(site)?,
            None => scene.complete_checksums()?,
        }
        if attack.network == Network::Ipv6 {
            await_addresses(&scene.lan)?;
        }
        Ok(scene)
    }

    fn start_daemons(&mut self, site: &Site) -> Result<(), Failure> {
        for &name in self.attack.guarded(self.guard) {
            let host = self.lan.host(name)?;
            let weaken: &[&str] = match (name, self.guard) {
                // An insider lies: nothing in its own daemon holds it back.
                ("i", _) => &["cross-layer"],
                (_, Guard::Weakened) => self.attack.weaken,
                _ => &[],
            };
            let sarp_lines = self.attack.sarp_lines;
            let dhcp_lines = match name {
                DHCP_SERVER => "server = true",
                DHCP_CLIENT => "client = true",
                _ => "",
            };
            let setting = Setting {
                sarp: self.attack.signs_arp(self.guard),
                weaken,
                cll_lines: if self.guard == Guard::Weakened { self.attack.weakened_cll_lines } else { "" },
                readable: self.attack.readable,
                sarp_lines,
                dhcp_lines,
                paper: false,
                eve: true,
            };
            self.daemons.push(site.guard(&self.lan, host, &setting)?);
        }
        self.daemons.iter_mut().try_for_each(Daemon::await_ready)
    }

    /// Ends the daemons. What they wrote of attacks, as whole lines of EVE; nothing of a daemon that had
    /// none to tell of.
    fn end(mut self) -> String {
        let files: Vec<PathBuf> = self.daemons.iter().map(Daemon::eve_file).collect();
        self.daemons.clear();
        let texts = files.iter().filter_map(|file| std::fs::read_to_string(file).ok());
        // Its recorder may still write when a daemon has ended.
        texts.map(|text| text[..text.rfind('\n').map_or(0, |end| end + 1)].to_owned()).collect()
    }

    /// Makes stacks write whole checksums, as on a wire between machines; otherwise a captured frame cannot be replayed.
    fn complete_checksums(&self) -> Result<(), Failure> {
        self.lan.hosts.iter().try_for_each(|host| set_offloads(&host.namespace, INTERFACE, &["tx", "off"]))
    }

    /// The host called `name`.
    ///
    /// # Errors
    /// There is none.
    pub fn host(&self, name: &str) -> Result<Host, Failure> {
        self.lan.host(name).cloned()
    }

    /// The identity file of `host`; none where there is no site.
    ///
    /// # Errors
    /// `ringwall site issue` fails.
    pub fn identity(&self, host: &Host) -> Result<Option<PathBuf>, Failure> {
        self.site.map(|site| site.identity(host)).transpose()
    }

    /// The site, as its manager has it.
    ///
    /// # Errors
    /// There is none on a bare LAN.
    pub fn site(&self) -> Result<&Site, Failure> {
        let missing = || Failure::Unreadable("a site, on a bare LAN".to_owned());
        self.site.filter(|_| self.guard != Guard::None).ok_or_else(missing)
    }

    /// The identity of `host` with its secrets, as its thief has it; none where there is no site.
    ///
    /// # Errors
    /// It cannot be issued or read.
    pub fn host_identity(&self, host: &Host) -> Result<Option<HostIdentity>, Failure> {
        self.site.filter(|_| self.guard != Guard::None).map(|site| site.host_identity(host)).transpose()
    }

    /// The daemon of the host called `name`, if it has one.
    pub fn daemon(&mut self, name: &str) -> Option<&mut Daemon> {
        self.daemons.iter_mut().find(|daemon| daemon.host.name == name)
    }

    /// A payload by which frames of this attack are known, different for each `what`.
    #[must_use]
    pub fn token(&self, what: &str) -> Vec<u8> {
        let word = format!("<ringwall lab, attack {}, {what}, seed {}>", self.attack.number, self.seed);
        word.bytes().cycle().take(MARKED_LEN).collect()
    }

    /// Starts watching what the attacker receives.
    ///
    /// # Errors
    /// tcpdump fails.
    pub fn spy(&self) -> Result<Watch, Failure> {
        let attacker = self.lan.host("m")?;
        Watch::start(&attacker.namespace, INTERFACE, Direction::In, &self.lan.directory, "spy")
    }

    /// Runs one of the scapy programs on `host` to its end.
    ///
    /// # Errors
    /// It fails.
    pub fn scapy(&self, host: &Host, program: &str, arguments: &[String]) -> Result<(), Failure> {
        let mut command = host.namespace.command(PYTHON);
        command.arg("-").args(arguments);
        process::must_with(command, program.as_bytes()).map(drop)
    }

    /// Starts one of the scapy programs on `host`.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn launch_scapy(&self, host: &Host, program: &str, arguments: &[String]) -> Result<Running, Failure> {
        let file = self.file("program.py");
        std::fs::write(&file, program).map_err(Failure::file("writing", &file))?;
        let words: Vec<String> = [file.to_string_lossy().into_owned()].iter().chain(arguments).cloned().collect();
        self.launch(host, PYTHON, &words)
    }

    /// Starts `program` on `host`.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn launch(&self, host: &Host, program: &str, arguments: &[String]) -> Result<Running, Failure> {
        let mut command = host.namespace.command(program);
        command.args(arguments);
        Running::start(command, &self.file("tool.log"))
    }

    /// Puts `frames` on the attacker's wire with tcpreplay, at `per_second`.
    ///
    /// # Errors
    /// tcpreplay fails.
    pub fn replay(&self, frames: &[Frame], per_second: u32) -> Result<(), Failure> {
        let file = self.file("replay.pcap");
        crate::net::pcap::write(&file, frames)?;
        let mut command = self.lan.host("m")?.namespace.command("tcpreplay");
        command.args(["-q", "-i", INTERFACE, &format!("--pps={per_second}")]).arg(file);
        process::must(command).map(drop)
    }

    /// A file in the LAN's directory.
    #[must_use]
    pub fn file(&self, name: &str) -> std::path::PathBuf {
        Path::new(&self.lan.directory).join(name)
    }

    fn drops(&self) -> Result<BTreeMap<String, u64>, Failure> {
        let victim = self.daemons.iter().find(|daemon| daemon.host.name == self.attack.victim);
        victim.map_or(Ok(BTreeMap::new()), Daemon::counters)
    }

    /// Every attack tries the list of calls that daemons may make as well.
    fn ensure_unhindered(&self) -> Result<(), Failure> {
        self.daemons.iter().try_for_each(|daemon| match refused_calls(&daemon.log()).first() {
            None => Ok(()),
            Some(said) => {
                let command = format!("the daemon of host {}", daemon.host.name);
                Err(Failure::Command { command, said: (*said).to_owned() })
            }
        })
    }

    /// Posts the witnesses and starts the honest traffic, between hosts that know each other already.
    ///
    /// # Errors
    /// A witness fails, or the honest hosts cannot talk even before the attack.
    pub fn open(&self) -> Result<Window, Failure> {
        let (victim, attacker) = (self.lan.host(self.attack.victim)?, self.lan.host("m")?);
        let (from, to) = (self.lan.host(self.attack.honest.0)?, self.lan.host(self.attack.honest.1)?);
        if self.attack.network == Network::Ipv6 {
            self.lan.acquaint_over_ipv6(from, to)?;
        } else {
            self.lan.acquaint(from, to)?;
        }
        let directory = &self.lan.directory;
        let tap = Lan::plain_side(victim);
        let told = self.attack.signs_arp(self.guard) && tap != INTERFACE;
        let watch_told = || Watch::start(&victim.namespace, &tap, Direction::In, directory, "told");
        Ok(Window {
            told: told.then(watch_told).transpose()?,
            wire: Watch::start(&self.lan.bridge, &Lan::port(victim), Direction::Out, directory, "wire")?,
            inside: Watch::start(&victim.namespace, INTERFACE, Direction::In, directory, "inside")?,
            loot: Watch::start(&attacker.namespace, INTERFACE, Direction::In, directory, "loot")?,
            before: self.drops()?,
            ping: if self.attack.network == Network::Ipv6 { Ping::start_over_ipv6 } else { Ping::start }(
                from, to, directory,
            )?,
            opened: Instant::now(),
        })
    }

    /// Ends the window and collects what the witnesses saw.
    ///
    /// # Errors
    /// A witness fails, the victim's daemon is dead, or the sandbox of one has refused anything.
    pub fn close(&self, window: Window) -> Result<Record, Failure> {
        process::pause(WINDOW_MIN.saturating_sub(window.opened.elapsed()))?;
        let ping = window.ping.stop()?;
        let (wire, mut inside, loot) = (window.wire.stop()?, window.inside.stop()?, window.loot.stop()?);
        if is_in_place() {
            // A packet socket on the card hears what is sealed as well; the stack takes none of it.
            inside.retain(|frame| !frame.is(EtherType::CLL));
        }
        if let Some(told) = window.told {
            // It also hears ARP and tagged frames that go no further.
            let goes_further = |frame: &Frame| ![EtherType::ARP, EtherType(0x8100)].iter().any(|one| frame.is(*one));
            inside.retain(goes_further);
            inside.extend(told.stop()?);
        }
        self.ensure_unhindered()?;
        let mut drops = self.drops()?;
        for (word, rise) in &mut drops {
            *rise = rise.saturating_sub(window.before.get(word).copied().unwrap_or(0));
        }
        drops.retain(|_, rise| *rise > 0);
        let is_anonymous = self.attack.anonymity(self.guard).is_some();
        let told = if self.guard.is_whole() { told::told(&self.daemons, &self.lan, is_anonymous)? } else { Vec::new() };
        Ok(Record { wire, inside, loot, ping, drops, told })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attack::all;

    fn finding(reached: bool, harmless: bool, struck: usize, pings: u32, drop_word: &str) -> Finding {
        let source = Some("02:00:00:00:00:6d".to_owned());
        let record = Record {
            told: vec![Told { by: "a", kind: "arp-spoofing".to_owned(), source, is_attacker: true }],
            wire: Vec::new(),
            inside: Vec::new(),
            loot: Vec::new(),
            ping: PingTally { sent: 10, received: pings },
            drops: BTreeMap::from([(drop_word.to_owned(), 3)]),
        };
        Finding { reached, harmless, struck, said: String::new(), record }
    }

    #[test]
    fn blocked_needs_frames_counters_and_honest_traffic() {
        let attack = all().next().expect("the first");
        let judged = |finding| judge(attack, Guard::Cll, &finding);
        assert_eq!(judged(finding(false, true, 3, 10, "plain-arp")), Outcome::Blocked);
        assert_eq!(judged(finding(false, true, 0, 10, "plain-arp")), Outcome::Unproved, "nothing reached the wire");
        assert_eq!(judged(finding(false, true, 3, 0, "plain-arp")), Outcome::Unproved, "the daemon is dead");
        assert_eq!(judged(finding(false, true, 3, 10, "runt")), Outcome::Unproved, "nobody noticed");
        assert_eq!(judged(finding(false, false, 3, 10, "plain-arp")), Outcome::Unproved, "half reached");
        assert_eq!(judged(finding(true, false, 3, 10, "plain-arp")), Outcome::Succeeded);
        let mut untold = finding(false, true, 3, 10, "plain-arp");
        untold.record.told.clear();
        assert_eq!(judged(untold), Outcome::Unproved, "nobody is told who it was");
    }

    #[test]
    fn a_bare_lan_blocks_nothing() {
        assert_eq!(
            judge(all().next().expect("the first"), Guard::None, &finding(false, true, 3, 10, "plain-arp")),
            Outcome::Unproved
        );
    }
}
