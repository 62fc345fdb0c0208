//! The certificates of DHCP (paper, section 6): a client's base certificate, the making of a lease's, and that as it arrives.

use std::net::Ipv4Addr;
use std::sync::Arc;

use bump::DropReason;
use dhcp::link::{Grant, LeaseAuthority};
use identity::certificate::HostCertificate;
use identity::{HostIdentity, Verified};
use wire::cll::dhcp::ClientId;

use super::{Origins, Refusal};
use crate::revocation::Revoked;

/// Slow work for DHCP.
#[derive(Debug)]
pub(crate) enum DhcpJob {
    /// Check the certificate that a client shows.
    CheckBase { origins: Origins, client: ClientId, certificate: Vec<u8> },
    /// Make the certificate of a lease.
    Certify(Arc<dyn LeaseAuthority>, Box<Grant>),
    /// Check the certificate that came with a lease.
    CheckLease { base: Arc<HostIdentity>, revoked: Arc<Revoked>, address: Ipv4Addr, certificate: Vec<u8> },
}

/// What it came to.
pub(crate) enum DhcpDone {
    Base(Result<Box<Verified<HostCertificate>>, Refusal>),
    Certificate(Result<Vec<u8>, Refusal>),
    Lease(Result<Arc<HostIdentity>, Refusal>),
}

impl DhcpJob {
    pub(crate) fn run(self) -> DhcpDone {
        match self {
            DhcpJob::CheckBase { origins, client, certificate } => {
                let judged = origins.judge_certificate(&certificate).map_err(in_dhcp);
                DhcpDone::Base(judged.and_then(|base| check_base(client, base)).map(Box::new))
            }
            DhcpJob::Certify(authority, grant) => {
                let refused = |detail: String| Refusal::new(DropReason::DhcpCertificate, detail);
                DhcpDone::Certificate(authority.certify(&grant).map_err(refused))
            }
            DhcpJob::CheckLease { base, revoked, address, certificate } => {
                DhcpDone::Lease(check_lease(&base, &revoked, address, &certificate))
            }
        }
    }
}

/// The certificate is the one that the client ID was made from, and no lease's.
fn check_base(client: ClientId, base: Verified<HostCertificate>) -> Result<Verified<HostCertificate>, Refusal> {
    let is_own = identity::dhcp_key::client_id(&base) == client;
    if is_own && base.is_base() && !base.is_leased() {
        return Ok(base);
    }
    let detail = format!("{} shows a certificate that is not its base certificate", base.name());
    Err(Refusal::new(DropReason::DhcpCertificate, detail))
}

/// The certificate is this host's own, by a DHCP server of the site, and for this address alone. It
/// is not compared with a clock, since this host may have none yet: it came in the answer to a fresh
/// question, or is kept since one in this boot, with its end by the boot's own clock.
fn check_lease(
    base: &HostIdentity,
    revoked: &Revoked,
    address: Ipv4Addr,
    certificate: &[u8],
) -> Result<Arc<HostIdentity>, Refusal> {
    let refused = |detail: String| Refusal::new(DropReason::DhcpCertificate, detail);
    let certificate = base.anchor().verify_whenever(certificate).map_err(|refusal| refused(refusal.to_string()))?;
    if !certificate.is_leased() || certificate.addresses() != [address] {
        return Err(refused(format!("the certificate that came with {address} is not for that address alone")));
    }
    if revoked.names(&certificate) {
        return Err(refused(format!("the certificate that came with {address} was revoked")));
    }
    base.with_certificate(certificate).map(Arc::new).map_err(|error| refused(error.to_string()))
}

/// The same refusal under the name of the frame that brought it.
fn in_dhcp(refusal: Refusal) -> Refusal {
    Refusal { reason: DropReason::DhcpCertificate, ..refusal }
}
