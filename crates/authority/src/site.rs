//! The authority in memory: its key, its certificate, the site key, and how a certificate is made.

use std::fmt;
use std::time::Duration;

use identity::certificate::names::Names;
use identity::certificate::{
    CertificateRequest, HostCertificate, KeyKind, OPERATOR_PURPOSE, OperatorCertificate, OperatorRequest, OperatorRole,
    PAPER_SITE_UNIT, SECOND_KEY_EXTENSION, SERIAL_NUMBER_ATTRIBUTE, TrustAnchor, Verified,
};
use identity::dhcp_key::{DhcpKey, DhcpMaster};
use identity::distributor::{RequestKey, RequestMaster};
use identity::policy::{self, SitePolicy};
use identity::profile::{KeyLength, PaperKey};
use identity::shared_keys::Statement;
use identity::signing::{SigningKey, ed25519_pkcs8_from_seed};
use identity::site_key::SiteKey;
use identity::{HostIdentity, KeyError, Profile, Succession, new_key_block, new_rsa_key_block, pem};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CidrSubnet, CustomExtension,
    DistinguishedName, DnType, DnValue, ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer, KeyIdMethod, KeyPair,
    KeyUsagePurpose, NameConstraints, PublicKeyData, RevokedCertParams, SerialNumber, SignatureAlgorithm,
    SigningKey as _, string::PrintableString,
};
use zeroize::Zeroizing;

use crate::key::{Key, TokenUri};
use crate::limits::{BACKDATE, MAX_UNIX_S, SERIAL_LEN, SITE_VALIDITY};
use crate::repository::Subnet;
use crate::request::{check_name, check_validity};
use crate::{Error, Random, Request, random_bytes};

/// subjectAltName (RFC 5280, section 4.2.1.6).
const SUBJECT_ALT_NAME: &[u64] = &[2, 5, 29, 17];

/// A site's authority: who holds one can make hosts of the site.
pub struct Site {
    anchor: TrustAnchor,
    issuer: Issuer<'static, Key>,
    site_keys: Succession<SiteKey>,
}

impl Site {
    /// Makes a new site named `name` for the usual ten years from `unix_s` on. The same random bytes at the same time make
    /// the same site.
    ///
    /// # Errors
    /// [`Error::BadName`] or [`Error::BadTime`].
    pub fn create(name: &str, random: &mut Random<'_>, unix_s: u64) -> Result<Self, Error> {
        Self::create_for(name, SITE_VALIDITY, Profile::Modern, random, unix_s)
    }

    /// As [`create`](Site::create), for another period and profile. A site of the paper profile is marked in the subject of
    /// its authority, for ever.
    ///
    /// # Errors
    /// As there, and [`Error::BadPeriod`].
    pub fn create_for(
        name: &str,
        validity: Duration,
        profile: Profile,
        random: &mut Random<'_>,
        unix_s: u64,
    ) -> Result<Self, Error> {
        let key = Key::from_der(&ed25519_pkcs8_from_seed(&random_bytes(random))?)?;
        Self::create_with(key, name, (validity, profile), random, unix_s)
    }

    /// The same with a key that the token at `key` has, or makes.
    ///
    /// # Errors
    /// As there, and [`Error::Token`].
    pub(crate) fn create_in_token(
        key: &TokenUri,
        name: &str,
        terms: (Duration, Profile),
        random: &mut Random<'_>,
        unix_s: u64,
    ) -> Result<Self, Error> {
        // Nothing is made in the token for a site that cannot be.
        check_name(name)?;
        check_validity(terms.0)?;
        Self::create_with(Key::in_token(key)?, name, terms, random, unix_s)
    }

    fn create_with(
        key: Key,
        name: &str,
        (validity, profile): (Duration, Profile),
        random: &mut Random<'_>,
        unix_s: u64,
    ) -> Result<Self, Error> {
        check_name(name)?;
        check_validity(validity)?;
        let period = Period::starting(unix_s, validity)?;
        let site_keys = Succession::first(SiteKey::from_bytes(*random_bytes(random)));
        let params = authority_params(name, profile, period, random);
        let certificate = params.self_signed(&key)?;
        let anchor = TrustAnchor::from_der(certificate.der()).map_err(Error::SelfCheck)?;
        Ok(Site { anchor, issuer: Issuer::new(params, key), site_keys })
    }

