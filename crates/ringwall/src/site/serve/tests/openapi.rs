//! The description of the service (docs/site-service.openapi.json) says what the service does.

use std::collections::{BTreeMap, BTreeSet};

use authority::Directory;
use authority::directory::{Record, put_down_refused};
use authority::enrolment::by_service::Outcome;
use identity::tls::NotLetIn;
use serde_json::{Value, json};

use super::super::super::auditing::WITHIN;
use super::super::super::orders::NotHeard;
use super::super::super::testing::{new_site, run};
use super::super::http::{BadRequest, Place};
use super::super::refusal::{NotSigned, Refusal};
use super::super::{Kept, PORT};
use crate::report::tests::report;
use crate::report::{BREAKS_MAX, BadReport, Newest, NewestBrought, USES_MAX};

const DESCRIPTION: &str = include_str!("../../../../../../docs/site-service.openapi.json");
const MANUAL: &str = include_str!("../../../../../../docs/manual/site.md");

fn described() -> Value {
    serde_json::from_str(DESCRIPTION).expect("JSON")
}

/// Every refusal there is. The match has no rest: who adds one has to enter it here.
fn refusals() -> Vec<Refusal> {
    let mut all = vec![
        Refusal::Revoked,
        Refusal::TooOften,
        Refusal::TooMany,
        Refusal::Absent,
        Refusal::Silent,
        Refusal::NoSigner,
        Refusal::NoOperator,
        Refusal::NoHost,
        Refusal::NotNewer,
        Refusal::NotOfSite,
    ];
    all.extend(NotLetIn::ALL.map(Refusal::NotLetIn));
    all.extend(NotHeard::ALL.map(Refusal::NotHeard));
    use BadRequest::{Elsewhere, Malformed, Method, NoLength, TooLong};
    all.extend([Malformed, Elsewhere, Method, NoLength, TooLong].map(Refusal::Request));
    use BadReport::{Limits, Version};
    all.extend([BadReport::TooLong, BadReport::Malformed, Version, Limits].map(Refusal::Report));
    all.extend([Kept::Older, Kept::Full, Kept::Failed].map(Refusal::NotKept));
    use NotSigned::{Failed, NotRenewed, Request, Token};
    all.extend([Request, Token, NotRenewed, NotSigned::TooOften, Failed].map(Refusal::NotSigned));
    for one in &all {
        match one {
            Refusal::NotLetIn(_) | Refusal::Revoked | Refusal::Request(_) | Refusal::Report(_) => {}
            Refusal::NotKept(_) | Refusal::TooOften | Refusal::TooMany | Refusal::Absent | Refusal::Silent => {}
            Refusal::NoSigner | Refusal::NotSigned(_) | Refusal::NotHeard(_) => {}
            Refusal::NoOperator | Refusal::NoHost | Refusal::NotNewer | Refusal::NotOfSite => {}
        }
    }
    all
}

/// Whether who is refused so hears it: the others have not proved who they are, or are gone.
fn is_answered(refusal: Refusal) -> bool {
    !matches!(refusal, Refusal::TooMany)
        && (!matches!(refusal, Refusal::NotLetIn(_)) || refusal == Refusal::NotLetIn(NotLetIn::Nameless))
}

#[test]
fn every_place_is_described_with_its_method_and_the_longest_body() {
    let described = described();
    let paths = described["paths"].as_object().expect("paths");
    let named: BTreeSet<&str> = paths.keys().map(String::as_str).collect();
    assert_eq!(named, Place::ALL.iter().map(|place| place.target().1).collect());
    for place in Place::ALL {
        let (method, path) = place.target();
        let operations = paths[path].as_object().expect("operations");
        assert_eq!(operations.keys().collect::<Vec<_>>(), [&method.to_ascii_lowercase()], "{path}");
        let operation = &operations[&method.to_ascii_lowercase()];
        let body_max = operation["requestBody"]["x-bytes-max"].as_u64();
        assert_eq!(body_max, place.body_max().map(|most| most as u64), "{path}");
        // Who shows no certificate may apply and ask to be renewed, and nothing else.
        let is_open = matches!(place, Place::Enrolment | Place::Renewal);
        let security = operation["security"].as_array().expect("security");
        assert_eq!(security.contains(&json!({})), is_open, "{path}");
        assert!(security.contains(&json!({"certificate": []})), "{path}");
    }
    let server = described["servers"][0]["url"].as_str().expect("a server");
    assert!(server.ends_with(&format!(":{PORT}")), "{server}");
    assert_eq!(described["openapi"], "3.1.0");
}

#[test]
fn every_refusal_is_described_with_its_status_and_stands_in_the_manual() {
    let described = described();
    let (mut answered, mut silent) = (BTreeMap::new(), BTreeSet::new());
    let after = described["components"]["responses"]["Refused"]["headers"]["Retry-After"]["schema"]["const"].as_str();
    let come_again = format!("Retry-After: {}\r\n", after.expect("described"));
    for refusal in refusals() {
        let status: u64 = refusal.status()[..3].parse().expect("a number");
        assert_eq!(refusal.fields(), if status == 429 { come_again.as_str() } else { "" }, "{refusal:?}");
        if is_answered(refusal) {
            answered.insert(refusal.word(), json!(status));
        } else {
            silent.insert(refusal.word());
        }
        assert!(MANUAL.contains(&format!("`{}`", refusal.word())), "the manual lacks {}", refusal.word());
    }
    let components = &described["components"];
    assert_eq!(components["x-statuses"], json!(answered));
    assert_eq!(components["x-unanswered"], json!(silent));
    assert_eq!(components["schemas"]["Refusal"]["enum"], json!(answered.keys().collect::<Vec<_>>()));
}

