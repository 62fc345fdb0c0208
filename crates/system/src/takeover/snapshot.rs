//! What an interface has that others rely on: addresses, routes, settings. Taken from one device, given to another.

use std::io;

use serde::{Deserialize, Serialize};
use wire::MacAddress;

use super::settings::{self, Setting};
use crate::netlink::Connection;
use crate::netlink::address::local;
use crate::netlink::link::{Link, LinkChange, UP};
use crate::netlink::route::{self, Dependence, is_ipv4, is_kernel_made};

/// An interface as it was at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Snapshot {
    /// Interface index.
    pub(crate) index: u32,
    /// Hardware address.
    pub(crate) mac: [u8; 6],
    /// Driver kind, if it was a virtual device.
    pub(crate) kind: Option<String>,
    /// MTU in bytes.
    pub(crate) mtu: u32,
    /// Whether it was administratively up.
    pub(crate) up: bool,
    /// Whether it took every multicast frame.
    pub(crate) all_multicast: bool,
    /// Length of the transmit queue in packets.
    pub(crate) queue_len: u32,
    /// Addresses, as the kernel's messages.
    #[serde(with = "hex")]
    pub(crate) addresses: Vec<Vec<u8>>,
    /// Routes that depend on it, as the kernel's messages with [`index`](Self::index) in them.
    #[serde(with = "hex")]
    pub(crate) routes: Vec<Vec<u8>>,
    /// Permanent neighbours, as the kernel's messages.
    #[serde(with = "hex")]
    pub(crate) neighbours: Vec<Vec<u8>>,
    /// Settings that differ from the namespace's default.
    pub(crate) settings: Vec<Setting>,
}

impl Snapshot {
    /// Takes down what `link` has.
    pub(crate) fn take(connection: &mut Connection, link: &Link) -> io::Result<Snapshot> {
        let addresses = connection.addresses(link.index)?;
        let sources = addresses.iter().filter_map(|address| local(address)).collect();
        let routes = connection.routes(&Dependence { index: link.index, sources })?;
        Ok(Snapshot {
            index: link.index,
            mac: link.mac.0,
            kind: link.kind.clone(),
            mtu: link.mtu,
            up: link.is_up(),
            all_multicast: link.is_all_multicast(),
            queue_len: link.queue_len,
            addresses,
            routes,
            neighbours: connection.permanent_neighbours(link.index)?,
            settings: settings::read(&link.name),
        })
    }

    /// Takes over what changed on the inner device while it stood in for the card. Neighbours stay as they were:
    /// those on the inner device include our own for legacy hosts. So do the card's own MTU and index.
    pub(crate) fn follow(&mut self, inner: Snapshot) {
        let from = inner.index;
        self.routes = inner.routes.iter().map(|route| route::with_index(route, from, self.index)).collect();
        self.addresses = inner.addresses;
        self.settings = inner.settings;
        self.up = inner.up;
        self.queue_len = inner.queue_len;
    }

    /// Hardware address.
    pub(crate) fn mac(&self) -> MacAddress {
        MacAddress(self.mac)
    }

    /// Gives all of it to the device `name` with index `index`. Whatever is there already stays, so it can be repeated.
    /// Returns a line for each thing that the kernel refused; the rest is given all the same.
    pub(crate) fn give(&self, connection: &mut Connection, index: u32, name: &str) -> io::Result<Vec<String>> {
        let mut refused = settings::write(name, &self.settings);
        connection.change_link(&LinkChange::of(index).queue_len(self.queue_len))?;
        if self.up {
            connection.change_link(&LinkChange::of(index).flag(UP, true))?;
        }
        for address in &self.addresses {
            note(&mut refused, "an address", connection.add_address(index, address));
        }
        if self.up {
            self.give_routes(connection, index, &mut refused)?;
        }
        for neighbour in &self.neighbours {
            note(&mut refused, "a permanent neighbour", connection.add_neighbour(index, neighbour));
        }
        Ok(refused)
    }

    fn give_routes(&self, connection: &mut Connection, index: u32, refused: &mut Vec<String>) -> io::Result<()> {
        let wanted: Vec<_> = self.routes.iter().map(|route| route::with_index(route, self.index, index)).collect();
        // An IPv4 route that the kernel makes with an address may have been removed by somebody on purpose.
        for made in connection.routes(&Dependence { index, sources: Vec::new() })? {
            if is_ipv4(&made) && is_kernel_made(&made) && !wanted.contains(&made) {
                note(refused, "removing a route", connection.delete_route(&made));
            }
        }
        let mut waiting: Vec<_> = wanted.iter().filter(|route| is_ipv4(route) || !is_kernel_made(route)).collect();
        // A gateway must be reachable through a route that is there already, and nothing orders the kernel's table so.
        loop {
            let before = waiting.len();
            waiting.retain(|route| connection.add_route(route).is_err());
            if waiting.is_empty() {
                return Ok(());
            }
            if waiting.len() == before {
                break;
            }
        }
        for route in waiting {
            note(refused, "a route", connection.add_route(route));
        }
        Ok(())
    }
}

fn note(refused: &mut Vec<String>, what: &str, result: io::Result<()>) {
    if let Err(cause) = result {
        refused.push(format!("{what}: {cause}"));
    }
}

/// Messages as text in the state file.
mod hex {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(messages: &[Vec<u8>], serializer: S) -> Result<S::Ok, S::Error> {
        let digits = |message: &Vec<u8>| message.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        messages.iter().map(digits).collect::<Vec<_>>().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Vec<u8>>, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        texts.iter().map(|text| bytes(text).ok_or_else(|| Error::custom("not a message in hexadecimal"))).collect()
    }

    fn bytes(text: &str) -> Option<Vec<u8>> {
        let digits = text.as_bytes();
        digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
    }
}
