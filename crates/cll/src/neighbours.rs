//! Who has which IPv6 address.
//!
//! A certificate may name IPv6 addresses, but hosts also make their own, and change them (RFC 8981), and no certificate
//! can tell of those. So an address is held by the first host that claims it, as switches do it that guard source addresses
//! (RFC 6620), with the difference that here the hosts are proved. Better claims win over the first: a certificate that
//! names the address, then an address that is made of the claimant's own hardware address (RFC 4291, appendix A).
//!
//! Trust: whoever claims has an association or a good signature; this table decides between hosts of the site. What an
//! enrolled host can do against another is bounded: the number of addresses it holds, and how often it may say that it
//! already has an address which this host is about to take.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;
use std::time::Duration;

use bump::{DropReason, Instant};
use identity::certificate::HostCertificate;
use wire::MacAddress;
use wire::nd::interface_identifier;

use crate::limits::{
    ADDRESS_HELD, ADDRESS_IN_USE, ADDRESS_TENTATIVE, ADDRESSES_MAX, ADDRESSES_OWN_MAX, ADDRESSES_PER_HOST_MAX,
    DENIAL_PERIOD, DENIALS_PER_HOST_MAX, TENTATIVE_MAX,
};

/// How good a claim is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Proof {
    /// Nobody had the address.
    First,
    /// The address is made of the host's hardware address, which its certificate binds.
    Interface,
    /// The host's certificate names the address.
    Certificate,
}

#[derive(Clone, Copy, Debug)]
struct Binding {
    mac: MacAddress,
    proof: Proof,
    heard: Instant,
}

/// What a good claim changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claimed {
    /// Bindings that are no more.
    pub(crate) withdrawn: Vec<(MacAddress, Ipv6Addr)>,
    /// This host was about to take the address, and gives way.
    pub(crate) denies_ours: bool,
}

/// The addresses of a host that it may not take for its own.
#[derive(Clone, Copy, Debug)]
struct Denials {
    since: Instant,
    count: u32,
}

/// The table.
#[derive(Debug)]
pub(crate) struct Neighbours {
    own_mac: MacAddress,
    bindings: BTreeMap<Ipv6Addr, Binding>,
    by_host: BTreeMap<MacAddress, BTreeSet<Ipv6Addr>>,
    /// Addresses that the certificate of a host names that was met.
    certified: BTreeMap<Ipv6Addr, MacAddress>,
    /// Addresses that our stack is about to take, and since when.
    tentative: BTreeMap<Ipv6Addr, Instant>,
    denials: BTreeMap<MacAddress, Denials>,
}

impl Neighbours {
    /// The table of the host with this certificate.
    pub(crate) fn new(own: &HostCertificate) -> Neighbours {
        let mut neighbours = Neighbours {
            own_mac: own.mac(),
            bindings: BTreeMap::new(),
            by_host: BTreeMap::new(),
            certified: BTreeMap::new(),
            tentative: BTreeMap::new(),
            denials: BTreeMap::new(),
        };
        neighbours.certify(own);
        neighbours
    }

    /// A host with this certificate was met: the addresses in it are its own, and no others that an earlier one named.
    /// Returns bindings of others that are no more.
    pub(crate) fn certify(&mut self, certificate: &HostCertificate) -> Vec<(MacAddress, Ipv6Addr)> {
        let (mac, addresses) = (certificate.mac(), certificate.ipv6_addresses());
        self.certified.retain(|address, holder| *holder != mac || addresses.contains(address));
        let mut withdrawn = Vec::new();
        for &address in addresses {
            // Whom the authority named first keeps the address; it does not name two.
            if self.certified.len() >= ADDRESSES_MAX || *self.certified.entry(address).or_insert(mac) != mac {
                continue;
            }
            let anothers = self.bindings.get(&address).map(|binding| binding.mac).filter(|holder| *holder != mac);
            withdrawn.extend(anothers.map(|holder| (holder, address)));
        }
        for (_, address) in &withdrawn {
            self.unbind(*address);
        }
        withdrawn
    }

