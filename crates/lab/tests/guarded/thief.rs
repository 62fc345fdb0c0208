//! What thieves gain on real interfaces: of a copied ticket, and of an authority below the site's.
//!
//! A thief's own daemon would refuse such a file itself, so the frames are made here. The thief has
//! a key of the site, as every host has, and hears all frames.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::signature::Ed25519KeyPair;
use bump::{Batch, Meta};
use identity::agreement::KeyPair;
use identity::site_key::SiteKey;
use identity::ticket::ResumptionSecret;
use identity::{hash, pem};
use ringwall_lab::failure::Failure;
use ringwall_lab::net::lan::{Forwarding, INTERFACE};
use ringwall_lab::net::talk::reach;
use ringwall_lab::net::{Host, LanPlan, link, process};
use rustix::process::Signal;
use system::port::{PacketPort, Receiver, Sender};
use wire::EtherType;
use wire::MacAddress;
use wire::arp::{Arp, Operation};
use wire::cll::compression::Compression;
use wire::cll::handshake::{Agreement, set_site_tag, tagged_parts, unsigned_parts};
use wire::cll::resumption::{Kind, Resumption};
use wire::cll::{Handshake, Offer, PacketType, Resolution};
use wire::ethernet::{HEADER_LEN, Header};

use crate::resume::{await_ticket, resuming};
use crate::stage::{Guarded, Outcome, Plan, SOON, Stage, perform_bare, perform_on};

/// The tag under the site key of handshakes and resumptions (docs/protocol.md, section 3).
const SITE_LABEL: &[u8] = b"handshake";
/// Where a ticket file has the secret: behind the peer's address and names (docs/protocol.md,
/// section 25).
const SECRET_AT: std::ops::Range<usize> = 25..57;
/// The checks of the kernel in front of the daemon, and none.
const LAYERS: [&str; 2] = ["kernel", "twin"];

fn hub() -> LanPlan {
    LanPlan { hosts: vec!["a", "b", "c"], forwarding: Forwarding::Hub, ..LanPlan::default() }
}

fn layered(plan: Plan, layers: &str) -> Plan {
    plan.cll(&format!("layers = \"{layers}\""))
}

/// Who hears all frames, sends any, and has a key of the site.
struct Thief {
    port: PacketPort,
    site_key: SiteKey,
}

impl Thief {
    fn on(stage: &Stage, host: &str) -> Result<Thief, Failure> {
        let port = stage.host(host).namespace.enter(|| link::open(INTERFACE))?;
        let file = stage.site.directory().join("site.key.pem");
        let text = fs::read_to_string(&file).map_err(Failure::file("reading", &file))?;
        let site_key = SiteKey::from_pem(&text).map_err(|error| Failure::Unreadable(error.to_string()))?;
        Ok(Thief { port, site_key })
    }

    /// Sends `message` under a right tag of the site.
    fn send(&mut self, header: Header, mut message: Vec<u8>) {
        let ethernet = header.emit();
        let [before, after] = tagged_parts(&message);
        let tag = self.site_key.frame_tag(SITE_LABEL, &[&ethernet, before, after]);
        set_site_tag(&mut message, &tag);
        let frame = [&ethernet[..], &message].concat();
        let room = self.port.sender.reserve(frame.len()).expect("room for a frame");
        room[..frame.len()].copy_from_slice(&frame);
        self.port.sender.commit(frame.len(), Meta::plain());
        self.port.sender.flush();
    }

    /// Waits for a frame of `from` that carries `kind`.
    fn await_message(&mut self, from: MacAddress, kind: PacketType) -> Result<Vec<u8>, Failure> {
        let mut found = None;
        process::until(&format!("a {kind:?} of {from}"), SOON, || {
            self.port.receiver.fill().map_err(Failure::io("hearing the wire"))?;
            while let Some(frame) = self.port.receiver.next_frame() {
                let is_it = frame.bytes.get(6..12) == Some(&from.0[..])
                    && frame.bytes.get(HEADER_LEN) == Some(&kind.first_byte());
                found = found.take().or_else(|| is_it.then(|| frame.bytes.to_vec()));
            }
            Ok(found.is_some())
        })?;
        Ok(found.expect("until it was found"))
    }
}

/// The holder of a stolen ticket asks to resume. Before replies were signed, the thief's answer
/// with a right binder made an association, and the holder sealed to him (review of the protocol,
/// F5).
#[test]
fn a_copied_ticket_does_not_make_its_thief_the_issuer() {
    for layers in LAYERS {
        perform_on(&hub(), |stage| thief_answers(stage, layers));
    }
}

