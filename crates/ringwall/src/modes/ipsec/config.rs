//! Section `[shield]`: layered nonces in front of an IPsec stack.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use shield::ipsec::{LOWEST, Layers, Rates, Settings, limits};

use crate::config::{HookName, Host, Profile};
use crate::failure::Failure;
use crate::modes::name::Mode;

/// Section `[shield]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Shield {
    /// What becomes of IPsec of hosts that are no peers.
    pub(crate) strangers: Strangers,
    /// The lowest SPI that this host's IPsec stack gives out.
    pub(crate) spi_min: u32,
    /// The highest one.
    pub(crate) spi_max: u32,
    pub(crate) unknown_spi_per_second: u32,
    pub(crate) ike_per_second: u32,
    pub(crate) keepalives_per_second: u32,
    pub(crate) fragments_per_second: u32,
    /// Whether the kernel makes the same checks before this program hears a packet.
    pub(crate) kernel: bool,
    /// And where in the kernel.
    pub(crate) kernel_hook: HookName,
    /// Layers that are switched off, to measure what each is worth.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) off: Vec<Layer>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) peers: Vec<ShieldPeer>,
}

impl Default for Shield {
    fn default() -> Self {
        let rates = Rates::default();
        Shield {
            strangers: Strangers::Drop,
            spi_min: LOWEST,
            spi_max: u32::MAX,
            unknown_spi_per_second: rates.unknown_spi,
            ike_per_second: rates.ike,
            keepalives_per_second: rates.keepalive,
            fragments_per_second: rates.fragment,
            kernel: true,
            kernel_hook: HookName::Socket,
            off: Vec::new(),
            peers: Vec::new(),
        }
    }
}

/// What becomes of IPsec of hosts that are no peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Strangers {
    Drop,
    Pass,
}

/// A layer that can be off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Layer {
    Range,
    Spi,
    Window,
    Budgets,
}

impl Layer {
    fn word(self) -> &'static str {
        match self {
            Layer::Range => "range",
            Layer::Spi => "spi",
            Layer::Window => "window",
            Layer::Budgets => "budgets",
        }
    }
}

/// An IPsec peer.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShieldPeer {
    pub(crate) address: IpAddr,
    /// What its shield and this one share; without it the peer has no shield.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) keys: Option<PathBuf>,
}

impl Shield {
    /// The bump's settings, without the peers, whose keys are in files.
    pub(crate) fn settings(&self) -> Settings {
        let is_on = |layer| !self.off.contains(&layer);
        Settings {
            peers: Vec::new(),
            spis: self.spi_min..=self.spi_max,
            layers: Layers {
                source: self.strangers == Strangers::Drop,
                range: is_on(Layer::Range),
                spi: is_on(Layer::Spi),
                window: is_on(Layer::Window),
                budgets: is_on(Layer::Budgets),
            },
            rates: Rates {
                unknown_spi: self.unknown_spi_per_second,
                ike: self.ike_per_second,
                keepalive: self.keepalives_per_second,
                fragment: self.fragments_per_second,
            },
        }
    }

    /// The layers that are switched off, in words.
    pub(crate) fn weakened(&self) -> impl Iterator<Item = String> + '_ {
        self.off.iter().map(|layer| format!("shield layer {}", layer.word()))
    }

    /// What is allowed and yet unwise.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let text = "IPsec of hosts that are no peers passes without any check, so forged source addresses do, too";
        let strangers = (self.strangers == Strangers::Pass).then(|| format!("shield.strangers = \"pass\": {text}"));
        strangers.into_iter().collect()
    }
}

/// That the section is there where it belongs, and in order.
pub(crate) fn check(section: Option<&Shield>, host: &Host, file: &Path) -> Result<(), Failure> {
    let Some(section) = section else {
        if host.mode != Mode::Shield {
            return Ok(());
        }
        let remedy = "add it with a section [[shield.peers]] for each peer";
        return Err(Failure::file(file, "mode = \"shield\" needs the section [shield]", remedy));
    };
    if host.mode != Mode::Shield {
        let what = "[shield] needs mode = \"shield\"";
        return Err(Failure::file(file, what, "set host.mode, or remove the section"));
    }
    if !section.off.is_empty() && host.profile != Profile::Lab {
        let what = "shield.off needs profile = \"lab\"";
        return Err(Failure::file(file, what, "remove the key: it is not for real use"));
    }
    section.check(file)
}

impl Shield {
    fn check(&self, file: &Path) -> Result<(), Failure> {
        if self.spi_min < LOWEST || self.spi_min > self.spi_max {
            let what = format!("shield.spi_min = {} and shield.spi_max = {} are no range", self.spi_min, self.spi_max);
            let remedy = "write what the IPsec stack has (charon.spi_min, charon.spi_max), 256 or more";
            return Err(Failure::file(file, what, remedy));
        }
        let rates = [
            ("unknown_spi_per_second", self.unknown_spi_per_second),
            ("ike_per_second", self.ike_per_second),
            ("keepalives_per_second", self.keepalives_per_second),
            ("fragments_per_second", self.fragments_per_second),
        ];
        if let Some((key, rate)) = rates.into_iter().find(|(_, rate)| !(1..=RATE_MAX).contains(rate)) {
            let what = format!("shield.{key} = {rate} does not serve");
            return Err(Failure::file(file, what, &format!("use 1 to {RATE_MAX}, or remove the key")));
        }
        if self.peers.is_empty() || self.peers.len() > limits::PEERS_MAX {
            let what = format!("{} sections [[shield.peers]]", self.peers.len());
            return Err(Failure::file(file, what, &format!("write 1 to {}", limits::PEERS_MAX)));
        }
        let mut seen = BTreeSet::new();
        match self.peers.iter().find(|peer| !seen.insert(peer.address)) {
            Some(twice) => {
                let what = format!("shield.peers has {} twice", twice.address);
                Err(Failure::file(file, what, "keep the one with the right keys"))
            }
            None => Ok(()),
        }
    }
}

/// Packets a second that may pass without proof, at most.
const RATE_MAX: u32 = 1_000_000;