    /// The host at `mac` is proved and says that it has `address`.
    ///
    /// # Errors
    /// [`DropReason::AddressTaken`] if another host has it, [`DropReason::AddressLimit`] if the host has too many.
    pub(crate) fn claim(&mut self, now: Instant, mac: MacAddress, address: Ipv6Addr) -> Result<Claimed, DropReason> {
        let proof = self.proof(mac, address);
        if self.certified.get(&address).is_some_and(|holder| *holder != mac) {
            return Err(DropReason::AddressTaken);
        }
        let mut claimed = Claimed::default();
        match self.bindings.get(&address).copied() {
            Some(held) if held.mac == mac => {
                self.bindings.insert(address, Binding { mac, proof, heard: now });
                return Ok(claimed);
            }
            Some(held) if self.is_held(now, &held) && held.proof >= proof => {
                let is_deniable = held.mac == self.own_mac && held.proof == Proof::First;
                if !is_deniable || !self.may_deny(now, mac, address) {
                    return Err(DropReason::AddressTaken);
                }
                claimed.denies_ours = true;
            }
            _ => {}
        }
        claimed.withdrawn.extend(self.make_room(now, mac)?);
        claimed.withdrawn.extend(self.unbind(address).map(|holder| (holder, address)));
        self.bindings.insert(address, Binding { mac, proof, heard: now });
        self.by_host.entry(mac).or_default().insert(address);
        Ok(claimed)
    }

    /// Our own stack is about to take `address`, and asks whether somebody has it.
    pub(crate) fn begin_own(&mut self, now: Instant, address: Ipv6Addr) -> Result<Claimed, DropReason> {
        let claimed = self.claim(now, self.own_mac, address)?;
        self.tentative.retain(|_, since| now.since(*since) < ADDRESS_TENTATIVE);
        if self.tentative.len() < TENTATIVE_MAX {
            self.tentative.insert(address, now);
        }
        Ok(claimed)
    }

    /// The host at `mac` is about to take `address`, and asks whether somebody has it. An address that nobody has is held
    /// for it. The question itself is good whoever has the address, unless it would keep our stack from taking its own.
    pub(crate) fn question(&mut self, now: Instant, mac: MacAddress, address: Ipv6Addr) -> Result<Claimed, DropReason> {
        if self.is_own(address) && !self.is_tentative(now, address) {
            return Ok(Claimed::default());
        }
        let is_own = self.is_own(address);
        match self.claim(now, mac, address) {
            Err(_) if !is_own => Ok(Claimed::default()),
            decided => decided,
        }
    }

    /// Our stack does not answer for `address` any more.
    pub(crate) fn forget_own(&mut self, address: Ipv6Addr) {
        if self.is_own(address) {
            self.unbind(address);
        }
    }

    /// Forgets a host and returns what it had.
    pub(crate) fn forget_host(&mut self, mac: MacAddress) -> Vec<(MacAddress, Ipv6Addr)> {
        self.certified.retain(|_, holder| *holder != mac);
        let addresses = self.addresses_of(mac);
        for address in &addresses {
            self.unbind(*address);
        }
        addresses.into_iter().map(|address| (mac, address)).collect()
    }

    /// Whether our own stack has `address`.
    pub(crate) fn is_own(&self, address: Ipv6Addr) -> bool {
        self.bindings.get(&address).is_some_and(|binding| binding.mac == self.own_mac)
    }

    /// Who has `address`, if that is known.
    pub(crate) fn holder(&self, now: Instant, address: Ipv6Addr) -> Option<MacAddress> {
        let held = self.bindings.get(&address).filter(|binding| self.is_held(now, binding));
        held.map(|binding| binding.mac).or_else(|| self.certified.get(&address).copied())
    }

    /// The addresses of a host.
    pub(crate) fn addresses_of(&self, mac: MacAddress) -> Vec<Ipv6Addr> {
        self.by_host.get(&mac).into_iter().flatten().copied().collect()
    }

    fn proof(&self, mac: MacAddress, address: Ipv6Addr) -> Proof {
        if self.certified.get(&address) == Some(&mac) {
            Proof::Certificate
        } else if address.octets()[8..] == interface_identifier(mac) {
            Proof::Interface
        } else {
            Proof::First
        }
    }

