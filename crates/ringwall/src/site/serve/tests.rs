//! The door and its keeper in one process, over loopback, with clients that are who they say and
//! others.

mod brought;
mod openapi;
mod orders;

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use authority::Request;
use authority::directory::{Delivery, Directory, Sharing, change_policy};
use authority::files::Overwrite;
use authority::rollout::told::Row;
use identity::policy::LegacyHost;
use identity::tls::{Credentials, Service};
use identity::{HostIdentity, Profile};
use wire::MacAddress;

use super::door::{CLIENTS_MAX, CLIENTS_OF_ADDRESS_MAX, Door, REPORT_EVERY, way_to_keeper};
use super::keeper::{Clerk, Keeper, PATIENCE, QUESTION_BYTES_MAX};
use super::kept::Reports;
use crate::report::tests::report;
use crate::report::{BYTES_MAX, Newest, Proof, RENEWAL_PATH, RETRY_AFTER, Way, unix_s};
use crate::serving::{Listener, Places, Way as Line, serve};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// A loaded machine is given this.
const SOON: Duration = Duration::from_secs(30);
const LOOPBACK: Ipv4Addr = Ipv4Addr::LOCALHOST;

fn now() -> u64 {
    unix_s().expect("a clock")
}

/// A site in a directory, whose service has the address 127.0.0.1.
struct Site {
    place: tempfile::TempDir,
}

impl Site {
    fn found(name: &str) -> Site {
        let place = tempfile::tempdir().expect("directory");
        Directory::init(&place.path().join("site"), name, 3650 * DAY, Profile::Modern, &mut random(), now() - 864_000)
            .expect("founded");
        Site { place }
    }

    fn directory(&self) -> PathBuf {
        self.place.path().join("site")
    }

    /// The identity file of a new host.
    fn issue(&self, name: &str, last: u8, unix_s: u64) -> String {
        let file = self.place.path().join(format!("{name}.pem"));
        let delivery = Delivery { output: &file, overwrite: Overwrite::Force, sharing: Sharing::Allowed };
        let address = if name == "service" { LOOPBACK } else { Ipv4Addr::new(192, 0, 2, last) };
        let request = Request::new(name, MacAddress([2, 0, 0, 0, 0, last]), vec![address]).expect("a request");
        let request = request.with_validity(DAY).expect("a day");
        let directory = Directory::open(&self.directory()).expect("opened");
        directory.issue_identity(&request, &delivery, &mut random(), unix_s).expect("issued");
        std::fs::read_to_string(file).expect("an identity")
    }

    fn rows(&self) -> Vec<Row> {
        Reports::look(&self.directory()).expect("looked").expect("there").all().expect("read")
    }

    /// How many were turned away for that reason.
    fn refused(&self, reason: &str) -> u64 {
        let refused = Reports::look(&self.directory()).expect("looked").expect("there").refused().expect("read");
        refused.iter().find(|one| one.reason == reason).map_or(0, |one| one.count)
    }

