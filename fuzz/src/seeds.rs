//! Where fuzzing starts: the golden vectors cut to what each target reads, and scripts for the bumps.

use identity::signing::SigningKey;
use wire::arp::{Arp, Operation};
use wire::sarp::data::{Answer, Question, Record, Resolution};
use wire::sarp::enrolment::{Application, Enrolment, Fetch, Piece, State};
use wire::sarp::{Kind, Message};

use crate::input::Input;
use crate::site;
use crate::vectors;

const ETHERNET_LEN: usize = 14;

/// First inputs for `target`; at least one.
#[must_use]
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    let owned = |values: &mut dyn Iterator<Item = &'static [u8]>| values.map(<[u8]>::to_vec).collect::<Vec<_>>();
    let behind_ethernet =
        |ending| vectors::ending_with(ending).map(|frame| frame[ETHERNET_LEN..].to_vec()).collect::<Vec<_>>();
    match target {
        "ethernet" => {
            let mut all = owned(&mut vectors::ending_with(".plain"));
            all.extend([b"02:00:00:00:00:01".to_vec(), tagged()]);
            all
        }
        "arp" => vectors::ending_with("request.frame").map(|frame| frame[32..60].to_vec()).collect(),
        "sarp" => sarp_messages(),
        "token" => vec![token()],
        // Waiting twice, an identity in two pieces, the farewell; a refusal without its tag.
        "applicant" => vec![
            vec![
                1, 1, 4, 0, 0, 0, 0, 1, 1, 4, 0, 0, 0, 0, 1, 2, 6, 0, 3, 0, 0, 8, 8, 1, 2, 5, 0, 3, 0, 2, 8, 1, 4, 4,
                0, 0, 0, 0,
            ],
            vec![2, 3, 4, 0, 0, 0, 0, 0, 9, 1, 2, 3],
        ],
        "dhcp" => dhcp_messages(),
        "cll_data" => behind_ethernet(".wire"),
        "train" => trains(),
        "cll_handshake" => [behind_ethernet("request.frame"), behind_ethernet("reply.frame")].concat(),
        "cll_dhcp" => behind_ethernet("discover.wire")
            .into_iter()
            .chain(["challenge.wire", "request.wire", "offer.wire"].map(behind_ethernet).concat())
            .collect(),
        "discovery" => discovery(),
        "cll_challenge" => behind_ethernet("challenge.frame"),
        "cll_rollover" => [".request", ".reply", ".acknowledgement"]
            .into_iter()
            .flat_map(|name| owned(&mut vectors::ending_with(name)))
            .collect(),
        "cll_broadcast" => {
            let numbered = ["frame.0", "frame.1", "frame.2", "frame.3"].into_iter().flat_map(behind_ethernet);
            numbered.chain(vectors::ending_with(".0.frame").map(|frame| frame[ETHERNET_LEN..].to_vec())).collect()
        }
        "cll_resumption" => {
            let frames = ["resumption.request", "resumption.reply"].map(behind_ethernet).concat();
            frames.into_iter().chain(owned(&mut vectors::ending_with(".grant"))).collect()
        }
        "cll_compressed" => crate::compressed::seeds(),
        "internet" => {
            let packets = behind_ethernet(".plain");
            let segments = packets.iter().filter_map(|packet| packet.get(20..)).map(<[u8]>::to_vec);
            segments.chain(packets.clone()).collect()
        }
        "segment" => cuts(),
        "coalesce" => vec![flow(&[100, 100, 100, 40]), flow(&[1400; 8]), datagrams(&[100, 100, 100, 40])],
        "capture" => captures(),
        "certificate" => certificates(),
        "pem" => pem_files(),
        "null_bump" => vec![null_script()],
        "shield_ipsec" => esp_scripts(),
        "cll_bump" => scripts(),
        // Each kind of step with an early, a later and a late panic.
        "faults" => (0..5).map(|kind| (0..12).flat_map(|step| [kind, step * 5 + kind, step]).collect()).collect(),
        // A question that is answered; a replay of each frame that this took; lies; time.
        "sarp_bump" => vec![
            vec![0, 3, 1, 0, 0, 3, 0, 10, 0, 4, 0, 0, 4, 1, 0, 4, 2, 1, 30, 4, 7, 1, 1, 1, 7, 0, 1, 0],
            vec![1, 3, 1, 0, 2, 0, 2, 3, 8, 0, 4, 3, 2, 50, 1, 60, 2, 1, 9, 3, 255, 255, 0, 5, 20, 6, 20],
        ],
        "scrub" => scrubber_scripts(),
        "config" => configs(),
        _ => Vec::new(),
    }
}

