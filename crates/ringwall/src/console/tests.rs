//! Requests as strangers write them, and pages of what strangers are called.

use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::door::{Door, Front, Outcome};
use super::http::{self, Act, Request};
use super::look::{Look, way_to_reader};
use super::reached::Reached;
use super::refusal::Refusal;
use super::site::{Clear, Failing, HOSTS_MAX, Legacy, Site, Told};
use super::tokens::{SECRET_LEN, Secret};
use super::{Question, Reply, What, pages};
use crate::metrics::tests::link_layer;
use crate::protocol::Answer;
use crate::protocol::attacks::Attack;
use crate::serving::http::HEAD_BYTES_MAX;
use crate::serving::{Listener, Places, Service as _, Who, serve};
use crate::site::BriefHost;

const HOST: &str = "Host: 127.0.0.1:9479\r\n";

fn read(text: &str) -> Result<Request, Refusal> {
    http::read(&mut text.as_bytes(), &Reached::default()).expect("read")
}

fn act(text: &str) -> Result<(Act, String), Refusal> {
    read(text).map(|request| (request.act, request.path))
}

#[test]
fn what_a_browser_sends_is_read() {
    let get = read(&format!("GET /peers?q=a%26b+c&page=2 HTTP/1.1\r\n{HOST}\r\n")).expect("a request");
    assert_eq!((get.act, get.path.as_str()), (Act::Get, "/peers"));
    assert_eq!(http::value(&get.query, "q").as_deref(), Some("a&b c"));
    let secret = Secret::new([7; SECRET_LEN]);
    let cookie = format!("Cookie: other=1; {}={}\r\n", Reached::default().cookie(), secret.text().as_str());
    let get = read(&format!("GET / HTTP/1.1\r\n{HOST}{cookie}\r\n")).expect("a request");
    assert!(get.session.is_some_and(|session| session.is(&secret)));
    let origin = "Origin: http://127.0.0.1:9479\r\nSec-Fetch-Site: same-origin\r\n";
    let form = format!("POST /sign-in HTTP/1.1\r\n{HOST}{origin}Content-Length: 9\r\n\r\ntoken=abc");
    assert_eq!(act(&form), Ok((Act::SignIn("abc".to_owned()), "/sign-in".to_owned())));
    // Behind a proxy with TLS the origin is the proxy's.
    let form = form.replace("http://127.0.0.1:9479", "https://console.example");
    assert_eq!(act(&form), Ok((Act::SignIn("abc".to_owned()), "/sign-in".to_owned())));
    let news = "Sec-Fetch-Dest: empty\r\nSec-Fetch-Site: same-origin\r\n";
    assert_eq!(act(&format!("GET /news HTTP/1.1\r\n{HOST}{news}\r\n")), Ok((Act::Listen, "/news".to_owned())));
    assert_eq!(act(&format!("GET /map HTTP/1.1\r\n{HOST}{news}\r\n")), Ok((Act::Renew, "/map".to_owned())));
    assert_eq!(act(&format!("POST /sign-out HTTP/1.1\r\n{HOST}\r\n")), Ok((Act::SignOut, "/sign-out".to_owned())));
}

