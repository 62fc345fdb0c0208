//! Every reason for which a certificate or an identity file is refused, and what holds of those that are not.
#![allow(clippy::expect_used, reason = "helpers of tests fail like tests")]

#[allow(dead_code, reason = "other tests need all of it")]
mod support;

use std::net::Ipv4Addr;

use identity::certificate::{CertificateRequest, Role};
use identity::distributor::{DistributorKey, RequestMaster};
use identity::host::IdentityBlock;
use identity::pem::{self, PemError};
use identity::{HostIdentity, IdentityError, KeyError, Refusal, TrustAnchor};
use proptest::prelude::*;
use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, CustomExtension, DnType, ExtendedKeyUsagePurpose, GeneralSubtree,
    IsCa, KeyPair, KeyUsagePurpose, NameConstraints, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384,
};
use support::{Authority, DAY_S, Host, ISSUED_UNIX_S, common_name, names_extension, new_key, san};
use wire::MacAddress;

const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

/// Why the authority's own anchor refuses a host issued after `change`.
fn refusal(change: impl FnOnce(&mut CertificateParams)) -> Refusal {
    let authority = Authority::new("lab");
    let host = authority.issue(change);
    refusal_of(&authority, &host.der, ISSUED_UNIX_S)
}

fn refusal_of(authority: &Authority, der: &[u8], unix_s: u64) -> Refusal {
    authority.anchor().verify(der, unix_s).map(|_| ()).expect_err("refused")
}

#[test]
fn a_host_reads_back_as_issued() {
    let authority = Authority::new("lab");
    let host = authority.issue(|params| {
        params.custom_extensions = vec![names_extension("020000000001", &["10.0.0.1", "10.0.0.9"])];
        params.serial_number = Some(vec![0x41, 0x0b].into());
    });
    let verified = authority.anchor().verify(&host.der, ISSUED_UNIX_S + 5).expect("valid");
    assert_eq!((verified.name(), verified.mac(), verified.role()), ("a", MAC, Role::Host));
    assert_eq!(verified.addresses(), [ADDRESS, Ipv4Addr::new(10, 0, 0, 9)]);
    assert_eq!(verified.not_before_unix(), ISSUED_UNIX_S);
    assert_eq!(verified.not_after_unix(), ISSUED_UNIX_S + 30 * DAY_S);
    assert_eq!((verified.der(), verified.serial_hex().as_str()), (host.der.as_slice(), "410b"));
    assert_eq!(authority.anchor().site_name(), "lab");
}

#[test]
fn only_the_pair_of_its_own_addresses_is_bound() {
    let authority = Authority::new("lab");
    let host = authority.anchor().verify(&authority.issue(|_| {}).der, ISSUED_UNIX_S).expect("valid");
    assert!(host.binds(MAC, ADDRESS));
    assert!(!host.binds(MAC, Ipv4Addr::new(10, 0, 0, 2)));
    assert!(!host.binds(MacAddress([2, 0, 0, 0, 0, 2]), ADDRESS));
}

#[test]
fn a_base_certificate_binds_a_hardware_address_only() {
    let authority = Authority::new("lab");
    let host = authority.issue(|params| params.custom_extensions = vec![names_extension("020000000001", &[])]);
    let verified = authority.anchor().verify(&host.der, ISSUED_UNIX_S).expect("valid");
    assert_eq!((verified.mac(), verified.addresses()), (MAC, [].as_slice()));
}

#[test]
fn the_router_says_so_in_its_subject() {
    let authority = Authority::new("lab");
    for (unit, is_router) in [("router", true), ("host", false), ("Router", false), ("sales", false)] {
        let host = authority.issue(|params| params.distinguished_name.push(DnType::OrganizationalUnitName, unit));
        let verified = authority.anchor().verify(&host.der, ISSUED_UNIX_S).expect("valid");
        assert_eq!(verified.is_router(), is_router, "{unit}");
    }
}

