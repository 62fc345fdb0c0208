//! A machine that enrols by token: the keys that it makes, which have to outlive a restart while the manager decides, and what
//! it does with the identity that comes back.
//!
//! It believes the authority whose fingerprint the token holds, and nobody else.

use std::net::Ipv4Addr;

use identity::certificate::CertificateRequest;
use identity::pem::{self, PemError};
use identity::token::{SEALING_INFO, Token, fingerprint};
use identity::{HostIdentity, Refusal, sealing};
use wire::MacAddress;
use zeroize::Zeroizing;

use crate::site::join;
use crate::{Error, Random, Request, enrolment, random_bytes};

/// Bytes of the block that keeps the number of the token and the private key that the identity is sealed to.
const KEPT_LEN: usize = 8 + sealing::KEY_LEN;

/// What a machine applies with.
pub struct Applying {
    token: u64,
    sealing_private: Zeroizing<[u8; sealing::KEY_LEN]>,
    sealing_key: [u8; sealing::KEY_LEN],
    key_pem: Zeroizing<String>,
    request: Vec<u8>,
    proved: CertificateRequest,
}

impl Applying {
    /// Makes the keys of the machine whose interface is `mac`, and its request: for the token's name, and for `addresses` if the
    /// token does not say which.
    ///
    /// # Errors
    /// [`Error::BadName`] or [`Error::BadNames`].
    pub fn begin(
        token: &Token,
        mac: MacAddress,
        addresses: &[Ipv4Addr],
        random: &mut Random<'_>,
    ) -> Result<Applying, Error> {
        let made = enrolment::request(&Request::new(token.name(), mac, addresses.to_vec())?, random)?;
        let request = pem::single(&made.request_pem, pem::CERTIFICATE_REQUEST)?.to_vec();
        Self::of(token.number(), random_bytes(random), made.key_pem, request)
    }

    fn of(
        token: u64,
        sealing_private: Zeroizing<[u8; sealing::KEY_LEN]>,
        key_pem: Zeroizing<String>,
        request: Vec<u8>,
    ) -> Result<Applying, Error> {
        let sealing_key = sealing::public_half(*sealing_private)?;
        let proved = CertificateRequest::from_der(&request)?;
        Ok(Applying { token, sealing_private, sealing_key, key_pem, request, proved })
    }

    /// All of it as PEM, which is secret.
    #[must_use]
    pub fn to_pem(&self) -> Zeroizing<String> {
        let mut kept = Zeroizing::new([0; KEPT_LEN]);
        kept[..8].copy_from_slice(&self.token.to_be_bytes());
        kept[8..].copy_from_slice(&*self.sealing_private);
        let mut text = pem::encode(pem::SEALING_KEY, &*kept);
        text.push_str(&self.key_pem);
        text.push_str(&pem::encode(pem::CERTIFICATE_REQUEST, &self.request));
        text
    }

    /// Reads what [`to_pem`](Applying::to_pem) wrote.
    ///
    /// # Errors
    /// [`Error::Pem`] or [`Error::Request`], whatever is not as it was written.
    pub fn from_pem(text: &str) -> Result<Applying, Error> {
        let blocks = pem::blocks(text)?;
        let [kept, key, request] = blocks.as_slice() else { return Err(PemError::Malformed.into()) };
        let labels = [&kept.label[..], &key.label, &request.label];
        let kept: Option<&[u8; KEPT_LEN]> = kept.bytes.as_slice().try_into().ok();
        let Some((number, private)) = kept.and_then(|kept| kept.split_first_chunk::<8>()) else {
            return Err(PemError::Malformed.into());
        };
        if labels != [pem::SEALING_KEY, pem::PRIVATE_KEY, pem::CERTIFICATE_REQUEST] {
            return Err(PemError::Malformed.into());
        }
        let private = Zeroizing::new(private.try_into().map_err(|_| PemError::Malformed)?);
        let key_pem = pem::encode(pem::PRIVATE_KEY, &key.bytes);
        Self::of(u64::from_be_bytes(*number), private, key_pem, request.bytes.to_vec())
    }

    /// Whether it was begun with `token`, for the interface `mac`.
    #[must_use]
    pub fn is_for(&self, token: &Token, mac: MacAddress) -> bool {
        self.token == token.number() && self.proved.name() == token.name() && self.proved.mac() == mac
    }

