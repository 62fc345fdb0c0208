//! The second authority of a site: a DHCP server that makes its clients' certificates with their leases (CLL paper, section 6).
//!
//! It is built from the server's own identity: the site has certified the server's key as an authority for the subnets that it
//! serves. The client's base certificate is the template, so the client's key, name and hardware address are those that the site
//! has vouched for.

use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;

use identity::certificate::names::Names;
use identity::certificate::{HostCertificate, KeyKind, Role, TrustAnchor, Verified};
use identity::signing::SigningKey;
use identity::{HostIdentity, pem};
use rcgen::{CertificateParams, Issuer, KeyUsagePurpose, PublicKeyData, SignatureAlgorithm};

use crate::Error;
use crate::limits::{BACKDATE, SERIAL_LEN};
use crate::site::{HostKey, Period, derived_subject, names_extension, numbered_params};

/// What a client is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Its address.
    pub address: Ipv4Addr,
    /// When it is given, in Unix seconds.
    pub from_unix_s: u64,
    /// The last second of the lease, in Unix seconds.
    pub until_unix_s: u64,
    /// A fresh random number for the certificate.
    pub serial: [u8; SERIAL_LEN],
}

/// A DHCP server's authority.
pub struct LeaseAuthority {
    issuer: Issuer<'static, ServerKey>,
    der: Vec<u8>,
    anchor: TrustAnchor,
    own_addresses: Vec<Ipv4Addr>,
    period: Period,
}

impl LeaseAuthority {
    /// The authority of the DHCP server with this identity.
    ///
    /// # Errors
    /// [`Error::NoLeaseAuthority`], [`Error::ServesWithOtherKey`], or a failure of the encoder.
    pub fn open(identity: &HostIdentity) -> Result<LeaseAuthority, Error> {
        let server = identity.certificate();
        let der = identity.dhcp_authority().filter(|_| server.role() == Role::DhcpServer);
        let der = der.ok_or(Error::NoLeaseAuthority)?.to_vec();
        let public = match server.record_key() {
            Some((number, public)) if Some(number) == KeyKind::Ed25519.record_number() => public.to_vec(),
            _ => return Err(Error::ServesWithOtherKey),
        };
        let mut params = CertificateParams::default();
        params.distinguished_name = derived_subject(server)?;
        let issuer = Issuer::new(params, ServerKey { key: identity.signing_key(), public });
        let (not_before_unix, not_after_unix) = (server.not_before_unix(), server.not_after_unix());
        let period = Period { not_before_unix, not_after_unix };
        let own_addresses = server.addresses().to_vec();
        Ok(LeaseAuthority { issuer, der, anchor: identity.anchor().clone(), own_addresses, period })
    }

    /// Makes the certificate of a lease, in DER with this authority's own behind it, as it travels. It lasts as long as the lease,
    /// but no longer than the base certificate or this authority. It is checked as a peer will check it, so what is outside of the
    /// served subnets is found here.
    ///
    /// # Errors
    /// [`Error::BadLease`], [`Error::SelfCheck`], or a failure of the encoder.
    pub fn certify(&self, base: &Verified<HostCertificate>, grant: &Grant) -> Result<Vec<u8>, Error> {
        let Grant { address, from_unix_s, until_unix_s, serial } = *grant;
        if self.own_addresses.contains(&address) || !base.is_base() {
            return Err(Error::BadLease(address));
        }
        let key = HostKey { kind: base.key_kind(), bytes: base.public_key().to_vec() };
        let period = Period {
            not_before_unix: from_unix_s.saturating_sub(BACKDATE.as_secs()).max(self.period.not_before_unix),
            not_after_unix: until_unix_s.min(base.not_after_unix()).min(self.period.not_after_unix),
        };
        let mut params = numbered_params(base.name(), period, serial);
        params.distinguished_name = derived_subject(base)?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let names = Names::new(base.mac(), vec![address]).map_err(|_| Error::BadLease(address))?;
        params.custom_extensions = vec![names_extension(&names)?];
        let chain = [&params.signed_by(&key, &self.issuer)?.der()[..], &self.der].concat();
        self.anchor.verify_whenever(&chain).map_err(Error::SelfCheck)?;
        Ok(chain)
    }

    /// The authority's own certificate in PEM.
    #[must_use]
    pub fn certificate_pem(&self) -> String {
        pem::encode(pem::CERTIFICATE, &self.der).to_string()
    }
}

impl fmt::Debug for LeaseAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseAuthority").finish_non_exhaustive()
    }
}

/// The server's own key, as the encoder wants it.
struct ServerKey {
    key: Arc<SigningKey>,
    public: Vec<u8>,
}

impl PublicKeyData for ServerKey {
    fn der_bytes(&self) -> &[u8] {
        &self.public
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &rcgen::PKCS_ED25519
    }
}

impl rcgen::SigningKey for ServerKey {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        self.key.sign(message).map_err(|_| rcgen::Error::RemoteKeyError)
    }
}
