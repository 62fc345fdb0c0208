//! What goes wrong, what attacks, and what stacks send beside the traffic that is to arrive.

use std::time::Duration;

use super::World;
use crate::sim::fabric::Kind;
use crate::sim::link_layer::attacker::Attacker;
use crate::sim::link_layer::event::Event;
use crate::sim::link_layer::judge::PASSED;
use crate::sim::link_layer::scenario::{Part, Step};
use crate::sim::link_layer::stack::Output;
use crate::sim::link_layer::{babble, insider, shout, site};

/// Longest time between two lies of the insider.
const LIE_EVERY_MILLIS: u64 = 400;
/// Longest time between two frames of a stack that nobody carries.
const BABBLE_EVERY_MILLIS: u64 = 5_000;
/// Longest time between two frames of a host to a group.
const SHOUT_EVERY_MILLIS: u64 = 700;
/// One in so many of them is a burst.
const SHOUT_BURST_ONE_IN: u64 = 10;
/// Frames of a burst.
const SHOUT_BURST: u64 = 40;
/// Time between two frames that pass in clear by configuration.
const PASS_EVERY: Duration = Duration::from_secs(5);

impl World {
    /// What a host sends beside its flows.
    pub(super) fn begin_chatter(&mut self, host: usize) {
        match self.hosts[host].plan.part {
            Part::Insider => self.course.schedule_in(Duration::from_secs(2), Event::Lie { host }),
            Part::Honest => {
                self.course.schedule_in(Duration::from_secs(1), Event::Babble { host });
                self.course.schedule_in(Duration::from_secs(1), Event::Shout { host });
                if self.scenario.passes {
                    self.course.schedule_in(PASS_EVERY, Event::Pass { host });
                }
            }
            Part::Legacy => {}
        }
    }

    pub(super) fn step(&mut self, host: usize, step: Step) {
        if self.hosts[host].plan.part == Part::Legacy {
            return;
        }
        let last = self.scenario.faults_stop;
        match step {
            Step::Crash(time) => {
                self.hosts[host].crash();
                self.course.schedule((self.course.at + time).min(last), Event::Restart { host });
            }
            Step::Pause(time) => self.hosts[host].paused_until = (self.course.at + time).min(last),
            Step::SetClock(error_ms) => self.hosts[host].set_clock(error_ms),
            Step::Share => {
                let outcome = self.hosts[host].share(self.course.at);
                self.absorb(host, outcome, true);
            }
        }
    }

    pub(super) fn restart(&mut self, host: usize) {
        if self.hosts[host].link.is_none() {
            let outcome = self.hosts[host].start(self.course.at);
            self.absorb(host, outcome, true);
        }
    }

    pub(super) fn attack(&mut self) {
        let (Some(every), Some(attacker)) = (self.scenario.attack_every, &mut self.attacker) else { return };
        let port = self.hosts.len();
        for frame in attacker.deed() {
            self.course.transmit(port, &frame);
        }
        // On a switch a cloned address takes the victim's frames away, and no link layer can help that.
        let until = match self.scenario.fabric {
            Kind::Hub => self.scenario.traffic_stops(),
            Kind::Switch => self.scenario.faults_stop,
        };
        if self.course.at < until {
            self.course.schedule_in(every, Event::Attack);
        }
    }

    pub(super) fn lie(&mut self, host: usize) {
        if self.course.at >= self.scenario.traffic_stops() {
            return;
        }
        let victims: Vec<usize> = (0..self.hosts.len()).filter(|&other| other != host).collect();
        let first = self.take_numbers(1);
        if let Some(output) = insider::lie(&mut self.course.random, &self.scenario, host, &victims, first) {
            self.course.schedule_in(Duration::ZERO, Event::FromStack { host, output, is_lie: true });
        }
        let wait = Duration::from_millis(1 + self.course.random.below(LIE_EVERY_MILLIS));
        self.course.schedule_in(wait, Event::Lie { host });
    }

    pub(super) fn babble(&mut self, host: usize) {
        if self.course.at >= self.scenario.traffic_stops() {
            return;
        }
        let number = self.take_numbers(1);
        let output = babble::babble(&mut self.course.random, &self.scenario, host, number);
        self.course.schedule_in(Duration::ZERO, Event::FromStack { host, output, is_lie: false });
        let wait = Duration::from_millis(1 + self.course.random.below(BABBLE_EVERY_MILLIS));
        self.course.schedule_in(wait, Event::Babble { host });
    }

    /// The stack sends to a group, now and then a lot at once.
    pub(super) fn shout(&mut self, host: usize) {
        if self.course.at >= self.scenario.traffic_stops() {
            return;
        }
        let count = if self.course.random.chance(SHOUT_BURST_ONE_IN) { SHOUT_BURST } else { 1 };
        let own = self.hosts[host].plan.identity;
        for _ in 0..count {
            let first = self.take_numbers(shout::COUNT_MAX as usize);
            let packed = shout::shout(&mut self.course.random, own, first);
            if self.hosts[host].paused_until <= self.course.at {
                self.judge.offered_to_all(host, self.course.at, &packed.pieces);
                let output = Output::Datagrams(packed);
                self.course.schedule_in(Duration::ZERO, Event::FromStack { host, output, is_lie: false });
            }
        }
        let wait = Duration::from_millis(1 + self.course.random.below(SHOUT_EVERY_MILLIS));
        self.course.schedule_in(wait, Event::Shout { host });
    }

    /// The stack sends what the configuration lets pass.
    pub(super) fn pass(&mut self, host: usize) {
        let source = site::mac(self.hosts[host].plan.identity);
        let destination = wire::MacAddress([0x01, 0x80, 0xc2, 0, 0, 0x0e]);
        let header = wire::ethernet::Header { destination, source, ethertype: PASSED };
        let output = Output::Arp([&header.emit()[..], &[0; 46]].concat());
        self.course.schedule_in(Duration::ZERO, Event::FromStack { host, output, is_lie: false });
        self.course.schedule_in(PASS_EVERY, Event::Pass { host });
    }

    pub(super) fn faults_stop(&mut self) {
        self.course.heal();
        // An old site key is worth nothing by now.
        if !self.scenario.changes_site_key {
            self.attacker.iter_mut().for_each(Attacker::forget_site_key);
        }
        for host in 0..self.hosts.len() {
            self.hosts[host].heal();
            self.restart(host);
        }
    }
}