fn thief_answers(stage: &Stage, layers: &str) -> Outcome {
    let (a, b) = (stage.host("a"), stage.host("b"));
    let mut near = stage.guard("a", layered(resuming(), layers))?;
    let mut far = stage.guard("b", resuming())?;
    reach(&a.namespace, b.ip, SOON)?;
    let stolen = pem::single(&await_ticket(&near, "")?, pem::TICKET).expect("a ticket in PEM");
    let secret = ResumptionSecret::from_bytes(stolen[SECRET_AT].try_into().expect("32 bytes"));
    near.stop(Signal::KILL);
    far.stop(Signal::KILL);
    let mut thief = Thief::on(stage, "c")?;
    near.start(&[])?;
    let mut ping = a.namespace.command("ping");
    ping.args(["-n", "-c", "5", "-W", "1", &b.ip.to_string()]);
    let ping = process::Running::start(ping, &stage.file("ping.log"))?;
    let asked = thief.await_message(a.mac, PacketType::ResumptionRequest)?;
    for signature in [&[][..], &[0; 64]] {
        let reply = reply_to(&asked, b.mac, &secret, signature);
        thief.send(Header { destination: a.mac, source: b.mac, ethertype: EtherType::CLL }, reply);
    }
    near.await_drops("bad-signature", 2)?;
    assert_eq!(near.drops("bad-binder")?, 0, "the binders were right, so only the signature tells");
    assert_eq!(near.status()?["peers"], 0, "{}", near.json(&["peers"])?);
    let received = ping.stop(Signal::INT);
    assert!(!received.contains("bytes from"), "{received}");
    Ok(())
}

/// What the issuer would answer, but for its signature.
fn reply_to(asked: &[u8], issuer: MacAddress, secret: &ResumptionSecret, signature: &[u8]) -> Vec<u8> {
    let message = &asked[HEADER_LEN..];
    let request = Resumption::parse(message).expect("a request");
    let pair = KeyPair::from_random(&[99; 32]).expect("a key pair");
    let reply = |binder| Resumption {
        kind: Kind::Reply(signature),
        site_tag: [0; 16],
        resolution: request.resolution.reply(issuer, None),
        timestamp_ms: request.timestamp_ms,
        nonce: request.nonce,
        offer: Offer { receiver_index: 8, ..request.offer },
        key_share: pair.public(),
        binder,
    };
    let unbound = reply([0; 32]).emit_unbound();
    let [before, after] = tagged_parts(message);
    let hash = hash::sha256(&[before, after]);
    let bound = [&hash[..], &unbound[..2], &unbound[18..]];
    reply(secret.binder(b"ringwall cll 2 resumption reply", &bound)).emit()
}

/// A company's authority has others below it. Only one of the form of a DHCP server's makes hosts
/// of the LAN (docs/protocol.md, section 22); one without constraints did once (review, F7).
#[test]
fn of_authorities_below_the_sites_only_one_for_leases_makes_hosts() {
    let name = "of_authorities_below_the_sites_only_one_for_leases_makes_hosts";
    for layers in LAYERS {
        perform_bare(name, &["openssl"], |run| judge_authorities(&Stage::set(run, &hub())?, layers));
    }
}

fn judge_authorities(stage: &Stage, layers: &str) -> Outcome {
    let near = stage.guard("a", layered(Plan::default(), layers))?;
    let mut thief = Thief::on(stage, "c")?;
    let company = Company::below(stage)?;
    ask_under(stage, &mut thief, &company.chain(stage, "foreign", FOREIGN)?)?;
    near.await_drops("bad-certificate", 1)?;
    assert_unanswered(&near, &mut thief, stage.host("a"))?;
    // The same host with the same key under an authority for leases is answered: the form alone
    // told.
    ask_under(stage, &mut thief, &company.chain(stage, "leases", LEASES)?)?;
    thief.await_message(stage.host("a").mac, PacketType::HandshakeReply)?;
    assert_eq!(near.drops("bad-certificate")?, 1);
    Ok(())
}

fn assert_unanswered(near: &Guarded, thief: &mut Thief, host: &Host) -> Outcome {
    assert_eq!(near.status()?["peers"], 0, "{}", near.json(&["peers"])?);
    assert!(near.events()?.contains("bad-certificate"), "{}", near.events()?);
    thief.port.receiver.fill().map_err(Failure::io("hearing the wire"))?;
    while let Some(frame) = thief.port.receiver.next_frame() {
        let is_reply = frame.bytes.get(HEADER_LEN) == Some(&PacketType::HandshakeReply.first_byte());
        assert!(!is_reply || frame.bytes.get(6..12) != Some(&host.mac.0[..]), "an answer to a foreign authority");
    }
    Ok(())
}

const FOREIGN: &str = "basicConstraints=critical,CA:TRUE,pathlen:0\nkeyUsage=critical,keyCertSign\n";
const LEASES: &str = "basicConstraints=critical,CA:TRUE,pathlen:0\nkeyUsage=critical,keyCertSign\n\
    nameConstraints=critical,permitted;IP:10.77.0.0/255.255.255.0\n";

/// A host's certificate, its authority's behind it, and the host's key.
struct Chain {
    certificates: Vec<u8>,
    key: Ed25519KeyPair,
}

/// Authorities below the site's, made with OpenSSL as a company makes them.
struct Company {
    at: PathBuf,
}