    /// What its owner and the manager compare.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        fingerprint(self.proved.public_key(), &self.sealing_key)
    }

    /// The key that the identity is to be sealed to.
    #[must_use]
    pub fn sealing_key(&self) -> [u8; sealing::KEY_LEN] {
        self.sealing_key
    }

    /// The request for a certificate (PKCS#10) in DER.
    #[must_use]
    pub fn request(&self) -> &[u8] {
        &self.request
    }

    /// Opens what came back and puts it together with the key. No clock is needed; `unix_s` is zero where there is none that
    /// can be believed.
    ///
    /// # Errors
    /// [`Error::NotSealed`], [`Error::OtherAuthority`], [`Error::OtherHost`], [`Error::Expired`], or [`Error::Identity`].
    pub fn install(
        &self,
        token: &Token,
        sealed: &[u8],
        unix_s: u64,
    ) -> Result<(Zeroizing<String>, HostIdentity), Error> {
        let associated = associated(self.token, &self.request);
        let opened = sealing::open(&self.sealing_private, SEALING_INFO, &associated, sealed);
        let bundle = opened.map_err(|_| Error::NotSealed)?;
        let bundle = std::str::from_utf8(&bundle).map_err(|_| Error::NotSealed)?;
        let (text, identity) = join(&self.key_pem, bundle)?;
        if !token.is_of(identity.anchor().der()) {
            return Err(Error::OtherAuthority);
        }
        let certificate = identity.certificate();
        if certificate.name() != token.name() || certificate.mac() != self.proved.mac() {
            return Err(Error::OtherHost);
        }
        match identity.check_validity(unix_s) {
            Err(refusal @ Refusal::Expired { .. }) => Err(Error::Expired(refusal)),
            _ => Ok((text, identity)),
        }
    }
}

/// What is authenticated with a sealed identity: for which token and for which request.
pub(crate) fn associated(token: u64, request: &[u8]) -> Vec<u8> {
    [&token.to_be_bytes()[..], request].concat()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use identity::distributor::RequestMaster;
    use identity::token::Place;

    use super::*;
    use crate::{Bundle, Site};

    const NOW_UNIX_S: u64 = 1_800_000_000;
    const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 7]);

    fn counting(mut next: u8) -> impl FnMut(&mut [u8]) {
        move |bytes| {
            bytes.fill(next);
            next = next.wrapping_add(1);
        }
    }

    fn site(seed: u8) -> Site {
        Site::create("lab", &mut counting(seed), NOW_UNIX_S).expect("site")
    }

    fn token(site: &Site) -> Token {
        let master = RequestMaster::from_bytes([9; 32]);
        let place = Place { ip: [10, 0, 0, 9].into(), mac: MacAddress([2, 0, 0, 0, 0, 9]) };
        Token::new(&master, 5, site.anchor().der(), "desk", &[place])
    }

    fn applying(token: &Token) -> Applying {
        Applying::begin(token, MAC, &[[10, 0, 0, 7].into()], &mut counting(100)).expect("begun")
    }

    fn issued(site: &Site, applying: &Applying, name: &str) -> Bundle {
        let request = Request::new(name, MAC, vec![]).and_then(|one| one.with_validity(Duration::from_secs(60)));
        site.issue(&request.expect("request"), &applying.proved, &mut counting(50), NOW_UNIX_S).expect("issued")
    }

    fn sealed(applying: &Applying, bundle: &Bundle) -> Vec<u8> {
        let associated = associated(applying.token, &applying.request);
        sealing::seal(&applying.sealing_key, SEALING_INFO, &associated, bundle.to_pem().as_bytes()).expect("sealed")
    }

    #[test]
    fn what_was_sealed_for_it_is_installed_whatever_the_clock_shows() {
        let site = site(1);
        let token = token(&site);
        let begun = applying(&token);
        // The machine restarts meanwhile.
        let applying = Applying::from_pem(&begun.to_pem()).expect("own text");
        assert!(applying.is_for(&token, MAC) && !applying.is_for(&token, MacAddress([2, 0, 0, 0, 0, 8])));
        assert_eq!((applying.request(), applying.fingerprint()), (begun.request(), begun.fingerprint()));
        let sealed = sealed(&applying, &issued(&site, &applying, "desk"));
        for unix_s in [0, NOW_UNIX_S] {
            let (_, identity) = applying.install(&token, &sealed, unix_s).expect("installed");
            assert_eq!((identity.certificate().name(), identity.certificate().mac()), ("desk", MAC));
        }
        let late = applying.install(&token, &sealed, NOW_UNIX_S + 100).expect_err("over");
        assert!(matches!(late, Error::Expired(_)), "{late}");
    }

    /// Left `is_of` out: the other authority's certificate was installed.
    #[test]
    fn another_authority_and_another_hosts_identity_are_refused() {
        let (site, other) = (site(1), site(2));
        let token = token(&site);
        let applying = applying(&token);
        let refused = |bundle: &Bundle| applying.install(&token, &sealed(&applying, bundle), 0).expect_err("refused");
        assert!(matches!(refused(&issued(&other, &applying, "desk")), Error::OtherAuthority));
        assert!(matches!(refused(&issued(&site, &applying, "door")), Error::OtherHost));
        let stranger = Applying::begin(&token, MAC, &[], &mut counting(150)).expect("begun");
        assert!(matches!(refused(&issued(&site, &stranger, "desk")), Error::Identity(_)));
        let for_stranger = sealed(&stranger, &issued(&site, &applying, "desk"));
        assert!(matches!(applying.install(&token, &for_stranger, 0).expect_err("refused"), Error::NotSealed));
    }

    #[test]
    fn a_damaged_file_is_refused() {
        let begun = applying(&token(&site(1)));
        let text = begun.to_pem();
        assert!(Applying::from_pem(&text[..text.len() / 2]).is_err());
        assert!(Applying::from_pem(&begun.key_pem).is_err());
        assert!(Applying::from_pem(&text.replace("SEALING", "SITE")).is_err());
    }
}
