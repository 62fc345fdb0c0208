//! Section `[dhcp]`: who on this host may speak DHCP, and how it is guarded.

use std::net::Ipv4Addr;
use std::path::Path;

use dhcp::server;
use serde::{Deserialize, Serialize};

use super::{Config, Mode, station};
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
    pub(crate) mac: String,
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
    /// The relays that a server believes.
    pub(crate) fn relays(&self, file: &Path) -> Result<Vec<server::Relay>, Failure> {
        let parse = |relay: &Relay| {
            Ok(server::Relay { ip: relay.ip, mac: station(file, "dhcp.relays", "one relay", &relay.mac)? })
        };
        self.relays.iter().map(parse).collect()
    }
}

impl Config {
    pub(super) fn check_dhcp(&self, file: &Path) -> Result<(), Failure> {
        let Dhcp { client, server, order, messages_per_minute, relays } = &self.dhcp;
        if (*client || *server) && !matches!(self.host.mode, Mode::Sarp | Mode::Cll) {
            let what = "[dhcp] needs mode = \"cll\" or \"sarp\"";
            return Err(Failure::file(file, what, "set host.mode, or remove the section"));
        }
        if *server && self.akd.is_some() {
            let what = "dhcp.server and [akd] exclude each other: a host has one role";
            return Err(Failure::file(file, what, "let another host give addresses, or distribute keys"));
        }
        if *order == Order::Paper && !server {
            let what = "dhcp.order is there without dhcp.server = true";
            return Err(Failure::file(file, what, "only a server asks: set it, or remove the key"));
        }
        if !relays.is_empty() && !server {
            let what = "dhcp.relays is there without dhcp.server = true";
            return Err(Failure::file(file, what, "only a server listens to relays: set it, or remove them"));
        }
        if !relays.is_empty() && self.host.mode == Mode::Cll {
            let what = "dhcp.relays needs mode = \"sarp\": the link layer carries no relayed DHCP";
            return Err(Failure::file(file, what, "put a DHCP server into each network, and remove them"));
        }
        if *messages_per_minute < MESSAGES_PER_MINUTE_MIN {
            let what = format!("dhcp.messages_per_minute = {messages_per_minute} keeps honest clients out");
            return Err(Failure::file(file, what, &format!("use at least {MESSAGES_PER_MINUTE_MIN}")));
        }
        if relays.len() > RELAYS_MAX {
            let what = format!("dhcp.relays has {} entries", relays.len());
            return Err(Failure::file(file, what, &format!("list at most {RELAYS_MAX}")));
        }
        self.dhcp.relays(file).map(drop)
    }
}
