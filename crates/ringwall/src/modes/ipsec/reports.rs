//! What the shield says of itself, in the words of the protocol.

use shield::ipsec::{PeerCounters, PeerReport};

use super::config;
use super::parts::{Pair, PairPackets, Shield};

/// How the shield is.
pub(crate) fn standing(section: &config::Shield, peers: &[PeerReport]) -> Shield {
    let shielded = peers.iter().filter(|peer| peer.epochs.is_some()).count();
    Shield {
        peers_with_shield: shielded,
        peers_without_shield: peers.len() - shielded,
        spi_min: section.spi_min,
        spi_max: section.spi_max,
        strangers_pass: section.strangers == config::Strangers::Pass,
        known_spis: peers.iter().map(|peer| peer.known).sum(),
    }
}

/// One peer.
pub(crate) fn pair(report: &PeerReport) -> Pair {
    let (send_epoch, epochs) = report.epochs.clone().map_or((None, Vec::new()), |(send, all)| (Some(send), all));
    Pair {
        address: report.address,
        has_shield: report.epochs.is_some(),
        send_epoch,
        epochs,
        known_spis: report.known,
        packets: packets(&report.counters),
    }
}

fn packets(counters: &PeerCounters) -> PairPackets {
    PairPackets {
        sealed: counters.sealed,
        passed: counters.passed,
        passed_in_kernel: counters.passed_in_kernel,
        on_trial: counters.on_trial,
        learned: counters.learned,
        unknown: counters.unknown,
        out_of_range: counters.out_of_range,
        used: counters.used,
        far: counters.far,
        over_budget: counters.over_budget,
    }
}