#[test]
fn both_ends_of_the_period_belong_to_it() {
    let authority = Authority::new("lab");
    let host = authority.issue(|_| {});
    let last = ISSUED_UNIX_S + 30 * DAY_S;
    assert!(authority.anchor().verify(&host.der, ISSUED_UNIX_S).is_ok());
    assert!(authority.anchor().verify(&host.der, last).is_ok());
    assert_eq!(refusal_of(&authority, &host.der, last + 1), Refusal::Expired { not_after_unix: last });
    let early = Refusal::NotYetValid { not_before_unix: ISSUED_UNIX_S };
    assert_eq!(refusal_of(&authority, &host.der, ISSUED_UNIX_S - 1), early);
    assert_eq!(refusal_of(&authority, &host.der, 0), early);
    assert_eq!(Refusal::Expired { not_after_unix: last }.to_string(), "it expired at 2027-02-14T08:00:00Z");
}

#[test]
fn who_only_knows_that_a_second_has_passed_refuses_what_ended_before_it_and_nothing_that_begins_after() {
    let authority = Authority::new("lab");
    let host = authority.issue(|_| {});
    let last = ISSUED_UNIX_S + 30 * DAY_S;
    for passed in [0, ISSUED_UNIX_S - 1, ISSUED_UNIX_S, last] {
        assert!(authority.anchor().verify_since(&host.der, passed).is_ok(), "{passed}");
    }
    let over = authority.anchor().verify_since(&host.der, last + 1);
    assert_eq!(over.err(), Some(Refusal::Expired { not_after_unix: last }));
    let foreign = Authority::new("lab").anchor().verify_since(&host.der, 0);
    assert_eq!(foreign.err(), Some(Refusal::BadSignature));
}

#[test]
fn a_foreign_site_is_named_even_when_its_certificate_has_expired() {
    let host = Authority::new("office").issue(|_| {});
    for unix_s in [ISSUED_UNIX_S, ISSUED_UNIX_S + 100 * DAY_S] {
        assert_eq!(refusal_of(&Authority::new("lab"), &host.der, unix_s), Refusal::ForeignIssuer);
    }
}

#[test]
fn another_site_of_the_same_name_is_not_this_site() {
    let host = Authority::new("lab").issue(|_| {});
    assert_eq!(refusal_of(&Authority::new("lab"), &host.der, ISSUED_UNIX_S), Refusal::BadSignature);
}

#[test]
fn every_single_flipped_bit_is_refused() {
    let authority = Authority::new("lab");
    let (anchor, host) = (authority.anchor(), authority.issue(|_| {}));
    for bit in 0..8 * host.der.len() {
        let mut flipped = host.der.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(anchor.verify(&flipped, ISSUED_UNIX_S).is_err(), "bit {bit}");
    }
}

#[test]
fn authorities_and_their_self_signed_certificates_are_no_hosts() {
    let authority = Authority::new("lab");
    assert_eq!(refusal_of(&authority, &authority.der, ISSUED_UNIX_S), Refusal::NotAHost);
    assert_eq!(refusal(|params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained)), Refusal::NotAHost);
}

#[test]
fn certificates_for_other_uses_are_refused() {
    assert_eq!(refusal(|params| params.key_usages = vec![KeyUsagePurpose::KeyEncipherment]), Refusal::WrongUsage);
    let server = vec![ExtendedKeyUsagePurpose::ServerAuth];
    assert_eq!(refusal(|params| params.extended_key_usages = server), Refusal::WrongUsage);

    let authority = Authority::new("lab");
    for purposes in [vec![], vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth]] {
        let host = authority.issue(|params| params.extended_key_usages = purposes);
        assert!(authority.anchor().verify(&host.der, ISSUED_UNIX_S).is_ok());
    }
}

#[test]
fn keys_of_other_kinds_are_refused() {
    let authority = Authority::new("lab");
    let key = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).expect("key");
    let host = authority.issue_for(key, |_| {});
    assert_eq!(refusal_of(&authority, &host.der, ISSUED_UNIX_S), Refusal::UnsupportedAlgorithm);
}

#[test]
fn name_constraints_of_the_authority_hold() {
    let authority = Authority::with("lab", |params| {
        let elsewhere = GeneralSubtree::IpAddress(CidrSubnet::from_v4_prefix([192, 0, 2, 0], 24));
        params.name_constraints =
            Some(NameConstraints { permitted_subtrees: vec![elsewhere], excluded_subtrees: vec![] });
    });
    let host = authority.issue(|_| {});
    assert_eq!(refusal_of(&authority, &host.der, ISSUED_UNIX_S), Refusal::NotPermitted);
    let inside = names_extension("020000000001", &["192.0.2.7"]);
    let host = authority.issue(|params| params.custom_extensions = vec![inside]);
    assert!(authority.anchor().verify(&host.der, ISSUED_UNIX_S).is_ok());
}