    /// Puts a site together from its three files: the authority's certificate, its key, and its
    /// site keys, all PEM. In the place of the key the URI of one in a token may stand.
    ///
    /// # Errors
    /// [`Error::Authority`], [`Error::Key`], [`Error::Token`] or [`Error::KeyOfAnotherAuthority`].
    pub fn from_pem(certificate: &str, key: &str, site_keys: impl Into<Succession<SiteKey>>) -> Result<Self, Error> {
        let certificate_der = pem::single(certificate, pem::CERTIFICATE)?;
        let anchor = TrustAnchor::from_der(&certificate_der).map_err(Error::Authority)?;
        let key = Key::from_text(key)?;
        if key.der_bytes() != anchor.public_key() {
            return Err(Error::KeyOfAnotherAuthority);
        }
        let mut params = CertificateParams::default();
        params.distinguished_name = subject(&anchor.site_name(), site_unit(anchor.profile()));
        Ok(Site { anchor, issuer: Issuer::new(params, key), site_keys: site_keys.into() })
    }

    /// Another certificate of this authority, for the same key and from now on for so long.
    ///
    /// # Errors
    /// [`Error::BadPeriod`], [`Error::EndsNoLater`], or a failure of the encoder.
    pub(crate) fn renew_authority(
        &self,
        validity: Duration,
        random: &mut Random<'_>,
        unix_s: u64,
    ) -> Result<TrustAnchor, Error> {
        check_validity(validity)?;
        let period = Period::starting(unix_s, validity)?;
        if period.not_after_unix <= self.anchor.not_after_unix() {
            return Err(Error::EndsNoLater(self.anchor.not_after_unix()));
        }
        let certificate =
            authority_params(&self.name(), self.profile(), period, random).self_signed(self.issuer.key())?;
        let renewed = TrustAnchor::from_der(certificate.der()).map_err(Error::SelfCheck)?;
        if renewed.is_same_authority(&self.anchor) { Ok(renewed) } else { Err(Error::KeyOfAnotherAuthority) }
    }

    /// The site's name.
    #[must_use]
    pub fn name(&self) -> String {
        self.anchor.site_name()
    }