#[test]
fn what_is_no_request_or_comes_from_elsewhere_is_refused_by_name() {
    let get = |fields: &str| format!("GET / HTTP/1.1\r\n{fields}\r\n");
    let news = |fields: &str| format!("GET /news HTTP/1.1\r\n{HOST}{fields}\r\n");
    let post = |fields: &str| format!("POST /sign-in HTTP/1.1\r\n{HOST}{fields}\r\n");
    for (text, refusal) in [
        ("\x16\x03\x01\x02\0".to_owned(), Refusal::Malformed),
        ("GET / HTTP/1.1".to_owned(), Refusal::Malformed),
        (get(""), Refusal::Stranger),
        (get("Host: ringwall.attacker.example\r\n"), Refusal::Stranger),
        (get("Host: 192.0.2.1:9479\r\n"), Refusal::Stranger),
        (get("Host: localhost.attacker.example\r\n"), Refusal::Stranger),
        (get("Host: localhost:attacker\r\n"), Refusal::Stranger),
        (get("Host: localhost\r\nHost: localhost\r\n"), Refusal::Malformed),
        (get(&format!("{HOST}Content-Length: 1\r\n")), Refusal::TooLong),
        (get(&format!("{HOST}Sec-Fetch-Dest: empty\r\nSec-Fetch-Site: same-site\r\n")), Refusal::CrossSite),
        (get(&format!("{HOST}a: {}\r\n", "b".repeat(HEAD_BYTES_MAX))), Refusal::TooLong),
        (get(&format!("{HOST}{}", "a: b\r\n".repeat(100))), Refusal::TooLong),
        (format!("GET /{} HTTP/1.1\r\n{HOST}\r\n", "a".repeat(2000)), Refusal::TooLong),
        (post("Origin: http://attacker.example\r\n"), Refusal::CrossSite),
        (post("Origin: null\r\n"), Refusal::CrossSite),
        (post("Sec-Fetch-Site: cross-site\r\n"), Refusal::CrossSite),
        (post("Origin: http://127.0.0.1:9479\r\nSec-Fetch-Site: same-site\r\n"), Refusal::CrossSite),
        (news("Sec-Fetch-Dest: image\r\n"), Refusal::NoStream),
        (news("Sec-Fetch-Dest: document\r\nSec-Fetch-Site: none\r\n"), Refusal::NoStream),
        (news("Sec-Fetch-Dest: empty\r\nSec-Fetch-Site: same-site\r\n"), Refusal::CrossSite),
        (post("Transfer-Encoding: chunked\r\n"), Refusal::Malformed),
        (post("Content-Length: +1\r\n"), Refusal::Malformed),
        (post("Content-Length: 1\r\nContent-Length: 1\r\n"), Refusal::Malformed),
        (post(&format!("Content-Length: {}\r\n", "9".repeat(40))), Refusal::TooLong),
        (post("Content-Length: 5\r\n"), Refusal::Malformed),
    ] {
        assert_eq!(act(&text), Err(refusal), "{}", &text[..text.len().min(120)]);
    }
    for host in ["localhost", "LOCALHOST:1", "127.0.0.1", "127.9.9.9:80", "[::1]", "[::1]:9479"] {
        assert!(read(&get(&format!("Host: {host}\r\n"))).is_ok(), "{host}");
    }
}

proptest! {
    /// A reader cannot order: whatever the method and the path, nothing but looking, signing in and
    /// signing out is understood.
    #[test]
    fn no_method_but_get_is_taken(
        method in "(GET|POST|[A-Z]{1,10})",
        path in "(/sign-in|/sign-out|/[a-z/-]{0,20})",
    ) {
        let text = format!("{method} {path} HTTP/1.1\r\n{HOST}\r\n");
        match (method.as_str(), path.as_str(), act(&text)) {
            ("GET", "/news", outcome) => prop_assert_eq!(outcome, Ok((Act::Listen, path))),
            ("GET", _, outcome) => prop_assert_eq!(outcome, Ok((Act::Get, path))),
            ("POST", http::SIGN_IN, outcome) => prop_assert_eq!(outcome, Ok((Act::SignIn(String::new()), path))),
            ("POST", http::SIGN_OUT, outcome) => prop_assert_eq!(outcome, Ok((Act::SignOut, path))),
            (_, _, outcome) => prop_assert_eq!(outcome, Err(Refusal::Method)),
        }
    }

    /// However it comes in pieces, it is the same request.
    #[test]
    fn pieces_make_no_difference(
        text in "(GET|POST) /(sign-in|peers)\\?q=[a-z%+]{0,9} HTTP/1.1\r\n(Host: localhost\r\n)?\
            (Content-Length: [0-9]{1,3}\r\n)?\r\n(token=[a-z]{0,30})?",
        size in 1_usize..50,
    ) {
        struct Pieces<'a>(&'a [u8], usize);
        impl Read for Pieces<'_> {
            fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
                let count = self.1.min(self.0.len()).min(bytes.len());
                bytes[..count].copy_from_slice(&self.0[..count]);
                self.0 = &self.0[count..];
                Ok(count)
            }
        }
        let told = |outcome: Result<Request, Refusal>| outcome.map(|one| (one.act, one.path, one.query));
        let of_pieces = http::read(&mut Pieces(text.as_bytes(), size), &Reached::default()).expect("read");
        prop_assert_eq!(told(of_pieces), told(read(&text)));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = http::read(&mut bytes.as_slice(), &Reached::default());
    }

    #[test]
    fn what_is_encoded_is_decoded(text in "\\PC{0,40}") {
        let query = format!("a=1&q={}", http::encode(&text));
        prop_assert_eq!(http::value(&query, "q"), Some(text));
    }
}

