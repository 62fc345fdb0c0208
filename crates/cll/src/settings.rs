//! What an operator decides about the link layer, checked and ready for use.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bump::DropReason;
use dhcp::link::{self, LeaseAuthority};
use identity::aead::Suite;
use identity::pre_shared::{PreSharedKey, PreSharedName};
use identity::{HostIdentity, Profile};
use shield::{Layers, Switches};
use wire::cll::broadcast::LEAVES_MAX;
use wire::cll::{Agreement, Compression, Offer, data};
use wire::{EtherType, MacAddress, ethernet};

use crate::limits;
use crate::migration::{Policy, Proved, ProvedHost, Rules};

/// A host that cannot speak CLL, admitted in clear (paper, section 7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Legacy {
    /// Its hardware address.
    pub mac: MacAddress,
    /// Its address.
    pub ip: Ipv4Addr,
    /// A plain router forwards for others, so its frames may carry any source address.
    pub router: bool,
    /// Whether its broadcasts and multicasts are let in, in clear and only with its own addresses.
    pub broadcast: bool,
}

/// How frames to groups travel (paper, section 5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broadcasting {
    /// Whether they are carried at all.
    pub carried: bool,
    /// Above so many frames in a second, frames share signatures.
    pub batch_above_per_second: u32,
    /// How long a frame waits at most for others to share its signature.
    pub batch_delay: Duration,
    /// Most frames that share a signature.
    pub batch_frames: u8,
    /// Whether frames to groups leave in clear as well, for the hosts on the legacy list.
    pub to_legacy: bool,
    /// Whether IGMP leaves in clear as well, for switches that listen for who is in which group.
    pub membership_in_clear: bool,
}

impl Default for Broadcasting {
    fn default() -> Broadcasting {
        Broadcasting {
            carried: true,
            batch_above_per_second: limits::GROUP_BATCH_ABOVE_DEFAULT,
            batch_delay: limits::GROUP_BATCH_DELAY_DEFAULT,
            batch_frames: LEAVES_MAX,
            to_legacy: false,
            membership_in_clear: false,
        }
    }
}

/// What a peer must at least do with the frames it sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Suites that are accepted.
    pub suites: Vec<Suite>,
    /// Whether the payload must be encrypted.
    pub confidential: bool,
}

impl Requirement {
    /// `fastest` if it is accepted here, else the first that is: what this site demands of peers, peers will demand, too.
    /// AEGIS is taken only where it is the fastest, or where there is nothing else.
    #[must_use]
    pub fn choose(&self, fastest: Suite) -> Suite {
        if self.suites.contains(&fastest) {
            return fastest;
        }
        let other = self.suites.iter().find(|&&suite| suite != Suite::Aegis128L);
        other.or(self.suites.first()).copied().unwrap_or(fastest)
    }

    /// The suite that `offer` promises, if it promises enough.
    #[must_use]
    pub fn accept(&self, offer: &Offer) -> Option<Suite> {
        let suite = Suite::from_id(offer.suite)?;
        // Who seals without a key cannot say that it encrypts.
        let fits = offer.agreement == agreement_of(suite.profile()) && !(suite.is_nonce_only() && offer.confidential);
        let enough = fits && self.suites.contains(&suite) && (offer.confidential || !self.confidential);
        enough.then_some(suite)
    }
}

/// The key agreement that goes with the suites of `profile`.
fn agreement_of(profile: Profile) -> Agreement {
    match profile {
        Profile::Modern => Agreement::X25519,
        Profile::Paper => Agreement::Group14,
    }
}

/// Whether keys of associations also come from ML-KEM-768 (docs/protocol.md, section 28).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PostQuantum {
    /// Never.
    #[default]
    Off,
    /// With every peer that does it, too.
    Prefer,
    /// With every peer; others are refused.
    Require,
}

impl PostQuantum {
    /// Whether this host takes part in an exchange.
    #[must_use]
    pub fn is_on(self) -> bool {
        self != PostQuantum::Off
    }
}

/// Layers that are switched off so that a laboratory can show what each is worth. All on in real use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weaken {
    /// Frames are delivered again when they are replayed.
    pub replay_window: bool,
    /// Nobody's addresses are compared with a certificate, our own stack's neither.
    pub cross_layer: bool,
    /// A candidate counts as confirmed as soon as it is made.
    pub promotion: bool,
    /// Neither timestamps nor challenges are required.
    pub freshness: bool,
    /// The tag under the site key is not checked.
    pub site_tag: bool,
    /// A reply is accepted although its nonce does not fit, and its signature is not checked.
    pub reply_check: bool,
    /// Signatures of requests for handshakes and of group frames are checked however many there are.
    pub budgets: bool,
    /// Frames whose tag is wrong are delivered where their payload is readable.
    pub tag: bool,
}