    /// Which algorithms its hosts sign S-ARP with.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.anchor.profile()
    }

    /// What hosts know of the authority.
    #[must_use]
    pub fn anchor(&self) -> &TrustAnchor {
        &self.anchor
    }

    /// The keys that all hosts share.
    #[must_use]
    pub fn site_keys(&self) -> &Succession<SiteKey> {
        &self.site_keys
    }

    /// The newest of them.
    #[must_use]
    pub fn site_key(&self) -> &SiteKey {
        self.site_keys.newest().1
    }

    /// From now on hosts are given these.
    pub fn share(&mut self, site_keys: Succession<SiteKey>) {
        self.site_keys = site_keys;
    }

    /// What the host with this certificate is given of the site alone, without what a repository
    /// knows of it.
    ///
    /// # Errors
    /// A failure of the encoder.
    pub fn share_with(&self, certificate: Verified<HostCertificate>) -> Result<Bundle, Error> {
        self.bundle(certificate, None, ForDhcp::default())
    }

    /// The authority's certificate in PEM.
    #[must_use]
    pub fn certificate_pem(&self) -> String {
        pem::encode(pem::CERTIFICATE, self.anchor.der()).to_string()
    }

    /// Whether the authority's key signs.
    ///
    /// # Errors
    /// [`Error::Token`]: it is in a token, which does not sign.
    pub fn check_key(&self) -> Result<(), Error> {
        Ok(self.issuer.key().check()?)
    }

    /// The authority's private key in PEM, or the URI of the one that is in a token. Who reads a key
    /// is the authority.
    #[must_use]
    pub fn key_text(&self) -> Zeroizing<String> {
        self.issuer.key().text()
    }

    /// Issues a certificate that says what `request` says for the key that `proved` holds. What else `proved` asks for is
    /// not looked at; see [`Request::from_certificate_request`].
    ///
    /// # Errors
    /// [`Error::BadTime`], [`Error::AuthorityExpired`], [`Error::KeysOfPaperSite`], [`Error::NoPaperSite`], or a failure of
    /// the encoder.
    pub fn issue(
        &self,
        request: &Request,
        proved: &CertificateRequest,
        random: &mut Random<'_>,
        unix_s: u64,
    ) -> Result<Bundle, Error> {
        if self.profile() == Profile::Paper {
            return Err(Error::KeysOfPaperSite);
        }
        self.issue_for(request, &key_of(proved), None, random, unix_s)
    }

    /// As [`issue`](Site::issue), and in a site of the paper profile a second key for the host,
    /// which is in the bundle. So the bundle is only to be handed out sealed.
    pub(crate) fn issue_to_be_sealed(
        &self,
        request: &Request,
        proved: &CertificateRequest,
        random: &mut Random<'_>,
        unix_s: u64,
    ) -> Result<Bundle, Error> {
        let second = self.second_key(request, random)?;
        let second_block = second.as_ref().map(|second| second.as_slice());
        let bundle = self.issue_for(request, &key_of(proved), second_block, random, unix_s)?;
        Ok(Bundle { second_key: second, ..bundle })
    }

    /// Makes a host's key (Ed25519, and a second one in a paper site) and certificate in one step and returns them with the bundle's other parts, as the one
    /// identity file in PEM.
    ///
    /// # Errors
    /// As [`issue`](Site::issue).
    pub fn issue_identity(
        &self,
        request: &Request,
        random: &mut Random<'_>,
        unix_s: u64,
    ) -> Result<Zeroizing<String>, Error> {
        let (bundle, key_pem) = self.issue_with_key(request, random, unix_s)?;
        bundle.join_key(&key_pem)
    }

    /// As [`issue_identity`](Site::issue_identity), in parts: the bundle, and the keys in PEM.
    pub(crate) fn issue_with_key(
        &self,
        request: &Request,
        random: &mut Random<'_>,
        unix_s: u64,
    ) -> Result<(Bundle, Zeroizing<String>), Error> {
        let key_der = ed25519_pkcs8_from_seed(&random_bytes(random))?;
        let pair = KeyPair::try_from(key_der.as_slice())?;
        let key = HostKey { kind: KeyKind::Ed25519, bytes: pair.public_key_raw().to_vec() };
        let mut key_pem = pem::encode(pem::PRIVATE_KEY, &key_der);
        let second = self.second_key(request, random)?;
        if let Some(second) = &second {
            key_pem.push_str(&pem::encode(pem::PAPER_KEY, second));
        }
        let bundle = self.issue_for(request, &key, second.as_ref().map(|second| second.as_slice()), random, unix_s)?;
        Ok((bundle, key_pem))
    }

    /// The key that a host of a paper site signs S-ARP, or the handshakes of CLL with; none in a modern site.
    fn second_key(&self, request: &Request, random: &mut Random<'_>) -> Result<Option<Zeroizing<Vec<u8>>>, Error> {
        Ok(match self.profile() {
            Profile::Modern => None,
            Profile::Paper => Some(match request.paper_key().unwrap_or(PaperKey::Dsa(KeyLength::Bits1024)) {
                PaperKey::Dsa(length) => new_key_block(length, &random_bytes(random)),
                PaperKey::Rsa(key) => new_rsa_key_block(key, &random_bytes(random)),
            }),
        })
    }

    fn issue_for(
        &self,
        request: &Request,
        key: &HostKey,
        second: Option<&[u8]>,
        random: &mut Random<'_>,
        unix_s: u64,
    ) -> Result<Bundle, Error> {
        if self.profile() == Profile::Modern && request.paper_key().is_some() {
            return Err(Error::NoPaperSite);
        }
        let mut params = host_params(request, self.period(unix_s, request.validity())?, random)?;
        params.custom_extensions.extend(second.map(second_key_extension).transpose()?);
        let certificate = params.signed_by(key, &self.issuer)?;
        let verified = self.anchor.verify(certificate.der(), unix_s).map_err(Error::SelfCheck)?;
        self.bundle(verified, None, ForDhcp::default())
    }

    /// Makes key and certificate of an operator; the certificate, and the file for him.
    ///
    /// # Errors
    /// [`Error::BadName`], [`Error::BadPeriod`], or as [`issue`](Site::issue).
    pub(crate) fn issue_operator(
        &self,
        (name, role): (&str, OperatorRole),
        validity: Duration,
        random: &mut Random<'_>,
        unix_s: u64,
    ) -> Result<(Verified<OperatorCertificate>, Zeroizing<String>), Error> {
        let key_der = ed25519_pkcs8_from_seed(&random_bytes(random))?;
        let pair = KeyPair::try_from(key_der.as_slice())?;
        let key = HostKey { kind: KeyKind::Ed25519, bytes: pair.public_key_raw().to_vec() };
        let (certificate, mut file) = self.certify_operator((name, role), &key, validity, random, unix_s)?;
        file.push_str(&pem::encode(pem::PRIVATE_KEY, &key_der));
        Ok((certificate, file))
    }

    /// The same for a key that he has made; the file for him is no secret and lacks it.
    pub(crate) fn issue_operator_for(
        &self,
        (asked, role): (&OperatorRequest, OperatorRole),
        validity: Duration,
        random: &mut Random<'_>,
        unix_s: u64,
    ) -> Result<(Verified<OperatorCertificate>, Zeroizing<String>), Error> {
        let key = HostKey { kind: KeyKind::Ed25519, bytes: asked.public_key().to_vec() };
        self.certify_operator((asked.name(), role), &key, validity, random, unix_s)
    }

    fn certify_operator(
        &self,
        (name, role): (&str, OperatorRole),
        key: &HostKey,
        validity: Duration,
        random: &mut Random<'_>,
        unix_s: u64,
    ) -> Result<(Verified<OperatorCertificate>, Zeroizing<String>), Error> {
        check_name(name)?;
        check_validity(validity)?;
        let mut params = base_params(name, self.period(unix_s, validity)?, random);
        params.distinguished_name = subject(name, Some(role.name()));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::Other(OPERATOR_PURPOSE.to_vec())];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(key, &self.issuer)?;
        let verified = self.anchor.verify_operator(certificate.der(), unix_s).map_err(Error::SelfCheck)?;
        let mut file = pem::encode(pem::CERTIFICATE, verified.der());
        file.push_str(&pem::encode(pem::CERTIFICATE, self.anchor.der()));
        Ok((verified, file))
    }

    /// What is issued at `unix_s` for so long.
    fn period(&self, unix_s: u64, validity: Duration) -> Result<Period, Error> {
        let end = self.anchor.not_after_unix();
        if unix_s >= end {
            return Err(Error::AuthorityExpired(end));
        }
        let mut period = Period::starting(unix_s, validity)?;
        // A certificate that outlives its authority would only hide when the site ends.
        period.not_after_unix = period.not_after_unix.min(end);
        Ok(period)
    }

    /// What the host with this certificate is given, with the authority's signature under what
    /// others have as well.
    pub(crate) fn bundle(
        &self,
        certificate: Verified<HostCertificate>,
        sarp: Option<ForSarp>,
        dhcp: ForDhcp,
    ) -> Result<Bundle, Error> {
        let (anchor, site_keys) = (self.anchor.clone(), self.site_keys.clone());
        let mut bundle = Bundle { certificate, anchor, site_keys, second_key: None, sarp, dhcp, signature: None };
        let statement = bundle.statement();
        if !statement.is_empty() {
            bundle.signature = Some(self.issuer.key().sign(&statement.signed_bytes(&bundle.certificate))?);
        }
        Ok(bundle)
    }

    /// The certificate, in DER, with which the DHCP server that `server` names makes those of its clients: a second authority
    /// under the same key and for the same period, constrained to `served`.
    ///
    /// # Errors
    /// [`Error::ServesWithOtherKey`], or a failure of the encoder.
    pub fn lease_authority(
        &self,
        server: &HostCertificate,
        served: &[Subnet],
        random: &mut Random<'_>,
    ) -> Result<Vec<u8>, Error> {
        let kind = KeyKind::Ed25519;
        let bytes = match server.record_key() {
            Some((number, bytes)) if Some(number) == kind.record_number() => bytes.to_vec(),
            _ => return Err(Error::ServesWithOtherKey),
        };
        let (not_before_unix, not_after_unix) = (server.not_before_unix(), server.not_after_unix());
        let mut params = base_params(server.name(), Period { not_before_unix, not_after_unix }, random);
        params.distinguished_name = derived_subject(server)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let permitted_subtrees = served.iter().map(|subnet| permitted(*subnet)).collect();
        params.name_constraints = Some(NameConstraints { permitted_subtrees, excluded_subtrees: Vec::new() });
        params.use_authority_key_identifier_extension = true;
        Ok(params.signed_by(&HostKey { kind, bytes }, &self.issuer)?.der().to_vec())
    }
}

