//! How strictly this host keeps to sealed frames, towards whom (paper, section 7.1: "a step-by-step migration").
//!
//! [`Policy`] is what the operator decided; [`Proved`] is which hosts have proved themselves, and so need not be heard in clear
//! any more; [`Rules`] is both, as control and lanes have it. Nothing here looks at a frame beyond the addresses in it, and no
//! frame in clear is ever taken for a proof of anything: the rules only say what its claims contradict.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use bump::DropReason;
use wire::MacAddress;

use crate::limits::{CLEAR_WAIT, PROVED_MAX};

/// How strictly a host keeps to sealed frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Migration {
    /// Sealed where the peer does it, in clear where not, and every contradiction is only noted. No protection.
    Observe,
    /// As before, but a host that has proved itself once is never heard in clear again.
    Prefer,
    /// Sealed, or not at all.
    #[default]
    Enforce,
}

impl Migration {
    /// Every mode, the loosest first.
    pub const ALL: [Migration; 3] = [Migration::Observe, Migration::Prefer, Migration::Enforce];

    /// The word in the configuration and in `status`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Migration::Observe => "observe",
            Migration::Prefer => "prefer",
            Migration::Enforce => "enforce",
        }
    }

    /// The mode that is called `word`.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Migration> {
        Migration::ALL.into_iter().find(|mode| mode.word() == word)
    }
}

/// The manager's machine, to be reached in clear when sealing fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Management {
    /// Its hardware address.
    pub mac: MacAddress,
    /// Its address.
    pub ip: Ipv4Addr,
    /// The TCP port of this host that it reaches, and no other: that of SSH.
    pub port: u16,
}

/// What the operator decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Towards everybody who is not named below.
    pub migration: Migration,
    /// Hosts that are treated otherwise, by hardware address.
    pub exceptions: BTreeMap<MacAddress, Migration>,
    /// Managers' machines.
    pub management: Vec<Management>,
}

impl Policy {
    /// How strictly the host with this hardware address is treated.
    #[must_use]
    pub fn towards(&self, mac: MacAddress) -> Migration {
        self.exceptions.get(&mac).copied().unwrap_or(self.migration)
    }

    /// The loosest mode towards anybody: a question by address goes out before it is known who answers.
    fn loosest(&self) -> Migration {
        self.exceptions.values().copied().fold(self.migration, Migration::min)
    }

    /// The manager's machine with this hardware address.
    #[must_use]
    pub fn management_by_mac(&self, mac: MacAddress) -> Option<&Management> {
        self.management.iter().find(|one| one.mac == mac)
    }

    /// The manager's machine with this address.
    #[must_use]
    pub fn management_by_ip(&self, ip: Ipv4Addr) -> Option<&Management> {
        self.management.iter().find(|one| one.ip == ip)
    }
}

/// A host that has proved itself by a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProvedHost {
    /// Name in its certificate.
    pub name: String,
    /// Its hardware address.
    pub mac: MacAddress,
    /// The addresses in its certificate.
    pub addresses: Vec<IpAddr>,
}

/// The hosts that have proved themselves, until an operator has them forgotten.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proved {
    by_mac: BTreeMap<MacAddress, ProvedHost>,
    by_ip: BTreeMap<IpAddr, MacAddress>,
}

impl Proved {
    /// Those of an earlier run; what comes after the first [`PROVED_MAX`] is not taken.
    pub(crate) fn of(hosts: &[ProvedHost]) -> Proved {
        let mut proved = Proved::default();
        for host in hosts {
            proved.enter(host.clone());
        }
        proved
    }

    /// Whether it would be news that this host has proved itself, and there is room for it. A full table takes no new hosts, so
    /// that nobody is pushed out of it.
    pub(crate) fn would_take(&self, host: &ProvedHost) -> bool {
        match self.by_mac.get(&host.mac) {
            Some(known) => known != host,
            None => self.by_mac.len() < PROVED_MAX,
        }
    }

    /// Enters a host that has proved itself just now: whether that is news. Its addresses are no other host's from now on, since
    /// the newer proof counts.
    pub(crate) fn enter(&mut self, host: ProvedHost) -> bool {
        if !self.would_take(&host) {
            return false;
        }
        self.forget(host.mac);
        for ip in &host.addresses {
            if let Some(before) = self.by_ip.insert(*ip, host.mac)
                && let Some(other) = self.by_mac.get_mut(&before)
            {
                other.addresses.retain(|address| address != ip);
            }
        }
        self.by_mac.insert(host.mac, host);
        true
    }