/// Whether `value` is what `schema` says, with no field that it does not name.
fn fits(schema: &Value, value: &Value, place: &str) {
    if let Some(only) = schema.get("const") {
        return assert_eq!(only, value, "{place}");
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    };
    let own = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    assert!(types.contains(&own), "{place}: {own} is none of {types:?}");
    match value {
        Value::Array(items) => items.iter().for_each(|item| fits(&schema["items"], item, place)),
        Value::Object(fields) => {
            let named = schema["properties"].as_object().expect("properties");
            assert_eq!(fields.keys().collect::<Vec<_>>(), named.keys().collect::<Vec<_>>(), "{place}");
            fields.iter().for_each(|(name, value)| fits(&named[name], value, &format!("{place}.{name}")));
        }
        _ => {}
    }
}

#[test]
fn reports_and_answers_are_as_they_are_described() {
    let described = described();
    let schemas = &described["components"]["schemas"];
    let report: Value = serde_json::from_slice(&report(1000).bytes()).expect("JSON");
    fits(&schemas["Report"], &report, "report");
    // What may be missing is what the program leaves out.
    let uses = &schemas["Report"]["properties"]["breaks"];
    assert_eq!(uses["maxItems"], json!(BREAKS_MAX));
    assert!(uses["description"].as_str().is_some_and(|text| text.contains(&USES_MAX.to_string())));
    let required = uses["items"]["properties"]["uses"]["items"]["required"].as_array().expect("required");
    assert!(!required.contains(&json!("source")) && required.contains(&json!("protocol")));
    let mut brought = NewestBrought::default();
    brought.add_policy(5);
    brought.add_revoked(6);
    for newest in [Newest::default(), Newest { policy_version: Some(3), revoked_issued_unix: Some(4), brought }] {
        fits(&schemas["Newest"], &json!(newest), "newest");
    }
    let words = [
        Outcome::Waiting,
        Outcome::Refused,
        Outcome::Fetched,
        Outcome::NotOpen,
        Outcome::OtherKey,
        Outcome::OtherMac,
        Outcome::BadRequest,
    ];
    assert_eq!(schemas["Enrolment"]["oneOf"][0]["enum"], json!(words));
    let approved: Outcome = serde_json::from_value(json!({"approved": "c2VhbGVk"})).expect("an outcome");
    fits(&schemas["Enrolment"]["oneOf"][1], &json!(approved), "approved");
}

/// As the commands print it, which an operator's program reads.
#[test]
fn pages_of_the_record_and_refused_orders_are_as_they_are_described() {
    let place = new_site();
    run(place.path(), "site operator add vic --role viewer --dir @/site --out @/vic.pem").expect("added");
    let site = Directory::open(&place.path().join("site")).expect("opened");
    let vic = &Record::from(&site).operators().expect("read")[0].certificate;
    put_down_refused(&site, vic, ("revoke", "needs manager, is viewer: revoke --name a"), 1).expect("counted");
    let described = described();
    let schemas = &described["components"]["schemas"];
    for (words, schema, list) in
        [("", "Acts", "entries"), (" --last 1", "Acts", "entries"), (" --refused", "RefusedOrders", "refused")]
    {
        let printed = run(place.path(), &format!("site audit --json --dir @/site{words}")).expect("shown");
        let printed: Value = serde_json::from_str(&printed).expect("JSON");
        assert!(printed[list].as_array().is_some_and(|list| !list.is_empty()), "{printed}");
        let mut schema = schemas[schema].clone();
        for which in ["first", "last"] {
            if let Some(one) = schema.pointer_mut(&format!("/properties/refused/items/properties/{which}")) {
                *one = schemas["RefusedOrder"].clone();
            }
        }
        fits(&schema, &printed, words);
    }
    let most = |schema: &str| schemas[schema]["description"].as_str().unwrap_or_default().replace(',', "");
    assert!(most("Acts").contains(&format!(" {WITHIN} entries")), "{}", most("Acts"));
    assert!(most("RefusedOrders").contains(&format!(" {} at most", WITHIN / 2)), "{}", most("RefusedOrders"));
}

/// All references of a value.
fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Value::as_str));
            fields.values().for_each(|field| references(field, found));
        }
        _ => {}
    }
}

#[test]
fn whatever_is_referred_to_is_there() {
    let described = described();
    let mut found = Vec::new();
    references(&described, &mut found);
    assert!(found.len() > 10);
    for reference in found {
        let pointer = reference.strip_prefix('#').expect("within the file");
        assert!(described.pointer(pointer).is_some(), "{reference}");
    }
}