/// GeneralNames written by hand: an otherName of id-on-MACAddress around `value`, `times` times.
fn mac_names(value: &[u8], times: usize) -> CustomExtension {
    let length = |bytes: usize| u8::try_from(bytes).expect("short");
    let mut name = vec![0xa0, length(12 + value.len()), 0x06, 8, 0x2b, 6, 1, 5, 5, 7, 8, 12, 0xa0, length(value.len())];
    name.extend_from_slice(value);
    let names = name.repeat(times);
    san([&[0x30, length(names.len())], names.as_slice()].concat())
}

#[test]
fn the_hardware_address_is_there_once_and_makes_sense() {
    let with = |extension: CustomExtension| refusal(|params| params.custom_extensions = vec![extension]);
    assert_eq!(refusal(|params| params.custom_extensions.clear()), Refusal::NoMac);
    assert_eq!(with(san(vec![0x30, 6, 0x87, 4, 10, 0, 0, 1])), Refusal::NoMac);

    let address = Refusal::Malformed("hardware address");
    assert_eq!(with(mac_names(&[4, 6, 2, 0, 0, 0, 0, 1], 2)), Refusal::Malformed("second hardware address"));
    assert_eq!(with(mac_names(&[4, 5, 2, 0, 0, 0, 0], 1)), address);
    assert_eq!(with(mac_names(&[4, 8, 2, 0, 0, 0, 0, 0, 0, 1], 1)), address, "EUI-64");
    assert_eq!(with(mac_names(&[12, 6, 2, 0, 0, 0, 0, 1], 1)), address, "a text instead of octets");
    assert_eq!(with(mac_names(&[4, 6, 3, 0, 0, 0, 0, 1], 1)), address, "a group");
    assert_eq!(with(mac_names(&[4, 6, 0, 0, 0, 0, 0, 0], 1)), address, "nobody");
}

#[test]
fn ip_addresses_make_sense() {
    let with = |name: &[u8]| {
        let mut names = vec![0xa0, 20, 0x06, 8, 0x2b, 6, 1, 5, 5, 7, 8, 12, 0xa0, 8, 4, 6, 2, 0, 0, 0, 0, 1];
        names.extend_from_slice(name);
        let length = u8::try_from(names.len()).expect("short");
        san([&[0x30, length], names.as_slice()].concat())
    };
    let refused = |name: &[u8]| refusal(|params| params.custom_extensions = vec![with(name)]);
    assert_eq!(refused(&[0x87, 5, 10, 0, 0, 1, 0]), Refusal::Malformed("IP address"));
    for octets in [[0, 0, 0, 0], [224, 0, 0, 1], [255, 255, 255, 255]] {
        assert_eq!(refused(&[&[0x87, 4], &octets[..]].concat()), Refusal::Malformed("list of IP addresses"));
    }
    let twice = [0x87, 4, 10, 0, 0, 1].repeat(2);
    assert_eq!(refused(&twice), Refusal::Malformed("list of IP addresses"));

    let authority = Authority::new("lab");
    let ipv6 = [&[0x87, 16], [0xfe; 16].as_slice()].concat();
    let host = authority.issue(|params| params.custom_extensions = vec![with(&ipv6)]);
    let host = authority.anchor().verify(&host.der, ISSUED_UNIX_S).expect("valid");
    assert_eq!(host.addresses(), [Ipv4Addr::BROADCAST; 0]);
    assert_eq!(host.ipv6_addresses(), [std::net::Ipv6Addr::from([0xfe; 16])]);
    let loopback = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    for octets in [[0; 16], [0xff; 16], loopback] {
        assert_eq!(refused(&[&[0x87, 16], &octets[..]].concat()), Refusal::Malformed("list of IP addresses"));
    }
    assert_eq!(refused(&ipv6.repeat(2)), Refusal::Malformed("list of IP addresses"));
}

#[test]
fn names_fit_into_a_log_line() {
    let name = Refusal::Malformed("common name");
    assert_eq!(refusal(|params| params.distinguished_name = common_name("two\nlines")), name);
    assert_eq!(refusal(|params| params.distinguished_name = common_name(&"a".repeat(65))), name);
    assert_eq!(refusal(|params| params.distinguished_name = common_name("")), name);
}

