//! What happens, in order: as `ringwall-lab rollout` does it with the program, and by the same
//! commands.

use std::net::Ipv4Addr;
use std::time::Duration;

use authority::rollout::told::OfGroup;
use authority::rollout::trial::Outcome;
use bump::{Generator, Instant};
use cll::Migration;
use identity::policy::Mode;
use wire::MacAddress;

use super::host::Host;
use super::manager::{Listed, Manager};
use super::service::unreadable;
use super::world::{REPORT_EVERY, World};
use super::{COMMANDS_MAX, OUTAGE_MAX, Report, Stage};
use crate::failure::Failure;
use crate::sim::link_layer;

const PRINTERS: usize = 3;
/// Servers among the hosts: the authority's machine and the router.
const ROUTER: usize = 1;
/// All hosts of the site.
const ALL: &str = "*";
/// Those whose names begin so go first.
const FIRST_GROUP: &str = "h1*";
const QUIET: Duration = Duration::from_secs(10);
/// Machines that join or leave in a second.
const A_SECOND: usize = 10;
const TRIAL: Duration = Duration::from_secs(300);
/// How long a group enforces that goes back by itself.
const SHORT: Duration = Duration::from_secs(60);
/// How often the command that waits for a trial looks.
const LOOK: Duration = Duration::from_secs(5);
/// Within this time an order is in force everywhere.
const IN_FORCE: Duration = Duration::from_secs(70);
/// A pair that has heard nothing for this long is cut off.
const CUT_OFF: Duration = Duration::from_secs(5);
const SEED: u64 = 28;

struct Rollout<'a> {
    world: World,
    manager: Manager,
    machines: Vec<Listed>,
    printers: Vec<Listed>,
    attacker: MacAddress,
    began: Instant,
    report: Report,
    tell: &'a dyn Fn(&str),
}

fn mac(number: usize) -> MacAddress {
    let [high, low] = (number as u16).to_be_bytes();
    MacAddress([2, 0, 0, 1, high, low])
}

fn listed(name: String, number: usize) -> Listed {
    let [high, low] = (number as u16 + 1).to_be_bytes();
    Listed { name, mac: mac(number), ip: Ipv4Addr::new(10, 77, high, low), is_router: number == ROUTER }
}

/// Rolls out at a site with so many hosts, its servers among them, and tells how far it is.
///
/// # Errors
/// The site could not be made, or refuses what it must not.
pub fn perform(hosts: usize, tell: impl Fn(&str)) -> Result<Report, Failure> {
    let mut random = link_layer::generator(SEED);
    let name = |number: usize| match number {
        0 => "s".to_owned(),
        ROUTER => "r".to_owned(),
        _ => format!("h{}", number - ROUTER),
    };
    let machines: Vec<Listed> = (0..hosts).map(|number| listed(name(number), number)).collect();
    let printers: Vec<Listed> =
        (0..PRINTERS).map(|number| listed(format!("p{}", number + 1), hosts + number)).collect();
    let all = machines.iter().chain(&printers);
    let all: Vec<Host> = all.map(|one| Host::new(one.name.clone(), one.mac, one.ip, &mut random)).collect();
    let attacker = mac(hosts + PRINTERS + 1);
    let world = World::new(all, hosts, ROUTER, attacker, Generator::from_seed(random.bytes()));
    let manager = Manager::new(&mut random)?;
    let (began, report) = (world.at, Report::default());
    let mut rollout = Rollout { world, manager, machines, printers, attacker, began, report, tell: &tell };
    rollout.all()?;
    rollout.report.typed = rollout.manager.typed;
    Ok(rollout.report)
}