impl Company {
    fn below(stage: &Stage) -> Result<Company, Failure> {
        let at = stage.file("company");
        fs::create_dir_all(&at).map_err(Failure::file("making", &at))?;
        fs::write(at.join("asked.cnf"), "[req]\ndistinguished_name=subject\n[subject]\n")
            .map_err(Failure::file("writing", &at))?;
        for key in ["sub.key", "host.key"] {
            openssl(&at, &["genpkey", "-algorithm", "ED25519", "-out", key])?;
        }
        for name in ["ca.crt.pem", "ca.key.pem"] {
            let from = stage.site.directory().join(name);
            fs::copy(&from, at.join(name)).map_err(Failure::file("copying", &from))?;
        }
        Ok(Company { at })
    }

    /// Host `c` under an authority with these extensions.
    fn chain(&self, stage: &Stage, name: &str, extensions: &str) -> Result<Chain, Failure> {
        let c = stage.host("c");
        let site = ["ca.crt.pem", "ca.key.pem"];
        let authority = self.sign("sub.key", &format!("/CN={name}/serialNumber=00b1"), site, extensions)?;
        fs::write(self.at.join("sub.crt"), &authority).map_err(Failure::file("writing", &self.at))?;
        let mac: String = c.mac.0.iter().map(|byte| format!("{byte:02x}")).collect();
        let names = format!(
            "keyUsage=critical,digitalSignature\nsubjectAltName=@names\n[names]\n\
             otherName.0=1.3.6.1.5.5.7.8.12;FORMAT:HEX,OCTETSTRING:{mac}\nIP.0={}\n",
            c.ip
        );
        let host = self.sign("host.key", "/CN=c/serialNumber=00aa", ["sub.crt", "sub.key"], &names)?;
        let der = |text: &str| pem::single(text, pem::CERTIFICATE).expect("a certificate");
        let key = fs::read_to_string(self.at.join("host.key")).map_err(Failure::file("reading", &self.at))?;
        let key = pem::single(&key, pem::PRIVATE_KEY).expect("a key");
        let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&key).expect("a key of Ed25519");
        Ok(Chain { certificates: [&der(&host)[..], &der(&authority)].concat(), key })
    }

    fn sign(&self, key: &str, subject: &str, issuer: [&str; 2], extensions: &str) -> Result<String, Failure> {
        let write = |name: &str, text: &str| fs::write(self.at.join(name), text);
        write("extensions", extensions).map_err(Failure::file("writing", &self.at))?;
        openssl(
            &self.at,
            &["req", "-config", "asked.cnf", "-new", "-key", key, "-subj", subject, "-out", "asked.csr"],
        )?;
        let [certificate, issuer_key] = issuer;
        let signing = ["x509", "-req", "-in", "asked.csr", "-CA", certificate, "-CAkey", issuer_key, "-CAcreateserial"];
        let granting = ["-days", "20", "-extfile", "extensions", "-out", "granted.crt"];
        openssl(&self.at, &[&signing[..], &granting].concat())?;
        let granted = self.at.join("granted.crt");
        fs::read_to_string(&granted).map_err(Failure::file("reading", &granted))
    }
}

fn openssl(at: &Path, words: &[&str]) -> Outcome {
    let mut command = Command::new("openssl");
    command.current_dir(at).args(words);
    process::must(command).map(drop)
}

/// Host `c` asks `a` for a handshake with this chain; all but the chain is as it must be.
fn ask_under(stage: &Stage, thief: &mut Thief, chain: &Chain) -> Outcome {
    let (a, c) = (stage.host("a"), stage.host("c"));
    let pair = KeyPair::from_random(&[98; 32]).expect("a key pair");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let question = Arp {
        operation: Operation::Request,
        sender_mac: c.mac,
        sender_ip: c.ip,
        target_mac: MacAddress::ZERO,
        target_ip: a.ip,
    };
    // A host that has just started asks for a proof of freshness, and gets the cookie back.
    let mut cookie = [0; 16];
    for _ in 0..2 {
        let request = Handshake {
            kind: PacketType::HandshakeRequest,
            site_tag: [0; 16],
            resolution: Resolution::Arp(question),
            timestamp_ms: now.as_millis() as u64,
            nonce: hash::sha256(&[&chain.certificates])[..16].try_into().expect("16 bytes"),
            offer: offer(),
            key_share: pair.public(),
            cookie,
            certificate: &chain.certificates,
            signature: &[],
        };
        let mut message = request.emit_unsigned();
        let [before, after] = unsigned_parts(&message);
        let signature = chain.key.sign(&[b"ringwall cll 2 request", before, after].concat());
        wire::cll::handshake::append_signature(&mut message, signature.as_ref());
        thief.send(Header { destination: a.mac, source: c.mac, ethertype: EtherType::CLL }, message);
        if cookie != [0; 16] {
            break;
        }
        let challenge = thief.await_message(a.mac, PacketType::Challenge)?;
        cookie = wire::cll::Challenge::parse(&challenge[HEADER_LEN..]).expect("a challenge").cookie;
    }
    Ok(())
}

fn offer() -> Offer {
    Offer {
        agreement: Agreement::X25519,
        suite: 1,
        confidential: true,
        slow_nonce: false,
        lanes: 1,
        receiver_index: 0x1000,
        lifetime_s: 1800,
        compression: Compression::NONE,
        post_quantum: false,
        pre_shared: false,
    }
}