/// Handshakes and what follows them, then scripts by chance: one with all laws and one with any rules of each.
fn scrubber_scripts() -> Vec<Vec<u8>> {
    // Not a pause, a handshake's step between the first hosts: SYN, SYN-ACK, ACK.
    let handshake: Vec<u8> = (0..3).flat_map(|step| [0, 0, 3, 0, 0, 0, step]).collect();
    let mut random = bump::Generator::from_seed([5; 32]);
    let tails = [Vec::new(), random.bytes::<400>().to_vec(), random.bytes::<1500>().to_vec()];
    let scripts = tails.iter().map(|tail| [&[0][..], &handshake, tail].concat());
    scripts.flat_map(|script| [[&[0][..], &script].concat(), [&[1][..], &script].concat()]).collect()
}

/// A TCP frame of alpha with `len` bytes of payload from `sequence` on.
fn tcp(sequence: u32, len: usize) -> Vec<u8> {
    let mut frame = vectors::ending_with("initiator.lane0.partial.plain").next().expect("a vector")[..54].to_vec();
    frame[38..42].copy_from_slice(&sequence.to_be_bytes());
    // ACK alone: a pushed segment ends a run.
    frame[47] = 0x10;
    frame.resize(54 + len, 0x55);
    frame[16..18].copy_from_slice(&((40 + len) as u16).to_be_bytes());
    frame
}

/// Each golden frame as a train of itself, and of itself twice.
fn trains() -> Vec<Vec<u8>> {
    let couple = |frame: &'static [u8], times: usize| {
        let messages = frame[ETHERNET_LEN..].repeat(times);
        wire::cll::train::head(frame, messages.len()).map(|head| [&head[..], &messages].concat())
    };
    vectors::ending_with(".wire").flat_map(|frame| [couple(frame, 1), couple(frame, 2)]).flatten().collect()
}

fn token() -> Vec<u8> {
    let master = identity::distributor::RequestMaster::from_bytes([5; 32]);
    let place = identity::token::Place { ip: [10, 0, 0, 9].into(), mac: wire::MacAddress([2, 0, 0, 0, 0, 9]) };
    identity::token::Token::new(&master, 7, b"authority", "desk", &[place]).to_text().as_bytes().to_vec()
}

/// A resolution with a nonce and a key reply, both signed with nonsense, and data of each kind alone.
fn sarp_messages() -> Vec<Vec<u8>> {
    let record = Record { algorithm: 1, mac: Some(wire::MacAddress([2, 0, 0, 0, 0, 1])), key: &[7; 32] }.emit();
    let answer = Answer { fraction: 1, host: 4, nonce: [2; 16], rest: &record }.emit();
    let resolution = Resolution { fraction: Some(1), nonce: Some([3; 8]) }.emit();
    let question = Question { host: 4, nonce: [5; 16] }.emit();
    let arp = |operation| Arp {
        operation,
        sender_mac: wire::MacAddress([2, 0, 0, 0, 0, 1]),
        sender_ip: [10, 0, 0, 1].into(),
        target_mac: wire::MacAddress([2, 0, 0, 0, 0, 2]),
        target_ip: [10, 0, 0, 2].into(),
    };
    let kinds = [
        (Kind::Resolution, Operation::Request, &resolution),
        (Kind::KeyReply, Operation::Reply, &answer),
        (Kind::KeyRequest, Operation::Request, &question),
    ];
    let message = |(kind, operation, data): (Kind, Operation, &Vec<u8>)| {
        Message { arp: arp(operation), kind, seconds: 1_800_000_000, data, signature: &[9; 64] }.emit()
    };
    let messages = kinds.map(message);
    let piece = Piece { total: 9, offset: 2, bytes: &[8; 4] };
    let of_token = Question { host: 7, nonce: [6; 16] };
    let enrolment = Enrolment { question: of_token, state: State::Approved, piece }.emit();
    let application = Application { question: of_token, sealing_key: [1; 32], request: &[0x30, 0] }.emit();
    let fetch = Fetch { question: of_token, offset: 2 }.emit();
    messages.into_iter().chain([record, resolution, question, enrolment, application, fetch]).collect()
}