/// How this host speaks DHCP (paper, section 6); not at all by default.
#[derive(Clone, Debug, Default)]
pub struct Dhcp {
    /// It gets its address by DHCP.
    pub client: Option<link::client::Settings>,
    /// It gives addresses, with certificates.
    pub server: Option<DhcpServer>,
}

/// A DHCP server's part.
#[derive(Clone, Debug)]
pub struct DhcpServer {
    /// Its half.
    pub settings: link::server::Settings,
    /// What makes its clients' certificates.
    pub authority: Arc<dyn LeaseAuthority>,
}

/// Settings of one guarded interface.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who this host is.
    pub identity: Arc<HostIdentity>,
    /// Hardware address of the guarded interface; the certificate binds it.
    pub mac: MacAddress,
    /// EtherType of our frames.
    pub ethertype: EtherType,
    /// Suite for the frames this host sends.
    pub send_suite: Suite,
    /// Whether this host encrypts what it sends.
    pub confidential: bool,
    /// Whether this host puts a slow nonce beside the spinning one.
    pub slow_nonce: bool,
    /// With what this host compresses what it sends, and what it reads. The lengths of compressed frames tell of their content.
    pub compression: Compression,
    /// Whether keys also come from ML-KEM.
    pub post_quantum: PostQuantum,
    /// Pre-shared keys in force, the one that this host answers with first; none, one or two. Peers
    /// must have one of them.
    pub pre_shared: Vec<PreSharedKey>,
    /// Where forged frames end.
    pub layers: Layers,
    /// What peers must do.
    pub require: Requirement,
    /// Lifetime this host claims for its associations.
    pub lifetime: Duration,
    /// Shortest lifetime accepted; [`limits::LIFETIME_MIN`] outside a laboratory.
    pub lifetime_min: Duration,
    /// An association under which no payload moves for this long ends.
    pub idle: Duration,
    /// Keys are replaced after this time instead of after four fifths of an association's life; for a laboratory.
    pub rekey_every: Option<Duration>,
    /// Clock difference tolerated before a challenge.
    pub clock_tolerance: Duration,
    /// Frames under one key before it is replaced.
    pub rekey_after_frames: u32,
    /// For how long this host takes tickets that it gave after the last signature of their holder; `None` if it gives and
    /// keeps none. At most [`limits::TICKET_LIFETIME_MAX`].
    pub resumption: Option<Duration>,
    /// MTU of the interface on the wire.
    pub wire_mtu: u16,
    /// Bytes of each frame on the wire that are kept free for what others put around it.
    pub kept_free: u16,
    /// How many lanes this host sends on.
    pub lanes: u8,
    /// Whether IPv6 is carried.
    pub ipv6: bool,
    /// Hosts admitted in clear.
    pub legacy: Vec<Legacy>,
    /// How frames to groups travel.
    pub broadcasting: Broadcasting,
    /// How strictly this host keeps to sealed frames.
    pub policy: Policy,
    /// Hosts that proved themselves in an earlier run.
    pub proved: Vec<ProvedHost>,
    /// The newest time that hosts have said in a handshake of an earlier run, in milliseconds since
    /// 1970.
    pub heard: Vec<(MacAddress, u64)>,
    /// EtherTypes that pass in clear because the port's admission or timing hangs on them.
    pub pass: Vec<EtherType>,
    /// How it speaks DHCP.
    pub dhcp: Dhcp,
    /// Layers switched off by a laboratory.
    pub weaken: Weaken,
}

impl Settings {
    /// The defaults for a host with this identity and wire MTU.
    #[must_use]
    pub fn new(identity: Arc<HostIdentity>, wire_mtu: u16) -> Settings {
        let mac = identity.certificate().mac();
        let suites = Suite::of_profile(identity.profile());
        let send_suite = match identity.profile() {
            Profile::Modern => Suite::Aes256Gcm,
            Profile::Paper => suites.first().copied().unwrap_or(Suite::Aes256Gcm),
        };
        Settings {
            identity,
            mac,
            ethertype: EtherType::CLL,
            send_suite,
            confidential: true,
            slow_nonce: false,
            compression: Compression::NONE,
            post_quantum: PostQuantum::Off,
            pre_shared: Vec::new(),
            layers: Layers::default(),
            require: Requirement { suites, confidential: false },
            lifetime: limits::LIFETIME_DEFAULT,
            lifetime_min: limits::LIFETIME_MIN,
            idle: limits::IDLE_DEFAULT,
            rekey_every: None,
            clock_tolerance: limits::CLOCK_TOLERANCE,
            rekey_after_frames: limits::REKEY_AFTER_FRAMES,
            resumption: None,
            wire_mtu,
            kept_free: 0,
            lanes: 1,
            ipv6: true,
            legacy: Vec::new(),
            broadcasting: Broadcasting::default(),
            policy: Policy::default(),
            proved: Vec::new(),
            heard: Vec::new(),
            pass: Vec::new(),
            dhcp: Dhcp::default(),
            weaken: Weaken::default(),
        }
    }

