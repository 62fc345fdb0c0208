use proptest::prelude::*;

use super::proof::{CLAIM_LEN, Claim, Maker, NONCE_LEN, Proof, TAG_LEN};
use super::*;

/// A frame around `options` (which end themselves), written by hand after RFC 2131, figure 1.
fn frame_with(operation: u8, options: &[u8]) -> Vec<u8> {
    let mut bootp = vec![0_u8; OPTIONS_AT];
    bootp[..4].copy_from_slice(&[operation, 1, 6, 0]);
    bootp[4..8].copy_from_slice(&0x1234_5678_u32.to_be_bytes());
    bootp[28..34].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    bootp[FIXED_LEN..OPTIONS_AT].copy_from_slice(&[0x63, 0x82, 0x53, 0x63]);
    bootp.extend(options);
    let mut frame = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 1, 8, 0]].concat();
    frame.extend([0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255]);
    frame.extend([0, 68, 0, 67, 0, 0, 0, 0]);
    frame.extend(bootp);
    fill_headers(&mut frame);
    frame
}

fn discover() -> Vec<u8> {
    frame_with(1, &[53, 1, 1, 50, 4, 10, 0, 0, 7, 255])
}

fn sums_are_right(frame: &[u8]) -> bool {
    let ip = ipv4::View::new(&frame[14..]).expect("IPv4");
    let datagram = ip.payload();
    let pseudo = checksum::pseudo_header_v4(ip.source(), ip.destination(), 17, datagram.len() as u16);
    ip.checksum_is_right() && pseudo.bytes(datagram).checksum() == 0
}

#[test]
fn fields_and_options_of_a_discover() {
    let frame = discover();
    let view = View::new(&frame).expect("valid");
    assert_eq!((view.kind(), view.operation(), view.xid()), (MessageType::Discover, Operation::Request, 0x1234_5678));
    assert_eq!(view.chaddr(), MacAddress([2, 0, 0, 0, 0, 1]));
    assert_eq!(view.address_option(OPTION_REQUESTED), Ok(Some(Ipv4Addr::new(10, 0, 0, 7))));
    assert_eq!((view.lease_s(), view.is_relayed()), (Ok(None), false));
    assert_eq!(recognise(&frame), Kind::Dhcp);
}

#[test]
fn a_proof_goes_in_before_the_end_and_comes_out_again() {
    let frame = discover();
    let view = View::new(&frame).expect("valid");
    let proved = view.with_proof(&[7; 113]).expect("it fits");
    assert!(sums_are_right(&proved));
    let read = View::new(&proved).expect("valid");
    assert_eq!(read.option(OPTION_PROOF).as_deref(), Some(&[7; 113][..]));
    assert_eq!(read.canonical(), view.canonical());
    let bare = read.without_proof().expect("it fits");
    assert!(sums_are_right(&bare));
    assert_eq!(View::new(&bare).expect("valid").canonical(), view.canonical());
    // Options, END, then zeros up to the 300 bytes that old receivers demand.
    assert_eq!(bare[..BOOTP_AT + OPTIONS_AT + 10][BOOTP_AT..], frame[BOOTP_AT..][..OPTIONS_AT + 10]);
    assert_eq!(bare.len(), BOOTP_AT + BOOTP_MIN_LEN);
}

#[test]
fn what_relays_change_is_not_covered_and_all_else_is() {
    let frame = discover();
    let canonical = View::new(&frame).expect("valid").canonical();
    let same = |at: usize| {
        let mut changed = frame.clone();
        changed[BOOTP_AT + at] ^= 1;
        View::new(&changed).is_ok_and(|view| view.canonical() == canonical)
    };
    let free: Vec<usize> = (0..OPTIONS_AT + 9).filter(|at| same(*at)).collect();
    assert_eq!(free, [3, 8, 9, 24, 25, 26, 27]);
    let relayed = frame_with(1, &[53, 1, 1, 50, 4, 10, 0, 0, 7, 82, 2, 1, 0, 255]);
    let view = View::new(&relayed).expect("valid");
    assert!(view.is_relayed() && view.canonical() == canonical);
}

