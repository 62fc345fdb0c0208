//! Section `[dhcp]`: who on this host may speak DHCP, and how it is guarded.

use std::net::Ipv4Addr;
use std::path::Path;

use dhcp::server;
use serde::{Deserialize, Serialize};

use super::{Host, Profile, Station};
use crate::failure::Failure;

/// Most relays that are listed: each message of a relay is compared with all of them.
const RELAYS_MAX: usize = 64;
/// A lease takes two messages, and a program that starts asks some times in vain.
const MESSAGES_PER_MINUTE_MIN: u32 = 4;

/// Section `[dhcp]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Dhcp {
    /// Whether this host gets addresses by DHCP.
    pub(crate) client: bool,
    /// Whether this host gives addresses by DHCP.
    pub(crate) server: bool,
    /// When a server asks a key distributor about an address.
    pub(crate) order: Order,
    /// How many messages of one client a server under the link layer looks at in a minute.
    pub(crate) messages_per_minute: u32,
    /// Relays whose fields a server believes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) relays: Vec<Relay>,
}

impl Default for Dhcp {
    fn default() -> Self {
        Dhcp {
            client: false,
            server: false,
            order: Order::default(),
            messages_per_minute: dhcp::limits::MESSAGES_PER_CLIENT,
            relays: Vec::new(),
        }
    }
}

/// When a server asks about an address that a client is to have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Order {
    /// At the REQUEST, before the server program sees it.
    #[default]
    Request,
    /// When the program has answered; the ACK is held meanwhile (the paper's section 3.5.2).
    Paper,
}

/// A relay agent.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Relay {
    pub(crate) ip: Ipv4Addr,
    pub(crate) mac: Station,
}

impl Order {
    /// The same for the server's half.
    pub(crate) fn of_server(self) -> server::Order {
        match self {
            Order::Request => server::Order::AtRequest,
            Order::Paper => server::Order::AtAck,
        }
    }
}

impl Dhcp {
    /// Whether this host speaks DHCP at all.
    pub(crate) fn is_on(&self) -> bool {
        self.client || self.server
    }

    /// The relays that a server believes.
    pub(crate) fn relays(&self) -> Vec<server::Relay> {
        self.relays.iter().map(|relay| server::Relay { ip: relay.ip, mac: relay.mac.mac() }).collect()
    }

    pub(crate) fn check(&self, host: &Host, distributes: bool, file: &Path) -> Result<(), Failure> {
        let Dhcp { server, order, messages_per_minute, relays, .. } = self;
        let refuse = |what: &str, remedy: &str| Err(Failure::file(file, what, remedy));
        if *order == Order::Paper && host.profile != Profile::Paper {
            let remedy = "remove the key: in that order a server commits what may then be refused";
            return refuse("dhcp.order = \"paper\" needs profile = \"paper\"", remedy);
        }
        if self.is_on() && !host.mode.proves_dhcp() {
            return refuse("[dhcp] needs mode = \"cll\" or \"sarp\"", "set host.mode, or remove the section");
        }
        if *server && distributes {
            let what = "dhcp.server and [akd] exclude each other: a host has one role";
            return refuse(what, "let another host give addresses, or distribute keys");
        }
        if *order == Order::Paper && !server {
            let what = "dhcp.order is there without dhcp.server = true";
            return refuse(what, "only a server asks: set it, or remove the key");
        }
        if !relays.is_empty() && !server {
            let what = "dhcp.relays is there without dhcp.server = true";
            return refuse(what, "only a server listens to relays: set it, or remove them");
        }
        if !relays.is_empty() && !host.mode.takes_relays() {
            let what = "dhcp.relays needs mode = \"sarp\": the link layer carries no relayed DHCP";
            return refuse(what, "put a DHCP server into each network, and remove them");
        }
        if *messages_per_minute < MESSAGES_PER_MINUTE_MIN {
            let what = format!("dhcp.messages_per_minute = {messages_per_minute} keeps honest clients out");
            return refuse(&what, &format!("use at least {MESSAGES_PER_MINUTE_MIN}"));
        }
        if relays.len() > RELAYS_MAX {
            let what = format!("dhcp.relays has {} entries", relays.len());
            return refuse(&what, &format!("list at most {RELAYS_MAX}"));
        }
        Ok(())
    }
}
