//! The attacker, who never stops: arpspoof puts him between three hosts and their router and
//! forwards what comes, so that nobody notices; and a DHCP server of his own answers everybody but
//! the printer, whom nothing here protects.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use super::network::{self, ATTACKER, FORGED, Network, PRINTERS, ROUTER};
use crate::cleanup;
use crate::failure::Failure;
use crate::net::lan::INTERFACE;
use crate::net::process::Running;
use crate::net::{Host, process};

/// How many hosts he tells that he is the router.
const VICTIMS: usize = 3;
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The attack, and whom it deceives.
pub(super) struct Attacker {
    victims: Vec<Host>,
    router: Host,
    own: Host,
    _running: Vec<Running>,
}

/// How often victims were looked at, and how often one believed the attacker.
#[derive(Default)]
pub(super) struct Beliefs {
    pub(super) looks: AtomicU32,
    pub(super) deceived: AtomicU32,
}

impl Attacker {
    /// Begins.
    pub(super) fn begin(network: &Network) -> Result<Attacker, Failure> {
        let (own, router) = (network.host(ATTACKER)?.clone(), network.host(ROUTER)?.clone());
        let hosts = network.member_hosts();
        let victims: Vec<Host> = hosts.into_iter().rev().take(VICTIMS).cloned().collect();
        for (key, value) in [("all/send_redirects", "0"), ("default/send_redirects", "0"), ("ip_forward", "1")] {
            let key = if key == "ip_forward" { format!("ipv4/{key}") } else { format!("ipv4/conf/{key}") };
            own.namespace.set_kernel_parameter(&key, value)?;
        }
        own.namespace.set_kernel_parameter(&format!("ipv4/conf/{INTERFACE}/send_redirects"), "0")?;
        // arpspoof sends nothing before it knows its target, which a listener on the LAN does.
        own.pin_neighbour(&router)?;
        let mut running = Vec::new();
        for victim in &victims {
            own.pin_neighbour(victim)?;
            let mut command = own.namespace.command("arpspoof");
            command.args(["-i", INTERFACE, "-t", &victim.ip.to_string(), &router.ip.to_string()]);
            let log = network.directory.join(format!("arpspoof-{}.log", victim.name));
            running.push(Running::start(command, &log)?);
        }
        running.push(Attacker::forge_leases(&own, network, &network.directory)?);
        Ok(Attacker { victims, router, own, _running: running })
    }

    fn forge_leases(own: &Host, network: &Network, directory: &Path) -> Result<Running, Failure> {
        let mut command = network::dnsmasq(own, &directory.join("forged.leases"), FORGED);
        for printer in PRINTERS {
            command.arg(format!("--dhcp-host={},ignore", network.host(printer)?.mac));
        }
        network::start(command, &directory.join("dnsmasq-forged.log"))
    }

    /// Which victims take the attacker for the router now.
    pub(super) fn deceived(&self) -> Result<Vec<&'static str>, Failure> {
        let mut deceived = Vec::new();
        for victim in &self.victims {
            if victim.neighbour(self.router.ip)?.is_some_and(|entry| entry.mac == self.own.mac) {
                deceived.push(victim.name);
            }
        }
        Ok(deceived)
    }

    /// Counts beliefs until `ended`.
    pub(super) fn watch(&self, beliefs: &Beliefs, ended: &AtomicBool) {
        while !ended.load(Ordering::Relaxed) && cleanup::permit().is_ok() {
            if let Ok(deceived) = self.deceived() {
                let count = u32::try_from(deceived.len()).unwrap_or(u32::MAX);
                let looks = u32::try_from(self.victims.len()).unwrap_or(u32::MAX);
                beliefs.looks.fetch_add(looks, Ordering::Relaxed);
                beliefs.deceived.fetch_add(count, Ordering::Relaxed);
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Waits until nobody believes him any more.
    pub(super) fn await_disbelief(&self, limit: Duration) -> Result<bool, Failure> {
        process::within(limit, || self.deceived().map(|deceived| deceived.is_empty()))
    }

    /// His hardware address, by which a forecast names him.
    pub(super) fn mac(&self) -> String {
        self.own.mac.to_string()
    }
}