/// Names that would be more than text: markup, attributes, an address that is a script, controls.
const HOSTILE: [&str; 4] =
    ["<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "' onload='alert(1)", "a\u{202e}b\u{1b}]0;x\u{7}"];

/// A look at what this answers.
pub(super) fn look_answering(answer: impl Fn(Question) -> Reply + Send + 'static) -> Look {
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    std::thread::spawn(move || {
        let mut writer = theirs.try_clone().expect("another");
        for line in BufReader::new(theirs).lines().map_while(Result::ok) {
            let reply = answer(serde_json::from_str(&line).expect("a question"));
            writer.write_all(format!("{}\n", serde_json::to_string(&reply).expect("text")).as_bytes()).expect("told");
        }
    });
    Look::new(way_to_reader(ours).expect("a way"), true)
}

/// What a daemon says, as a reader hands it on.
pub(super) fn told(answer: &Answer) -> Reply {
    Reply::Told(serde_json::value::to_raw_value(answer).expect("JSON"))
}

/// A look at one daemon whose peers and attackers have these names.
fn look() -> Look {
    look_answering(|question| reply(&question))
}

fn reply(question: &Question) -> Reply {
    let measured = link_layer();
    let (Answer::Status(mut status), Answer::Peers { peers }) = (*measured.status, *measured.known) else {
        panic!("a host")
    };
    match question {
        Question::Daemons => Reply::Daemons(vec!["e0".to_owned()]),
        Question::Ask { what: What::Status, .. } => {
            let hostile = |attack: &mut Attack| {
                attack.sentence = HOSTILE.concat();
                attack.source.name = Some(HOSTILE.concat());
                attack.source.mac = Some(HOSTILE[1].to_owned());
            };
            status.attacks.open.iter_mut().for_each(hostile);
            told(&Answer::Status(status))
        }
        Question::Ask { what: What::Known, .. } => {
            let named = HOSTILE.map(|name| {
                let (name, mac, addresses) = (name.to_owned(), name.to_owned(), vec![name.to_owned()]);
                crate::protocol::Peer { name, mac, addresses, ..peers[0].clone() }
            });
            told(&Answer::Peers { peers: named.to_vec() })
        }
        Question::Ask { .. } => Reply::Silent(HOSTILE.concat()),
        Question::History(_) => Reply::Rows(Vec::new()),
        Question::Redeem(_) => Reply::Redeemed(true),
        Question::Site(_) => Reply::Site(Some(Box::new(hostile_site()))),
    }
}

/// What a service says that was taken over.
fn hostile_site() -> Site {
    let text = || HOSTILE.concat();
    let host = BriefHost {
        name: text(),
        mac: text(),
        addresses: vec![text()],
        group: text(),
        mode: Some(text()),
        migration: Some(text()),
        ..BriefHost::default()
    };
    let clear = Clear {
        mac: text(),
        enrolled_as: Some(text()),
        addresses: vec![text()],
        protocols: vec![text()],
        ..Clear::default()
    };
    let legacy = vec![Legacy { ip: text(), mac: text(), router: true }];
    let told = Told { hosts: vec![host], clear: vec![clear], legacy, ..Told::default() };
    let failing = Some(Failing { since_unix: 1_795_000_000, why: text() });
    Site { number: 1, service: text(), told_unix: Some(1_795_000_000), told, failing }
}