#[test]
fn what_is_critical_and_unknown_is_refused() {
    let mut unknown = CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 99999, 1], vec![5, 0]);
    unknown.set_criticality(true);
    assert_eq!(refusal(|params| params.custom_extensions.push(unknown)), Refusal::Malformed("critical extension"));
}

#[test]
fn nothing_long_is_looked_at() {
    let authority = Authority::new("lab");
    assert_eq!(refusal_of(&authority, &[0x30; 4097], ISSUED_UNIX_S), Refusal::Malformed("length"));
    assert_eq!(refusal_of(&authority, b"", ISSUED_UNIX_S), Refusal::Malformed("structure"));
}

#[test]
fn a_trust_anchor_may_sign_certificates() {
    let refused = |der: &[u8]| TrustAnchor::from_der(der).map(|_| ()).expect_err("refused");
    assert_eq!(refused(&Authority::new("lab").issue(|_| {}).der), Refusal::WrongUsage);
    let signs_lists_only = Authority::with("lab", |params| params.key_usages = vec![KeyUsagePurpose::CrlSign]);
    assert_eq!(refused(&signs_lists_only.der), Refusal::WrongUsage);
    assert!(matches!(refused(b"junk"), Refusal::Malformed(_)));
}

#[test]
fn signatures_verify_by_the_certificate_of_their_maker() {
    let authority = Authority::new("lab");
    for key in [new_key(), KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("key")] {
        let host = authority.issue_for(key, |_| {});
        let identity = HostIdentity::from_pem(&authority.identity_pem(&host)).expect("identity");
        let signature = identity.sign(b"message").expect("signature");
        let certificate = identity.certificate();
        assert_eq!(signature.len(), 64);
        assert!(certificate.verify_signature(b"message", &signature).is_ok());
        assert!(certificate.verify_signature(b"massage", &signature).is_err());
        assert!(certificate.verify_signature(b"message", &signature[1..]).is_err());
        assert!(certificate.verify_signature(b"message", &[]).is_err());
    }
}

#[test]
fn an_identity_loads_in_any_order_and_whatever_the_time() {
    let authority = Authority::new("lab");
    let text = authority.identity_pem(&authority.issue(|_| {}));
    let reversed: String = pem::blocks(&text)
        .expect("own text")
        .iter()
        .rev()
        .map(|block| {
            let label =
                [pem::CERTIFICATE, pem::PRIVATE_KEY, pem::SITE_KEY].into_iter().find(|&label| label == block.label);
            pem::encode(label.expect("a known label"), &block.bytes).to_string()
        })
        .collect();
    for text in [text, reversed] {
        let identity = HostIdentity::from_pem(&text).expect("identity");
        assert_eq!((identity.certificate().name(), identity.site_name().as_str()), ("a", "lab"));
        assert_eq!(identity.check_validity(ISSUED_UNIX_S), Ok(()));
        assert_eq!(identity.check_validity(0), Err(Refusal::NotYetValid { not_before_unix: ISSUED_UNIX_S }));
        let last = ISSUED_UNIX_S + 30 * DAY_S;
        assert_eq!(identity.check_validity(last + 1), Err(Refusal::Expired { not_after_unix: last }));
    }
}

/// Why an identity is refused whose four parts are these.
fn identity_error(host: &[u8], authority: &[u8], key: &[u8], site_key: &[u8]) -> IdentityError {
    let parts = [
        pem::encode(pem::CERTIFICATE, host),
        pem::encode(pem::CERTIFICATE, authority),
        pem::encode(pem::PRIVATE_KEY, key),
        pem::encode(pem::SITE_KEY, site_key),
    ];
    let text: String = parts.iter().map(|part| part.as_str()).collect();
    HostIdentity::from_pem(&text).map(|_| ()).expect_err("refused")
}