impl Site {
    /// A signed list that takes back the certificates with these serial numbers, in PEM.
    ///
    /// # Errors
    /// [`Error::BadTime`], or a failure of the encoder.
    pub fn revocation_list(&self, serials: &[&[u8]], unix_s: u64) -> Result<String, Error> {
        if unix_s > MAX_UNIX_S {
            return Err(Error::BadTime(unix_s));
        }
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        let entry = |serial: &&[u8]| RevokedCertParams {
            serial_number: SerialNumber::from_slice(serial),
            revocation_time: epoch + Duration::from_secs(unix_s),
            reason_code: None,
            invalidity_date: None,
        };
        let params = CertificateRevocationListParams {
            this_update: epoch + Duration::from_secs(unix_s),
            // The format wants one; that no newer list is needed before is not promised, and hosts do not look at it.
            next_update: epoch + Duration::from_secs(self.anchor.not_after_unix().max(unix_s)),
            crl_number: SerialNumber::from(unix_s),
            issuing_distribution_point: None,
            revoked_certs: serials.iter().map(entry).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = params.signed_by(&self.issuer)?;
        self.anchor.verify_revocation_list(list.der()).map_err(Error::RevocationList)?;
        Ok(pem::encode(pem::REVOCATION_LIST, list.der()).to_string())
    }

    /// Signs an entry of the record of what was done.
    ///
    /// # Errors
    /// A failure of the signature.
    pub fn sign_audit_entry(&self, entry: &identity::audit::Entry) -> Result<Vec<u8>, Error> {
        Ok(self.issuer.key().sign(&entry.signed_bytes())?)
    }

    /// Signs what came of an operator's order.
    ///
    /// # Errors
    /// A failure of the signature.
    pub fn sign_answer(&self, order: &[u8], answer: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(self.issuer.key().sign(&identity::order::answer_bytes(order, answer))?)
    }

    /// Signs a policy.
    ///
    /// # Errors
    /// [`Error::Policy`] if it is too long or not in order, or a failure of the signature.
    pub fn policy(&self, content: &policy::Content) -> Result<Verified<SitePolicy>, Error> {
        let signature = self.issuer.key().sign(&policy::signed_bytes(content))?;
        self.anchor.verify_policy(&policy::with_signature(content, &signature)).map_err(Error::Policy)
    }
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site").field("anchor", &self.anchor).finish_non_exhaustive()
    }
}