#[test]
fn nothing_from_the_wire_is_more_than_text_on_any_page() {
    let look = look();
    let hostile = http::encode(&HOSTILE.concat());
    let made = [
        pages::overview(&look, &hostile),
        pages::peers(&look, &format!("q={}", http::encode(HOSTILE[0]))),
        pages::peers(&look, ""),
        pages::host(&look, &format!("who={}", http::encode(HOSTILE[1]))),
        pages::map(&look),
        pages::attacks(&look, &format!("about={hostile}")),
        pages::history(&look, &format!("about={hostile}&kind={hostile}")),
        pages::drops(&look),
        pages::certificates(&look),
        pages::gateway(&look, &format!("q={hostile}")),
        pages::about(&look, 1, &std::collections::BTreeMap::new()),
        pages::site(&look, &format!("q={}", http::encode(HOSTILE[0]))).map(Option::unwrap_or_default),
        pages::site(&look, &format!("standing={hostile}")).map(Option::unwrap_or_default),
        Ok(pages::sign_in(HOSTILE[1])),
    ];
    let mut with_names = 0;
    for html in made.map(|page| page.expect("a page")) {
        assert!(!html.contains("<script>") && !html.contains("<img"), "{html}");
        assert_eq!(
            html.matches("<script").count(),
            html.matches("<script src=\"/console.js\" defer></script>").count()
        );
        // No attribute begins behind a mark that a name brought.
        assert!(!html.contains("' onload='") && !html.contains("\"> <img"), "{html}");
        assert!(!html.chars().any(|one| one.is_control() && one != '\n' || one == '\u{202e}'), "{html}");
        with_names += usize::from(html.contains("&#60;script&#62;"));
    }
    assert!(with_names >= 7, "the names were shown at all: {with_names}");
}

/// What a door says to a client that sends this and goes away, or stays where it is told to.
fn converse(door: &Arc<Door>, request: String) -> (UnixStream, std::thread::JoinHandle<()>) {
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let door = Arc::clone(door);
    let conversation = std::thread::spawn(move || door.converse(Box::new(theirs), Who::User(1000)));
    (&ours).write_all(request.as_bytes()).expect("sent");
    (ours, conversation)
}

/// Signs somebody in at this time; what his browser's next request has in its head.
fn sign_in(door: &Door, now: Instant) -> String {
    let form = format!("token={}", Secret::new([9; SECRET_LEN]).text().as_str());
    let length = form.len();
    let post = format!("POST /sign-in HTTP/1.1\r\n{HOST}Content-Length: {length}\r\n\r\n{form}");
    let Ok(Outcome::Whole(answer)) = door.answer(&read(&post).expect("a request"), now) else { panic!("signed in") };
    let cookie = answer.fields.lines().find_map(|line| line.strip_prefix("Set-Cookie: ")).expect("a cookie");
    format!("{HOST}Cookie: {}\r\n", cookie.split(';').next().expect("a value"))
}

/// A page that is told of news is fetched again by its script, which went on as long as anything was
/// new.
#[test]
fn what_a_script_fetches_keeps_nobody_signed_in() {
    let door = Door::new(look(), Front::default());
    let start = Instant::now();
    let cookie = sign_in(&door, start);
    let ask = |fields: &str, minutes: u64| {
        let request = read(&format!("GET /map HTTP/1.1\r\n{cookie}{fields}\r\n")).expect("a request");
        door.answer(&request, start + Duration::from_secs(60 * minutes)).err()
    };
    let of_script = "Sec-Fetch-Dest: empty\r\nSec-Fetch-Site: same-origin\r\n";
    let of_person = "Sec-Fetch-Dest: document\r\nSec-Fetch-Site: same-origin\r\n";
    assert_eq!(ask(of_person, 50), None);
    assert_eq!(ask(of_script, 109), None, "an hour from when somebody asked");
    assert_eq!(ask(of_script, 110), Some(Refusal::NotSignedIn));
}