#[test]
fn parts_that_do_not_fit_are_named() {
    let (lab, office) = (Authority::new("lab"), Authority::new("office"));
    let Host { der, key } = lab.issue(|_| {});
    let key = key.serialized_der();
    let other = new_key();
    use IdentityBlock as Block;
    use IdentityError as Error;

    assert_eq!(identity_error(&der, &lab.der, other.serialized_der(), &[9; 32]), Error::KeyMismatch);
    let foreign = Error::Certificate(Block::Host, Refusal::ForeignIssuer);
    assert_eq!(identity_error(&der, &office.der, key, &[9; 32]), foreign);
    let nameless = lab.issue(|params| params.custom_extensions.clear());
    let no_mac = Error::Certificate(Block::Host, Refusal::NoMac);
    assert_eq!(identity_error(&nameless.der, &lab.der, nameless.key.serialized_der(), &[9; 32]), no_mac);
    let not_a_key = Error::Key(Block::PrivateKey, KeyError::Unsupported);
    assert_eq!(identity_error(&der, &lab.der, b"junk", &[9; 32]), not_a_key);
    let short = Error::Key(Block::SiteKey, KeyError::Length { expected: 32, found: 31 });
    assert_eq!(identity_error(&der, &lab.der, key, &[9; 31]), short);
    assert_eq!(identity_error(&der, &der, key, &[9; 32]), Error::Repeated(Block::Host));
    assert_eq!(identity_error(&lab.der, &lab.der, key, &[9; 32]), Error::Repeated(Block::Authority));
}

fn with_role(name: &'static str, role: &'static str) -> impl FnOnce(&mut CertificateParams) {
    move |params| {
        params.distinguished_name = common_name(name);
        params.distinguished_name.push(DnType::OrganizationalUnitName, role);
    }
}

#[test]
fn an_identity_names_the_distributors_and_what_the_host_proves_itself_with() {
    let lab = Authority::new("lab");
    let (host, akd, akd2) = (lab.issue(|_| {}), lab.issue(with_role("k", "akd")), lab.issue(with_role("l", "akd")));
    let master = RequestMaster::from_bytes([3; 32]);
    let certificate = |host: &Host| pem::encode(pem::CERTIFICATE, &host.der).to_string();
    let text = [&lab.identity_pem(&host), &certificate(&akd), &certificate(&akd2), &*master.key_of(7).to_pem()];
    let identity = HostIdentity::from_pem(&text.map(String::as_str).concat()).expect("valid");
    assert_eq!(identity.certificate().name(), "a");
    let names: Vec<_> = identity.distributors().iter().map(|distributor| distributor.name()).collect();
    assert_eq!(names, ["k", "l"]);
    assert!(identity.distributors().iter().all(|distributor| DistributorKey::of(distributor).is_some()));
    assert!(DistributorKey::of(identity.certificate()).is_none(), "no word of an ordinary host counts");
    let key = identity.request_key().expect("there");
    assert_eq!((key.host(), key.tag(b"x")), (7, master.key_of(7).tag(b"x")));
    assert!(identity.request_master().is_none());

    let own = [lab.identity_pem(&akd), master.to_pem().to_string()].concat();
    let own = HostIdentity::from_pem(&own).expect("valid");
    assert_eq!((own.certificate().name(), own.distributors().len()), ("k", 1));
    assert_eq!(own.request_master().expect("there").key_of(7).tag(b"x"), key.tag(b"x"));
}

#[test]
fn certificates_of_other_hosts_and_damaged_request_keys_are_refused() {
    let (lab, office) = (Authority::new("lab"), Authority::new("office"));
    let host = lab.issue(|_| {});
    let whole = lab.identity_pem(&host);
    let refusal = |more: &str| HostIdentity::from_pem(&[&whole, more].concat()).map(|_| ()).expect_err("refused");
    let second = pem::encode(pem::CERTIFICATE, &lab.issue(|_| {}).der);
    assert_eq!(refusal(&second), IdentityError::Repeated(IdentityBlock::Host));
    let foreign = pem::encode(pem::CERTIFICATE, &office.issue(with_role("k", "akd")).der);
    assert_eq!(refusal(&foreign), IdentityError::Certificate(IdentityBlock::Host, Refusal::ForeignIssuer));
    for (label, len, expected, block) in [
        (pem::REQUEST_KEY, 39, 40, IdentityBlock::RequestKey),
        (pem::REQUEST_KEY, 7, 40, IdentityBlock::RequestKey),
        (pem::REQUEST_MASTER, 33, 32, IdentityBlock::RequestMaster),
        (pem::DHCP_KEY, 45, 46, IdentityBlock::DhcpKey),
        (pem::DHCP_KEY, 13, 46, IdentityBlock::DhcpKey),
        (pem::DHCP_MASTER, 31, 32, IdentityBlock::DhcpMaster),
    ] {
        let short = pem::encode(label, &vec![1; len]);
        assert_eq!(refusal(&short), IdentityError::Key(block, KeyError::Length { expected, found: len }));
    }
    let many: String =
        (0..9).map(|_| pem::encode(pem::CERTIFICATE, &lab.issue(with_role("k", "akd")).der).to_string()).collect();
    assert_eq!(refusal(&many), IdentityError::Repeated(IdentityBlock::Distributor));
}