/// A DISCOVER, a REQUEST with a relay's option, an ACK whose options lie in `file` and `sname` too, each with a proof and
/// without, and what S-DHCP says to a distributor.
fn dhcp_messages() -> Vec<Vec<u8>> {
    let discover = dhcp_frame(1, &[53, 1, 1, 61, 7, 1, 2, 0, 0, 0, 0, 1, 255]);
    let request = dhcp_frame(1, &[53, 1, 3, 50, 4, 10, 0, 0, 7, 54, 4, 10, 0, 0, 1, 82, 2, 1, 0, 255]);
    let mut ack = dhcp_frame(2, &[53, 1, 5, 52, 1, 3, 255]);
    ack[42 + 44..42 + 51].copy_from_slice(&[54, 4, 10, 0, 0, 1, 255]);
    ack[42 + 108..42 + 115].copy_from_slice(&[51, 4, 0, 0, 2, 88, 255]);
    let plain = [discover, request, ack];
    let proof: Vec<u8> = (1..=113).collect();
    let proved = plain.iter().filter_map(|frame| wire::dhcp::View::new(frame).ok()?.with_proof(&proof));
    let lease = [&[0; 24][..], &[2, 10, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4]].concat();
    let mut all: Vec<_> = proved.collect();
    all.extend(plain);
    all.extend([proof, lease]);
    all
}

fn dhcp_frame(operation: u8, options: &[u8]) -> Vec<u8> {
    let mut bootp = vec![0; 240];
    bootp[..8].copy_from_slice(&[operation, 1, 6, 0, 1, 2, 3, 4]);
    bootp[28..34].copy_from_slice(&crate::leases::MAC.0);
    bootp[236..].copy_from_slice(&[99, 130, 83, 99]);
    bootp.extend(options);
    let (ip_len, udp_len) = ((28 + bootp.len()) as u16, (8 + bootp.len()) as u16);
    let mut frame = [&[0xff; 6][..], &crate::leases::MAC.0, &[8, 0, 0x45, 0], &ip_len.to_be_bytes()].concat();
    frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 0, 68, 0, 67]);
    frame.extend(udp_len.to_be_bytes());
    [&frame[..], &[0, 0], &bootp].concat()
}

/// A question and an answer, bare and in their packets; a router's word with options, alone and behind an extension header.
fn discovery() -> Vec<Vec<u8>> {
    let [one, other] = ["fe80::1", "2001:db8::2"].map(|text| text.parse().expect("an address"));
    let asked = wire::nd::solicitation(one, crate::leases::MAC, wire::nd::solicited_node(other), other);
    let answered = wire::nd::advertisement(other, crate::leases::MAC, one, true);
    let mut router = vec![134, 0, 0, 0, 64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1];
    router.extend(crate::leases::MAC.0);
    // A prefix for an hour and a half-hour.
    router.extend([3, 4, 64, 0xc0, 0, 0, 14, 16, 0, 0, 7, 8, 0, 0, 0, 0, 0x20, 1, 0x0d, 0xb8, 0, 1, 0, 0]);
    router.extend([0; 8]);
    let hidden = [&[58, 0, 1, 4, 0, 0, 0, 0][..], &router].concat();
    let header = wire::ipv6::header(one, other, 60, wire::nd::HOP_LIMIT, hidden.len() as u16);
    let bare = [&asked, &answered].map(|packet| packet[wire::ipv6::HEADER_LEN..].to_vec());
    bare.into_iter().chain([asked, answered, router, [&header[..], &hidden].concat()]).collect()
}

fn tagged() -> Vec<u8> {
    let plain = tcp(1, 10);
    [&plain[..12], &[0x81, 0, 0, 5], &plain[12..]].concat()
}

/// TCP over IPv4, tagged, and inside VXLAN.
fn cuts() -> Vec<Vec<u8>> {
    let inner = tcp(1, 1000);
    let mut outer = vectors::ending_with("initiator.lane0.udp.plain").next().expect("a vector")[..42].to_vec();
    outer[36..38].copy_from_slice(&4789_u16.to_be_bytes());
    outer[38..40].copy_from_slice(&((8 + 8 + inner.len()) as u16).to_be_bytes());
    outer.extend([8, 0, 0, 0, 0, 0, 42, 0]);
    outer.extend(&inner);
    vec![
        [&[0, 0, 0, 100][..], &inner].concat(),
        [&[0, 1, 34, 0, 100][..], &inner].concat(),
        [&[0, 0, 0, 100][..], &tagged()].concat(),
        [&[0, 1, 84, 0, 100][..], &outer].concat(),
        [&[2, 0, 0, 10][..], &outer].concat(),
    ]
}

/// Segments that follow each other, each behind its length.
fn flow(lens: &[usize]) -> Vec<u8> {
    let mut sequence = 1;
    let mut input = Vec::new();
    for &len in lens {
        let frame = tcp(sequence, len);
        sequence += len as u32;
        input.extend((frame.len() as u16).to_be_bytes());
        input.extend(frame);
    }
    input
}

