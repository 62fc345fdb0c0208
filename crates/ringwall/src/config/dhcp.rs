//! Section `[dhcp]`: who on this host may speak DHCP, and how it is guarded.

use std::net::Ipv4Addr;
use std::path::Path;

use dhcp::server;
use serde::{Deserialize, Serialize};

use super::{Config, Mode, station};
use crate::failure::Failure;

/// Most relays that are listed: each message of a relay is compared with all of them.
const RELAYS_MAX: usize = 64;

/// Section `[dhcp]`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Dhcp {
    /// Whether this host gets addresses by DHCP.
    pub(crate) client: bool,
    /// Whether this host gives addresses by DHCP.
    pub(crate) server: bool,
    /// When a server asks a key distributor about an address.
    pub(crate) order: Order,
    /// Relays whose fields a server believes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) relays: Vec<Relay>,
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
        let Dhcp { client, server, order, relays } = &self.dhcp;
        if (*client || *server) && self.host.mode != Mode::Sarp {
            let what = "[dhcp] needs mode = \"sarp\"";
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
        if relays.len() > RELAYS_MAX {
            let what = format!("dhcp.relays has {} entries", relays.len());
            return Err(Failure::file(file, what, &format!("list at most {RELAYS_MAX}")));
        }
        self.dhcp.relays(file).map(drop)
    }
}
