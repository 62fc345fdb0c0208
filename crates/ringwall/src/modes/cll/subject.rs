//! Whom an event of the link layer is about, in fields: `ringwall why` goes by them.

use std::net::IpAddr;

use bump::DropReason;
use cll::Event;
use wire::MacAddress;

use crate::protocol::About;

/// The host that `event` is about, if it is about one.
pub(super) fn of(event: &Event) -> About {
    match event {
        Event::Established { name, mac, .. }
        | Event::Resumed { name, mac, .. }
        | Event::Renewed { name, mac, .. }
        | Event::Ended { name, mac, .. }
        | Event::GroupSender { name, mac } => named(name, *mac),
        Event::Refused { mac, ip, reason, detail } => refused(at(*mac, Some(*ip)), *reason, detail),
        Event::GroupRefused { mac, reason, detail } | Event::DhcpRefused { mac, reason, detail } => {
            refused(at(*mac, None), *reason, detail)
        }
        Event::ClaimRefused { name, mac, ip, reason } => {
            refused(About { ip: Some(ip.to_string()), ..named(name, *mac) }, *reason, "")
        }
        Event::Plain { mac, reason } => refused(at(*mac, None), *reason, ""),
        Event::NoAnswer { ip, mac } => {
            About { mac: mac.map(|mac| mac.to_string()), ip: ip.map(|ip| ip.to_string()), ..About::default() }
        }
        Event::Challenged { mac } | Event::GroupSilent { mac } | Event::Downgrade { mac, .. } => at(*mac, None),
        Event::Management { mac, ip } | Event::LeaseCertified { mac, ip } => at(*mac, Some((*ip).into())),
        Event::AddressDenied { name, mac, ip } => About { ip: Some(ip.to_string()), ..named(name, *mac) },
        Event::AddressLeased { .. } | Event::LeaseLost { .. } | Event::StackSilent { .. } | Event::Crowded { .. } => {
            About::default()
        }
    }
}

fn named(name: &str, mac: MacAddress) -> About {
    About { name: Some(name.to_owned()), ..at(mac, None) }
}

fn at(mac: MacAddress, ip: Option<IpAddr>) -> About {
    About { mac: Some(mac.to_string()), ip: ip.map(|ip| ip.to_string()), ..About::default() }
}

fn refused(about: About, reason: DropReason, detail: &str) -> About {
    let detail = (!detail.is_empty()).then(|| detail.to_owned());
    About { reason: Some(reason.word().to_owned()), detail, ..about }
}