    /// Our own addresses are held until our stack does not answer for them.
    fn is_held(&self, now: Instant, binding: &Binding) -> bool {
        binding.mac == self.own_mac || now.since(binding.heard) < ADDRESS_HELD
    }

    fn is_tentative(&self, now: Instant, address: Ipv6Addr) -> bool {
        self.tentative.get(&address).is_some_and(|since| now.since(*since) < ADDRESS_TENTATIVE)
    }

    /// Whether the host at `mac` may say that it has an address which our stack is about to take. It may be true, and
    /// nobody can prove it; so every host may say it now and then (RFC 4862 has whoever says so believed).
    fn may_deny(&mut self, now: Instant, mac: MacAddress, address: Ipv6Addr) -> bool {
        if !self.is_tentative(now, address) {
            return false;
        }
        let fresh = Denials { since: now, count: 0 };
        self.denials.retain(|_, denials| now.since(denials.since) < DENIAL_PERIOD);
        let denials = self.denials.entry(mac).or_insert(fresh);
        denials.count += 1;
        denials.count <= DENIALS_PER_HOST_MAX
    }

    /// Makes room for one more address of a host: the one that was unheard for longest goes, if it is not in use.
    fn make_room(&mut self, now: Instant, mac: MacAddress) -> Result<Option<(MacAddress, Ipv6Addr)>, DropReason> {
        let is_own = mac == self.own_mac;
        let most = if is_own { ADDRESSES_OWN_MAX } else { ADDRESSES_PER_HOST_MAX };
        let addresses = self.by_host.get(&mac);
        if addresses.is_none_or(|addresses| addresses.len() < most) {
            self.purge_if_full(now);
            return if self.bindings.len() < ADDRESSES_MAX { Ok(None) } else { Err(DropReason::AddressLimit) };
        }
        let heard = |address: &&Ipv6Addr| self.bindings.get(address).map(|binding| binding.heard);
        let oldest = addresses.into_iter().flatten().min_by_key(heard).copied();
        let since = oldest.and_then(|oldest| heard(&&oldest)).map_or(Duration::ZERO, |heard| now.since(heard));
        let oldest = oldest.filter(|_| is_own || since >= ADDRESS_IN_USE).ok_or(DropReason::AddressLimit)?;
        self.unbind(oldest);
        Ok(Some((mac, oldest)))
    }

    /// Forgets addresses that nobody holds any more, should the table be full. Lanes have forgotten them long since.
    fn purge_if_full(&mut self, now: Instant) {
        if self.bindings.len() < ADDRESSES_MAX {
            return;
        }
        let is_gone = |(_, binding): &(&Ipv6Addr, &Binding)| !self.is_held(now, binding);
        let gone: Vec<Ipv6Addr> = self.bindings.iter().filter(is_gone).map(|(address, _)| *address).collect();
        for address in gone {
            self.unbind(address);
        }
    }

    fn unbind(&mut self, address: Ipv6Addr) -> Option<MacAddress> {
        let Binding { mac, .. } = self.bindings.remove(&address)?;
        self.tentative.remove(&address);
        if let Some(addresses) = self.by_host.get_mut(&mac) {
            addresses.remove(&address);
            if addresses.is_empty() {
                self.by_host.remove(&mac);
            }
        }
        Some(mac)
    }
}

#[cfg(test)]
mod tests {
    use authority::{Request, Site};
    use identity::HostIdentity;

    use super::*;

    const OWN: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const A: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
    const B: MacAddress = MacAddress([2, 0, 0, 0, 0, 3]);

    fn address(text: &str) -> Ipv6Addr {
        text.parse().expect("an address")
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_millis(1_000_000 + seconds * 1000)
    }

