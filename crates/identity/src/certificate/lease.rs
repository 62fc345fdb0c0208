//! Certificates that a DHCP server makes with a lease (CLL paper, section 6: "it acts as a second CA").
//!
//! The server's own authority is a certificate of the site's: an authority that may issue no further one, constrained to the
//! subnets that the server serves. A leased certificate travels with it, one behind the other in DER, so that nobody has to know
//! the site's DHCP servers. Both name in their subject the serial number of the certificate that they were made from, the host's
//! base certificate and the server's own, so that taking those back takes back these.
//!
//! A DHCP server is believed in addresses and in nothing else: what it makes has the role of a host and binds at
//! least one IPv4 address, and no IPv6 address: hosts make those themselves.

use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{BasicConstraints, KeyUsage, KeyUsages, NameConstraints};

use super::subject::{Role, template_serial};
use super::{HostCertificate, Refusal, Serial};

/// The certificates that a leased one stands on, by serial number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) base_serial: Serial,
    pub(super) server_serial: Serial,
}

/// One or two certificates in DER.
pub(super) struct Chain<'a> {
    pub(super) host: &'a [u8],
    pub(super) issuer: Option<&'a [u8]>,
}

impl<'a> Chain<'a> {
    /// Splits what travels. Whether either part is a certificate is not looked at.
    pub(super) fn split(der: &'a [u8]) -> Result<Chain<'a>, Refusal> {
        let len = element_len(der).filter(|len| *len <= der.len()).ok_or(Refusal::Malformed("structure"))?;
        let (host, rest) = der.split_at(len);
        Ok(Chain { host, issuer: (!rest.is_empty()).then_some(rest) })
    }
}

/// Bytes of the element at the beginning of `der`, with its header (X.690, section 8.1.3); a certificate is below 65,536.
fn element_len(der: &[u8]) -> Option<usize> {
    match *der {
        [_, len @ 0..=0x7f, ..] => Some(2 + usize::from(len)),
        [_, 0x81, len, ..] => Some(3 + usize::from(len)),
        [_, 0x82, high, low, ..] => Some(4 + usize::from(u16::from_be_bytes([high, low]))),
        _ => None,
    }
}

/// A host's certificate whose path through `issuer` was validated; both travel as `chain`.
pub(super) fn of_validated(host: HostCertificate, issuer: &[u8], chain: &[u8]) -> Result<HostCertificate, Refusal> {
    if host.role() != Role::Host || host.addresses().is_empty() || !host.ipv6_addresses().is_empty() {
        return Err(Refusal::NotPermitted);
    }
    let read = |der: &[u8]| Certificate::from_der(der).map_err(|_| Refusal::Malformed("structure"));
    let (leased, issuer) = (read(host.der())?, read(issuer)?);
    if !gives_leases(&issuer) {
        return Err(Refusal::NotPermitted);
    }
    let subject_serial = |certificate: &Certificate| template_serial(certificate.tbs_certificate().subject());
    let origin = Origin { base_serial: subject_serial(&leased)?, server_serial: subject_serial(&issuer)? };
    Ok(host.leased(origin, chain))
}

/// Whether the site's authority made this one to give leases: it issues no further authority, signs
/// certificates and nothing else, and is constrained to addresses, all of it critical. Where the
/// site's authority is that of a whole company, others below it make certificates of other kinds,
/// for any name.
fn gives_leases(issuer: &Certificate) -> bool {
    let content = issuer.tbs_certificate();
    let is_last = matches!(
        content.get_extension::<BasicConstraints>(),
        Ok(Some((true, basic))) if basic.ca && basic.path_len_constraint == Some(0)
    );
    let only_signs = matches!(
        content.get_extension::<KeyUsage>(),
        Ok(Some((true, usage))) if usage.0 == KeyUsages::KeyCertSign
    );
    let is_for_addresses = matches!(
        content.get_extension::<NameConstraints>(),
        Ok(Some((true, names))) if names.permitted_subtrees.as_ref().is_some_and(|permitted| {
            !permitted.is_empty()
                && permitted.iter().all(|subtree| matches!(subtree.base, GeneralName::IpAddress(_)))
        })
    );
    is_last && only_signs && is_for_addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_travels_is_split_where_the_first_element_ends() {
        let short = [0x30, 2, 1, 1, 0x30, 0];
        let chain = Chain::split(&short).expect("two");
        assert_eq!((chain.host, chain.issuer), (&short[..4], Some(&short[4..])));
        let long = [&[0x30, 0x82, 1, 0][..], &[7; 256], &[0x30]].concat();
        let chain = Chain::split(&long).expect("two");
        assert_eq!((chain.host.len(), chain.issuer), (260, Some(&[0x30][..])));
        for bad in
            [&[][..], &[0x30], &[0x30, 3, 1], &[0x30, 0x82, 0xff, 0xff, 0], &[0x30, 0x83, 0, 0, 1, 1], &[0x30, 0x80]]
        {
            assert!(Chain::split(bad).is_err(), "{bad:?}");
        }
    }
}