/// What goes back to a host that asked: all of its identity but the private key. It holds the site key, so it is secret.
pub struct Bundle {
    certificate: Verified<HostCertificate>,
    anchor: TrustAnchor,
    site_keys: Succession<SiteKey>,
    /// The key that a site of the paper profile makes for a host that made the other one itself.
    second_key: Option<Zeroizing<Vec<u8>>>,
    sarp: Option<ForSarp>,
    dhcp: ForDhcp,
    /// The authority's, under keys that have a term.
    signature: Option<Vec<u8>>,
}

/// What a bundle holds for DHCP under the link layer (CLL paper, section 6).
#[derive(Debug, Default)]
pub struct ForDhcp {
    /// What a host that gets its address by DHCP proves itself to DHCP servers with.
    pub keys: Option<Succession<DhcpKey>>,
    /// For a DHCP server: what all those keys are made from.
    pub masters: Option<Succession<DhcpMaster>>,
    /// The certificate of its authority, in DER, if it is new as well.
    pub authority: Option<Vec<u8>>,
}

impl ForDhcp {
    fn add_to(&self, text: &mut String) {
        if let Some(keys) = &self.keys {
            text.push_str(&keys.to_pem());
        }
        if let Some(masters) = &self.masters {
            text.push_str(&masters.to_pem());
        }
        if let Some(authority) = &self.authority {
            text.push_str(&pem::encode(pem::CERTIFICATE, authority));
        }
    }
}