/// Datagrams of so many bytes each, one after the other.
fn datagrams(lens: &[usize]) -> Vec<u8> {
    let mut input = Vec::new();
    for &len in lens {
        // The headers of TCP, of which UDP keeps the ports.
        let mut frame = tcp(0, len);
        frame.drain(42..54);
        frame[16..18].copy_from_slice(&((28 + len) as u16).to_be_bytes());
        frame[20] = 0x40;
        frame[23] = 17;
        frame[38..40].copy_from_slice(&((8 + len) as u16).to_be_bytes());
        frame[40..42].fill(0x55);
        input.extend((frame.len() as u16).to_be_bytes());
        input.extend(frame);
    }
    input
}

/// A pcap file, and a pcapng file as the writer makes them.
fn captures() -> Vec<Vec<u8>> {
    let mut pcap = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0];
    pcap.extend([1, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 9, 9, 9, 9]);
    let section = [0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0];
    let mut ng = section.to_vec();
    ng.extend([0xff; 8]);
    ng.extend([28, 0, 0, 0]);
    ng.extend([1, 0, 0, 0, 32, 0, 0, 0, 1, 0, 0, 0, 0, 0, 4, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0]);
    ng.extend([6, 0, 0, 0, 36, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 9, 9, 9, 9]);
    ng.extend([36, 0, 0, 0]);
    vec![pcap, ng]
}

fn certificates() -> Vec<Vec<u8>> {
    let plain = vectors::ending_with(".certificate").map(|der| [&[0], der].concat());
    // subjectAltName: an otherName with the hardware address, and an iPAddress.
    let mut names = vec![0x30, 0x1c, 0xa0, 0x14, 0x06, 8, 0x2b, 6, 1, 5, 5, 7, 8, 12, 0xa0, 8, 4, 6, 2, 0, 0, 0, 0, 1];
    names.extend([0x87, 4, 10, 0, 0, 1]);
    // Secret keys of the paper profile, and what certificates say of their public halves.
    let secret = [3, 4].map(|algorithm| [&[algorithm][..], &[7; 20]].concat());
    let public = secret.clone().map(|key| SigningKey::from_paper_block(&key).ok().and_then(|key| key.paper_spki()));
    let paper = secret.into_iter().chain(public.into_iter().flatten()).map(|key| [&[2][..], &key].concat());
    plain.chain([[&[1][..], &names].concat()]).chain(paper).collect()
}

fn pem_files() -> Vec<Vec<u8>> {
    let text = |text: String| [&[5][..], text.as_bytes()].concat();
    let mut all = vec![text(site::identity_text("alpha", None)), text(site::identity_text("omega", None))];
    all.extend([
        [&[0][..], site::value("alpha.certificate")].concat(),
        [&[1][..], site::value("alpha.pkcs8")].concat(),
    ]);
    all.extend([[&[2][..], site::value("site_key")].concat(), [&[4, 3][..], &[7; 20]].concat()]);
    let request = rcgen::KeyPair::try_from(site::value("alpha.pkcs8")).and_then(|key| {
        rcgen::CertificateParams::default().serialize_request(&key).map(|request| request.der().to_vec())
    });
    all.extend(request.map(|der| [&[3][..], &der].concat()));
    all
}

/// ESP in UDP between the two ends, twice towards the wire and once from it, and raw ESP.
fn esp_scripts() -> Vec<Vec<u8>> {
    let packet = |protocol: u8, payload: &[u8]| {
        let addresses = [10, 0, 0, 1, 10, 0, 0, 254];
        let len = (20 + payload.len()) as u16;
        let ip = [&[0x45, 0][..], &len.to_be_bytes(), &[0, 1, 0, 0, 64, protocol, 0, 0], &addresses].concat();
        [&[2; 12][..], &[8, 0], &ip, payload].concat()
    };
    let esp = [0xc0, 0xff, 0xee, 1, 0, 0, 0, 5, 9, 9, 9, 9];
    let udp = [&[0x11, 0x94, 0x11, 0x94, 0, 20, 0x12, 0x34][..], &esp].concat();
    let script = |frame: &[u8]| {
        let batch = |from: u8| [&[from, 1][..], &(frame.len() as u16).to_be_bytes(), frame, &[0, 5, 0]].concat();
        [batch(1), batch(1), batch(0)].concat()
    };
    vec![script(&packet(17, &udp)), script(&packet(50, &esp))]
}

fn null_script() -> Vec<u8> {
    let frame = tcp(1, 60);
    let mut script = vec![1, 200, 1];
    script.extend((frame.len() as u16).to_be_bytes());
    script.extend(&frame);
    // A partial checksum at 34 + 16, to be cut every 20 bytes.
    script.extend([4, 0, 34, 16, 0, 0, 20, 0, 0]);
    script
}

