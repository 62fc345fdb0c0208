//! What a host knows of its surroundings: who has which address.

use std::net::{IpAddr, Ipv6Addr};

use bump::record::{HardwareAddress, Party};
use wire::{MacAddress, nd};

/// Somebody of whom it is known, by proof or by a list, which addresses are his.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// His name, if he has one.
    pub name: Option<String>,
    /// His hardware address, if one is bound.
    pub mac: Option<MacAddress>,
    /// His network addresses.
    pub addresses: Vec<IpAddr>,
}

impl Known {
    /// Whether this address is his: one that is listed, or an IPv6 address made from his hardware address.
    fn has(&self, ip: IpAddr) -> bool {
        let made = |v6: Ipv6Addr, mac: MacAddress| v6.octets()[8..] == nd::interface_identifier(mac);
        self.addresses.contains(&ip) || matches!((ip, self.mac), (IpAddr::V6(v6), Some(mac)) if made(v6, mac))
    }

    /// As a party of an attack, with the address in question.
    #[must_use]
    pub fn party(&self, ip: Option<IpAddr>) -> Party {
        let mac = self.mac.map(|mac| HardwareAddress(mac.0));
        Party { mac, ip: ip.or(self.addresses.first().copied()), name: self.name.clone() }
    }
}

/// All that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Around {
    /// This host; nobody at a gateway, which has no address.
    pub own: Known,
    /// Others; those that are met at this moment come first.
    pub known: Vec<Known>,
    /// How many of them are met at this moment.
    pub met: usize,
    /// Whether this host asks for addresses in clear, so that honest hosts answer it so.
    pub asks_in_clear: bool,
    /// Whether who is known never speaks in clear to this host.
    pub known_are_sealed: bool,
}

impl Around {
    /// Those that are met at this moment.
    pub fn present(&self) -> impl Iterator<Item = &Known> {
        self.known.iter().take(self.met)
    }

    /// Whose address this is.
    #[must_use]
    pub fn owner(&self, ip: IpAddr) -> Option<&Known> {
        if ip.is_unspecified() {
            return None;
        }
        std::iter::once(&self.own).chain(&self.known).find(|known| known.has(ip))
    }

    /// Whose hardware address this is.
    #[must_use]
    pub fn holder(&self, mac: MacAddress) -> Option<&Known> {
        std::iter::once(&self.own).chain(&self.known).find(|known| known.mac == Some(mac))
    }
}