/// What a bundle holds for S-ARP.
#[derive(Debug)]
pub struct ForSarp {
    /// What the host proves itself to distributors with.
    pub request_keys: Succession<RequestKey>,
    /// The other distributors of the site.
    pub distributors: Vec<Verified<HostCertificate>>,
    /// The other DHCP servers of the site.
    pub dhcp_servers: Vec<Verified<HostCertificate>>,
    /// What all request keys are made from; for a distributor only.
    pub masters: Option<Succession<RequestMaster>>,
}

impl ForSarp {
    fn add_to(&self, text: &mut String) {
        text.push_str(&self.request_keys.to_pem());
        for server in self.distributors.iter().chain(&self.dhcp_servers) {
            text.push_str(&pem::encode(pem::CERTIFICATE, server.der()));
        }
        if let Some(masters) = &self.masters {
            text.push_str(&masters.to_pem());
        }
    }
}

impl fmt::Debug for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bundle").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl Bundle {
    /// The same with the key that the site made for the host of `other`, which is this host.
    #[must_use]
    pub(crate) fn with_second_key_of(self, other: Bundle) -> Bundle {
        Bundle { second_key: other.second_key, ..self }
    }

    fn statement(&self) -> Statement {
        let mut statement = Statement::default();
        statement.add(Some(&self.site_keys));
        statement.add(self.sarp.as_ref().map(|sarp| &sarp.request_keys));
        statement.add(self.dhcp.keys.as_ref());
        statement.add(self.sarp.as_ref().and_then(|sarp| sarp.masters.as_ref()));
        statement.add(self.dhcp.masters.as_ref());
        statement
    }

    /// The host's certificate.
    #[must_use]
    pub fn certificate(&self) -> &Verified<HostCertificate> {
        &self.certificate
    }

    /// The host's certificate alone, in PEM.
    #[must_use]
    pub fn certificate_pem(&self) -> String {
        pem::encode(pem::CERTIFICATE, self.certificate.der()).to_string()
    }

    /// The bundle as a file: host certificate, authority's certificate, site key, and what S-ARP and DHCP need.
    #[must_use]
    pub fn to_pem(&self) -> Zeroizing<String> {
        let mut text = pem::encode(pem::CERTIFICATE, self.certificate.der());
        text.push_str(&pem::encode(pem::CERTIFICATE, self.anchor.der()));
        text.push_str(&self.site_keys.to_pem());
        if let Some(second) = &self.second_key {
            text.push_str(&pem::encode(pem::PAPER_KEY, second));
        }
        if let Some(sarp) = &self.sarp {
            sarp.add_to(&mut text);
        }
        self.dhcp.add_to(&mut text);
        if let Some(signature) = &self.signature {
            text.push_str(&pem::encode(pem::SHARED_KEYS_SIGNATURE, signature));
        }
        text
    }

    pub(crate) fn join_key(&self, key_pem: &str) -> Result<Zeroizing<String>, Error> {
        join(key_pem, &self.to_pem()).map(|(text, _)| text)
    }
}

/// Puts a private key and a bundle together to an identity file and checks that they fit.
///
/// # Errors
/// [`Error::Identity`], which names the block.
pub fn join(key_pem: &str, bundle_pem: &str) -> Result<(Zeroizing<String>, HostIdentity), Error> {
    let mut text = Zeroizing::new(String::with_capacity(key_pem.len() + bundle_pem.len() + 1));
    for part in [bundle_pem, key_pem] {
        text.push_str(part.trim_end());
        text.push('\n');
    }
    let identity = HostIdentity::from_pem(&text)?;
    Ok((text, identity))
}

/// Both ends of a period, in Unix seconds; both belong to it.
#[derive(Clone, Copy)]
pub(crate) struct Period {
    pub(crate) not_before_unix: u64,
    pub(crate) not_after_unix: u64,
}

