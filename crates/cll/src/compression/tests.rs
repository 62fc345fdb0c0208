use proptest::prelude::*;
use wire::EtherType;

use super::*;

const LEN_MAX: usize = 1467;
const LZ4: Option<Algorithm> = Some(Algorithm::Lz4);
const IPV4: InnerHeader = InnerHeader { ethertype: EtherType::IPV4, checksum_partial: false, compressed: true };

/// What leaves: the payload, and whether it was compressed.
fn sent(payload: &[u8]) -> (Vec<u8>, bool) {
    let mut place = payload.to_vec();
    match Compressor::default().shrink(Algorithm::Lz4, &mut place) {
        Some(len) => (place[..len].to_vec(), true),
        None => (place, false),
    }
}

fn received(payload: &[u8]) -> Result<Vec<u8>, DropReason> {
    let mut compressor = Compressor::default();
    let packed = compressor.accept(LZ4, &IPV4, payload, LEN_MAX)?;
    // A byte that nobody wrote shows.
    let mut room = vec![0xa5; packed.len];
    compressor.expand(&packed, &mut room)?;
    Ok(room)
}

proptest! {
    #[test]
    fn what_is_sent_is_smaller_or_as_it_was_and_comes_back(
        piece in proptest::collection::vec(any::<u8>(), 0..300), times in 1_usize..40, flipped in any::<prop::sample::Index>(),
    ) {
        let mut payload = piece.repeat(times);
        payload.truncate(LEN_MAX);
        if !payload.is_empty() {
            let at = flipped.index(payload.len());
            payload[at] ^= 0xff;
        }
        let (wire, compressed) = sent(&payload);
        if compressed {
            prop_assert!(wire.len() < payload.len() && wire.len() >= PAYLOAD_MIN);
            prop_assert_eq!(received(&wire), Ok(payload));
        } else {
            prop_assert_eq!(wire, payload);
        }
    }

    #[test]
    fn whatever_comes_is_expanded_to_what_it_claims_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200), len in 0..2000_u16) {
        let payload = [&len.to_be_bytes()[..], &bytes].concat();
        match received(&payload) {
            Ok(expanded) => prop_assert!(expanded.len() == usize::from(len) && expanded.len() > payload.len()),
            Err(reason) if usize::from(len) > LEN_MAX => prop_assert_eq!(reason, DropReason::CompressedTooLong),
            Err(reason) => prop_assert_eq!(reason, DropReason::CompressedMalformed),
        }
    }

    #[test]
    fn a_block_that_was_damaged_never_becomes_longer_than_it_claims(at in any::<prop::sample::Index>(), value: u8) {
        let (mut wire, _) = sent(&b"to be or not to be, that is the question ".repeat(20));
        let at = at.index(wire.len());
        wire[at] = value;
        let claimed = usize::from(u16::from_be_bytes([wire[0], wire[1]]));
        if let Ok(expanded) = received(&wire) {
            prop_assert_eq!(expanded.len(), claimed);
        }
    }
}

#[test]
fn random_bytes_leave_as_they_are_and_are_counted() {
    let noise = bump::Generator::from_seed([5; 32]).bytes::<1400>();
    let mut compressor = Compressor::default();
    assert_eq!(compressor.shrink(Algorithm::Lz4, &mut noise.clone()), None);
    let text = b"the same again, and ".repeat(50);
    let len = compressor.shrink(Algorithm::Lz4, &mut text.clone()).expect("smaller");
    let report = *compressor.report();
    assert_eq!((report.left_frames, report.compressed_frames), (1, 1));
    assert_eq!((report.bytes_before, report.bytes_after), (1400 + 1000, 1400 + len as u64));
    let mut both = report;
    both.add(&report);
    assert_eq!((both.left_frames, both.bytes_before), (2, 4800));
}

#[test]
fn whatever_leaves_compressed_needs_no_padding() {
    for len in 0..200 {
        let (wire, compressed) = sent(&vec![0; len]);
        assert!(!compressed || (PAYLOAD_MIN..len).contains(&wire.len()), "{len} bytes became {}", wire.len());
    }
    assert!(sent(&[0; 200]).1);
}

/// LZ4's own words for `len` equal bytes: a match of offset 1, whose length goes on in bytes of 255.
fn equal_bytes(len: usize) -> Vec<u8> {
    let rest = len - 1 - 4 - 15 - 5;
    let mut block = vec![0x1f, b'x', 1, 0];
    block.extend(vec![0xff; rest / 255]);
    block.extend([(rest % 255) as u8, 0x50]);
    block.extend([b'x'; 5]);
    block
}

fn with_length(len: usize, block: &[u8]) -> Vec<u8> {
    [&u16::try_from(len).expect("short").to_be_bytes()[..], block].concat()
}

#[test]
fn a_block_that_expands_beyond_a_frame_is_refused_before_it_is_expanded() {
    let bomb = equal_bytes(60_000);
    assert!(bomb.len() < 300, "a small frame");
    assert_eq!(received(&with_length(60_000, &bomb)), Err(DropReason::CompressedTooLong));
    assert_eq!(received(&with_length(LEN_MAX + 1, &bomb)), Err(DropReason::CompressedTooLong));
    assert_eq!(
        received(&with_length(LEN_MAX, &bomb)),
        Err(DropReason::CompressedMalformed),
        "it claims less than it is"
    );
    assert_eq!(received(&with_length(LEN_MAX, &equal_bytes(LEN_MAX))), Ok(vec![b'x'; LEN_MAX]));
    assert_eq!(received(&with_length(LEN_MAX, &equal_bytes(LEN_MAX - 1))), Err(DropReason::CompressedMalformed));
}

/// RUSTSEC-2026-0041: where such blocks were not refused, the stack was given what the port's buffer held before.
#[test]
fn a_block_that_copies_from_before_its_beginning_is_refused() {
    for offset in [0_u16, 2, 3, 100, 0xffff] {
        let [low, high] = offset.to_le_bytes();
        // One literal, a match of 19 bytes at this offset, five literals.
        let block = [0x1f, b'x', low, high, 0, 0x50, b'a', b'b', b'c', b'd', b'e'];
        assert_eq!(received(&with_length(1 + 19 + 5, &block)), Err(DropReason::CompressedMalformed), "offset {offset}");
    }
    let block = [0x1f, b'x', 1, 0, 0, 0x50, b'a', b'b', b'c', b'd', b'e'];
    assert_eq!(received(&with_length(25, &block)).map(|expanded| expanded.len()), Ok(25), "only the offset was wrong");
}

#[test]
fn only_frames_of_the_stack_are_expanded_and_only_where_that_was_agreed() {
    let (payload, _) = sent(&[7; 1000]);
    let judge = |agreed, inner: InnerHeader| {
        Compressor::default().accept(agreed, &inner, &payload, LEN_MAX).map(|packed| packed.len)
    };
    assert_eq!(judge(LZ4, IPV4), Ok(1000));
    assert_eq!(judge(None, IPV4), Err(DropReason::Compressed));
    for ethertype in [InnerHeader::NOTHING, InnerHeader::CONTROL] {
        assert_eq!(judge(LZ4, InnerHeader { ethertype, ..IPV4 }), Err(DropReason::InnerMalformed));
    }
    for payload in [&[][..], &[0], &[0, 0], &[0, 3, 0x10]] {
        assert_eq!(received(payload), Err(DropReason::CompressedMalformed), "{payload:?}");
    }
}
