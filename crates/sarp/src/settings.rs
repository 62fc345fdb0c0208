//! What an operator decides about S-ARP, checked and ready for use.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use identity::Succession;
use identity::distributor::{DistributorKey, RequestKey, RequestMaster};
use identity::signing::SigningKey;
use identity::site_key::SiteKey;
use wire::MacAddress;

/// A host without S-ARP whose plain messages are believed (section 3: the list of known hosts).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownHost {
    /// Its address.
    pub ip: Ipv4Addr,
    /// The only hardware address that may speak for it.
    pub mac: MacAddress,
}

/// A key distributor of the site, as the enrolment names it (section 3.2).
#[derive(Clone, Debug)]
pub struct Distributor {
    /// Its address.
    pub ip: Ipv4Addr,
    /// Its hardware address.
    pub mac: MacAddress,
    /// What its answers are signed with.
    pub key: DistributorKey,
}

/// Layers that are switched off so that a laboratory or a simulation can show what each is worth. All on in real use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weaken {
    /// A message counts whatever its stamp says.
    pub stamps: bool,
    /// A reply counts although nobody asked.
    pub unasked: bool,
    /// A distributor's answer counts although its nonce is another, or that of a request answered before.
    pub distributor_nonce: bool,
    /// The hardware address of a record is not compared.
    pub binding: bool,
    /// A distributor answers whatever the check and the tag of a request.
    pub request_tag: bool,
    /// Questions and signatures are looked at however many there are.
    pub budgets: bool,
    /// A DHCP reply comes in without a proof.
    pub dhcp_proof: bool,
}

/// What a host shares with others, and may be given anew while it works (record 0074).
#[derive(Clone, Debug)]
pub struct SharedKeys {
    /// The keys of the site.
    pub site_keys: Succession<SiteKey>,
    /// What this host proves itself to distributors with.
    pub request_keys: Succession<RequestKey>,
    /// On a distributor, what all of those are made from.
    pub masters: Option<Succession<RequestMaster>>,
}

/// Settings of one guarded interface.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What this host signs with.
    pub key: Arc<SigningKey>,
    /// Hardware address of the guarded interface.
    pub mac: MacAddress,
    /// Addresses that this host may speak for beside those that it has by lease.
    pub addresses: Vec<Ipv4Addr>,
    /// Distributors in the order in which they are tried.
    pub distributors: Vec<Distributor>,
    /// What this host proves itself to distributors with.
    pub request_keys: Succession<RequestKey>,
    /// Hosts without S-ARP.
    pub known_hosts: Vec<KnownHost>,
    /// How far a stamp may be from the S-ARP clock.
    pub window: Duration,
    /// What a DHCP client of this host works with, if it may have one.
    pub dhcp_client: Option<dhcp::client::Settings>,
    /// What a DHCP server of this host works with, if it may have one.
    pub dhcp_server: Option<dhcp::server::Settings>,
    /// Whether our own requests are signed and their answers tied to them (the paper's future work, section 3.3).
    pub sign_requests: bool,
    /// What a simulation has switched off.
    pub weaken: Weaken,
}

impl Settings {
    /// Whether this host may speak for `ip` without a lease.
    #[must_use]
    pub fn is_own(&self, ip: Ipv4Addr) -> bool {
        self.addresses.contains(&ip)
    }

    /// This host's number at distributors, whatever key it has.
    pub(crate) fn host(&self) -> u64 {
        self.request_keys.newest().1.host()
    }

    /// With what it proves itself at `unix_s`, in the `round`th try.
    pub(crate) fn request_key(&self, unix_s: u64, round: usize) -> &RequestKey {
        let accepted = self.request_keys.accepted(unix_s).count();
        let key = self.request_keys.accepted(unix_s).nth(round % accepted.max(1));
        key.map_or(self.request_keys.newest().1, |(_, key)| key)
    }

    /// The host without S-ARP that has this address.
    #[must_use]
    pub fn known(&self, ip: Ipv4Addr) -> Option<&KnownHost> {
        self.known_hosts.iter().find(|host| host.ip == ip)
    }
}