    /// Forgets a host: whether it was there.
    pub(crate) fn forget(&mut self, mac: MacAddress) -> bool {
        self.by_ip.retain(|_, owner| *owner != mac);
        self.by_mac.remove(&mac).is_some()
    }

    /// The name in the host's certificate.
    pub(crate) fn name(&self, mac: MacAddress) -> Option<&str> {
        self.by_mac.get(&mac).map(|host| host.name.as_str())
    }

    pub(crate) fn contains(&self, mac: MacAddress) -> bool {
        self.by_mac.contains_key(&mac)
    }

    /// Their hardware addresses.
    pub(crate) fn macs(&self) -> impl Iterator<Item = MacAddress> {
        self.by_mac.keys().copied()
    }

    fn owner(&self, ip: IpAddr) -> Option<MacAddress> {
        self.by_ip.get(&ip).copied()
    }
}

/// What a frame in clear says that contradicts a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Nothing.
    Nothing,
    /// It speaks for this host, which is treated loosely: to be noted.
    Noted(MacAddress),
    /// It speaks for this host, which never falls back: to be refused.
    Refused(MacAddress),
}

/// What control and lanes go by.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    pub(crate) policy: Policy,
    pub(crate) proved: Proved,
}

impl Rules {
    pub(crate) fn towards(&self, mac: MacAddress) -> Migration {
        self.policy.towards(mac)
    }

    /// Whether frames to and from this host may be in clear at all.
    pub(crate) fn is_lenient_towards(&self, mac: MacAddress) -> bool {
        self.towards(mac) != Migration::Enforce
    }

    /// Whether frames to everybody go out in clear.
    pub(crate) fn is_lenient_to_groups(&self) -> bool {
        self.policy.migration != Migration::Enforce
    }

    /// What a frame claims that names these hardware addresses and this address as its sender's.
    pub(crate) fn claim(&self, macs: &[MacAddress], ip: Option<IpAddr>) -> Claim {
        let by_mac = macs.iter().copied().filter(|mac| self.proved.contains(*mac));
        let by_ip = ip.and_then(|ip| self.proved.owner(ip));
        let mut claim = Claim::Nothing;
        for owner in by_mac.chain(by_ip) {
            if self.towards(owner) != Migration::Observe {
                return Claim::Refused(owner);
            }
            claim = Claim::Noted(owner);
        }
        claim
    }

    /// What a frame claims whose source address is another host's, whoever may send in clear under its own name.
    pub(crate) fn claim_of_address(&self, mac: MacAddress, ip: Option<IpAddr>) -> Claim {
        match ip.and_then(|ip| self.proved.owner(ip)) {
            Some(owner) if owner != mac => self.claim(&[], ip),
            _ => Claim::Nothing,
        }
    }

    /// How long a question for this address waits for a proof before it is asked in clear; `None` if it never is.
    pub(crate) fn wait_for_address(&self, ip: IpAddr) -> Option<Duration> {
        match self.proved.owner(ip) {
            Some(owner) => wait(self.towards(owner), true),
            None => wait(self.policy.loosest(), false),
        }
    }

    /// How long frames for this host wait for a proof before they leave in clear; `None` if they never do.
    pub(crate) fn wait_for_host(&self, mac: MacAddress) -> Option<Duration> {
        wait(self.towards(mac), self.proved.contains(mac))
    }
}

/// Whether a frame that is dropped for this reason contradicts what its sender has proved.
pub(crate) fn is_contradiction(reason: DropReason) -> bool {
    use DropReason::{AddressLimit, AddressTaken, InnerArp, InnerRole, InnerSource};
    matches!(reason, InnerSource | InnerArp | InnerRole | AddressTaken | AddressLimit)
}