/// One account that came again and again cost all others the time in which it was heard out.
#[test]
fn who_has_his_part_is_dropped_without_being_heard() {
    for (most, said) in [(2, None), (1, Some("HTTP/1.1 503 Service Unavailable"))] {
        let door = Arc::new(Door::new(look(), Front::default()));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let places = Places::new(most, 1);
        std::thread::spawn(move || serve(&Listener::Tcp(listener), &places, &door));
        let _held = TcpStream::connect(address).expect("the one that he may have");
        let mut next = TcpStream::connect(address).expect("one more");
        let mut answer = String::new();
        // What was not read is lost with a reset, which is an error here.
        let _ = next.write_all(format!("GET / HTTP/1.1\r\n{HOST}\r\n").as_bytes());
        let _ = next.read_to_string(&mut answer);
        assert_eq!(answer.lines().next(), said);
    }
}

/// An event stream whose browser was gone held its place until something was to be said, and the
/// test would last as long as one may be open.
#[test]
fn an_event_stream_ends_when_its_browser_is_gone_or_signed_out() {
    let door = Arc::new(Door::new(look(), Front::default()));
    let cookie = sign_in(&door, Instant::now());
    let listen = || {
        let (stream, conversation) = converse(&door, format!("GET /news HTTP/1.1\r\n{cookie}\r\n"));
        let mut lines = BufReader::new(stream.try_clone().expect("another")).lines();
        let first = lines.next().expect("a line").expect("read");
        assert_eq!(first, "HTTP/1.1 200 OK");
        (stream, conversation)
    };
    let (gone, conversation) = listen();
    drop(gone);
    conversation.join().expect("over");
    let (_stays, conversation) = listen();
    let (_, signed_out) = converse(&door, format!("POST /sign-out HTTP/1.1\r\n{cookie}\r\n"));
    signed_out.join().expect("over");
    conversation.join().expect("over");
}

/// A look at what is known of the site.
fn look_at(site: Site) -> Look {
    look_answering(move |question| match question {
        Question::Site(number) => Reply::Site(Some(Box::new(site.clone())).filter(|site| site.number != number)),
        _ => Reply::Daemons(Vec::new()),
    })
}

#[test]
fn a_big_site_is_shown_in_pages_and_what_is_old_is_called_so() {
    let host = |number: usize| BriefHost {
        name: format!("desk-{number:05}"),
        mac: "02:00:00:00:00:01".to_owned(),
        addresses: vec![format!("10.0.{}.{}", number / 250, number % 250 + 1)],
        is_silent: number == 7,
        attacks_open: u64::from(number == 9),
        migration: Some("enforce".to_owned()),
        certificate_not_after_unix: u64::MAX / 2,
        ..BriefHost::default()
    };
    let told = Told { hosts: (0..HOSTS_MAX).map(host).collect(), ..Told::default() };
    let mut site = Site { number: 1, told_unix: Some(super::look::unix_s()), told, ..Site::default() };
    let look = look_at(site.clone());
    let page = |query: &str| pages::site(&look, query).expect("made").expect("asked");
    let first = page("");
    assert!(first.contains("20\u{202f}000 hosts, no policy.") && first.contains("desk-00099"), "{first}");
    assert!(!first.contains("desk-00100"), "a hundred");
    assert!(["What is shown is old", "which is old"].iter().all(|old| !first.contains(old)), "as new as can be");
    assert!(first.len() < 100_000, "{} bytes", first.len());
    assert!(page("page=200").contains("desk-19999"));
    let missing = page("standing=missing");
    assert!(missing.contains("1 found") && missing.contains("desk-00007") && missing.contains("MISSING"), "{missing}");
    assert!(page("standing=attacked").contains("desk-00009"));
    assert!(page("q=10.0.1.1").contains("desk-00250"));
    site.failing = Some(Failing { since_unix: 1_795_000_000, why: "no answer within 20 s".to_owned() });
    let look = look_at(site);
    let away = pages::site(&look, "").expect("made").expect("asked");
    assert!(away.contains("says nothing since 2026-11-18 11:06:40Z: no answer within 20 s"), "{away}");
    assert!(away.contains("What is shown is old") && away.contains("desk-00001"), "{away}");
}