    /// The profile of the site, which decides on key agreement, key derivation and signatures.
    pub(crate) fn profile(&self) -> Profile {
        self.identity.profile()
    }

    /// How this host comes to a secret with others.
    pub(crate) fn agreement(&self) -> Agreement {
        agreement_of(self.profile())
    }

    /// What `offer` lacks of the secrets that go into keys beside a key agreement.
    pub(crate) fn check_secrets(&self, offer: &Offer) -> Result<(), (DropReason, &'static str)> {
        let has_pre_shared = !self.pre_shared.is_empty();
        match offer {
            _ if self.post_quantum == PostQuantum::Require && !offer.post_quantum => {
                Err((DropReason::WeakOffer, "the peer does without ML-KEM, which this host requires (post_quantum)"))
            }
            Offer { pre_shared: false, .. } if has_pre_shared => {
                Err((DropReason::PreSharedKey, "the peer has no pre-shared key, and this host has one"))
            }
            Offer { pre_shared: true, .. } if !has_pre_shared => {
                Err((DropReason::PreSharedKey, "the peer has a pre-shared key, and this host has none"))
            }
            _ => Ok(()),
        }
    }

    /// The pre-shared key in force with this name.
    pub(crate) fn pre_shared_named(&self, name: PreSharedName) -> Option<&PreSharedKey> {
        self.pre_shared.iter().find(|key| key.name() == name)
    }

    /// Whether frames of this type pass as they are, as configured.
    pub(crate) fn passes_in_clear(&self, ethertype: EtherType) -> bool {
        self.pass.contains(&ethertype)
    }

    /// Which checks of a data frame are made, and when. A laboratory that lets frames with a wrong tag in wants to see them.
    pub(crate) fn switches(&self) -> Switches {
        Switches {
            nonces_first: self.layers.nonces_first() && !self.weaken.tag,
            nonces_last: !self.layers.nonces_first() && !self.weaken.tag,
            window: !self.weaken.replay_window,
        }
    }

    /// The MTU of the guarded interface: what is left when a sealed frame fits the wire.
    #[must_use]
    pub fn inner_mtu(&self) -> u16 {
        self.wire_mtu.saturating_sub(data::OVERHEAD_MAX as u16)
    }

    /// Longest frame on the wire, with its Ethernet header.
    #[must_use]
    pub fn wire_frame_max(&self) -> usize {
        usize::from(self.wire_mtu) + ethernet::HEADER_LEN
    }

    /// Whether this host speaks DHCP.
    pub(crate) fn speaks_dhcp(&self) -> bool {
        self.dhcp.client.is_some() || self.dhcp.server.is_some()
    }

    /// The legacy host with this hardware address.
    #[must_use]
    pub fn legacy_by_mac(&self, mac: MacAddress) -> Option<&Legacy> {
        self.legacy.iter().find(|legacy| legacy.mac == mac)
    }

    /// The legacy host with this address.
    #[must_use]
    pub fn legacy_by_ip(&self, ip: Ipv4Addr) -> Option<&Legacy> {
        self.legacy.iter().find(|legacy| legacy.ip == ip)
    }

    /// What control and lanes go by at the start.
    pub(crate) fn rules(&self) -> Arc<Rules> {
        Arc::new(Rules { policy: self.policy.clone(), proved: Proved::of(&self.proved) })
    }

    /// Whether `ip` is one of this host's own addresses.
    #[must_use]
    pub fn is_own(&self, ip: Ipv4Addr) -> bool {
        self.weaken.cross_layer || self.identity.certificate().addresses().contains(&ip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_aes_instructions_aegis_is_the_last_choice() {
        let choose = |suites: &[Suite]| {
            Requirement { suites: suites.to_vec(), confidential: true }.choose(Suite::ChaCha20Poly1305)
        };
        assert_eq!(choose(Suite::ALL), Suite::ChaCha20Poly1305);
        assert_eq!(choose(&[Suite::Aegis128L, Suite::Aes256Gcm]), Suite::Aes256Gcm);
        assert_eq!(choose(&[Suite::Aegis128L]), Suite::Aegis128L);
    }
}