    /// A host of a site whose certificate names these addresses.
    fn host(mac: MacAddress, addresses: &[&str]) -> HostIdentity {
        let mut count = 0_u8;
        let mut fill = |bytes: &mut [u8]| {
            bytes.fill_with(|| {
                count = count.wrapping_mul(5).wrapping_add(mac.0[5]);
                count
            });
        };
        let site = Site::create("test", &mut fill, 1_800_000_000).expect("a site");
        let request = Request::new("h", mac, Vec::new()).expect("a request");
        let request = request.with_ipv6(addresses.iter().map(|text| address(text)).collect()).expect("addresses");
        let pem = site.issue_identity(&request, &mut fill, 1_800_000_000).expect("issued");
        HostIdentity::from_pem(&pem).expect("an identity")
    }

    fn table() -> Neighbours {
        Neighbours::new(host(OWN, &[]).certificate())
    }

    fn fine() -> Result<Claimed, DropReason> {
        Ok(Claimed::default())
    }

    #[test]
    fn the_first_who_claims_has_the_address_until_he_is_long_unheard() {
        let mut table = table();
        let one = address("2001:db8::1:2:3:4");
        assert_eq!(table.claim(at(0), A, one), fine());
        assert_eq!(table.claim(at(1), B, one), Err(DropReason::AddressTaken));
        assert_eq!(table.claim(at(1000), A, one), fine());
        assert_eq!(table.holder(at(2000), one), Some(A));
        assert_eq!(table.claim(at(2000), B, one), Err(DropReason::AddressTaken), "he was heard since");
        let late = at(1000 + ADDRESS_HELD.as_secs());
        assert_eq!(table.holder(late, one), None);
        let withdrawn = Claimed { withdrawn: vec![(A, one)], denies_ours: false };
        assert_eq!(table.claim(late, B, one), Ok(withdrawn));
        assert_eq!((table.addresses_of(A), table.addresses_of(B)), (vec![], vec![one]));
    }

    #[test]
    fn an_address_made_of_the_hardware_address_wins_over_the_first_claim() {
        let mut table = table();
        let made_of_b = address("fe80::ff:fe00:3");
        assert_eq!(table.claim(at(0), A, made_of_b), fine());
        let withdrawn = Claimed { withdrawn: vec![(A, made_of_b)], denies_ours: false };
        assert_eq!(table.claim(at(1), B, made_of_b), Ok(withdrawn));
        assert_eq!(table.claim(at(2), A, made_of_b), Err(DropReason::AddressTaken));
    }

    #[test]
    fn what_a_certificate_names_is_its_hosts_alone() {
        let mut table = table();
        let named = address("2001:db8::53");
        assert_eq!(table.claim(at(0), A, named), fine());
        let b = host(B, &["2001:db8::53"]);
        assert_eq!(table.certify(b.certificate()), [(A, named)]);
        assert_eq!(table.holder(at(0), named), Some(B), "though B has not said a word");
        assert_eq!(table.claim(at(1), A, named), Err(DropReason::AddressTaken));
        assert_eq!(table.claim(at(1), B, named), fine());
        assert_eq!(
            table.claim(at(1 + 2 * ADDRESS_HELD.as_secs()), A, named),
            Err(DropReason::AddressTaken),
            "for good"
        );
        assert_eq!(table.certify(host(B, &[]).certificate()), []);
        assert_eq!(table.holder(at(99_999), named), None, "its next certificate does not name it");
    }

    #[test]
    fn our_own_addresses_are_not_for_others() {
        let mut table = Neighbours::new(host(OWN, &["2001:db8::1"]).certificate());
        let (named, other) = (address("2001:db8::1"), address("2001:db8::2"));
        assert_eq!(table.claim(at(0), OWN, other), fine());
        for taken in [named, other] {
            assert_eq!(table.claim(at(99_999), A, taken), Err(DropReason::AddressTaken));
        }
        table.forget_own(other);
        assert_eq!(table.claim(at(0), A, other), fine());
    }

