//! The stages of the rollout, in the order of docs/manual/migration.md.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use identity::certificate::utc_text;

use super::attacker::{Attacker, Beliefs};
use super::network::{self, AUTHORITY, DHCP_SERVERS, NEW_PRINTER, Network, PRINTERS, ROUTER, served};
use super::pings::{EVERY, Pings};
use super::site::{Machine, Manager, report_in_turn};
use super::{COMMANDS_MAX, Plan, Report, Stage};
use crate::cleanup::Run;
use crate::failure::Failure;
use crate::net::lan::INTERFACE;
use crate::net::neighbours::Room;
use crate::net::process;

/// So many machines join or leave at once.
const AT_ONCE: usize = 3;
/// A quiet stage is watched for so long.
const QUIET: Duration = Duration::from_secs(8);
/// Within this every pair must have an answer again.
const REACHED: Duration = Duration::from_secs(30);
/// What a policy changes is in force everywhere within this.
const IN_FORCE: Duration = Duration::from_secs(90);
/// A host that is asked answers within this.
const FRESH: Duration = EVERY.saturating_mul(3);
/// The first group that enforces, and everybody.
const FIRST_GROUP: &str = "h1,h2";
const ALL: &str = "*";
/// `site enforce` waits for the second half of five minutes.
const TRIAL_LIMIT: Duration = Duration::from_secs(330);

/// Everything of one rollout.
struct Rollout<'a> {
    plan: &'a Plan,
    network: &'a Network,
    pings: &'a Pings,
    attacker: &'a Attacker,
    beliefs: &'a Beliefs,
    manager: Manager,
    began: Instant,
    report: Report,
}

/// Rolls out, and says what was seen.
///
/// # Errors
/// The lab itself fails, or a command that must not.
pub fn perform(run: &Run, plan: &Plan) -> Result<Report, Failure> {
    network::check_tools()?;
    // Each host knows all others and the attacker, the printers, and what was there before.
    let everybody = u64::try_from(plan.hosts).unwrap_or(u64::MAX) + 8;
    let _room = Room::make(everybody * everybody)?;
    let network = Network::set(run, plan.hosts)?;
    let printers = PRINTERS.into_iter().map(|name| network.host(name)).collect::<Result<Vec<_>, _>>()?;
    let pings = Pings::open(&network.member_hosts(), &printers, network.host(NEW_PRINTER)?)?;
    let attacker = Attacker::begin(&network)?;
    let (beliefs, ended) = (Beliefs::default(), AtomicBool::new(false));
    let manager = Manager::new(run, &network, plan.program.clone())?;
    thread::scope(|scope| {
        // Also where a panic ends this thread, the others end.
        let _ending = Ending(&ended);
        scope.spawn(|| pings.run(&ended));
        scope.spawn(|| attacker.watch(&beliefs, &ended));
        let mut rollout = Rollout {
            plan,
            network: &network,
            pings: &pings,
            attacker: &attacker,
            beliefs: &beliefs,
            manager,
            began: Instant::now(),
            report: Report::default(),
        };
        rollout.all().map(|()| {
            rollout.report.typed = rollout.manager.typed;
            rollout.report
        })
    })
}

fn seconds_since(then: Instant) -> String {
    format!("{}s", then.elapsed().as_secs().max(1))
}

