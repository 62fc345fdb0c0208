//! Who this host is: its identity file, read and judged.

use std::sync::Arc;

use bump::Now;
use identity::{HostIdentity, Profile};
use system::takeover;
use wire::MacAddress;

use crate::failure::Failure;
use crate::modes::file::Config;
use crate::monitor::Disk;

const ENROL: &str = "enrol this host (`ringwall site issue`, `ringwall host enroll`) or correct host.identity";

pub(crate) fn load_identity(config: &Config, now: Now, disk: &Disk) -> Result<Arc<HostIdentity>, Failure> {
    let file = &config.host.identity;
    let read = disk.read(file).map_err(|error| Failure::file(file, error, ENROL))?;
    let identity = HostIdentity::from_pem(&read.text).map_err(|error| Failure::file(file, error, ENROL))?;
    check_profile(config, &identity)?;
    // Without a believable clock nobody can say that a certificate is over (never need a clock
    // before first contact). A clock that is behind the certificate's first day is taken for that
    // day: a host must reach its time server.
    if let Some(unix_s) = believable_unix_s(now) {
        let unix_s = unix_s.max(identity.certificate().not_before_unix());
        let renew = "have the authority issue a new certificate (`ringwall site issue`)";
        identity.check_validity(unix_s).map_err(|refusal| Failure::file(file, refusal, renew))?;
    }
    Ok(Arc::new(identity))
}

/// Keys of the paper profile are forged easily, so nobody works with them who did not say so.
fn check_profile(config: &Config, identity: &HostIdentity) -> Result<(), Failure> {
    let (wanted, found) = (config.host.profile.of_keys(), identity.profile());
    let lacks_rsa = config.host.mode.paper_signs_with_rsa() && !identity.certificate().signs_as_the_cll_paper();
    let (what, remedy) = match found {
        Profile::Paper if wanted == found && lacks_rsa => (
            "mode = \"cll\" of the paper profile signs with RSA, and it holds a DSA key",
            "have the authority issue it with `ringwall site issue --rsa-bits 1024`",
        ),
        _ if wanted == found => return Ok(()),
        Profile::Paper => (
            "its site is of the paper profile, which is NOT for real use (the papers' own algorithms)",
            "enrol in a site of the modern profile, or set profile = \"paper\" for a measurement",
        ),
        Profile::Modern => (
            "profile = \"paper\", but its site is of the modern profile",
            "use profile = \"modern\", or found a site with `ringwall site init --profile paper`",
        ),
    };
    Err(Failure::file(&config.host.identity, what, remedy))
}

pub(crate) fn believable_unix_s(now: Now) -> Option<u64> {
    now.trusted_unix_ms().map(|unix_ms| unix_ms / 1000)
}

/// The certificate is for this card.
pub(super) fn check_interface(config: &Config, identity: &HostIdentity, mac: MacAddress) -> Result<(), Failure> {
    let bound = identity.certificate().mac();
    if bound == mac || (config.is_wireless && is_permanent(bound, &config.host.interface)?) {
        return Ok(());
    }
    let what = format!("the certificate is for {bound}, but {} is {mac}", config.host.interface);
    Err(Failure::file(&config.host.identity, what, "issue a certificate for this interface"))
}

/// Whether the card was made with this address. Network managers give a wireless one made-up
/// addresses while it looks for a network, and its own when it joins: the guard stands before that.
fn is_permanent(mac: MacAddress, interface: &str) -> Result<bool, Failure> {
    Ok(takeover::card(interface)?.is_some_and(|card| card.permanent_mac == Some(mac)))
}
