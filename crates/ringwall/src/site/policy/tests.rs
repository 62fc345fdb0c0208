use authority::Directory;
use serde_json::{Value, json};
use wire::MacAddress;

use super::super::testing::{NOW_UNIX_S, new_site, order, policy, run};

#[test]
fn each_change_of_the_policy_is_a_signed_version() {
    let place = new_site();
    let path = place.path();
    assert!(order(path, "policy show").expect("none").starts_with("there is no policy yet"));
    let add = "policy legacy add --ip 192.0.2.9 --mac 02:00:00:00:00:09";
    let printed = order(path, add).expect("added");
    assert!(printed.ends_with("version 1 of the policy is signed, in @/site/policy.pem\n"), "{printed}");
    let replaced = order(path, "policy legacy add --ip 192.0.2.9 --mac 02:00:00:00:00:0a --broadcast").expect("added");
    assert!(replaced.contains("in the place of 192.0.2.9 at 02:00:00:00:00:09"), "{replaced}");
    order(path, "policy known add --ip 192.0.2.7 --mac 02:00:00:00:00:07").expect("added");
    for line in ["exception set 02:00:00:00:00:06 observe", "mode desk-*,gate prefer", "mode * observe"] {
        run(path, &format!("site policy {line} --dir @/site")).expect(line);
    }
    let in_force = policy(path);
    let content = in_force.content();
    assert_eq!((in_force.version(), content.issued_unix), (6, NOW_UNIX_S));
    assert_eq!(content.legacy.len(), 1);
    assert!(content.legacy[0].broadcast && content.legacy[0].mac == MacAddress([2, 0, 0, 0, 0, 10]));
    assert_eq!((content.known.len(), content.exceptions.len(), content.groups.len()), (1, 1, 2));
    let shown = order(path, "policy show").expect("shown");
    assert!(shown.starts_with("version 6, issued 2027-01-15T08:00:00Z\n"), "{shown}");
    for line in ["group *: observe", "group desk-*,gate: prefer", "exception 02:00:00:00:00:06: observe"] {
        assert!(shown.contains(line), "{shown}");
    }
    let json: Value = serde_json::from_str(&order(path, "policy show --json").expect("shown")).expect("json");
    assert_eq!(json["legacy"][0]["ip"], json!("192.0.2.9"));
    run(path, "site policy legacy remove 192.0.2.9 --dir @/site").expect("removed");
    run(path, "site policy mode gate,desk-* none --dir @/site").expect("the order of names does not matter");
    let content = policy(path).content().clone();
    assert_eq!((content.version, content.legacy.len(), content.groups.len()), (8, 0, 1));
}

#[test]
fn a_mode_can_change_at_a_time_or_for_a_while() {
    let place = new_site();
    let mode = |what: &str| run(place.path(), &format!("site policy mode {what} --dir @/site"));
    let desk = || policy(place.path()).content().groups[0].clone();
    use identity::policy::Mode::{Enforce, Observe};
    assert!(mode("desk-* enforce --for 1h").expect_err("to what").contains("no mode yet"));
    mode("desk-* observe").expect("set");
    mode("desk-* enforce --at 2027-01-16T08:00:00Z").expect("set");
    assert_eq!((desk().mode, desk().next), (Observe, Some((NOW_UNIX_S + 24 * 3600, Enforce))));
    mode("desk-* enforce --for 1h").expect("set");
    assert_eq!((desk().mode, desk().next), (Enforce, Some((NOW_UNIX_S + 3600, Observe))));
    mode("desk-* enforce").expect("for good");
    assert_eq!((desk().mode, desk().next), (Enforce, None));
    for (what, wanted) in [
        ("desk-* enforce --at 2027-01-15T08:00:00Z", "--at: this time is over"),
        ("desk-* enforce --at tomorrow", "write it in UTC"),
        ("desk-* strict", "a mode is"),
        ("d\u{e4}sk enforce", "is no name of hosts"),
        ("other none", "no group"),
    ] {
        let refused = mode(what).expect_err(wanted);
        assert!(refused.contains(wanted), "{refused}");
    }
    assert_eq!(policy(place.path()).version(), 4, "what is refused makes no version");
    // A new group goes by what is said of everybody, before and afterwards.
    mode("* prefer").expect("set");
    mode("gate enforce --for 1h").expect("set");
    let content = policy(place.path()).content().clone();
    let gate = content.groups.iter().find(|group| group.patterns == ["gate"]).expect("there");
    assert_eq!((gate.mode, gate.next), (Enforce, Some((NOW_UNIX_S + 3600, identity::policy::Mode::Prefer))));
}

#[test]
fn nobody_is_put_on_the_list_who_has_a_certificate_and_the_list_has_an_end() {
    let place = new_site();
    let issue = "site issue --dir @/site --name a --mac 02:00:00:00:00:01 --ip 10.0.0.1 --out @/a.pem";
    run(place.path(), issue).expect("issued");
    for pair in ["--ip 10.0.0.1 --mac 02:00:00:00:00:02", "--ip 10.0.0.2 --mac 02:00:00:00:00:01"] {
        let refused = order(place.path(), &format!("policy legacy add {pair}")).expect_err("held");
        assert!(refused.contains("host \"a\" has a certificate for"), "{refused}");
    }
    run(place.path(), "site revoke --dir @/site --name a").expect("revoked");
    order(place.path(), "policy legacy add --ip 10.0.0.1 --mac 02:00:00:00:00:01").expect("a printer now");
    let site = Directory::open(&place.path().join("site")).expect("opened");
    let full = authority::directory::change_policy(&site, NOW_UNIX_S, |content| {
        content.legacy = (0..=wire::policy::LEGACY_MAX as u32)
            .map(|number| identity::policy::LegacyHost {
                mac: MacAddress([2, 0, number.to_be_bytes()[0], 0, number.to_be_bytes()[2], number.to_be_bytes()[3]]),
                ip: number.into(),
                router: false,
                broadcast: false,
            })
            .collect();
        Ok::<(), authority::Error>(())
    });
    assert!(full.expect_err("too many").to_string().contains("limits"));
    assert_eq!(policy(place.path()).version(), 1, "the one before stays");
}
