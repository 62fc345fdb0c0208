//! Links: reading what an interface is, and changing it.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use wire::MacAddress;

use super::attribute::{each, find, find_number, number, put, put_text, text};
use super::{Connection, Message};

/// `struct ifinfomsg`: family, padding, type, index, flags, change mask.
const HEADER_LEN: usize = 16;

/// Administratively up.
pub(crate) const UP: u32 = libc::IFF_UP as u32;
/// Takes every multicast frame.
pub(crate) const ALL_MULTICAST: u32 = libc::IFF_ALLMULTI as u32;
/// Neither answers ARP nor learns from it.
pub(crate) const NO_ARP: u32 = libc::IFF_NOARP as u32;
/// Has a carrier.
const LOWER_UP: u32 = libc::IFF_LOWER_UP as u32;
/// What the kernel calls TUN and TAP devices.
pub(crate) const TUN_KIND: &str = "tun";
/// What the kernel calls the two ends of a cable between namespaces.
pub(crate) const VETH_KIND: &str = "veth";
/// What the kernel calls the device of a VLAN.
pub(crate) const VLAN_KIND: &str = "vlan";
/// `IFLA_VLAN_ID` (linux/if_link.h).
const VLAN_ID: u16 = 1;
/// `VETH_INFO_PEER` (linux/veth.h): what the other end is to be like.
const VETH_INFO_PEER: u16 = 1;
/// `NETNSA_NSID` and `NETNSA_FD` (linux/net_namespace.h).
const NETNSA_NSID: u16 = 1;
const NETNSA_FD: u16 = 3;
/// `struct rtgenmsg` with its padding.
const GENERAL_HEADER_LEN: usize = 4;

/// What the kernel says about an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// Interface index, unique in its namespace.
    pub(crate) index: u32,
    /// Interface name.
    pub(crate) name: String,
    /// Whether it speaks Ethernet.
    pub(crate) is_ethernet: bool,
    /// Hardware address.
    pub(crate) mac: MacAddress,
    /// The one that the card was made with, if its driver tells.
    pub(crate) permanent_mac: Option<MacAddress>,
    /// Largest packet in bytes.
    pub(crate) mtu: u32,
    /// `IFF_*`.
    pub(crate) flags: u32,
    /// Length of the transmit queue in packets.
    pub(crate) queue_len: u32,
    /// Driver kind of a virtual device.
    pub(crate) kind: Option<String>,
    /// The bus at which its device is, such as pci; none where it has none (before Linux 5.14 in any
    /// case).
    pub(crate) bus: Option<String>,
    /// Index of the bridge, bond or VRF that it belongs to.
    pub(crate) master: Option<u32>,
    /// Index of the device in the same namespace that it sits on, or whose other end it is.
    pub(crate) below: Option<u32>,
    /// The same for a device in another namespace.
    pub(crate) elsewhere: Option<Elsewhere>,
    /// The number of a VLAN.
    pub(crate) vlan: Option<u16>,
}

/// A device in another namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Elsewhere {
    /// Its index there.
    pub(crate) index: u32,
    /// The number of that namespace in this one: see [`Connection::number_of_namespace`].
    pub(crate) namespace: u32,
}

/// Of `linux/if_link.h`, which libc does not have.
const IFLA_PARENT_DEV_BUS_NAME: u16 = 57;
/// Where Xen's host has the other ends of its machines' cards.
const SHARED_BUS: &str = "xen-backend";

impl Link {
    /// Reads a link message.
    pub(crate) fn parse(message: &Message) -> Option<Link> {
        let (header, attributes) = message.body.split_at_checked(HEADER_LEN)?;
        let mut link = Link {
            index: number(header.get(4..)?)?,
            name: String::new(),
            is_ethernet: u16::from_ne_bytes([header[2], header[3]]) == libc::ARPHRD_ETHER,
            mac: MacAddress::ZERO,
            permanent_mac: None,
            mtu: 0,
            flags: number(header.get(8..)?)?,
            queue_len: 0,
            kind: None,
            bus: None,
            master: find_number(attributes, libc::IFLA_MASTER),
            below: find_number(attributes, libc::IFLA_LINK),
            elsewhere: None,
            vlan: None,
        };
        // A link number with a namespace number beside it belongs to another namespace.
        if let Some(namespace) = find_number(attributes, libc::IFLA_LINK_NETNSID) {
            link.elsewhere = link.below.take().map(|index| Elsewhere { index, namespace });
        }
        for (kind, value) in each(attributes) {
            match kind {
                libc::IFLA_IFNAME => link.name = text(value),
                libc::IFLA_ADDRESS => link.mac = MacAddress(value.try_into().unwrap_or_default()),
                libc::IFLA_PERM_ADDRESS => link.permanent_mac = value.try_into().ok().map(MacAddress),
                libc::IFLA_MTU => link.mtu = number(value)?,
                libc::IFLA_TXQLEN => link.queue_len = number(value)?,
                IFLA_PARENT_DEV_BUS_NAME => link.bus = Some(text(value)),
                libc::IFLA_LINKINFO => {
                    link.kind = find(value, libc::IFLA_INFO_KIND).map(text);
                    link.vlan = vlan(value).filter(|_| link.kind.as_deref() == Some(VLAN_KIND));
                }
                _ => {}
            }
        }
        Some(link)
    }