/// Has threads end when it goes.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn unix_s() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl Rollout<'_> {
    fn all(&mut self) -> Result<(), Failure> {
        process::pause(QUIET)?;
        self.close("everybody in clear", &[])?;
        self.found()?;
        self.close("the authority is founded", &[])?;
        let machines: Result<Vec<Machine>, Failure> =
            self.network.member_hosts().into_iter().map(|host| self.manager.machine(host)).collect();
        let machines = machines?;
        let (ended, wrong) = (AtomicBool::new(false), Mutex::new(Vec::new()));
        let every = self.plan.report_every;
        let outcome = thread::scope(|scope| {
            let _ending = Ending(&ended);
            scope.spawn(|| report_in_turn(&machines, every, &ended, &wrong));
            self.move_all(&machines)
        });
        if outcome.is_err() {
            machines.iter().for_each(|machine| eprintln!("--- {}\n{}", machine.host.name, machine.log()));
        }
        let wrong = wrong.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.report.faults.extend(wrong);
        outcome
    }

    fn move_all(&mut self, machines: &[Machine]) -> Result<(), Failure> {
        self.join(machines)?;
        self.close("all have joined, and observe", machines)?;
        let all_joined = Instant::now();
        process::pause(QUIET)?;
        self.close("quiet", machines)?;
        self.forecast(machines, all_joined)?;
        self.try_a_group(machines)?;
        self.close("a group enforces for a while, and goes back", machines)?;
        self.enforce(all_joined)?;
        self.await_mode(machines, "enforce")?;
        self.report.until_enforced = self.manager.typed.len();
        if !self.attacker.await_disbelief(REACHED)? {
            self.fault("somebody believes the attacker though all enforce".to_owned());
        }
        self.close("all enforce", machines)?;
        process::pause(QUIET)?;
        self.close("quiet, enforcing", machines)?;
        self.replace_printer(machines)?;
        self.close("a printer is replaced", machines)?;
        self.go_back(machines)?;
        self.close("back to observe at a time", machines)?;
        self.leave(machines)?;
        self.close("all have left", machines)?;
        self.judge();
        Ok(())
    }

    fn fault(&mut self, what: String) {
        eprintln!("ringwall-lab: FAULT: {what}");
        self.report.faults.push(what);
    }

    /// Ends a stage: everybody must answer, the printers take jobs, and what was seen is noted.
    fn close(&mut self, name: &'static str, machines: &[Machine]) -> Result<(), Failure> {
        if !process::within(REACHED, || Ok(self.pings.silent(FRESH).is_empty()))? {
            let silent = self.pings.silent(FRESH);
            self.fault(format!("{name}: {} pairs are cut off: {}", silent.len(), silent.join(", ")));
        }
        for printer in PRINTERS {
            let failed = self.network.cannot_print(self.network.host(printer)?.ip)?;
            if !failed.is_empty() {
                self.fault(format!("{name}: {} cannot print at {printer}", failed.join(", ")));
            }
        }
        let statuses = machines.iter().filter_map(|machine| machine.migration().ok());
        let modes: Vec<String> = statuses.filter(|mode| mode != "none").collect();
        let enforcing = modes.iter().filter(|mode| *mode == "enforce").count();
        let count = |counter: &std::sync::atomic::AtomicU32| counter.swap(0, Ordering::Relaxed);
        let stage = Stage {
            name,
            took: self.began.elapsed(),
            gaps: self.pings.take(),
            deceived: (count(&self.beliefs.looks), count(&self.beliefs.deceived)),
            guarded: (modes.len(), enforcing),
            commands: self.manager.typed.len(),
        };
        eprintln!("ringwall-lab: {name}: {:?}, deceived {:?}", stage.gaps, stage.deceived);
        self.report.stages.push(stage);
        self.began = Instant::now();
        Ok(())
    }

    /// From nothing to a site with tokens, a policy, and a service that hosts ask.
    fn found(&mut self) -> Result<(), Failure> {
        self.manager.order(&["init", "--name", "office"])?;
        let mut servers: Vec<(&str, Vec<String>)> = vec![(AUTHORITY, Vec::new())];
        for (number, name) in DHCP_SERVERS.into_iter().enumerate() {
            servers.push((name, ["--role", "dhcp", "--serves", &served(number)].map(str::to_owned).to_vec()));
        }
        for (name, more) in servers {
            let host = self.network.host(name)?;
            let (mac, ip) = (host.mac.to_string(), host.ip.to_string());
            let out = self.manager.file(&format!("{name}.pem")).display().to_string();
            let words = ["issue", "--name", name, "--mac", &mac, "--ip", &ip, "--out", &out];
            let more: Vec<&str> = more.iter().map(String::as_str).collect();
            self.manager.order(&[&words[..], &more].concat())?;
        }
        let (inventory, table) = (self.write_inventory()?, self.manager.file("hosts.csv"));
        let leases = self.network.leases(DHCP_SERVERS[0]).display().to_string();
        let survey = ["survey", "--table", &inventory, "--dnsmasq", &leases, "--listen", "6s"];
        let surveyed = self.manager.order_elsewhere(&[&survey[..], &["--interface", INTERFACE, "--csv"]].concat())?;
        std::fs::write(&table, surveyed).map_err(Failure::file("writing", &table))?;
        let (table, tokens) = (table.display().to_string(), self.manager.file("tokens").display().to_string());
        self.manager.order(&["import", &table, "--by-service", "--policy", "--out", &tokens])?;
        self.manager.enable_services()
    }

    /// What a manager has written down of his machines: names, and which are printers.
    fn write_inventory(&self) -> Result<String, Failure> {
        let mut text = "kind,name,mac,ip\n".to_owned();
        for host in &self.network.lan.hosts {
            let kind = match host.name {
                ROUTER => "router",
                name if PRINTERS.contains(&name) => "printer",
                name if self.network.members.contains(&name) => "host",
                _ => continue,
            };
            text.push_str(&format!("{kind},{},{},{}\n", host.name, host.mac, host.ip));
        }
        let file = self.manager.file("inventory.csv");
        std::fs::write(&file, text).map_err(Failure::file("writing", &file))?;
        Ok(file.display().to_string())
    }

    /// One command on each machine, on some at once. The router's token waits for the manager.
    fn join(&mut self, machines: &[Machine]) -> Result<(), Failure> {
        let name_server = self.network.host(DHCP_SERVERS[0])?;
        for some in machines.chunks(AT_ONCE) {
            let mut joining = Vec::new();
            for machine in some {
                joining.push((machine, machine.begin_joining(name_server)?));
            }
            for (machine, joining) in &mut joining {
                if machine.host.name == ROUTER {
                    joining.await_output("waiting for the manager", REACHED)?;
                    self.manager.order(&["approve", ROUTER])?;
                }
                machine.await_joined(joining)?;
            }
        }
        Ok(())
    }

    /// It names the attacker, who speaks in clear, and nobody else, once each host has reported what
    /// is left since all have joined.
    fn forecast(&mut self, machines: &[Machine], all_joined: Instant) -> Result<(), Failure> {
        let (count, since) = (machines.len(), utc_text(unix_s()));
        let all_reported = || {
            let hosts = self.manager.look(&["hosts"])?;
            let rows = hosts["hosts"].as_array().into_iter().flatten();
            Ok(rows.filter(|row| row["reported"].as_str().is_some_and(|at| at > since.as_str())).count() >= count)
        };
        let all_reported = process::within(IN_FORCE, all_reported)?;
        // While some had joined, others spoke to them in clear.
        let since = seconds_since(all_joined);
        let text = self.manager.order(&["forecast", "--since", &since])?;
        eprintln!("{text}");
        if !all_reported {
            self.fault(format!("not all hosts have reported:\n{text}"));
        }
        let told = self.manager.look(&["forecast", "--since", &since])?;
        let sources = told["groups"][0]["forecast"]["sources"].as_array().cloned().unwrap_or_default();
        let others: Vec<String> =
            sources.iter().filter(|one| one["mac"] != self.attacker.mac()).map(ToString::to_string).collect();
        if !others.is_empty() {
            self.fault(format!("the forecast names others than the attacker: {}", others.join(", ")));
        }
        Ok(())
    }

    /// A group enforces, and takes it back by itself.
    fn try_a_group(&mut self, machines: &[Machine]) -> Result<(), Failure> {
        let lasts = if self.plan.is_quick { "20s" } else { "60s" };
        self.manager.order(&["policy", "mode", FIRST_GROUP, "enforce", "--for", lasts])?;
        let group = |machine: &&Machine| FIRST_GROUP.split(',').any(|name| name == machine.host.name);
        let group: Vec<&Machine> = machines.iter().filter(group).collect();
        for mode in ["enforce", "observe"] {
            for machine in &group {
                let what = format!("{} is in mode {mode}", machine.host.name);
                process::until(&what, IN_FORCE, || Ok(machine.migration()? == mode))?;
            }
        }
        Ok(())
    }

    /// All enforce, group by group, on a trial that each host must survive.
    fn enforce(&mut self, all_joined: Instant) -> Result<(), Failure> {
        if self.plan.is_quick {
            for group in [FIRST_GROUP, ALL] {
                self.manager.order(&["policy", "mode", group, "enforce"])?;
            }
            return Ok(());
        }
        // The attacker is in the forecast, and shall be cut off.
        let (mut trials, attacker) = (Vec::new(), self.attacker.mac());
        for group in [FIRST_GROUP, ALL] {
            let since = seconds_since(all_joined);
            let words = ["enforce", group, "--for", "5m", "--except", &attacker, "--since", &since];
            trials.push(self.manager.begin(&words)?);
        }
        for trial in &mut trials {
            trial.await_output("enforces for good", TRIAL_LIMIT)?;
        }
        Ok(())
    }

    fn await_mode(&self, machines: &[Machine], mode: &str) -> Result<(), Failure> {
        for machine in machines {
            let what = format!("{} is in mode {mode}", machine.host.name);
            process::until(&what, IN_FORCE, || Ok(machine.migration()? == mode))?;
        }
        Ok(())
    }

    /// One command, and every host prints at the new one.
    fn replace_printer(&mut self, machines: &[Machine]) -> Result<(), Failure> {
        self.network.replace_printer()?;
        let (old, new) = (self.network.host(PRINTERS[0])?, self.network.host(NEW_PRINTER)?);
        let (ip, mac) = (old.ip, new.mac.to_string());
        let began = Instant::now();
        self.manager.order(&["policy", "legacy", "add", "--ip", &ip.to_string(), "--mac", &mac])?;
        process::until("every host prints at the new printer", IN_FORCE, || {
            Ok(self.network.cannot_print(ip)?.is_empty())
        })?;
        self.report.replaced = began.elapsed();
        let versions = machines.iter().map(Machine::policy).collect::<Result<Vec<_>, _>>()?;
        if versions.iter().any(|version| *version != versions[0]) {
            self.fault(format!("a printer is replaced, and hosts have several policies: {versions:?}"));
        }
        Ok(())
    }

    /// Everybody observes again from a time on.
    fn go_back(&mut self, machines: &[Machine]) -> Result<(), Failure> {
        self.manager.order(&["policy", "mode", FIRST_GROUP, "none"])?;
        let at = utc_text(unix_s() + if self.plan.is_quick { 15 } else { 60 });
        self.manager.order(&["policy", "mode", ALL, "observe", "--at", &at])?;
        self.await_mode(machines, "observe")
    }

    fn leave(&self, machines: &[Machine]) -> Result<(), Failure> {
        for some in machines.chunks(AT_ONCE) {
            thread::scope(|scope| {
                let leaving: Vec<_> = some.iter().map(|machine| scope.spawn(|| machine.leave())).collect();
                let mut left = leaving.into_iter().map(|one| one.join());
                left.try_for_each(|one| one.unwrap_or_else(|cause| std::panic::resume_unwind(cause)))
            })?;
        }
        Ok(())
    }

    /// What is said of the whole.
    fn judge(&mut self) {
        if self.report.until_enforced > COMMANDS_MAX {
            self.fault(format!("{} commands until all enforced", self.report.until_enforced));
        }
        let stages = &self.report.stages;
        let deceived = |name: &str| stages.iter().find(|stage| stage.name == name).map(|stage| stage.deceived.1);
        let (before, after) = (deceived("everybody in clear"), deceived("quiet, enforcing"));
        if before == Some(0) {
            self.fault("the attacker deceived nobody in clear: this trial proves nothing".to_owned());
        }
        if after != Some(0) {
            self.fault(format!("the attacker deceived somebody {after:?} times though all enforced"));
        }
    }
}