#[test]
fn missing_and_foreign_blocks_are_named() {
    let authority = Authority::new("lab");
    let host = authority.issue(|_| {});
    let text = authority.identity_pem(&host);
    let refused = |text: &str| HostIdentity::from_pem(text).map(|_| ()).expect_err("refused");
    let without = |label: &str| {
        let (begin, end) = (format!("-----BEGIN {label}-----"), format!("-----END {label}-----\n"));
        let from = text.find(&begin).expect("there");
        let until = from + text[from..].find(&end).expect("there") + end.len();
        refused(&[&text[..from], &text[until..]].concat())
    };
    assert_eq!(without(pem::CERTIFICATE), IdentityError::Missing(IdentityBlock::Host));
    assert_eq!(without(pem::PRIVATE_KEY), IdentityError::Missing(IdentityBlock::PrivateKey));
    assert_eq!(without(pem::SITE_KEY), IdentityError::Missing(IdentityBlock::SiteKey));
    let host_only = pem::encode(pem::CERTIFICATE, &host.der);
    assert_eq!(refused(&host_only), IdentityError::Missing(IdentityBlock::Authority));
    assert_eq!(refused("not a PEM file"), IdentityError::Pem(PemError::Empty));
    let request = pem::encode(pem::CERTIFICATE_REQUEST, b"x");
    let foreign = IdentityError::Foreign(pem::CERTIFICATE_REQUEST.to_owned());
    assert_eq!(refused(&(text.clone() + &request)), foreign);
}

#[test]
fn every_refusal_is_one_line() {
    let mut lines = vec![IdentityError::KeyMismatch.to_string(), IdentityError::Foreign("X\nY".to_owned()).to_string()];
    for refusal in [
        Refusal::ForeignIssuer,
        Refusal::Expired { not_after_unix: u64::MAX },
        Refusal::NotYetValid { not_before_unix: 0 },
        Refusal::BadSignature,
        Refusal::NoMac,
    ] {
        lines.push(IdentityError::Certificate(IdentityBlock::Host, refusal).to_string());
    }
    for line in lines {
        assert!(!line.contains('\n') && line.contains(';'), "{line:?} has one line and a remedy");
    }
}

proptest! {
    /// What the network may send: damaged certificates and arbitrary bytes.
    #[test]
    fn damaged_certificates_are_refused_and_nothing_panics(
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
        time in any::<u64>(),
    ) {
        let authority = Authority::new("lab");
        let host = authority.issue(|_| {});
        let mut damaged = host.der.clone();
        for (at, value) in damage {
            *at.get_mut(&mut damaged) = value;
        }
        prop_assume!(damaged != host.der);
        prop_assert!(authority.anchor().verify(&damaged, ISSUED_UNIX_S).is_err());
        let _ = authority.anchor().verify(&host.der, time);
        let _ = authority.anchor().verify(&damaged[..cut.index(damaged.len())], ISSUED_UNIX_S);
        let _ = TrustAnchor::from_der(&damaged);
    }

    /// What a careless authority may sign: any names at all.
    #[test]
    fn any_signed_names_are_read_or_refused(content in proptest::collection::vec(any::<u8>(), 0..60)) {
        let authority = Authority::new("lab");
        let host = authority.issue(|params| params.custom_extensions = vec![san(content)]);
        let _ = authority.anchor().verify(&host.der, ISSUED_UNIX_S);
    }

    /// What an operator may do to a file.
    #[test]
    fn damaged_identity_files_do_not_panic(at in any::<prop::sample::Index>(), value in "[ -~\n]") {
        let authority = Authority::new("lab");
        let mut text = authority.identity_pem(&authority.issue(|_| {}));
        let at = at.index(text.len());
        text.replace_range(at..=at, &value);
        let _ = HostIdentity::from_pem(&text);
        let _ = CertificateRequest::from_pem(&text);
    }
}