    /// Whether it is a TUN or TAP device.
    pub(crate) fn is_tap(&self) -> bool {
        self.kind.as_deref() == Some(TUN_KIND)
    }

    /// Whether it is an end of a cable between namespaces.
    pub(crate) fn is_veth(&self) -> bool {
        self.kind.as_deref() == Some(VETH_KIND)
    }

    /// Whether it has a driver and a device of its own: a card, or what a virtual machine has for one.
    /// At the bus of Xen's host its other end is a machine on this one, with which it shares memory.
    pub(crate) fn has_device(&self) -> bool {
        self.kind.is_none() && self.bus.as_deref().is_some_and(|bus| bus != SHARED_BUS)
    }

    /// Whether it is made on top of others, whose hardware address it has, or by a program.
    pub(crate) fn is_made(&self) -> bool {
        self.kind.is_some() && !self.is_veth()
    }

    /// Whether it is administratively up.
    pub(crate) fn is_up(&self) -> bool {
        self.flags & UP != 0
    }

    /// Whether it has a carrier.
    pub(crate) fn has_carrier(&self) -> bool {
        self.flags & LOWER_UP != 0
    }

    /// Whether it takes every multicast frame.
    pub(crate) fn is_all_multicast(&self) -> bool {
        self.flags & ALL_MULTICAST != 0
    }
}

/// A change of a link, sent as one message.
#[derive(Clone, Debug)]
pub(crate) struct LinkChange {
    index: u32,
    flags: u32,
    mask: u32,
    attributes: Vec<u8>,
}

impl LinkChange {
    /// A change of the link with index `index`, empty so far.
    pub(crate) fn of(index: u32) -> LinkChange {
        LinkChange { index, flags: 0, mask: 0, attributes: Vec::new() }
    }

    /// Sets or clears `flag`.
    pub(crate) fn flag(mut self, flag: u32, on: bool) -> LinkChange {
        self.mask |= flag;
        self.flags = if on { self.flags | flag } else { self.flags & !flag };
        self
    }

    /// Gives it another name.
    pub(crate) fn name(mut self, name: &str) -> LinkChange {
        put_text(&mut self.attributes, libc::IFLA_IFNAME, name);
        self
    }

    /// Sets the hardware address.
    pub(crate) fn mac(mut self, mac: MacAddress) -> LinkChange {
        put(&mut self.attributes, libc::IFLA_ADDRESS, &mac.0);
        self
    }

    /// Sets the largest packet in bytes.
    pub(crate) fn mtu(mut self, mtu: u32) -> LinkChange {
        put(&mut self.attributes, libc::IFLA_MTU, &mtu.to_ne_bytes());
        self
    }

    /// Sets the transmit queue's length in packets.
    pub(crate) fn queue_len(mut self, packets: u32) -> LinkChange {
        put(&mut self.attributes, libc::IFLA_TXQLEN, &packets.to_ne_bytes());
        self
    }

    /// Moves it into another namespace, where it asks for the index `index`.
    pub(crate) fn namespace(mut self, namespace: BorrowedFd<'_>, index: Option<u32>) -> LinkChange {
        put(&mut self.attributes, libc::IFLA_NET_NS_FD, &namespace.as_raw_fd().to_ne_bytes());
        if let Some(index) = index {
            put(&mut self.attributes, libc::IFLA_NEW_IFINDEX, &index.to_ne_bytes());
        }
        self
    }

