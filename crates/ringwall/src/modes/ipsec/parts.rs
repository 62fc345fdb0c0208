//! The shield's part of `status`, and the pairs that `peers` lists.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::metrics::family::Families;
use crate::modes::part::{Known, Part};

/// How a shield in front of IPsec is.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Shield {
    pub(crate) peers_with_shield: usize,
    pub(crate) peers_without_shield: usize,
    /// Associations of all peers that are known.
    pub(crate) known_spis: usize,
    pub(crate) spi_min: u32,
    pub(crate) spi_max: u32,
    pub(crate) strangers_pass: bool,
}

/// An IPsec peer.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Pair {
    pub(crate) address: IpAddr,
    pub(crate) has_shield: bool,
    /// The epoch that is sent under; absent for a peer without a shield.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) send_epoch: Option<u32>,
    /// The epochs that are taken.
    pub(crate) epochs: Vec<u32>,
    pub(crate) known_spis: usize,
    pub(crate) packets: PairPackets,
}

/// ESP of one peer, by what became of it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct PairPackets {
    pub(crate) sealed: u64,
    pub(crate) passed: u64,
    /// Those of them that the kernel handed to the stack by itself.
    #[serde(default)]
    pub(crate) passed_in_kernel: u64,
    pub(crate) on_trial: u64,
    pub(crate) learned: u64,
    pub(crate) unknown: u64,
    pub(crate) out_of_range: u64,
    pub(crate) used: u64,
    pub(crate) far: u64,
    pub(crate) over_budget: u64,
}

impl Part for Shield {
    fn lines(&self) -> Vec<String> {
        let peers = format!("{} peers with one, {} without", self.peers_with_shield, self.peers_without_shield);
        let (known, least, most) = (self.known_spis, self.spi_min, self.spi_max);
        vec![format!("shield: {peers}; SPIs known: {known} of {least:08x} to {most:08x}")]
    }
}

impl Pair {
    fn row(&self) -> String {
        let epochs = self.epochs.iter().map(|number| match self.send_epoch {
            Some(send) if send == *number => format!("{number}*"),
            _ => number.to_string(),
        });
        let epochs = if self.has_shield { epochs.collect::<Vec<_>>().join(",") } else { "no shield".to_owned() };
        let packets = &self.packets;
        let dropped = packets.unknown + packets.out_of_range + packets.used + packets.far + packets.over_budget;
        format!(
            "{:<40} {epochs:<10} {:>5} {:>12} {:>12} {dropped:>12}",
            self.address.to_string(),
            self.known_spis,
            packets.sealed,
            packets.passed
        )
    }

    fn measure(&self, families: &mut Families) {
        let address = self.address.to_string();
        let packets = &self.packets;
        let fates = [
            ("sealed", packets.sealed),
            ("passed", packets.passed),
            ("on-trial", packets.on_trial),
            ("learned", packets.learned),
            ("unknown", packets.unknown),
            ("out-of-range", packets.out_of_range),
            ("used", packets.used),
            ("far", packets.far),
            ("over-budget", packets.over_budget),
        ];
        for (fate, count) in fates {
            let help = "ESP and AH of a shield's peer, by what became of it.";
            families.count("ringwall_shield_packets", help, &[("peer", &address), ("fate", fate)], count);
        }
        let labels = [("peer", address.as_str())];
        let help = "Packets of the passed ones that the kernel handed to the stack by itself.";
        families.count("ringwall_shield_passed_in_kernel_packets", help, &labels, packets.passed_in_kernel);
        let help = "Associations of a shield's peer that are known.";
        families.gauge("ringwall_shield_known_spis", help, &labels, self.known_spis as u64);
        let help = "Whether a peer has a shield, too.";
        families.gauge("ringwall_shield_peer_has_shield", help, &labels, u64::from(self.has_shield));
    }
}

impl Known for Vec<Pair> {
    fn lines(&self) -> Vec<String> {
        let [address, epochs, spis] = ["address", "epochs", "SPIs"];
        let [sealed, passed, dropped] = ["sealed", "passed", "dropped"];
        let columns = format!("{address:<40} {epochs:<10} {spis:>5} {sealed:>12} {passed:>12} {dropped:>12}");
        std::iter::once(columns).chain(self.iter().map(Pair::row)).collect()
    }

    fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }

    fn measure(&self, families: &mut Families, _unix_s: u64) {
        self.iter().for_each(|pair| pair.measure(families));
    }
}
