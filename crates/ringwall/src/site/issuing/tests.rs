use std::fs;

use identity::Profile;
use identity::profile::HAS_PAPER;
use serde_json::{Value, json};

use super::super::testing::{assert_sealed, load, new_site, run};

#[test]
fn a_manager_makes_a_host_in_one_step() {
    let place = new_site();
    let line = "site issue --dir @/site --name a --mac 02:00:00:00:00:01 --ip 10.0.0.1 --ip 10.0.0.2 --out @/a.pem";
    let printed = run(place.path(), line).expect("issued");
    assert!(printed.starts_with("issued host a: 02:00:00:00:00:01, 10.0.0.1, 10.0.0.2, until 2028-01-15T08:00:00Z"));
    assert_eq!(load(&place.path().join("a.pem")).certificate().addresses().len(), 2);
    let again = run(place.path(), line).expect_err("exists");
    assert!(again.ends_with("a.pem: the file exists; choose another name or overwrite it with --force"), "{again}");
    run(place.path(), &format!("{line} --force --days 7")).expect("issued again");
}

#[test]
fn a_host_enrols_by_file_and_the_manager_gives_the_role() {
    let place = new_site();
    let ask = "enroll request --name b --mac 02:00:00:00:00:02 --ip 10.0.0.2 --role router --key @/b.key --out @/b.csr";
    run(place.path(), ask).expect("requested");
    let grant = "site issue --dir @/site --request @/b.csr --out @/b.bundle";
    let refused = run(place.path(), grant).expect_err("role");
    assert!(refused.ends_with("it asks for the role router, not host; grant it with --role router or refuse it"));
    let grant = &format!("{grant} --role router");
    for (expectation, what) in [
        ("--name c", "name than --name"),
        ("--mac 02:00:00:00:00:03", "hardware address than --mac"),
        ("--ip 10.0.0.3", "list of addresses than --ip"),
    ] {
        let refused = run(place.path(), &format!("{grant} {expectation}")).expect_err(what);
        assert!(refused.contains(what), "{refused}");
    }
    assert_eq!(run(place.path(), "site list --dir @/site").as_deref(), Ok("nothing was issued yet\n"));
    run(place.path(), &format!("{grant} --name b --mac 02:00:00:00:00:02 --ip 10.0.0.2")).expect("granted");
    run(place.path(), "enroll install --key @/b.key --bundle @/b.bundle --out @/b.pem").expect("installed");
    assert!(load(&place.path().join("b.pem")).certificate().is_router());
}

/// The CLL paper, section 6.2. The bundle was in clear: site key, request key and DHCP key.
#[test]
fn a_bundle_is_of_use_to_the_host_that_asked_and_to_nobody_else() {
    let place = new_site();
    for name in ["a", "b"] {
        let ask = format!("enroll request --name a --mac 02:00:00:00:00:01 --key @/{name}.key --out @/{name}.csr");
        run(place.path(), &ask).expect("requested");
    }
    let issue = "site issue --dir @/site --request @/a.csr --subnet 10.0.0.0/24 --out @/a.bundle";
    let printed = run(place.path(), issue).expect("issued");
    assert!(printed.ends_with("a.bundle; it is sealed for the host's key, and nobody else can open it\n"), "{printed}");
    assert_sealed(&place.path().join("a.bundle"));
    let stolen = "enroll install --key @/b.key --bundle @/a.bundle --out @/stolen.pem";
    assert!(run(place.path(), stolen).expect_err("another key").contains("sealed for another key"));
    assert!(!place.path().join("stolen.pem").exists());
    run(place.path(), "enroll install --key @/a.key --bundle @/a.bundle --out @/a.pem").expect("installed");
    assert!(load(&place.path().join("a.pem")).dhcp_key().is_some());
    // Another key for the same host comes in the same way.
    run(place.path(), "site rekey --dir @/site a --request @/b.csr --out @/b.bundle").expect("another key");
    assert_sealed(&place.path().join("b.bundle"));
    run(place.path(), "enroll install --key @/b.key --bundle @/b.bundle --out @/b.pem").expect("installed");
}

#[test]
fn what_is_handed_out_in_clear_is_said_to_be() {
    let place = new_site();
    let issue = "site issue --dir @/site --name a --mac 02:00:00:00:00:01 --ip 10.0.0.1 --out @/a.pem";
    let printed = run(place.path(), issue).expect("issued");
    assert!(printed.contains("\nwarning: ") && printed.contains("host enroll request"), "{printed}");
    let mode =
        |name| std::os::unix::fs::MetadataExt::mode(&fs::metadata(place.path().join(name)).expect("there")) & 0o777;
    assert_eq!(mode("a.pem"), 0o600);
    let json: Value =
        serde_json::from_str(&run(place.path(), &format!("{issue} --force --json")).expect("issued")).expect("json");
    assert_eq!(json["sealed"], json!(false));
}

