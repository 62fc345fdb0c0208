//! The golden frames to groups: batches are signed alike, and every frame of theirs proves itself alone.

use std::sync::Arc;

use identity::HostIdentity;
use wire::cll::broadcast::Part;
use wire::cll::{Announcement, GroupFrame, Question};
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};

use super::{SITE, START_UNIX_S, Vectors, identity_of};
use crate::job::broadcast::{Batch, CheckAnnouncement, CheckRoot, Outcome, Work, tag};
use crate::job::{CertificateTime, Origins};
use crate::merkle;
use crate::settings::Settings;

const BROADCAST: &str = include_str!("../../../../vectors/broadcast.txt");
/// Name and number of messages of each batch.
const BATCHES: [(&str, u8); 3] = [("single", 1), ("batch", 5), ("announcements", 2)];

fn alpha() -> Arc<HostIdentity> {
    identity_of(&Vectors::read(SITE), "alpha")
}

fn all(vectors: &Vectors, batch: &str, kind: &str, count: u8) -> Vec<Vec<u8>> {
    (0..count).map(|at| vectors.bytes(&format!("{batch}.{kind}.{at}")).to_vec()).collect()
}

#[test]
fn batches_are_signed_alike() {
    let vectors = Vectors::read(BROADCAST);
    for (batch, count) in BATCHES {
        let frames = all(&vectors, batch, "unproved", count);
        let work = Work::Sign(Box::new(Batch {
            identity: alpha(),
            site_key: alpha().site_key().clone(),
            incarnation: vectors.array("incarnation"),
            frames,
        }));
        let Outcome::Signed(Some(frames)) = work.run() else { panic!("{batch} is not signed") };
        assert_eq!(frames, all(&vectors, batch, "frame", count), "{batch}");
    }
}

#[test]
fn every_group_frame_is_read_emitted_and_proved_alike() {
    let (vectors, identity) = (Vectors::read(BROADCAST), alpha());
    for (batch, count) in &BATCHES[..2] {
        for frame in all(&vectors, batch, "frame", *count) {
            let (ethernet, bytes) = frame.split_at(ETHERNET_LEN);
            let message = GroupFrame::parse(bytes).expect("a group frame");
            assert_eq!(message.emit(), bytes);
            let leaf = merkle::leaf(ethernet, &bytes[..message.unproved_len()]);
            let root = merkle::Way::of(leaf, message.head.place, message.proof.path).root();
            assert_eq!(root, vectors.array::<32>(&format!("{batch}.root")));
            let check = CheckRoot {
                certificate: Arc::new(identity.certificate().clone()),
                signed: merkle::signed(vectors.array("incarnation"), *count, &root),
                signature: message.proof.signature.to_vec(),
            };
            let Outcome::Root(Ok(())) = Work::CheckRoot(Box::new(check)).run() else { panic!("{batch} is not proved") };
            let mut tagged = frame.clone();
            tagged[ETHERNET_LEN + 2..ETHERNET_LEN + 18].fill(0);
            tag(identity.site_key(), &mut tagged);
            assert_eq!(tagged, frame);
        }
    }
}

#[test]
fn the_long_packet_stands_in_two_parts() {
    let vectors = Vectors::read(BROADCAST);
    let frames = all(&vectors, "batch", "frame", 5);
    let parts: Vec<_> =
        frames[2..4].iter().map(|frame| GroupFrame::parse(&frame[ETHERNET_LEN..]).expect("a part")).collect();
    assert_eq!([parts[0].part, parts[1].part], [Part { number: 0, of: 2 }, Part { number: 1, of: 2 }]);
    assert_eq!([parts[0].payload, parts[1].payload].concat(), vectors.bytes("long.payload"));
}

#[test]
fn questions_and_announcements_are_made_and_judged_alike() {
    let (vectors, identity) = (Vectors::read(BROADCAST), alpha());
    for (at, frame) in all(&vectors, "announcements", "frame", 2).into_iter().enumerate() {
        let nonce = vectors.array(&format!("question.{at}.nonce"));
        let (header, bytes) = Header::parse(&frame).expect("a frame");
        let announcement = Announcement::parse(bytes).expect("an announcement");
        assert_eq!((announcement.emit().as_slice(), announcement.nonce), (bytes, nonce));
        let asked = Header { destination: header.source, source: header.destination, ethertype: header.ethertype };
        let time_ms = u64::from_be_bytes(vectors.array(&format!("question.{at}.time")));
        let mut question = [&asked.emit()[..], &Question { site_tag: [0; 16], nonce, time_ms }.emit()].concat();
        tag(identity.site_key(), &mut question);
        assert_eq!(question, vectors.bytes(&format!("question.{at}.frame")));
        let check = CheckAnnouncement {
            origins: Origins {
                settings: Arc::new(Settings::new(identity_of(&Vectors::read(SITE), "omega"), 1500)),
                revoked: Arc::default(),
                time: CertificateTime::Shown(START_UNIX_S),
            },
            asked: header.source,
            frame,
        };
        match Work::CheckAnnouncement(Box::new(check)).run() {
            Outcome::Announced(Ok(certificate)) => assert_eq!(certificate.name(), "alpha"),
            _ => panic!("announcement {at} is not believed"),
        }
    }
}
