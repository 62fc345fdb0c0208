//! VLANs, bonds and bridges that a manager of the network makes, heard of as soon as the kernel has them.

use std::io;
use std::os::fd::AsFd;

use crate::netlink::link::Link;
use crate::netlink::{Connection, Message, Subscription};
use crate::wait::{PollFd, PollFlags, wait};

/// Sorts of devices that are made on others and may be guarded, by the kernel's names.
pub(super) const KINDS: [&str; 3] = ["vlan", "bond", "bridge"];

/// What has happened to the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appearance {
    /// There is a new device, with this index.
    Made(u32),
    /// The device is gone, and the next one may come.
    Gone,
}

/// Hears of each such device with one name that appears in a network namespace.
pub struct Made {
    subscription: Subscription,
    connection: Connection,
    interface: String,
    /// The newest one, by its index.
    last: Option<u32>,
}

impl Made {
    /// Hears of devices with the name `interface` in the calling thread's network namespace, the one
    /// that is there already included.
    ///
    /// # Errors
    /// The kernel has no socket of netlink for this process.
    pub fn watch(interface: &str) -> io::Result<Made> {
        let subscription = Subscription::open(libc::RTNLGRP_LINK)?;
        Ok(Made { subscription, connection: Connection::open()?, interface: interface.to_owned(), last: None })
    }

    /// Waits until there is another such device, or it is gone.
    ///
    /// # Errors
    /// The kernel refuses to wait, or to say what is there.
    pub fn await_next(&mut self) -> io::Result<Appearance> {
        if self.last.is_none() {
            let now = self.connection.link_by_name(&self.interface)?;
            if let Some(index) = now.and_then(|link| self.is_new(&link)) {
                return Ok(Appearance::Made(index));
            }
        }
        loop {
            let socket = self.subscription.as_fd();
            wait(&mut [PollFd::new(&socket, PollFlags::IN)], None)?;
            if let Some(change) = self.heard()? {
                return Ok(change);
            }
        }
    }

    /// Has the device send nothing until [`Made::let_send`], by one message to the kernel: to run
    /// programs that shut it takes long enough for a manager to send.
    ///
    /// # Errors
    /// The device is gone, or the kernel refuses.
    pub fn keep_silent(&mut self, index: u32) -> io::Result<()> {
        self.connection.add_blackhole(index)
    }

    /// Has a device send again that was kept silent; any other stays as it is.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn let_send(&mut self, index: u32) -> io::Result<()> {
        self.connection.remove_blackhole(index)
    }

    /// The newest change in what the kernel has said, if there was one. Where it has said more than
    /// the socket could hold, it is asked.
    fn heard(&mut self) -> io::Result<Option<Appearance>> {
        match self.subscription.next() {
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                let now = self.connection.link_by_name(&self.interface)?;
                Ok(self.change_to(now.as_ref()))
            }
            messages => Ok(messages?.iter().filter_map(|message| self.change(message)).last()),
        }
    }

    /// What has changed to what is there now.
    fn change_to(&mut self, now: Option<&Link>) -> Option<Appearance> {
        match now {
            Some(link) => self.is_new(link).map(Appearance::Made),
            None => self.last.map(|_| Appearance::Gone),
        }
    }

    fn change(&mut self, message: &Message) -> Option<Appearance> {
        let link = device(message)?;
        if message.kind == libc::RTM_NEWLINK {
            return self.is_new(&link).map(Appearance::Made);
        }
        (message.kind == libc::RTM_DELLINK && self.last == Some(link.index)).then_some(Appearance::Gone)
    }

    /// Its index, unless it was there before. A device that takes the name later counts from then on.
    fn is_new(&mut self, link: &Link) -> Option<u32> {
        let is_meant = link.name == self.interface && link.kind.as_deref().is_some_and(|kind| KINDS.contains(&kind));
        (is_meant && self.last.replace(link.index) != Some(link.index)).then_some(link.index)
    }
}