/// A host that has proved itself before is given a moment to do so again. In `prefer` everybody is, so that whoever can prove
/// himself comes first, and who has once done so is waited for.
fn wait(mode: Migration, is_proved: bool) -> Option<Duration> {
    match (mode, is_proved) {
        (Migration::Enforce, _) | (Migration::Prefer, true) => None,
        (Migration::Prefer, false) | (Migration::Observe, true) => Some(CLEAR_WAIT),
        (Migration::Observe, false) => Some(Duration::ZERO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mac(number: u8) -> MacAddress {
        MacAddress([2, 0, 0, 0, 0, number])
    }

    fn ip(number: u8) -> IpAddr {
        [10, 0, 0, number].into()
    }

    fn host(number: u8, addresses: &[u8]) -> ProvedHost {
        let addresses = addresses.iter().map(|&number| ip(number)).collect();
        ProvedHost { name: format!("h{number}"), mac: mac(number), addresses }
    }

    fn rules(migration: Migration, hosts: &[ProvedHost]) -> Rules {
        Rules { policy: Policy { migration, ..Policy::default() }, proved: Proved::of(hosts) }
    }

    #[test]
    fn an_exception_counts_for_its_host_alone() {
        let mut policy = Policy { migration: Migration::Prefer, ..Policy::default() };
        policy.exceptions.insert(mac(7), Migration::Observe);
        policy.exceptions.insert(mac(8), Migration::Enforce);
        assert_eq!(
            [6, 7, 8].map(|number| policy.towards(mac(number))),
            Migration::ALL.map(|mode| match mode {
                Migration::Observe => Migration::Prefer,
                Migration::Prefer => Migration::Observe,
                Migration::Enforce => Migration::Enforce,
            })
        );
        assert_eq!(policy.loosest(), Migration::Observe);
    }

    #[test]
    fn the_newer_proof_of_an_address_counts() {
        let mut proved = Proved::of(&[host(1, &[1, 11])]);
        assert!(!proved.enter(host(1, &[1, 11])), "no news");
        assert!(proved.enter(host(2, &[2, 11])));
        assert_eq!((proved.owner(ip(1)), proved.owner(ip(11))), (Some(mac(1)), Some(mac(2))));
        assert!(proved.forget(mac(2)) && !proved.forget(mac(2)));
        assert_eq!((proved.owner(ip(11)), proved.owner(ip(2))), (None, None));
        assert!(proved.contains(mac(1)) && !proved.contains(mac(2)));
    }

    #[test]
    fn a_full_table_pushes_nobody_out() {
        let name = |number: u32| {
            let [_, a, b, c] = number.to_be_bytes();
            ProvedHost {
                name: "h".to_owned(),
                mac: MacAddress([2, 0, 0, a, b, c]),
                addresses: vec![[10, a, b, c].into()],
            }
        };
        let mut proved = Proved::default();
        for number in 0..=PROVED_MAX as u32 {
            proved.enter(name(number));
        }
        assert_eq!(proved.by_mac.len(), PROVED_MAX);
        assert!(proved.contains(name(0).mac) && !proved.contains(name(PROVED_MAX as u32).mac));
        let moved = ProvedHost { addresses: vec![[10, 9, 9, 9].into()], ..name(0) };
        assert!(proved.enter(moved), "who is in it may have other addresses");
    }

    #[test]
    fn a_claim_is_refused_where_its_owner_never_falls_back() {
        for (mode, refused) in [(Migration::Observe, false), (Migration::Prefer, true), (Migration::Enforce, true)] {
            let rules = rules(mode, &[host(1, &[1])]);
            let expected = if refused { Claim::Refused(mac(1)) } else { Claim::Noted(mac(1)) };
            assert_eq!(rules.claim(&[mac(1)], None), expected);
            assert_eq!(rules.claim(&[mac(9)], Some(ip(1))), expected);
            assert_eq!(rules.claim(&[mac(9), mac(1)], Some(ip(9))), expected);
            assert_eq!(rules.claim(&[mac(9)], Some(ip(9))), Claim::Nothing);
            assert_eq!(rules.claim_of_address(mac(1), Some(ip(1))), Claim::Nothing, "its own");
            assert_eq!(rules.claim_of_address(mac(9), Some(ip(1))), expected);
        }
        let mut excepted = rules(Migration::Prefer, &[host(1, &[1])]);
        excepted.policy.exceptions.insert(mac(1), Migration::Observe);
        assert_eq!(excepted.claim(&[mac(9)], Some(ip(1))), Claim::Noted(mac(1)), "the owner is the exception");
    }

    #[test]
    fn who_is_waited_for_and_how_long() {
        let known = [host(1, &[1])];
        for (mode, stranger, proved) in [
            (Migration::Observe, Some(Duration::ZERO), Some(CLEAR_WAIT)),
            (Migration::Prefer, Some(CLEAR_WAIT), None),
            (Migration::Enforce, None, None),
        ] {
            let rules = rules(mode, &known);
            assert_eq!((rules.wait_for_address(ip(9)), rules.wait_for_address(ip(1))), (stranger, proved), "{mode:?}");
            assert_eq!((rules.wait_for_host(mac(9)), rules.wait_for_host(mac(1))), (stranger, proved), "{mode:?}");
        }
    }
}
