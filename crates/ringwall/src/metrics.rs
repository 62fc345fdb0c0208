//! Counters as Prometheus text, for node_exporter's textfile collector or any scraper that can run a command.

use std::collections::BTreeMap;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use serde::Serialize;

use crate::config::Profile;
use crate::failure::Failure;
use crate::protocol::{GateStatus, Pair, Peer, Status};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    interface: String,
    kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PeerLabels {
    interface: String,
    name: String,
    mac: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PairLabels {
    interface: String,
    peer: String,
    kind: String,
}

/// All metrics of one daemon.
pub(crate) fn text(status: &Status, peers: &[Peer], pairs: &[Pair]) -> Result<String, Failure> {
    let mut registry = Registry::with_prefix("ringwall");
    register_counters(&mut registry, status)?;
    register_gauges(&mut registry, status);
    register_sarp(&mut registry, status);
    register_peers(&mut registry, status, peers);
    register_pairs(&mut registry, status, pairs)?;
    let mut text = String::new();
    encode(&mut text, &registry).map_err(Failure::new)?;
    Ok(text)
}

/// All metrics of one gateway.
pub(crate) fn of_gate(status: &GateStatus) -> Result<String, Failure> {
    let mut registry = Registry::with_prefix("ringwall");
    let interface = &status.interface;
    register_frames(&mut registry, interface, &status.frames)?;
    fill(&mut registry, interface, "drops", "Dropped frames by reason", numbers(&status.drops));
    fill(&mut registry, interface, "rules", "How often each rule acted", numbers(&status.rules));
    fill(&mut registry, interface, "port", "What passed the ports", numbers(&status.ports));
    let held = i64::try_from(status.frames.held).unwrap_or(i64::MAX);
    let flows = i64::try_from(status.flows).unwrap_or(i64::MAX);
    let [memory, idle] =
        [status.memory_bytes, status.memory_idle_bytes].map(|it| i64::try_from(it).unwrap_or(i64::MAX));
    gauge(&mut registry, interface, "flows", "TCP connections that are remembered", [("gate", flows)]);
    gauge(
        &mut registry,
        interface,
        "memory_bytes",
        "Memory for retained data and fragments",
        [("gate", memory), ("idle", idle)],
    );
    let uptime = i64::try_from(status.uptime_s).unwrap_or(i64::MAX);
    gauge(&mut registry, interface, "held_frames", "Frames that wait", [("gate", held)]);
    gauge(&mut registry, interface, "uptime_seconds", "Seconds since the daemon started", [("gate", uptime)]);
    let cards = [("trusted", &status.trusted), ("untrusted", &status.untrusted), ("mirror", &status.mirror)];
    let carriers = cards.into_iter().filter_map(|(role, card)| Some((role, i64::from(card.as_ref()?.carrier))));
    gauge(&mut registry, interface, "carrier", "Whether the card has a carrier", carriers);
    let mut text = String::new();
    encode(&mut text, &registry).map_err(Failure::new)?;
    Ok(text)
}

fn gauge(
    registry: &mut Registry,
    interface: &str,
    name: &str,
    help: &str,
    values: impl IntoIterator<Item = (&'static str, i64)>,
) {
    let family = Family::<Labels, Gauge>::default();
    for (kind, value) in values {
        let labels = Labels { interface: interface.to_owned(), kind: kind.to_owned() };
        family.get_or_create(&labels).set(value);
    }
    registry.register(name, help, family);
}

fn register_counters(registry: &mut Registry, status: &Status) -> Result<(), Failure> {
    register_frames(registry, &status.interface, &status.frames)?;
    fill(registry, &status.interface, "drops", "Dropped frames by reason", numbers(&status.drops));
    fill(registry, &status.interface, "port", "What passed the ports", numbers(&status.ports));
    if let Some(compression) = &status.compression {
        let counts = serde_json::to_value(compression).map_err(Failure::new)?;
        let counts = counts.as_object().into_iter().flatten();
        let counts = counts.filter_map(|(name, value)| Some((name, value.as_u64()?)));
        fill(registry, &status.interface, "compression", "What compression did, in frames and bytes", counts);
    }
    if let Some(policy) = &status.signed.policy {
        let help = "Site policies that were refused, by reason";
        fill(registry, &status.interface, "policies_refused", help, numbers(&policy.refused));
    }
    if let Some(migration) = &status.migration {
        let help = "Frames let pass that mode enforce would drop, by reason";
        fill(registry, &status.interface, "would_drop", help, numbers(&migration.would_drop));
    }
    Ok(())
}

fn register_frames(registry: &mut Registry, interface: &str, frames: &impl Serialize) -> Result<(), Failure> {
    let frames = serde_json::to_value(frames).map_err(Failure::new)?;
    let frames = frames.as_object().into_iter().flatten();
    let frames = frames.filter(|(name, _)| *name != "held").filter_map(|(name, value)| Some((name, value.as_u64()?)));
    fill(registry, interface, "frames", "Frames by what became of them", frames);
    Ok(())
}

fn numbers(counts: &BTreeMap<String, u64>) -> impl Iterator<Item = (&String, u64)> {
    counts.iter().map(|(name, count)| (name, *count))
}

fn fill<'a>(
    registry: &mut Registry,
    interface: &str,
    name: &str,
    help: &str,
    values: impl Iterator<Item = (&'a String, u64)>,
) {
    let family = Family::<Labels, Counter>::default();
    for (kind, value) in values {
        let labels = Labels { interface: interface.to_owned(), kind: kind.clone() };
        family.get_or_create(&labels).inc_by(value);
    }
    registry.register(name, help, family);
}

fn register_gauges(registry: &mut Registry, status: &Status) {
    let days = status.identity.as_ref().map_or(0, |identity| identity.certificate_days_left);
    let authority_days = status.identity.as_ref().map_or(0, |identity| identity.authority_days_left);
    let in_clear = status.migration.as_ref().map_or(0, |migration| migration.in_clear);
    let count = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let policy = status.signed.policy.as_ref().and_then(|policy| policy.version).unwrap_or(0);
    let observes = status.migration.as_ref().is_some_and(|migration| migration.mode == "observe");
    let is_weak = observes || status.mode == "null" || status.profile == Profile::Paper.word();
    let weakened = count(status.weakened.len() as u64) + i64::from(is_weak);
    let gauges = [
        ("peers", "Associations in use", count(status.peers as u64)),
        ("held_frames", "Frames that wait for a handshake", count(status.frames.held)),
        ("certificate_days_left", "Days until this host's certificate ends", days),
        ("authority_days_left", "Days until the certificate of the site's authority ends", authority_days),
        ("plain_hosts", "Hosts that speak in clear and were let in", count(in_clear as u64)),
        ("policy_version", "Version of the site's policy in force; 0 without one", count(policy)),
        ("uptime_seconds", "Seconds since the daemon started", count(status.uptime_s)),
        ("carrier", "Whether the card has a carrier", i64::from(status.takeover.carrier)),
        (
            "weakened_layers",
            "Layers switched off by a laboratory; the null bump is one, so is the paper profile, and so is mode observe",
            weakened,
        ),
    ];
    for (name, help, value) in gauges {
        let family = Family::<Labels, Gauge>::default();
        let labels = Labels { interface: status.interface.clone(), kind: status.mode.clone() };
        family.get_or_create(&labels).set(value);
        registry.register(name, help, family);
    }
}

fn register_sarp(registry: &mut Registry, status: &Status) {
    let Some(sarp) = &status.sarp else { return };
    let days = sarp.distributors.iter().map(|one| one.certificate_days_left).min().unwrap_or(0);
    let gauges = [
        ("sarp_keys", "Keys in the ring of S-ARP", i64::try_from(sarp.keys).unwrap_or(i64::MAX)),
        (
            "sarp_leases",
            "Addresses by DHCP that this host has or gave",
            i64::try_from(sarp.leases.len()).unwrap_or(i64::MAX),
        ),
        ("sarp_clock_set", "Whether a distributor has told the time", i64::from(sarp.clock_unix_s.is_some())),
        ("sarp_distributor_days_left", "Days until the first certificate of a key distributor ends", days),
        ("sarp_distributors_silent", "Whether no key distributor answered", i64::from(sarp.distributors_silent)),
    ];
    for (name, help, value) in gauges {
        let family = Family::<Labels, Gauge>::default();
        let labels = Labels { interface: status.interface.clone(), kind: status.mode.clone() };
        family.get_or_create(&labels).set(value);
        registry.register(name, help, family);
    }
}

fn register_peers(registry: &mut Registry, status: &Status, peers: &[Peer]) {
    let age = Family::<PeerLabels, Gauge>::default();
    let heard = Family::<PeerLabels, Gauge>::default();
    for peer in peers.iter().filter(|peer| peer.state == "established") {
        let labels = PeerLabels { interface: status.interface.clone(), name: peer.name.clone(), mac: peer.mac.clone() };
        age.get_or_create(&labels).set(i64::try_from(peer.age_s).unwrap_or(i64::MAX));
        if let Some(seconds) = peer.last_opened_s {
            heard.get_or_create(&labels).set(i64::try_from(seconds).unwrap_or(i64::MAX));
        }
    }
    registry.register("association_age_seconds", "Seconds since the handshake with this peer", age);
    registry.register("association_heard_seconds", "Seconds since a frame of this peer was opened", heard);
}

fn register_pairs(registry: &mut Registry, status: &Status, pairs: &[Pair]) -> Result<(), Failure> {
    if status.shield.is_none() {
        return Ok(());
    }
    let packets = Family::<PairLabels, Counter>::default();
    let known = Family::<PairLabels, Gauge>::default();
    for pair in pairs {
        let labels = |kind: &str| PairLabels {
            interface: status.interface.clone(),
            peer: pair.address.to_string(),
            kind: kind.to_owned(),
        };
        let counts = serde_json::to_value(&pair.packets).map_err(Failure::new)?;
        for (kind, count) in counts.as_object().into_iter().flatten() {
            packets.get_or_create(&labels(kind)).inc_by(count.as_u64().unwrap_or_default());
        }
        let kind = if pair.has_shield { "shield" } else { "none" };
        known.get_or_create(&labels(kind)).set(i64::try_from(pair.known_spis).unwrap_or(i64::MAX));
    }
    registry.register("shield_packets", "ESP of a shield's peers, by what became of it", packets);
    registry.register("shield_known_spis", "Associations of a shield's peers that are known", known);
    Ok(())
}
