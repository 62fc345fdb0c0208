//! Operators and their orders: who is one, and what is his.
#![allow(clippy::expect_used, reason = "helpers of tests fail like tests")]

#[allow(dead_code, reason = "other tests need all of it")]
mod support;

use identity::certificate::OperatorRole;
use identity::order::{BadOperatorFile, NotOrdered, ORDER_LEN_MAX, Operator, SignedOrder, open_answer, seal_answer};
use identity::{Refusal, pem, sealing};
use rcgen::{DnType, ExtendedKeyUsagePurpose};
use support::{Authority, DAY_S, Host, ISSUED_UNIX_S, as_operator, common_name};

const NOW: u64 = ISSUED_UNIX_S + DAY_S;

fn file(site: &Authority, holder: &Host, key: &Host) -> String {
    let parts = [
        pem::encode(pem::CERTIFICATE, &holder.der),
        pem::encode(pem::CERTIFICATE, &site.der),
        pem::encode(pem::PRIVATE_KEY, key.key.serialized_der()),
    ];
    parts.iter().map(|part| part.as_str()).collect()
}

#[test]
fn no_operator_is_a_host_and_no_host_is_an_operator() {
    let site = Authority::new("lab");
    let (host, operator) = (site.issue(|_| {}), site.issue(as_operator));
    let anchor = site.anchor();
    assert_eq!(anchor.verify(&operator.der, NOW).map(drop), Err(Refusal::WrongUsage));
    assert_eq!(anchor.verify_operator(&host.der, NOW).map(drop), Err(Refusal::WrongUsage));
    // Device certificates of other programs have this purpose; hosts are let in with it.
    let device = site.issue(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]);
    assert_eq!(anchor.verify_operator(&device.der, NOW).map(drop), Err(Refusal::WrongUsage));
    // Were the purpose ignored, there is no hardware address.
    let nowhere = site.issue(|params| params.custom_extensions.clear());
    assert_eq!(anchor.verify(&nowhere.der, NOW).map(drop), Err(Refusal::NoMac));
    let known = anchor.verify_operator(&operator.der, NOW).expect("one");
    assert_eq!((known.name(), known.role()), ("a", OperatorRole::Manager));
}

#[test]
fn who_has_no_role_or_another_site_or_is_over_is_no_operator() {
    let site = Authority::new("lab");
    let refusal = |der: &[u8], at: u64| site.anchor().verify_operator(der, at).map(drop).expect_err("refused");
    for unit in ["root", "Manager", "host", ""] {
        let other = site.issue(|params| {
            as_operator(params);
            params.distinguished_name = common_name("a");
            params.distinguished_name.push(DnType::OrganizationalUnitName, unit);
        });
        assert_eq!(refusal(&other.der, NOW), Refusal::Malformed("role"), "{unit}");
    }
    let operator = site.issue(as_operator);
    assert!(matches!(refusal(&operator.der, ISSUED_UNIX_S + 31 * DAY_S), Refusal::Expired { .. }));
    assert!(matches!(refusal(&operator.der, ISSUED_UNIX_S - 1), Refusal::NotYetValid { .. }));
    assert_eq!(refusal(&Authority::new("lab").issue(as_operator).der, NOW), Refusal::BadSignature);
    assert_eq!(refusal(&Authority::new("other").issue(as_operator).der, NOW), Refusal::ForeignIssuer);
    assert_eq!(refusal(&[], NOW), Refusal::Malformed("structure"));
    let words = OperatorRole::ALL.map(|role| OperatorRole::from_name(role.name()));
    assert_eq!(words, OperatorRole::ALL.map(Some));
}

#[test]
fn an_order_is_its_operators_alone() {
    let site = Authority::new("lab");
    let (one, other) = (site.issue(as_operator), site.issue(as_operator));
    let operator = Operator::from_pem(&file(&site, &one, &one)).expect("his file");
    let (order, anchor) = (b"{\"words\":[]}", site.anchor());
    let signature = operator.sign(order).expect("signed");
    let check = |certificate: &[u8], order: &[u8], signature: &[u8], at: u64| {
        let [certificate, order, signature] = [certificate, order, signature].map(<[u8]>::to_vec);
        let travelled = SignedOrder { certificate, order, signature }.to_pem();
        let signed = SignedOrder::from_pem(&travelled).expect("as it was written");
        anchor.verify_order(&signed, at).map(|who| who.name().to_owned())
    };
    let signature = signature.signature;
    assert_eq!(check(&one.der, order, &signature, NOW), Ok("a".to_owned()));
    assert_eq!(check(&other.der, order, &signature, NOW), Err(NotOrdered::Signature), "under another's certificate");
    assert_eq!(check(&one.der, b"{\"words\":[1]}", &signature, NOW), Err(NotOrdered::Signature));
    let late = check(&one.der, order, &signature, NOW + 30 * DAY_S);
    assert!(matches!(late, Err(NotOrdered::Certificate(Refusal::Expired { .. }))), "{late:?}");
    // His signature under the order alone, as it would be under something else.
    let bare = identity::signing::SigningKey::from_pkcs8_der(one.key.serialized_der()).expect("a key");
    assert_eq!(check(&one.der, order, &bare.sign(order).expect("signed"), NOW), Err(NotOrdered::Signature));
    let long = vec![b' '; ORDER_LEN_MAX + 1];
    let signature = operator.sign(&long).expect("signed").signature;
    assert_eq!(check(&one.der, &long, &signature, NOW), Err(NotOrdered::Signature));
}

#[test]
fn an_answer_is_for_one_order_and_one_key() {
    let private = [7; sealing::KEY_LEN];
    let receiver = sealing::public_half(private).expect("a key");
    let sealed = seal_answer(&receiver, b"order", b"secret").expect("sealed");
    assert!(!sealed.windows(6).any(|window| window == b"secret"));
    assert_eq!(open_answer(&private, b"order", &sealed).expect("his").as_slice(), b"secret");
    assert!(open_answer(&private, b"other", &sealed).is_err() && open_answer(&[8; 32], b"order", &sealed).is_err());
}

#[test]
fn a_file_of_an_operator_has_what_belongs_there() {
    let site = Authority::new("lab");
    let (one, other, host) = (site.issue(as_operator), site.issue(as_operator), site.issue(|_| {}));
    let refusal = |text: &str| Operator::from_pem(text).map(drop).expect_err("refused");
    assert_eq!(refusal(&file(&site, &one, &other)), BadOperatorFile::OtherKey);
    assert_eq!(refusal(&file(&site, &host, &host)), BadOperatorFile::Certificate(Refusal::WrongUsage));
    assert!(matches!(refusal(&pem::encode(pem::CERTIFICATE, &one.der)), BadOperatorFile::Pem(_)));
}