    fn body(&self) -> Vec<u8> {
        let mut body = header(self.index);
        body[8..12].copy_from_slice(&self.flags.to_ne_bytes());
        body[12..16].copy_from_slice(&self.mask.to_ne_bytes());
        body.extend_from_slice(&self.attributes);
        body
    }
}

/// The number of a VLAN, in what a link message says of a device of that kind.
fn vlan(info: &[u8]) -> Option<u16> {
    let value = find(find(info, libc::IFLA_INFO_DATA)?, VLAN_ID)?;
    Some(u16::from_ne_bytes(value.try_into().ok()?))
}

fn header(index: u32) -> Vec<u8> {
    let mut body = vec![0; HEADER_LEN];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    body
}

impl Connection {
    /// Every link of the namespace.
    pub(crate) fn links(&mut self) -> io::Result<Vec<Link>> {
        let messages = self.dump(libc::RTM_GETLINK, &header(0))?;
        Ok(messages.iter().filter_map(Link::parse).collect())
    }

    /// The link with this name.
    pub(crate) fn link_by_name(&mut self, name: &str) -> io::Result<Option<Link>> {
        let mut body = header(0);
        put_text(&mut body, libc::IFLA_IFNAME, name);
        self.get_link(&body)
    }

    /// The link with this index.
    pub(crate) fn link_by_index(&mut self, index: u32) -> io::Result<Option<Link>> {
        self.get_link(&header(index))
    }

    fn get_link(&mut self, body: &[u8]) -> io::Result<Option<Link>> {
        match self.get(libc::RTM_GETLINK, body) {
            Ok(message) => Ok(message.as_ref().and_then(Link::parse)),
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes `change`.
    pub(crate) fn change_link(&mut self, change: &LinkChange) -> io::Result<()> {
        self.change(libc::RTM_NEWLINK, 0, &change.body())
    }

    /// Makes a cable with both ends in this namespace: one is called `name`, the kernel finds a name for the other, which
    /// gets the hardware address `far_mac`.
    pub(crate) fn create_veth(&mut self, name: &str, far_mac: MacAddress, mtu: u32) -> io::Result<()> {
        let mut far = header(0);
        put(&mut far, libc::IFLA_ADDRESS, &far_mac.0);
        put(&mut far, libc::IFLA_MTU, &mtu.to_ne_bytes());
        let mut data = Vec::new();
        put(&mut data, VETH_INFO_PEER, &far);
        let mut info = Vec::new();
        put_text(&mut info, libc::IFLA_INFO_KIND, VETH_KIND);
        put(&mut info, libc::IFLA_INFO_DATA, &data);
        let mut body = header(0);
        put_text(&mut body, libc::IFLA_IFNAME, name);
        put(&mut body, libc::IFLA_MTU, &mtu.to_ne_bytes());
        put(&mut body, libc::IFLA_LINKINFO, &info);
        self.change(libc::RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &body)
    }

    /// The number that this namespace has for `namespace`; none if no device here ever had to name it.
    pub(crate) fn number_of_namespace(&mut self, namespace: BorrowedFd<'_>) -> io::Result<Option<u32>> {
        let mut body = vec![0; GENERAL_HEADER_LEN];
        put(&mut body, NETNSA_FD, &namespace.as_raw_fd().to_ne_bytes());
        let answer = self.get(libc::RTM_GETNSID, &body)?;
        let number = answer.and_then(|message| find_number(message.body.get(GENERAL_HEADER_LEN..)?, NETNSA_NSID));
        // Minus one says that there is none.
        Ok(number.filter(|number| number.cast_signed() >= 0))
    }

    /// Deletes a virtual device.
    pub(crate) fn delete_link(&mut self, index: u32) -> io::Result<()> {
        self.change(libc::RTM_DELLINK, 0, &header(index))
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::path::Path;

    use crate::netlink::Connection;

    #[test]
    fn each_link_has_the_bus_that_the_kernel_shows_elsewhere() {
        let links = Connection::open().expect("a routing socket").links().expect("links");
        assert!(links.iter().any(|link| link.name == "lo" && link.bus.is_none() && !link.has_device()));
        for link in links {
            let subsystem = Path::new("/sys/class/net").join(&link.name).join("device/subsystem");
            let shown = std::fs::read_link(subsystem).ok();
            let shown = shown.as_deref().and_then(Path::file_name).and_then(OsStr::to_str);
            assert_eq!(link.bus.as_deref(), shown, "{}", link.name);
        }
    }
}