    #[test]
    fn a_host_has_a_bounded_number_of_addresses() {
        let mut table = table();
        let number = |count: usize| address(&format!("2001:db8::{count:x}"));
        for count in 0..ADDRESSES_PER_HOST_MAX {
            assert_eq!(table.claim(at(count as u64), A, number(count)), fine());
        }
        assert_eq!(table.claim(at(60), A, number(99)), Err(DropReason::AddressLimit));
        assert_eq!(table.claim(at(60), B, number(99)), fine(), "another host has room of its own");
        let later = at(ADDRESS_IN_USE.as_secs());
        let withdrawn = Claimed { withdrawn: vec![(A, number(0))], denies_ours: false };
        assert_eq!(table.claim(later, A, number(98)), Ok(withdrawn), "the one unheard for longest makes room");
        assert_eq!(table.addresses_of(A).len(), ADDRESSES_PER_HOST_MAX);
    }

    #[test]
    fn a_denial_is_believed_twice_an_hour_and_only_while_we_ask() {
        let mut table = table();
        let number = |count: u64| address(&format!("2001:db8::{count:x}"));
        for count in 0..4 {
            assert_eq!(table.begin_own(at(count * 10), number(count)), fine());
            let decided = table.claim(at(count * 10 + 1), A, number(count));
            if count < u64::from(DENIALS_PER_HOST_MAX) {
                assert!(decided.expect("it may have the address").denies_ours);
            } else {
                assert_eq!(decided, Err(DropReason::AddressTaken), "it says so too often");
            }
        }
        assert!(table.is_own(number(3)) && !table.is_own(number(1)));
        assert_eq!(table.begin_own(at(100), number(9)), fine());
        let late = at(100 + ADDRESS_TENTATIVE.as_secs());
        assert_eq!(table.claim(late, B, number(9)), Err(DropReason::AddressTaken), "we have it by now");
        let again = at(DENIAL_PERIOD.as_secs() + 1);
        assert_eq!(table.begin_own(again, number(10)), fine());
        assert!(table.claim(again, A, number(10)).expect("an hour has passed").denies_ours);
    }

    #[test]
    fn what_is_made_of_our_hardware_address_nobody_denies() {
        let mut table = table();
        let ours = address("fe80::ff:fe00:1");
        assert_eq!(table.begin_own(at(0), ours), fine());
        assert_eq!(table.claim(at(0), A, ours), Err(DropReason::AddressTaken));
        assert_eq!(table.question(at(0), A, ours), Err(DropReason::AddressTaken), "nor by asking at the same time");
    }

    #[test]
    fn a_question_holds_an_address_that_nobody_has_and_is_answered_for_ours() {
        let mut table = table();
        let (free, ours) = (address("2001:db8::1"), address("2001:db8::2"));
        assert_eq!(table.question(at(0), A, free), fine());
        assert_eq!(table.holder(at(0), free), Some(A));
        assert_eq!(table.question(at(0), B, free), fine(), "A answers it");
        assert_eq!(table.holder(at(0), free), Some(A));
        assert_eq!(table.claim(at(0), OWN, ours), fine());
        assert_eq!(table.question(at(9), A, ours), fine(), "our stack answers it");
        assert!(table.is_own(ours));
    }

    #[test]
    fn a_full_table_makes_room_for_who_is_there() {
        let mut table = table();
        let one = |number: usize| Ipv6Addr::from((0x2001_0db8_u128 << 96) | number as u128);
        let holder = |number: usize| {
            let [.., a, b] = ((number / ADDRESSES_PER_HOST_MAX) as u32).to_be_bytes();
            MacAddress([2, 1, 0, 0, a, b])
        };
        for number in 0..ADDRESSES_MAX {
            assert_eq!(table.claim(at(0), holder(number), one(number)), fine());
        }
        let late = ADDRESS_HELD.as_secs();
        assert_eq!(table.claim(at(late - 1), A, one(ADDRESSES_MAX)), Err(DropReason::AddressLimit));
        assert_eq!(table.claim(at(late), A, one(ADDRESSES_MAX)), fine());
        assert_eq!(table.bindings.len(), 1);
    }

    #[test]
    fn a_host_that_is_not_believed_any_more_has_nothing() {
        let mut table = table();
        let one = address("2001:db8::1");
        assert_eq!(table.claim(at(0), A, one), fine());
        assert_eq!(table.forget_host(A), [(A, one)]);
        assert_eq!(table.claim(at(1), B, one), fine());
    }
}