impl Period {
    fn starting(unix_s: u64, validity: Duration) -> Result<Self, Error> {
        if unix_s > MAX_UNIX_S || unix_s < BACKDATE.as_secs() {
            return Err(Error::BadTime(unix_s));
        }
        Ok(Period { not_before_unix: unix_s - BACKDATE.as_secs(), not_after_unix: unix_s + validity.as_secs() })
    }
}

/// A host's public key, as the encoder wants it.
pub(crate) struct HostKey {
    pub(crate) kind: KeyKind,
    pub(crate) bytes: Vec<u8>,
}

fn key_of(proved: &CertificateRequest) -> HostKey {
    HostKey { kind: proved.key_kind(), bytes: proved.public_key().to_vec() }
}

impl PublicKeyData for HostKey {
    fn der_bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        match self.kind {
            KeyKind::Ed25519 => &rcgen::PKCS_ED25519,
            KeyKind::EcdsaP256 => &rcgen::PKCS_ECDSA_P256_SHA256,
            KeyKind::Rsa => &rcgen::PKCS_RSA_SHA256,
        }
    }
}

fn authority_params(name: &str, profile: Profile, period: Period, random: &mut Random<'_>) -> CertificateParams {
    let mut params = base_params(name, period, random);
    params.distinguished_name = subject(name, site_unit(profile));
    // Below it stands at most the authority of a DHCP server.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(1));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn base_params(name: &str, period: Period, random: &mut Random<'_>) -> CertificateParams {
    numbered_params(name, period, *random_bytes(random))
}

/// The same with a serial number that was drawn before.
pub(crate) fn numbered_params(name: &str, period: Period, mut serial: [u8; SERIAL_LEN]) -> CertificateParams {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    // Positive, and never with a zero in front: the same digits in the file name, in openssl and in our output.
    serial[0] = serial[0] & 0x7f | 0x40;
    let mut params = CertificateParams::default();
    params.distinguished_name = subject(name, None);
    params.not_before = epoch + Duration::from_secs(period.not_before_unix);
    params.not_after = epoch + Duration::from_secs(period.not_after_unix);
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    params
}

fn host_params(request: &Request, period: Period, random: &mut Random<'_>) -> Result<CertificateParams, Error> {
    let mut params = base_params(request.name(), period, random);
    params.distinguished_name = subject(request.name(), Some(request.role().name()));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.custom_extensions = vec![names_extension(request.names())?];
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

/// The encoder's own otherName knows text values only, so the extension is encoded by `identity`, which also reads it.
pub(crate) fn names_extension(names: &Names) -> Result<CustomExtension, Error> {
    let value = names.to_extension_value()?;
    Ok(CustomExtension::from_oid_content(SUBJECT_ALT_NAME, value))
}

/// The public half of the second key, for the authority to vouch for.
fn second_key_extension(block: &[u8]) -> Result<CustomExtension, Error> {
    let value = SigningKey::from_paper_block(block)?.paper_spki().ok_or(KeyError::Refused)?;
    Ok(CustomExtension::from_oid_content(SECOND_KEY_EXTENSION, value))
}

/// What marks the authority of a site that is not for real use.
fn site_unit(profile: Profile) -> Option<&'static str> {
    (profile == Profile::Paper).then_some(PAPER_SITE_UNIT)
}

/// The subject of a certificate that is made from another one: its name, and its serial number.
pub(crate) fn derived_subject(template: &HostCertificate) -> Result<DistinguishedName, Error> {
    let serial = PrintableString::try_from(template.serial_hex())?;
    let mut subject = subject(template.name(), None);
    subject.push(DnType::CustomDnType(SERIAL_NUMBER_ATTRIBUTE.to_vec()), DnValue::PrintableString(serial));
    Ok(subject)
}

fn permitted(subnet: Subnet) -> GeneralSubtree {
    GeneralSubtree::IpAddress(CidrSubnet::from_v4_prefix(subnet.network().octets(), subnet.prefix_len()))
}

pub(crate) fn subject(name: &str, unit: Option<&str>) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    if let Some(unit) = unit {
        subject.push(DnType::OrganizationalUnitName, unit);
    }
    subject.push(DnType::CommonName, name);
    subject
}
