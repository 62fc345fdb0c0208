//! What hosts bring to a service whose site was restored from a backup.

use authority::directory::Restored;

use super::super::brought::{Brought, Sort};
use super::*;

fn change(directory: &Directory, last: u8) {
    let (mac, ip) = (MacAddress([2, 0, 0, 0, 1, last]), Ipv4Addr::new(192, 0, 2, last));
    change_policy(directory, now(), |content| {
        content.legacy.push(LegacyHost { mac, ip, router: false, broadcast: false });
        Ok::<(), authority::Error>(())
    })
    .expect("changed");
}

impl Site {
    fn open(&self) -> Directory {
        Directory::open(&self.directory()).expect("opened")
    }

    /// What the site has signed: its policy, and its list.
    fn signed(&self) -> [String; 2] {
        let read = |name| std::fs::read_to_string(self.directory().join(name)).expect("there");
        ["policy.pem", "revoked.crl.pem"].map(read)
    }

    fn brought(&self, sort: Sort) -> Vec<(String, String)> {
        let all = Reports::look(&self.directory()).expect("looked").expect("there").brought(sort).expect("read");
        all.into_iter().map(|one| (one.host, one.what.text)).collect()
    }
}

#[test]
fn what_the_site_has_forgotten_is_kept_and_nothing_that_it_has_or_did_not_sign() {
    let site = Site::found("office");
    let a = site.issue("a", 1, now());
    site.open().backup(&site.place.path().join("backup")).expect("kept");
    let b = site.issue("b", 2, now());
    change(&site.open(), 90);
    let older = site.signed();
    change(&site.open(), 91);
    site.open().revoke("a", now()).expect("revoked");
    let newest = site.signed();
    std::fs::remove_dir_all(site.directory()).expect("lost");
    Directory::restore(&site.place.path().join("backup"), &site.directory(), Restored::AsItWas).expect("restored");
    let (_door, address) = start(&site);

    [&a, &b].iter().for_each(|host| assert!(send(host, address, 1000).is_ok()));
    let certificates = site.brought(Sort::Certificate);
    let names: Vec<&str> = certificates.iter().map(|(host, _)| host.as_str()).collect();
    assert_eq!(names, ["b"], "the site knows the other's");
    let bring = |host: &str, text: &str| way(host, address).answer("/v1/newer", Some(text.as_bytes())).expect("heard");
    for text in &newest {
        assert_eq!(bring(&b, text).0, 200);
    }
    let c = site.issue("c", 3, now());
    let brought = send(&c, address, 1000).map(|newest| newest.brought).expect("kept");
    let list = site.open().site().anchor().clone();
    let [version, issued] = [&newest[0], &newest[1]].map(|text| Brought::read(&list, text).expect("signed").number);
    assert_eq!((brought.brought_policy_version, brought.brought_revoked_issued_unix), (Some(version), Some(issued)));
    let says = |(status, body): (u16, Vec<u8>)| (status, String::from_utf8(body).expect("text"));
    assert_eq!(says(bring(&b, &newest[0])), (429, "too-often\n".to_owned()));
    let [mine, other] = [&newest[0], &older[0]].map(|text| text.as_str());
    let around = format!("{}{other}", "x\u{1}\n".repeat(15_000));
    assert_eq!((bring(&a, &around).0, site.brought(Sort::Policy)), (200, vec![("b".to_owned(), mine.to_owned())]));
    let known = std::fs::read_to_string(site.directory().join("revoked.crl.pem")).expect("there");
    assert_eq!(says(bring(&a, &known)), (409, "not-newer\n".to_owned()));
    assert_eq!(site.brought(Sort::Revoked), [("b".to_owned(), newest[1].clone())]);
    let foreign = Site::found("office");
    change(&foreign.open(), 90);
    assert_eq!(says(bring(&c, &foreign.signed()[1])), (400, "not-of-site\n".to_owned()));
    assert_eq!(says(bring(&c, "nothing")), (400, "not-of-site\n".to_owned()));
}