#[test]
fn the_addresses_of_a_revoked_host_are_free_for_another_name_and_then_taken() {
    let place = new_site();
    let issue = |name: &str, days: u32| {
        let what = "--mac 02:00:00:00:00:01 --ip 10.0.0.1 --ip 10.0.0.2 --ip6 2001:db8::1";
        run(
            place.path(),
            &format!("site issue --dir @/site --name {name} {what} --out @/{name}.pem --force --days {days}"),
        )
    };
    issue("old", 9).expect("issued");
    assert!(issue("new", 9).expect_err("held").contains("\"old\" holds 02:00:00:00:00:01"));
    run(place.path(), "site revoke --dir @/site --name old").expect("revoked");
    issue("new", 9).expect("the same machine under another name");
    let refused = issue("old", 9).expect_err("its addresses are another's now");
    assert!(refused.contains("\"new\" holds"), "{refused}");
    run(place.path(), "site revoke --dir @/site --name new").expect("revoked");
    assert!(issue("old", 8).expect("it comes back").contains("old was revoked"));
}

#[test]
fn json_is_for_programs() {
    let place = new_site();
    let issue = "site issue --dir @/site --name a --mac 02:00:00:00:00:01 --ip 10.0.0.1 --out @/a.pem --json";
    let issued: Value = serde_json::from_str(&run(place.path(), issue).expect("issued")).expect("json");
    let listed: Value =
        serde_json::from_str(&run(place.path(), "site list --dir @/site --json").expect("listed")).expect("json");
    assert_eq!(listed[0]["serial"], issued["serial"]);
    assert_eq!(listed[0]["addresses"], json!(["10.0.0.1"]));
    assert_eq!(issued["file"], json!("@/a.pem"));
    assert_eq!(issued["not_after"], json!("2028-01-15T08:00:00Z"));
}

#[test]
fn a_paper_site_says_what_it_is_and_its_hosts_have_dsa_keys() {
    let place = tempfile::tempdir().expect("directory");
    let founded = run(place.path(), "site init --dir @/site --name lab --profile paper");
    if !HAS_PAPER {
        assert!(founded.expect_err("no such profile").contains("this build has no paper profile"));
        return;
    }
    let printed = founded.expect("site");
    assert!(printed.contains("DSA and SHA-1") && printed.contains("NOT for real use"), "{printed}");
    let issue = "site issue --dir @/site --name a --mac 02:00:00:00:00:01 --ip 10.0.0.1 --out @/a.pem --force";
    for (option, number) in [("", 4), (" --dsa-bits 512", 3), (" --dsa-bits 1024", 4)] {
        run(place.path(), &format!("{issue}{option}")).expect("issued");
        let identity = load(&place.path().join("a.pem"));
        assert_eq!(identity.certificate().record_key().map(|(number, _)| number), Some(number), "{option}");
        assert_eq!(identity.profile(), Profile::Paper);
    }
    let refused = run(place.path(), &format!("{issue} --dsa-bits 2048")).expect_err("length");
    assert!(refused.contains("512 or 1024"), "{refused}");
    run(place.path(), &format!("{issue} --rsa-bits 1024 --rsa-hash ripemd160")).expect("issued");
    assert!(load(&place.path().join("a.pem")).certificate().signs_as_the_cll_paper());
    let refused = run(place.path(), &format!("{issue} --rsa-bits 512")).expect_err("length");
    assert!(refused.contains("1024, 1536 or 2048"), "{refused}");
    let ask = "enroll request --name b --mac 02:00:00:00:00:02 --ip 10.0.0.2 --key @/b.key --out @/b.csr";
    run(place.path(), ask).expect("requested");
    // The host makes its own key, the site the second one, and both keys' secrets are the
    // host's alone on the way.
    for (option, number) in [("", Some(4)), (" --dsa-bits 512", Some(3)), (" --rsa-bits 1024", None)] {
        let grant = format!("site issue --dir @/site --request @/b.csr --out @/b.bundle --force{option}");
        assert!(run(place.path(), &grant).expect("granted").contains("sealed for the host's key"), "{option}");
        assert_sealed(&place.path().join("b.bundle"));
        let put = "enroll install --key @/b.key --bundle @/b.bundle --out @/b.pem --force";
        run(place.path(), put).expect("installed");
        let identity = load(&place.path().join("b.pem"));
        assert_eq!(identity.certificate().record_key().map(|(number, _)| number), number, "{option}");
        assert_eq!(identity.certificate().signs_as_the_cll_paper(), number.is_none());
    }
    let rekey = "site rekey --dir @/site b --request @/b.csr --out @/b.bundle --force";
    assert!(run(place.path(), rekey).expect_err("which key").contains("paper profile"));
    let modern = new_site();
    let refused = run(modern.path(), &format!("{issue} --dsa-bits 512")).expect_err("modern");
    assert!(refused.contains("'site init --profile paper'") && !refused.contains('\n'), "{refused}");
}

#[test]
fn what_is_missing_on_the_line_is_named() {
    let place = new_site();
    let refused = run(place.path(), "site issue --dir @/site --out @/a.pem").expect_err("incomplete");
    assert!(refused.contains("--name <NAME>") && refused.contains("--mac <MAC>"), "{refused}");
    let refused = run(place.path(), "site issue --dir @/site --name a --mac 02 --out @/a.pem").expect_err("mac");
    assert!(refused.contains("--mac <MAC>"), "{refused}");
    let days = "site issue --dir @/site --name a --mac 02:00:00:00:00:01 --days 0 --out @/a.pem";
    assert!(run(place.path(), days).expect_err("days").contains("use 1 to 36525 days"));
}