/// Scripts of the link layer: the first five bytes choose the world and its hosts, then steps follow.
fn scripts() -> Vec<Vec<u8>> {
    let world = |first: u8, one: u8, other: u8| vec![first, one, 0, other, 0];
    let steps = |mut script: Vec<u8>, steps: &[u8]| {
        script.extend(steps);
        script
    };
    vec![
        // Honest datagrams both ways, a segment, a super-frame, ARP.
        steps(
            world(0, 0, 0),
            &[0x1f, 5, 1, 2, 3, 4, 5, 0x9f, 5, 1, 2, 3, 4, 5, 0, 9, 7, 1, 0x0f, 0xa0, 7, 5, 0xb4, 0, 2, 0],
        ),
        // Replays, reflections, damage, splices.
        steps(
            world(0, 1, 8),
            &[0x1f, 2, 1, 2, 7, 0, 0x87, 0, 0x88, 0, 0, 0, 60, 1, 0, 0x89, 1, 0, 0, 60, 1, 0, 0x8a, 0, 1, 40],
        ),
        // A lying stack.
        steps(world(0, 0x10, 0), &[4, 4, 1, 2, 3, 4, 2, 2, 2, 3, 2, 0x1a, 3, 0, 1, 0, 1, 20, 0x45]),
        // Nothing established, slow jobs, lost frames, time, a restart.
        steps(world(5, 0, 0), &[2, 0, 12, 12, 5, 0x8c, 5, 13, 14, 40, 0, 6, 0x8f, 16, 14, 0xff, 0xff, 15, 14, 40, 0]),
        // Short lifetimes, frequent new keys, and a stack that does not answer.
        steps(
            world(8, 0x60, 0x60),
            &[0x1f, 1, 1, 0x1f, 1, 1, 0x9f, 1, 1, 14, 0xff, 0xff, 0x91, 0x1f, 1, 1, 14, 0xff, 0xff],
        ),
    ]
}

fn configs() -> Vec<Vec<u8>> {
    let full = "[host]\ninterface = \"eth0\"\nmode = \"cll\"\nprofile = \"lab\"\non_exit = \"restore\"\n[cll]\n\
        ethertype = 2000\nsend_suite = \"aes-128-gcm\"\nconfidentiality = false\nrequire_suites = [\"aes-256-gcm\"]\n\
        lifetime_s = 1800\npass = [\"lldp\"]\n[[cll.legacy]]\nip = \"10.0.0.9\"\nmac = \"02:00:00:00:00:09\"\n\
        role = \"router\"\n[lab]\nweaken = [\"tag\"]\nlifetime_min_s = 20\n";
    let sarp = "[host]\ninterface = \"eth0\"\nmode = \"sarp\"\n[sarp]\nwindow_s = 61\nsign_requests = true\n\
        distributors = [\"/x.pem\"]\n[[sarp.known_hosts]]\nip = \"10.0.0.9\"\nmac = \"02:00:00:00:00:09\"\n\
        [akd]\nrepository = \"/x.db\"\n";
    let gate = "[gate]\ntrusted = \"eth1\"\nuntrusted = \"eth2\"\nmirror = \"eth3\"\npreset = \"strict\"\nicmp = \"jitter\"\n\
        out_of_order = \"drop\"\nencrypted = [[\"10.0.0.0/8\", \"::1\"]]\nethertypes = [\"lldp\", 0x88f7]\nmtu = 9000\n\
        option_order = [\"sack\", \"mss\", \"sack-permitted\", \"timestamps\", \"window-scale\"]\n\
        [gate.rules]\ntcp-fin = \"sever\"\n";
    [b"[host]\ninterface = \"eth0\"\n", full.as_bytes(), sarp.as_bytes(), gate.as_bytes()].map(<[u8]>::to_vec).to_vec()
}

/// A changed copy of one of `seeds` by the choices in `input`: what a fuzzer does, in small.
#[must_use]
pub fn mutate(seeds: &[Vec<u8>], input: &mut Input<'_>) -> Vec<u8> {
    let mut data = seeds[input.below(seeds.len())].clone();
    for _ in 0..=input.below(6) {
        let at = usize::from(input.word()) % (data.len() + 1);
        match input.below(5) {
            0 => data.truncate(at),
            1 => data.insert(at, input.byte()),
            2 if at < data.len() => drop(data.remove(at)),
            3 => data.extend(input.take(4)),
            _ if at < data.len() => data[at] ^= 1 << input.below(8),
            _ => {}
        }
    }
    data
}