impl Rollout<'_> {
    fn all(&mut self) -> Result<(), Failure> {
        self.world.run_for(QUIET);
        self.close("everybody in clear");
        self.found()?;
        self.join()?;
        self.close("all have joined, and observe");
        self.world.run_for(QUIET);
        self.close("quiet");
        // What the last ones heard in clear while they joined does not count (record 0099).
        let all_joined_ms = self.world.unix_ms();
        self.forecast(all_joined_ms)?;
        self.close("each has reported; the forecast");
        self.try_a_group()?;
        self.close("a group enforces for 60 s, and goes back");
        self.enforce(FIRST_GROUP, all_joined_ms)?;
        self.close("a group enforces, on trial, for good");
        self.enforce(ALL, all_joined_ms)?;
        self.report.until_enforced = self.manager.typed.len();
        self.close("all enforce, on trial, for good");
        self.report.associations = self.world.associations();
        // What stacks believed before is gone.
        self.world.run_for(QUIET);
        self.close("quiet, enforcing");
        self.replace_printer()?;
        self.close("a printer is replaced");
        self.go_back()?;
        self.close("back to observe at a time");
        self.leave();
        self.close("all have left");
        self.judge();
        Ok(())
    }

    fn fault(&mut self, what: String) {
        (self.tell)(&format!("FAULT: {what}"));
        self.report.faults.push(what);
    }

    fn close(&mut self, name: &'static str) {
        let cut = self.world.pings.silent(self.world.at, CUT_OFF);
        if cut > 0 {
            self.fault(format!("{name}: {cut} pairs are cut off"));
        }
        let stage = Stage {
            name,
            took: self.world.at.since(self.began),
            gaps: self.world.pings.take(self.world.at),
            deceived: self.world.take_deceived(),
            guarded: self.world.count(Migration::Enforce),
            commands: self.manager.typed.len(),
        };
        (self.tell)(&format!("{name}: {:?}, deceived {:?}", stage.gaps, stage.deceived));
        self.report.stages.push(stage);
        self.began = self.world.at;
    }

    /// From nothing to a site with tokens, a policy, and a service that hosts ask.
    fn found(&mut self) -> Result<(), Failure> {
        let unix_s = self.world.unix_s();
        let own = self.manager.found(&self.machines[0], unix_s)?;
        self.manager.import(&self.machines[1..], &self.printers, unix_s)?;
        self.world.service = Some(self.manager.enable()?);
        self.world.join(0, own);
        Ok(())
    }

    /// One command on each machine, some in each second.
    fn join(&mut self) -> Result<(), Failure> {
        for number in 1..self.machines.len() {
            let identity = self.manager.join(&self.machines[number], self.world.unix_s())?;
            self.world.join(number, identity);
            self.world.run_for(Duration::from_secs(1) / A_SECOND as u32);
        }
        Ok(())
    }

    /// It names the attacker, who speaks in clear, and nobody else.
    fn forecast(&mut self, all_joined_ms: u64) -> Result<(), Failure> {
        self.world.run_for(REPORT_EVERY + LOOK);
        let now_ms = self.world.unix_ms();
        self.manager.forecast();
        let Some(service) = &self.world.service else { return Err(unreadable("there is no service")) };
        let (reported, refused) = (service.reported_since(all_joined_ms), service.refused);
        let told = service.told(now_ms / 1000)?;
        let of_all = OfGroup::of(&told, ALL, all_joined_ms, now_ms);
        let named = of_all.forecast.sources.len();
        let others = of_all.without(&[self.attacker]).forecast;
        let (is_alone, others) = (others.sources.is_empty(), others.lines("all").join("; "));
        if reported < self.machines.len() || refused > 0 {
            self.fault(format!("{reported} hosts have reported, {refused} reports were refused"));
        }
        if named == 0 || !is_alone {
            self.fault(format!("the forecast names {named}, beside the attacker: {others}"));
        }
        Ok(())
    }

    /// Lets time pass until so many hosts of the group are in this mode.
    fn await_mode(&mut self, pattern: &str, mode: Migration, limit: Duration) -> bool {
        let prefix = pattern.trim_end_matches('*');
        let end = self.world.at + limit;
        loop {
            let members =
                self.world.hosts.iter().take(self.machines.len()).filter(|host| host.name.starts_with(prefix));
            if members.map(Host::mode).all(|one| one == Some(mode)) {
                return true;
            }
            if self.world.at >= end {
                return false;
            }
            self.world.run_for(Duration::from_secs(1));
        }
    }

    fn must_be(&mut self, pattern: &str, mode: Migration, limit: Duration) {
        if !self.await_mode(pattern, mode, limit) {
            self.fault(format!("not all of {pattern} are in mode {}", mode.word()));
        }
    }

    /// A group enforces, and takes it back by itself.
    fn try_a_group(&mut self) -> Result<(), Failure> {
        let unix_s = self.world.unix_s();
        let line = format!("ringwall site policy mode '{FIRST_GROUP}' enforce --for {}s", SHORT.as_secs());
        let back = (unix_s + SHORT.as_secs(), Mode::Observe);
        self.manager.mode(&line, FIRST_GROUP, (Mode::Enforce, Some(back)), unix_s)?;
        self.must_be(FIRST_GROUP, Migration::Enforce, SHORT);
        self.must_be(FIRST_GROUP, Migration::Observe, IN_FORCE);
        Ok(())
    }

    /// A group enforces on a trial that each of its hosts must survive.
    fn enforce(&mut self, group: &'static str, since_ms: u64) -> Result<(), Failure> {
        let now_ms = self.world.unix_ms();
        let Some(service) = &self.world.service else { return Err(unreadable("there is no service")) };
        let trial = self.manager.begin_trial(service, group, (TRIAL, since_ms, self.attacker), now_ms)?;
        // Nothing is decided in its first half.
        self.world.run_for(TRIAL / 2);
        loop {
            self.world.run_for(LOOK);
            let now_ms = self.world.unix_ms();
            let Some(service) = &self.world.service else { return Err(unreadable("there is no service")) };
            let told = service.told(now_ms / 1000)?;
            match trial.judge(&OfGroup::of(&told, group, since_ms, now_ms), &told, now_ms) {
                Outcome::Open => {}
                Outcome::Kept(_) => break self.manager.keep_trial(group, &trial, now_ms / 1000)?,
                Outcome::Failed(missing) => {
                    self.fault(format!("{group} goes back: {} did not report that they enforce", missing.len()));
                    return Ok(());
                }
            }
        }
        // Nobody goes back when the trial would have been over.
        let left = (trial.back_ms() + 2 * LOOK.as_millis() as u64).saturating_sub(self.world.unix_ms());
        self.world.run_for(Duration::from_millis(left));
        self.must_be(group, Migration::Enforce, LOOK);
        Ok(())
    }

    /// One command, and everybody reaches the new one.
    fn replace_printer(&mut self) -> Result<(), Failure> {
        let place = self.machines.len();
        let (ip, new) = (self.printers[0].ip, mac(place + PRINTERS));
        self.world.hosts[place].replace(new);
        let began = self.world.at;
        self.manager.replace_printer(ip, new, self.world.unix_s())?;
        while !self.world.pings.reached_since(place, began) && self.world.at.since(began) < IN_FORCE {
            self.world.run_for(Duration::from_millis(100));
        }
        self.report.replaced = self.world.at.since(began);
        if !self.world.pings.reached_since(place, began) {
            self.fault("somebody does not reach the new printer".to_owned());
        }
        self.world.run_for(IN_FORCE.saturating_sub(self.world.at.since(began)));
        let mut versions: Vec<_> = self.world.hosts[..place].iter().map(Host::policy_version).collect();
        versions.dedup();
        if versions.len() > 1 {
            self.fault(format!("a printer is replaced, and hosts have several policies: {versions:?}"));
        }
        Ok(())
    }

    /// Everybody observes again from a time on.
    fn go_back(&mut self) -> Result<(), Failure> {
        let unix_s = self.world.unix_s();
        self.manager.mode_none(FIRST_GROUP, unix_s)?;
        let at = unix_s + IN_FORCE.as_secs();
        let line = format!("ringwall site policy mode '{ALL}' observe --at TIME");
        self.manager.mode(&line, ALL, (Mode::Enforce, Some((at, Mode::Observe))), unix_s)?;
        self.must_be(ALL, Migration::Observe, 2 * IN_FORCE);
        Ok(())
    }

    fn leave(&mut self) {
        for number in 0..self.machines.len() {
            self.world.hosts[number].leave();
            self.world.run_for(Duration::from_secs(1) / A_SECOND as u32);
        }
        self.world.run_for(QUIET);
    }

    /// What is said of the whole.
    fn judge(&mut self) {
        if self.report.until_enforced > COMMANDS_MAX {
            self.fault(format!("{} commands until all enforced", self.report.until_enforced));
        }
        for stage in self.report.stages.clone() {
            let Stage { name, gaps, deceived, guarded, .. } = stage;
            // Whoever prints at the old printer hears of the new one by the policy, within a minute.
            let printers = if name == "a printer is replaced" { Duration::ZERO } else { gaps.printers };
            let worst = gaps.hosts.max(printers);
            if worst > OUTAGE_MAX {
                self.fault(format!("{name}: {} for {:.2} s without an answer", gaps.whose, worst.as_secs_f64()));
            }
            match name {
                "everybody in clear" if deceived.1 == 0 => {
                    self.fault("the attacker deceived nobody in clear: this trial proves nothing".to_owned());
                }
                "quiet, enforcing" if deceived.1 > 0 => {
                    self.fault(format!("the attacker deceived somebody {} times though all enforced", deceived.1));
                }
                "quiet, enforcing" if guarded.1 < self.machines.len() => {
                    self.fault(format!("{} of {} enforce", guarded.1, self.machines.len()));
                }
                "quiet" | "each has reported; the forecast" if gaps.lost > 0 => {
                    self.fault(format!("{name}: {} datagrams were lost in mode observe", gaps.lost));
                }
                _ => {}
            }
        }
        if self.world.forged > 0 {
            self.fault(format!("{} datagrams of the attacker were taken by hosts that enforce", self.world.forged));
        }
    }
}