#[test]
fn options_may_be_split_and_overloaded() {
    let split = frame_with(2, &[53, 1, 5, 43, 2, 1, 2, 0, 0, 43, 1, 3, 255]);
    let view = View::new(&split).expect("valid");
    assert_eq!(view.option(43).as_deref(), Some(&[1, 2, 3][..]));
    let mut overloaded = frame_with(2, &[53, 1, 5, 52, 1, 3, 255]);
    overloaded[BOOTP_AT + FILE.start..][..7].copy_from_slice(&[51, 4, 0, 0, 0, 60, 255]);
    overloaded[BOOTP_AT + SNAME.start..][..6].copy_from_slice(&[54, 4, 10, 0, 0, 1]);
    assert!(View::new(&overloaded).is_err(), "sname has no end");
    overloaded[BOOTP_AT + SNAME.start + 6] = 255;
    let view = View::new(&overloaded).expect("valid");
    assert_eq!(view.lease_s(), Ok(Some(60)));
    assert_eq!(view.address_option(OPTION_SERVER), Ok(Some(Ipv4Addr::new(10, 0, 0, 1))));
    // Only what stands in the options field could be taken out again.
    overloaded[BOOTP_AT + SNAME.start] = 82;
    assert!(View::new(&overloaded).is_err());
}

#[test]
fn nonsense_is_refused() {
    for options in [
        &[53, 1, 1][..],
        &[255],
        &[53, 1, 9, 255],
        &[53, 1, 1, 53, 1, 1, 255],
        &[53, 2, 1, 1, 255],
        &[53, 1, 2, 255],
        &[53, 1, 1, 52, 1, 4, 255],
        &[53, 1, 1, 60, 200, 1, 255],
        &[53, 1, 1, 60],
        &[53, 1, 1, 60, 255],
        &[53, 1, 1, 60, 2, 255],
    ] {
        assert!(View::new(&frame_with(1, options)).is_err(), "{options:?}");
    }
    let many = [&[53, 1, 1][..], &[60, 0].repeat(OPTIONS_MAX), &[255]].concat();
    assert!(View::new(&frame_with(1, &many)).is_err(), "too many options");
    let mut elsewhere = discover();
    elsewhere[37] = 53;
    assert!(View::new(&elsewhere).is_err());
    let frame = discover();
    for len in 0..frame.len() {
        assert!(View::new(&frame[..len]).is_err(), "{len} bytes");
    }
    let long =
        [&[53, 1, 1][..], &[60, 250].iter().chain(&[0; 250]).copied().collect::<Vec<_>>().repeat(4), &[255]].concat();
    let long = frame_with(1, &long);
    let view = View::new(&long).expect("it fits Ethernet");
    assert!(view.with_proof(&[0; 255]).is_none() && view.without_proof().is_some());
}

#[test]
fn dhcp_hides_in_no_other_form() {
    let frame = discover();
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut changed = frame.clone();
        change(&mut changed);
        recognise(&changed)
    };
    // A first fragment shows its ports; a later one cannot be put together without it.
    assert_eq!(with(&|frame| frame[20] = 0x20), Kind::Hidden);
    assert_eq!(with(&|frame| frame[21] = 1), Kind::Other);
    // IP options move the ports; the frame is found, and then refused.
    let with_ip_options = |frame: &mut Vec<u8>| {
        frame[14] = 0x46;
        frame.splice(34..34, [1, 1, 1, 0]);
    };
    assert_eq!(with(&with_ip_options), Kind::Dhcp);
    let mut optioned = frame.clone();
    with_ip_options(&mut optioned);
    assert!(View::new(&optioned).is_err());
    // Programs with packet sockets read past a wrong version and a wrong length of the header.
    assert_eq!(with(&|frame| frame[14] = 0x65), Kind::Hidden);
    assert_eq!(with(&|frame| frame[14] = 0x40), Kind::Hidden);
    assert_eq!(with(&|frame| frame.truncate(36)), Kind::Hidden);
    // Other ports, protocols and EtherTypes are no DHCP; tags are refused before anybody looks here.
    assert_eq!(with(&|frame| frame[37] = 53), Kind::Other);
    assert_eq!(with(&|frame| frame[37] = 68), Kind::Dhcp);
    assert_eq!(with(&|frame| frame[23] = 6), Kind::Other);
    assert_eq!(with(&|frame| frame[12..14].copy_from_slice(&[0x81, 0])), Kind::Other);
}