    fn await_refused(&self, door: &Door, reason: &str, count: u64) {
        let end = Instant::now() + SOON;
        loop {
            door.tell_counts();
            let found = self.refused(reason);
            if found >= count {
                assert_eq!(found, count, "{reason}");
                return;
            }
            assert!(Instant::now() < end, "{reason}: {found} of {count}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Keys from the kernel.
fn random() -> impl FnMut(&mut [u8]) {
    let mut secrets = crate::randomness::secrets().expect("randomness");
    move |bytes: &mut [u8]| secrets.fill(bytes)
}

/// A service that runs to the end of the test's process.
fn start(site: &Site) -> (Arc<Door>, SocketAddr) {
    let identity = site.issue("service", 5, now());
    let [(ours, theirs), (second, their_second)] = [(); 2].map(|()| UnixStream::pair().expect("a pair"));
    let reports = Reports::open(&site.directory()).expect("opened");
    let keeper = Keeper::new(&site.directory(), reports);
    let clerk = Clerk::new(&site.directory(), &site.place.path().join("signer"));
    let at_clerk = Line::new(their_second, PATIENCE, QUESTION_BYTES_MAX).expect("theirs");
    std::thread::spawn(move || clerk.run(at_clerk));
    let file = site.place.path().join("service.pem");
    let text = identity.clone();
    let theirs = Line::new(theirs, PATIENCE, QUESTION_BYTES_MAX).expect("theirs");
    std::thread::spawn(move || keeper.run(theirs, &file, &text));
    let door = Arc::new(
        Door::open(&identity, way_to_keeper(ours).expect("ours"), way_to_keeper(second).expect("ours"))
            .expect("a door"),
    );
    let listener = TcpListener::bind((LOOPBACK, 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    let shared = Arc::clone(&door);
    let places = Places::new(CLIENTS_MAX, CLIENTS_OF_ADDRESS_MAX);
    std::thread::spawn(move || serve(&Listener::Tcp(listener), &places, &shared));
    (door, address)
}

fn way(identity: &str, address: SocketAddr) -> Way {
    let proof = Proof::Certificate(Credentials::from_pem(identity, unix_s).expect("credentials"));
    Way { address, service: Service::At(LOOPBACK.into()), proof }
}

fn send(identity: &str, address: SocketAddr, made: u64) -> Result<Newest, String> {
    send_bytes(identity, address, &report(made).bytes())
}

fn send_bytes(identity: &str, address: SocketAddr, bytes: &[u8]) -> Result<Newest, String> {
    let answer = way(identity, address).ask("/v1/report", Some(bytes)).map_err(|failure| failure.to_string())?;
    Ok(serde_json::from_slice(&answer).expect("as the service has it"))
}

fn assert_refused(outcome: Result<Newest, String>, word: &str) {
    let line = outcome.expect_err(word);
    assert!(line.contains(word) && !line.contains('\n'), "{line}");
}

#[test]
fn a_report_is_kept_under_the_name_that_the_certificate_has_and_answered_with_what_is_newest() {
    let site = Site::found("office");
    let (a, b) = (site.issue("a", 1, now()), site.issue("b", 2, now()));
    let (_door, address) = start(&site);
    assert_eq!(send(&a, address, 1000).expect("kept").policy_version, None, "the site has none yet");
    assert!(way(&a, address).ask("/v1/policy", None).expect_err("none").to_string().contains("absent"));
    let directory = Directory::open(&site.directory()).expect("opened");
    let printer = LegacyHost {
        mac: MacAddress([2, 0, 0, 0, 0, 9]),
        ip: Ipv4Addr::new(192, 0, 2, 9),
        router: false,
        broadcast: false,
    };
    change_policy(&directory, now(), |content| {
        content.legacy.push(printer);
        Ok::<(), authority::Error>(())
    })
    .expect("changed");
    // The service looks at the files again after a while.
    let end = Instant::now() + SOON;
    let policy = loop {
        match way(&b, address).ask("/v1/policy", None) {
            Ok(policy) => break policy,
            Err(failure) => assert!(Instant::now() < end, "{failure}"),
        }
    };
    assert_eq!(policy, std::fs::read(site.directory().join("policy.pem")).expect("there"), "as the authority wrote it");
    let newest = send(&b, address, 900).expect("kept");
    let list = directory.revocation_list().expect("read").map(|list| list.issued_unix());
    assert_eq!(newest, Newest { policy_version: Some(1), revoked_issued_unix: list, ..Newest::default() });
    let names: Vec<_> = site.rows().into_iter().map(|row| (row.host, row.report.made_unix_ms)).collect();
    assert_eq!(names, [("a".to_owned(), 1000), ("b".to_owned(), 900)]);
}

/// The signer takes its time, and who asks it: hosts that report wait for neither.
#[test]
fn who_has_something_signed_keeps_nobody_waiting_who_reports() {
    let site = Site::found("office");
    let (a, b) = (site.issue("a", 1, now()), site.issue("b", 2, now()));
    let request = authority::enrolment::renewal(&a).expect("a request");
    let signer = UnixListener::bind(site.place.path().join("signer")).expect("bound");
    let (_door, address) = start(&site);
    let renewing = std::thread::spawn(move || way(&a, address).ask("/v1/renewal", Some(request.as_bytes())));
    let (asked, _) = signer.accept().expect("the clerk asks");
    send(&b, address, 1000).expect("kept");
    assert!(!renewing.is_finished(), "nobody has answered it");
    drop(asked);
    let outcome = renewing.join().expect("no panic").expect_err("the signer said nothing");
    assert!(outcome.to_string().contains("signer-silent"), "{outcome}");
}

#[test]
fn a_host_that_asks_the_signer_too_often_is_told_to_wait_and_does_and_no_other_host_waits() {
    let site = Site::found("office");
    let [a, b] = [("a", 1), ("b", 2)].map(|(name, number)| site.issue(name, number, now()));
    let (door, address) = start(&site);
    let ask = |host: &str, in_turn: bool| {
        let request = authority::enrolment::renewal(host).expect("a request");
        let (way, body) = (way(host, address), Some(request.as_bytes()));
        let once = || way.answer(RENEWAL_PATH, body);
        let answer = if in_turn { way.in_turn(once, |(status, body)| (*status, body)) } else { once() };
        let (status, said) = answer.expect("an answer");
        (status, String::from_utf8(said).expect("text"))
    };
    // Nobody signs here, so this is as far as it goes.
    let asked = (503, "signer-silent\n".to_owned());
    assert_eq!(ask(&b, false), asked);
    // A machine may be so slow that two in a row are not too often.
    let refused = (0..50).any(|_| ask(&a, false) != asked);
    assert!(refused, "none was too often");
    let waits = (0..5).any(|_| {
        let began = Instant::now();
        assert_eq!(ask(&a, true), asked, "it comes again by itself");
        began.elapsed() >= RETRY_AFTER
    });
    assert!(waits, "it asked without a pause");
    assert_eq!(ask(&b, true), asked);
    let end = Instant::now() + SOON;
    while site.refused("too-often") == 0 {
        assert!(Instant::now() < end, "it was not counted");
        door.tell_counts();
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn who_is_no_host_of_the_site_or_is_revoked_is_turned_away_and_counted() {
    let site = Site::found("office");
    let (door, address) = start(&site);
    // A host of another site believes this service as little as it him; who believes everything is
    // in the tests of `identity`.
    let stranger = Site::found("office").issue("a", 1, now());
    assert!(send(&stranger, address, 1000).is_err(), "a site of the same name");
    // What he says of it may be lost, since he closes without reading on.
    let end = Instant::now() + SOON;
    while site.refused("declined-by-client") + site.refused("gone") == 0 {
        assert!(Instant::now() < end, "he was not counted");
        door.tell_counts();
        std::thread::sleep(Duration::from_millis(10));
    }
    let over = site.issue("old", 3, now() - 3 * DAY.as_secs());
    assert!(send(&over, address, 1000).is_err(), "its certificate is over");
    site.await_refused(&door, "not-in-its-period", 1);
    let mut plain = TcpStream::connect(address).expect("connected");
    plain.write_all(b"POST /v1/report HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}").expect("sent");
    let _ = plain.read_to_end(&mut Vec::new());
    site.await_refused(&door, "no-tls", 1);
    let a = site.issue("a", 1, now());
    let directory = Directory::open(&site.directory()).expect("opened");
    directory.revoke("a", now()).expect("revoked");
    assert_refused(send(&a, address, 1000), "revoked");
    site.await_refused(&door, "revoked", 1);
    assert!(site.rows().is_empty(), "none of them was kept");
}

#[test]
fn a_host_talks_to_nobody_but_the_service() {
    let site = Site::found("office");
    let a = site.issue("a", 1, now());
    // A host of the site that has another address than the one that is asked.
    let (_door, address) = start(&site);
    for service in [Service::At(Ipv4Addr::new(192, 0, 2, 5).into()), Service::Named("a".to_owned())] {
        let mut way = way(&a, address);
        way.service = service;
        let line = way.ask("/v1/report", Some(&report(1000).bytes())).expect_err("another host").to_string();
        assert!(line.contains("certificate"), "{line}");
    }
    let mut named = way(&a, address);
    named.service = Service::Named("service".to_owned());
    named.ask("/v1/report", Some(&report(1000).bytes())).expect("by name");
    let other = Site::found("office");
    let (_door, address) = start(&other);
    let line = send(&a, address, 2000).expect_err("a service of another site");
    assert!(line.contains("certificate"), "{line}");
    assert!(other.rows().is_empty());
}

#[test]
fn what_is_too_long_too_old_or_too_often_is_refused_by_name() {
    let site = Site::found("office");
    let a = site.issue("a", 1, now());
    let (door, address) = start(&site);
    // A machine may be so slow that two in a row are not too often.
    let (mut made, end) = (1000, Instant::now() + SOON);
    let too_often = loop {
        match send(&a, address, made) {
            Ok(_) => made += 1,
            refused => break refused,
        }
        assert!(Instant::now() < end, "none of {made} was refused");
    };
    assert_refused(too_often, "too-often");
    std::thread::sleep(REPORT_EVERY);
    assert_refused(send(&a, address, made - 1), "report-older");
    let too_long = vec![b' '; BYTES_MAX + 1];
    // The service does not read it to its end, so the answer may be lost.
    assert!(send_bytes(&a, address, &too_long).is_err());
    site.await_refused(&door, "request-too-long", 1);
    std::thread::sleep(REPORT_EVERY);
    assert_refused(send_bytes(&a, address, b"{}"), "report-malformed");
    let line = way(&a, address).ask("/", None).expect_err("nothing there").to_string();
    assert!(line.contains("request-elsewhere"), "{line}");
    for (word, count) in [("too-often", 1), ("report-older", 1), ("report-malformed", 1), ("request-elsewhere", 1)] {
        site.await_refused(&door, word, count);
    }
    assert_eq!(site.rows()[0].report.made_unix_ms, made - 1);
}

#[test]
fn one_address_takes_not_all_of_the_connections() {
    let site = Site::found("office");
    let (door, address) = start(&site);
    let held: Vec<TcpStream> =
        (0..=CLIENTS_OF_ADDRESS_MAX).map(|_| TcpStream::connect(address).expect("connected")).collect();
    site.await_refused(&door, "too-many", 1);
    drop(held);
    site.await_refused(&door, "gone", CLIENTS_OF_ADDRESS_MAX as u64);
    send(&site.issue("a", 1, now()), address, 1000).expect("there is room again");
}

/// Hands on what passes between a client and `to`, once; what the client sent.
fn tapped(to: SocketAddr) -> (SocketAddr, std::thread::JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind((LOOPBACK, 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    let tap = std::thread::spawn(move || {
        let (client, _) = listener.accept().expect("a client");
        let server = TcpStream::connect(to).expect("the service");
        let (mut back, mut from) = (client.try_clone().expect("a clone"), server.try_clone().expect("a clone"));
        let answers = std::thread::spawn(move || {
            let _ = std::io::copy(&mut from, &mut back);
            let _ = back.shutdown(Shutdown::Write);
        });
        let (mut client, mut server, mut heard, mut part) = (client, server, Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = client.read(&mut part) {
            heard.extend_from_slice(&part[..count]);
            server.write_all(&part[..count]).expect("handed on");
        }
        let _ = server.shutdown(Shutdown::Write);
        answers.join().expect("ended");
        heard
    });
    (address, tap)
}

#[test]
fn a_recorded_report_is_worth_nothing_and_shows_nothing() {
    let site = Site::found("office");
    let a = site.issue("a", 1, now());
    let (door, address) = start(&site);
    let (tap, heard) = tapped(address);
    send(&a, tap, 1000).expect("kept");
    let heard = heard.join().expect("heard");
    let certificate = HostIdentity::from_pem(&a).expect("an identity").certificate().der().to_vec();
    let has = |what: &[u8]| heard.windows(what.len()).any(|window| window == what);
    assert!(!has(b"tcp/9100") && !has(&certificate), "neither the report nor who sends it can be read");
    std::thread::sleep(REPORT_EVERY);
    let mut again = TcpStream::connect(address).expect("connected");
    again.write_all(&heard).expect("sent");
    let _ = again.read_to_end(&mut Vec::new());
    site.await_refused(&door, "no-tls", 1);
    assert_eq!(site.refused("report-older"), 0, "it is not even a report");
    assert_eq!(site.rows().len(), 1);
}