/// The device that a message is of. Bridges report their ports in messages of their own family,
/// which look alike.
fn device(message: &Message) -> Option<Link> {
    let is_link = message.body.first().is_some_and(|family| i32::from(*family) == libc::AF_UNSPEC);
    is_link.then(|| Link::parse(message)).flatten()
}

#[cfg(test)]
mod tests {
    use super::super::tests::room::{Room, room};
    use super::*;

    /// `struct ifinfomsg` of that family, and no attributes.
    fn message(kind: u16, family: i32, index: u32) -> Message {
        let family = u8::try_from(family).expect("small");
        Message { kind, body: [&[family, 0, 0, 0], &index.to_ne_bytes()[..], &[0; 8]].concat() }
    }

    fn device(index: u32, name: &str, kind: &str) -> Link {
        let link = super::device(&message(libc::RTM_NEWLINK, libc::AF_UNSPEC, index)).expect("a whole header");
        Link { name: name.to_owned(), kind: Some(kind.to_owned()), ..link }
    }

    #[test]
    fn each_device_counts_once_and_only_of_the_name_and_of_a_sort_that_is_made() {
        let mut made = Made::watch("bond0").expect("netlink");
        let told = [
            (7, "bond0", "bond", true),
            (7, "bond0", "bond", false),
            (8, "bond1", "bond", false),
            // A TAP takes the name while the device is in a namespace.
            (9, "bond0", "tun", false),
            (10, "bond0", "vlan", true),
            (7, "bond0", "bond", true),
        ];
        for (index, name, kind, is_new) in told {
            assert_eq!(made.is_new(&device(index, name, kind)), is_new.then_some(index), "{index} {name} {kind}");
        }
    }

    #[test]
    fn only_the_end_of_the_device_itself_is_told() {
        let mut made = Made::watch("br0").expect("netlink");
        assert_eq!(made.is_new(&device(7, "br0", "bridge")), Some(7));
        let mut ended = |family, index| made.change(&message(libc::RTM_DELLINK, family, index));
        assert_eq!(ended(libc::AF_UNSPEC, 8), None, "another device");
        assert_eq!(ended(libc::AF_BRIDGE, 7), None, "a port left it");
        assert_eq!(ended(libc::AF_UNSPEC, 7), Some(Appearance::Gone));
        // Where messages were lost the kernel is asked.
        assert_eq!(made.change_to(None), Some(Appearance::Gone));
        assert_eq!(made.change_to(Some(&device(8, "br0", "bridge"))), Some(Appearance::Made(8)));
    }

    /// What packet sockets send is dropped as well: a manager announces an address by one.
    #[test]
    fn a_device_that_was_just_made_sends_nothing_until_it_is_let() {
        let room = room!();
        room.in_host("ip link add br0 type bridge");
        room.in_host("ip link set br0 up");
        room.in_host("ip link set eth0 master br0");
        let mut made = room.at_host(|| Made::watch("br0").expect("netlink"));
        let Ok(Appearance::Made(index)) = made.await_next() else { panic!("br0 is there") };
        let sent_bytes = || {
            let send = "import socket;s=socket.socket(socket.AF_PACKET,socket.SOCK_RAW,0);s.bind(('br0',0));\
                        s.send(bytes([255]*6+[2,0,0,0,0,9,8,6]+[0]*46))";
            room.run_python(send).expect("sent");
            let statistics = room.in_host("cat /sys/class/net/br0/statistics/tx_bytes");
            statistics.trim().parse::<u64>().expect("a number")
        };
        let before = sent_bytes();
        assert!(sent_bytes() > before);
        made.keep_silent(index).expect("silent");
        let silent = sent_bytes();
        assert_eq!(sent_bytes(), silent);
        made.let_send(index).expect("it sends");
        assert!(sent_bytes() > silent);
        // One that is not silent, has something else, or is gone, stays as it is.
        made.let_send(index).expect("as before");
        room.in_host("tc qdisc add dev br0 root pfifo");
        made.let_send(index).expect("as before");
        assert!(room.in_host("tc qdisc show dev br0").contains("pfifo"));
        made.let_send(9999).expect("nothing is there");
    }
}