#[test]
fn a_proof_and_a_claim_have_their_places() {
    let bytes: Vec<u8> = (1..=113).collect();
    let proof = Proof::parse(&bytes).expect("valid");
    assert_eq!((proof.maker, proof.who, proof.stamp), (Maker::Client, 0x0203_0405_0607_0809, 0x0a0b_0c0d_0e0f_1011));
    assert_eq!((proof.nonce[0], proof.tag[0], proof.signature.len()), (18, 34, 64));
    assert!(Proof::parse(&bytes[..48]).is_err() && Proof::parse(&[3; 113]).is_err());
    assert_eq!((NONCE_LEN, TAG_LEN, proof.emit() == bytes), (16, 16, true));
    let mut bytes: Vec<u8> = (0..CLAIM_LEN as u8).collect();
    bytes[32] = 3;
    let claim = Claim::parse(&bytes).expect("valid");
    assert_eq!((claim.kind, claim.xid), (MessageType::Request, 0x2122_2324));
    assert_eq!((claim.chaddr.0[0], claim.ciaddr.octets()[0], claim.address.octets()[0]), (37, 43, 47));
    assert_eq!((claim.server.octets()[0], claim.digest[0]), (51, 55));
    assert_eq!(claim.emit()[..], bytes);
    assert!(Claim::parse(&bytes[1..]).is_err() && Claim::parse(&[&bytes[..], &[0]].concat()).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_harm(bytes: Vec<u8>, options in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = recognise(&bytes);
        let _ = View::new(&bytes);
        for operation in [1, 2] {
            let frame = frame_with(operation, &options);
            if let Ok(view) = View::new(&frame) {
                let _ = (view.option(61), view.lease_s(), view.canonical());
            }
        }
    }

    #[test]
    fn with_and_without_a_proof_the_message_stays_the_same(
        values in proptest::collection::vec((1_u8..255, proptest::collection::vec(any::<u8>(), 0..30)), 0..12),
        proof in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut options = vec![53, 1, 3];
        for (code, value) in &values {
            options.extend([*code, value.len() as u8]);
            options.extend(value);
        }
        options.push(255);
        let frame = frame_with(1, &options);
        if let Ok(view) = View::new(&frame) {
            let proved = view.with_proof(&proof).expect("it fits");
            prop_assert!(sums_are_right(&proved));
            let read = View::new(&proved).expect("what is written is read");
            let found = read.option(OPTION_PROOF);
            prop_assert_eq!(found.as_deref(), Some(&proof[..]));
            prop_assert_eq!(read.canonical(), view.canonical());
            // Canonical frames are written as they were read.
            let bare = read.without_proof().expect("it fits");
            prop_assert_eq!(View::new(&bare).expect("valid").without_proof(), Some(bare.clone()));
            prop_assert_eq!(View::new(&bare).expect("valid").with_proof(&proof), Some(proved));
        }
    }

    #[test]
    fn proofs_and_claims_write_what_they_read(bytes in proptest::collection::vec(any::<u8>(), 0..130)) {
        if let Ok(proof) = Proof::parse(&bytes) { prop_assert_eq!(proof.emit(), bytes.clone()); }
        if let Ok(claim) = Claim::parse(&bytes) { prop_assert_eq!(claim.emit().to_vec(), bytes); }
    }
}
