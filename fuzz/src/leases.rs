//! DHCP messages, and both halves of S-DHCP: whatever comes, programs and wire get nothing that the site did not sign.

use std::time::Duration;

use bump::Instant;
use dhcp::server::Step;
use dhcp::{Client, Server, client, server};
use identity::Succession;
use identity::site_key::SiteKey;
use wire::MacAddress;
use wire::dhcp::proof::{Claim, Proof};
use wire::dhcp::{Kind, OPTION_PROOF, View, recognise};
use wire::sarp::data::{Lease, Refusal};

use crate::site;

/// A client's hardware address in the seeds.
pub const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const SITE_KEY: [u8; 32] = [5; 32];
const WINDOW: Duration = Duration::from_secs(30);
const NOW: Instant = Instant::from_millis(1000);
const STAMP: u64 = 1_800_000_000 << 32;

/// Any bytes as a frame and as what S-DHCP puts into one.
pub fn dhcp(data: &[u8]) {
    if let Ok(message) = View::new(data) {
        assert_eq!(recognise(data), Kind::Dhcp);
        rewrite(&message);
    }
    if let Ok(proof) = Proof::parse(data) {
        assert_eq!(proof.emit(), data);
    }
    if let Ok(claim) = Claim::parse(data) {
        assert_eq!(claim.emit(), data);
    }
    if let Ok(lease) = Lease::parse(data) {
        assert_eq!(lease.emit(), data);
    }
    if let Ok(refusal) = Refusal::parse(data) {
        assert_eq!([refusal as u8], data);
    }
    halves(data);
}

/// The proof goes in and out, and the message stays what it was.
fn rewrite(message: &View<'_>) {
    let Some(proved) = message.with_proof(&[7; 113]) else { return };
    let read = View::new(&proved).expect("what is written is read");
    assert_eq!(read.option(OPTION_PROOF).as_deref(), Some(&[7; 113][..]));
    assert_eq!(read.canonical(), message.canonical());
    let bare = read.without_proof().expect("it is shorter");
    let again = View::new(&bare).expect("what is written is read");
    assert_eq!((again.canonical(), again.option(OPTION_PROOF)), (message.canonical(), None));
}

/// A client that has asked with this very frame, and a server. Nobody here has the site's keys.
fn halves(data: &[u8]) {
    let site_keys = Succession::from(SiteKey::from_bytes(SITE_KEY));
    let servers = vec![site::identities()[0].certificate().clone()];
    let settings = client::Settings { mac: MAC, host: 1, site_keys: site_keys.clone(), servers, window: WINDOW };
    let mut client = Client::new(settings);
    let proved = client
        .outgoing(NOW, Some(STAMP), [1; 16], data)
        .map(|proving| proving.run(&site::identities()[0].signing_key()));
    let checking = client.incoming(NOW, Some(STAMP), data);
    assert!(checking.is_err(), "nobody has made a tag under this key");
    let order = if data.len() % 2 == 0 { server::Order::AtRequest } else { server::Order::AtAck };
    let settings =
        server::Settings { key_name: 1, addresses: Vec::new(), site_keys, relays: Vec::new(), window: WINDOW, order };
    let mut server = Server::new(settings);
    assert!(server.outgoing(NOW, Some(STAMP), data).is_err(), "nobody has asked");
    assert!(server.incoming(NOW, Some(STAMP), data).is_err(), "nobody has made a tag under this key");
    // What the client's own program asks is understood by the server, which has to ask a distributor.
    if let Ok(Ok(frame)) = proved {
        let step = server.incoming(NOW, Some(STAMP), &frame);
        assert!(!matches!(step, Ok(Step::Check(_) | Step::Deliver(..))), "no key is known yet");
    }
}
