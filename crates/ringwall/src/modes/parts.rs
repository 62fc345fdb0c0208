//! The parts of a host's `status` that its mode brings: the only list of them. In JSON each is a
//! field beside those that every host has.

use serde::{Deserialize, Serialize};

use super::cll::parts::{Compression, LinkLease, Migration};
use super::ipsec::parts::Shield;
use super::layers::Layers;
use super::part::Part;
use super::sarp::parts::Sarp;
use super::site_policy::{Revoked, SitePolicy};

/// What a mode says of itself; absent what it does not have.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Parts {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) revoked: Option<Revoked>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) policy: Option<SitePolicy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) migration: Option<Migration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sarp: Option<Sarp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shield: Option<Shield>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) layers: Option<Layers>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) compression: Option<Compression>,
    /// Addresses by DHCP of the link layer; those of signed ARP are in its own part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) leases: Vec<LinkLease>,
}

impl Parts {
    /// Those that there are, in the order in which they are told.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = &dyn Part> {
        let all = [
            some(&self.migration),
            some(&self.layers),
            some(&self.compression),
            Some(&self.leases),
            some(&self.revoked),
            some(&self.policy),
            some(&self.sarp),
            some(&self.shield),
        ];
        all.into_iter().flatten()
    }
}

fn some<P: Part>(part: &Option<P>) -> Option<&dyn Part> {
    part.as_ref().map(|part| part as &dyn Part)
}
