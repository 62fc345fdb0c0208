//! What goes wrong in a run, who attacks, and how it ends.

use std::sync::Arc;

use sarp::Stamp;

use super::World;
use crate::sim::clock::{Clock, START_UNIX_S};
use crate::sim::signed_arp::event::Event;
use crate::sim::signed_arp::scenario::{Part, RIGHT, Step};
use crate::sim::signed_arp::site;
use crate::sim::signed_arp::station::Program;

/// Longest time between what the attacker sees and what he answers at once.
const REACTION_MICROS: u64 = 400;
/// Numbers above those of all stations, for who has the copy of a key.
const COPY: usize = 1_000;

impl World {
    pub(super) fn step(&mut self, index: usize, step: Step) {
        let last = self.scenario.faults_stop;
        self.course.tell(index, format_args!("{step:?}"));
        match step {
            Step::Crash(time) => {
                self.crash(index);
                self.course.schedule((self.course.at + time).min(last), Event::Restart { station: index });
            }
            Step::Pause(time) => self.stations[index].paused_until = (self.course.at + time).min(last),
            Step::SetClock(clock) => self.set_clock(index, clock),
            Step::ChangeKey => self.change_key(index),
            Step::NewCard => self.new_card(index),
            Step::StealKey => self.steal_key(index),
            Step::Rekey => self.rekey(index),
            Step::Revoke => self.revoke(index),
            Step::Release => self.release(index),
        }
    }

    fn crash(&mut self, index: usize) {
        let at = self.course.at;
        let begins_anew = self.course.random.chance(2);
        let station = &mut self.stations[index];
        station.crash();
        if station.plan.part == Part::Client {
            self.judge.owns(at, index, station);
        }
        if let (Program::Client(client), true) = (&mut station.program, begins_anew) {
            client.restart(at);
        }
    }

    pub(super) fn restart(&mut self, index: usize) {
        let station = &mut self.stations[index];
        if station.host.is_some() {
            return;
        }
        // A host that died while it changed its key keeps both and looks which of them the site has.
        if let (Some(new), Some(settings)) = (station.new_key.take(), &mut station.settings) {
            let entered = self.repository.key_of(station.plan.number);
            if entered.is_some_and(|entered| new.record_key().is_some_and(|(_, key)| key == entered)) {
                settings.key = new;
            }
        }
        station.start();
        self.schedule_upkeep(index);
    }

    fn set_clock(&mut self, index: usize, clock: Clock) {
        self.stations[index].clocks.wall = clock;
        self.judge.clock_set(clock);
    }

    fn change_key(&mut self, index: usize) {
        if self.compromised.contains(&index) || self.stations[index].host.is_none() {
            return;
        }
        if let Ok(key) = site::new_key(&mut self.course.random) {
            let outcome = self.stations[index].change_key(self.course.at, key);
            self.absorb(index, outcome, true);
        }
    }

    /// Only where the site binds no hardware address: otherwise the manager has to enter the new one first.
    fn new_card(&mut self, index: usize) {
        let at = self.course.at;
        let station = &mut self.stations[index];
        if station.plan.is_bound || self.compromised.contains(&index) {
            return;
        }
        let number = station.plan.number;
        let mac = if station.stack.mac == site::mac(number) { site::spare_mac(number) } else { site::mac(number) };
        self.crash(index);
        let station = &mut self.stations[index];
        station.stack.mac = mac;
        station.settings.iter_mut().for_each(|settings| settings.mac = mac);
        self.judge.card_changed(at, index, site::ip(number), mac);
        self.restart(index);
    }

    fn steal_key(&mut self, index: usize) {
        let Some(forger) = self.forger(index) else { return };
        let at_home = (forger.ip, forger.mac);
        self.judge.key_stolen(self.course.at, COPY + index, at_home, forger.is_bound);
        self.attacker.forgers.push(forger);
        self.compromised.push(index);
    }

    /// The manager gives the host a new key by hand.
    fn rekey(&mut self, index: usize) {
        let Ok(key) = site::new_key(&mut self.course.random) else { return };
        let number = self.stations[index].plan.number;
        let entered = key.record_key().is_some_and(|(algorithm, key)| self.repository.rekey(number, algorithm, key));
        if !entered {
            return self.judge.violate(self.course.at, index, "key not replaced by hand", "");
        }
        self.crash(index);
        let station = &mut self.stations[index];
        station.new_key = None;
        station.settings.iter_mut().for_each(|settings| settings.key = Arc::clone(&key));
        let mac = station.stack.mac;
        self.judge.falls(self.course.at, COPY + index, mac);
        self.restart(index);
    }

    fn revoke(&mut self, index: usize) {
        let station = &self.stations[index];
        if !self.repository.revoke(station.plan.number) {
            return self.judge.violate(self.course.at, index, "host not revoked", "");
        }
        self.judge.falls(self.course.at, index, station.stack.mac);
        self.revoked.push(index);
    }

    fn release(&mut self, index: usize) {
        let at = self.course.at;
        let words = match &mut self.stations[index].program {
            Program::Client(client) => client.release(at, &mut self.course.random),
            _ => None,
        };
        self.program_sends(index, words);
    }

    /// The time as one of the distributors' clocks shows it, in the form of a stamp.
    fn stamp(&mut self) -> u64 {
        let distributors: Vec<usize> =
            (0..self.stations.len()).filter(|&one| self.stations[one].plan.part == Part::Distributor).collect();
        let any = distributors[self.course.random.below(distributors.len() as u64) as usize];
        let unix_ms = self.stations[any].now(self.course.at).trusted_unix_ms();
        Stamp::from_unix_ms(unix_ms.unwrap_or(START_UNIX_S * 1000)).to_bits()
    }

    fn attacks(&self) -> bool {
        self.scenario.attack_every.is_some() && self.course.at < self.scenario.faults_stop
    }

    pub(super) fn attacker_sees(&mut self, frame: &[u8]) {
        let (stamp, attacks) = (self.stamp(), self.attacks());
        if self.scenario.attack_every.is_none() && !self.scenario.someone_falls {
            return;
        }
        for frame in self.attacker.see(stamp, frame, attacks) {
            self.judge.attacker_says(&frame);
            let delay = self.course.micros(REACTION_MICROS);
            self.course.schedule_in(delay, Event::FromAttacker { frame });
        }
    }

    pub(super) fn attack(&mut self) {
        let Some(every) = self.scenario.attack_every.filter(|_| self.attacks()) else { return };
        let (stamp, port) = (self.stamp(), self.stations.len());
        for frame in self.attacker.deed(stamp) {
            self.judge.attacker_says(&frame);
            self.course.transmit(port, &frame);
        }
        self.course.schedule_in(every, Event::Attack);
    }

    pub(super) fn faults_stop(&mut self) {
        self.course.heal();
        for index in 0..self.stations.len() {
            self.stations[index].heal();
            if self.stations[index].plan.part == Part::Distributor {
                self.set_clock(index, RIGHT);
            }
            self.restart(index);
        }
    }
}
