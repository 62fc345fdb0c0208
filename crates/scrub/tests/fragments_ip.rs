//! The defining property for fragments: whatever leaves is read alike by hosts of every published policy, parses, and is not
//! changed by a second scrubber; honest packets arrive whatever order their fragments take.

#[path = "receivers/ip.rs"]
mod receivers;
#[path = "support/ip.rs"]
mod support;

use proptest::prelude::*;
use receivers::{Fragment, Policy};
use support::{Gate, V4, V6, cut, read};

/// The published example of Shankar and Paxson (their figure of six fragments, a letter for eight bytes) and what each
/// policy makes of it.
#[test]
fn the_models_read_the_published_example_as_published() {
    let fragment = |letter, start: usize, blocks: usize, more| (letter, start, blocks, more);
    let fragments = [
        fragment(b'1', 0, 3, true),
        fragment(b'2', 4, 2, true),
        fragment(b'3', 6, 3, true),
        fragment(b'4', 1, 4, true),
        fragment(b'5', 6, 3, true),
        fragment(b'6', 9, 3, false),
    ];
    for (policy, published) in [
        (Policy::Bsd, "111442333666"),
        (Policy::BsdRight, "144422555666"),
        (Policy::Linux, "111442555666"),
        (Policy::First, "111422333666"),
        (Policy::Last, "144442555666"),
    ] {
        assert_eq!(letters(policy, &fragments), [published], "{policy:?}");
    }
}

/// Novak's longer example, of the fragments A to Q, and what he gives for each policy.
#[test]
fn the_models_read_novaks_example_as_published() {
    let starts = [0, 4, 6, 10, 13, 15, 18, 20, 22, 1, 6, 9, 12, 16, 19, 20, 22];
    let blocks = [3, 2, 3, 1, 2, 3, 2, 2, 1, 4, 3, 3, 3, 1, 1, 1, 2];
    let fragments: Vec<_> = (b'A'..=b'Q')
        .zip(starts.into_iter().zip(blocks))
        .map(|(letter, (start, blocks))| (letter, start, blocks, letter != b'Q'))
        .collect();
    for (policy, published) in [
        (Policy::Bsd, "AAAJJBCCCLLLMMMFFFGGHHIQ"),
        (Policy::Linux, "AAAJJBKKKLLLMMMFFFGGPHQQ"),
        (Policy::Windows, "AAAJBBCCCLLLMEEFFFGGHHIQ"),
        (Policy::Solaris, "AAAJBBCCCLLLMMMFFFGGHHIQ"),
        (Policy::First, "AAAJBBCCCLDLMEEFFFGGHHIQ"),
        (Policy::Last, "AJJJJBKKKLLLMMMFNFGOPHQQ"),
    ] {
        assert_eq!(letters(policy, &fragments), [published], "{policy:?}");
    }
}

fn letters(policy: Policy, fragments: &[(u8, usize, usize, bool)]) -> Vec<String> {
    let fragments: Vec<Fragment> = fragments
        .iter()
        .map(|&(letter, start, blocks, more)| Fragment { offset: start * 8, bytes: vec![letter; blocks * 8], more })
        .collect();
    let read = receivers::read(policy, &fragments);
    read.iter().map(|bytes| bytes.iter().step_by(8).map(|byte| *byte as char).collect()).collect()
}

/// Blocks of eight bytes in which the chunks lie: three intervals have at most six ends, so five blocks hold every relation
/// that three can have to each other (Allen).
const BLOCKS: usize = 5;

/// Every interval of blocks.
fn intervals() -> impl Iterator<Item = (usize, usize)> + Clone {
    (0..BLOCKS).flat_map(|start| (start + 1..=BLOCKS).map(move |end| (start, end)))
}

/// A head that no chunk touches, three chunks, and a last fragment that covers all blocks and fills every hole.
fn three_chunks(chunks: [(usize, usize); 3], head_blocks: usize) -> Vec<Fragment> {
    let block = |(start, end): (usize, usize), letter: u8| Fragment {
        offset: (head_blocks + start) * 8,
        bytes: vec![letter; (end - start) * 8],
        more: true,
    };
    let head = (head_blocks > 0).then(|| Fragment { offset: 0, bytes: vec![b'h'; head_blocks * 8], more: true });
    let chunks = chunks.into_iter().zip(*b"abc").map(|(chunk, letter)| block(chunk, letter));
    let filler = Fragment { more: true, ..block((0, BLOCKS), b'f') };
    let last = Fragment { offset: (head_blocks + BLOCKS) * 8, bytes: vec![b'z'; 5], more: false };
    head.into_iter().chain(chunks).chain([filler, last]).collect()
}

/// The bytes of `fragments`, each as it came first.
fn first_of_each(fragments: &[Fragment]) -> Vec<u8> {
    let len = fragments.iter().map(|fragment| fragment.offset + fragment.bytes.len()).max().unwrap_or(0);
    let mut bytes = vec![None; len];
    for fragment in fragments {
        for (place, byte) in bytes[fragment.offset..].iter_mut().zip(&fragment.bytes) {
            place.get_or_insert(*byte);
        }
    }
    bytes.into_iter().flatten().collect()
}

fn overlap(fragments: &[Fragment]) -> bool {
    let ends = |fragment: &Fragment| (fragment.offset, fragment.offset + fragment.bytes.len());
    fragments.iter().enumerate().any(|(index, one)| {
        fragments[..index].iter().any(|other| {
            let ((start, end), (other_start, other_end)) = (ends(one), ends(other));
            start < other_end && other_start < end
        })
    })
}

/// Every three intervals in every order, each with a number: the identification of a packet of its own.
fn all_relations() -> impl Iterator<Item = (u16, [(usize, usize); 3])> {
    let three = intervals().flat_map(|a| intervals().flat_map(move |b| intervals().map(move |c| [a, b, c])));
    (0..).zip(three)
}

#[test]
fn all_relations_of_three_chunks_over_ipv4_are_read_alike() {
    let (mut gate, mut told_apart) = (Gate::new(), 0);
    for (identification, chunks) in all_relations() {
        let fragments = three_chunks(chunks, 1);
        let packet = V4 { identification, ..V4::default() };
        let sent: Vec<_> = fragments.iter().map(|fragment| packet.fragment(fragment)).collect();
        let left = gate.send_all(&sent);
        let expected = [first_of_each(&fragments)];
        for policy in Policy::ALL {
            assert_eq!(read(policy, &left), expected, "{policy:?} {chunks:?}");
        }
        let unscrubbed = Policy::ALL.map(|policy| read(policy, &sent));
        told_apart += usize::from(unscrubbed.iter().any(|read| *read != unscrubbed[0]));
    }
    // The test means something: without the scrubber the hosts disagree about most of these.
    assert!(told_apart > 3000, "{told_apart}");
}

#[test]
fn all_relations_of_three_chunks_from_the_first_byte_on_are_read_alike() {
    let mut gate = Gate::new();
    for (identification, chunks) in all_relations() {
        let packet = V4 { identification, ..V4::default() };
        let sent: Vec<_> = three_chunks(chunks, 0).iter().map(|fragment| packet.fragment(fragment)).collect();
        let left = gate.send_all(&sent);
        let first = read(Policy::First, &left);
        assert!(first.len() <= 1);
        for policy in Policy::ALL {
            assert_eq!(read(policy, &left), first, "{policy:?} {chunks:?}");
        }
    }
}

#[test]
fn of_all_relations_of_three_chunks_over_ipv6_none_that_overlaps_leaves() {
    let (mut gate, mut whole) = (Gate::new(), 0);
    for (identification, chunks) in all_relations() {
        // Without the filler, which overlaps every chunk.
        let mut fragments = three_chunks(chunks, 1);
        fragments.remove(4);
        let packet = V6 { identification: identification.into(), ..V6::default() };
        let sent: Vec<_> = fragments.iter().map(|fragment| packet.fragment(fragment)).collect();
        let left = gate.send_all(&sent);
        let bytes = first_of_each(&fragments);
        let is_whole = !overlap(&fragments) && bytes.len() == (1 + BLOCKS) * 8 + 5;
        whole += usize::from(is_whole);
        let expected = if is_whole { vec![bytes] } else { vec![] };
        assert_eq!(read(Policy::First, &left), expected, "{chunks:?}");
    }
    // Five blocks in three chunks that touch: six ways, in six orders.
    assert_eq!(whole, 36);
}

/// Fragments of one packet as an attacker sends them: anywhere, any length, any end.
fn hostile() -> impl Strategy<Value = Vec<Fragment>> {
    let fragment = (0..12_usize, 1..70_usize, any::<u8>(), 0..4_u8).prop_map(|(block, len, letter, last)| {
        let more = last != 0;
        let len = if more { len.next_multiple_of(8) } else { len };
        Fragment { offset: block * 8, bytes: (0..len).map(|at| letter.wrapping_add(at as u8)).collect(), more }
    });
    prop::collection::vec(fragment, 1..24)
}

/// Bytes, where they are cut, and an order with repetitions in which all pieces come at least once.
fn honest(least: usize) -> impl Strategy<Value = (Vec<Fragment>, Vec<usize>)> {
    (prop::collection::vec(any::<u8>(), 2 * least..6000), least / 8..180_usize).prop_flat_map(|(bytes, blocks)| {
        let pieces = cut(&bytes, blocks * 8);
        let indices: Vec<usize> = (0..pieces.len()).collect();
        let order = prop::collection::vec(0..pieces.len(), 0..4).prop_flat_map(move |again| {
            // What comes twice comes before the packet is whole, or it would begin another.
            let mut order = indices.clone();
            order.extend(again);
            Just(order).prop_shuffle()
        });
        (Just(pieces), order)
    })
}

/// `order` up to the index with which every one of `count` has come.
fn until_whole(order: &[usize], count: usize) -> &[usize] {
    let last = (0..count).filter_map(|index| order.iter().position(|at| *at == index)).max().unwrap_or(0);
    &order[..=last]
}

fn ip_len(frame: &[u8]) -> usize {
    frame.len() - support::ETHERNET
}

proptest! {
    #[test]
    fn hostile_fragments_over_ipv4_are_read_alike_and_by_a_second_scrubber_too(fragments in hostile()) {
        let sent: Vec<_> = fragments.iter().map(|fragment| V4::default().fragment(fragment)).collect();
        let left = Gate::new().send_all(&sent);
        let first = read(Policy::First, &left);
        for policy in Policy::ALL {
            prop_assert_eq!(read(policy, &left), first.clone());
        }
        prop_assert_eq!(Gate::new().send_all(&left), left);
    }

    #[test]
    fn hostile_fragments_over_ipv6_are_read_alike_and_by_a_second_scrubber_too(fragments in hostile()) {
        let sent: Vec<_> = fragments.iter().map(|fragment| V6::default().fragment(fragment)).collect();
        let left = Gate::new().send_all(&sent);
        let first = read(Policy::First, &left);
        for policy in Policy::ALL {
            prop_assert_eq!(read(policy, &left), first.clone());
        }
        prop_assert_eq!(Gate::new().send_all(&left), left);
    }

    #[test]
    fn honest_fragments_over_ipv4_arrive_in_any_order((pieces, order) in honest(48)) {
        let bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.bytes.clone()).collect();
        let sent: Vec<_> = pieces.iter().map(|piece| V4::default().fragment(piece)).collect();
        let order = until_whole(&order, pieces.len());
        let in_order: Vec<_> = order.iter().map(|at| sent[*at].clone()).collect();
        let left = Gate::new().send_all(&in_order);
        prop_assert_eq!(read(Policy::Bsd, &left), [bytes]);
        // Cut as they were: evenly, and never longer than they came.
        prop_assert_eq!(&left, &sent);
        prop_assert_eq!(Gate::new().send_all(&left), left);
    }

    #[test]
    fn honest_fragments_over_ipv6_arrive_in_any_order((pieces, order) in honest(1232)) {
        let bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.bytes.clone()).collect();
        let sent: Vec<_> = pieces.iter().map(|piece| V6::default().fragment(piece)).collect();
        let order = until_whole(&order, pieces.len());
        let in_order: Vec<_> = order.iter().map(|at| sent[*at].clone()).collect();
        let left = Gate::new().send_all(&in_order);
        prop_assert_eq!(read(Policy::Bsd, &left), [bytes]);
        prop_assert_eq!(&left, &sent);
        prop_assert_eq!(Gate::new().send_all(&left), left);
    }

    #[test]
    fn pieces_are_no_longer_than_the_link_and_than_they_came(
        bytes in prop::collection::vec(any::<u8>(), 3000..9000),
        cuts in prop::collection::btree_set(1..375_usize, 1..12),
        mtu in 576..3000_usize,
    ) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|block| block * 8).collect();
        cuts.insert(0, 0);
        let ends = cuts[1..].iter().copied().chain([bytes.len()]);
        let pieces: Vec<Fragment> = cuts.iter().zip(ends).map(|(&start, end)| Fragment {
            offset: start,
            bytes: bytes[start..end].to_vec(),
            more: end < bytes.len(),
        }).collect();
        let sent: Vec<_> = pieces.iter().map(|piece| V4::default().fragment(piece)).collect();
        let longest = sent.iter().map(|frame| ip_len(frame)).max().unwrap_or(0);
        let settings = scrub::Settings { mtu, ..scrub::Settings::preset(scrub::Preset::Balanced) };
        let left = Gate::with(settings).send_all(&sent);
        prop_assert_eq!(read(Policy::Last, &left), [bytes]);
        prop_assert!(left.iter().all(|frame| ip_len(frame) <= longest.min(mtu)));
    }

    #[test]
    fn any_bytes_behind_an_ethernet_header_leave_right_or_not_at_all(
        bytes in prop::collection::vec(any::<u8>(), 0..120),
        is_v6: bool,
        version in 0..4_u8,
    ) {
        let mut frame = V4::default().frame()[..12].to_vec();
        frame.extend(if is_v6 { [0x86, 0xdd] } else { [8, 0] });
        frame.extend(&bytes);
        // Most random bytes are refused for their first; these get farther.
        if let (Some(first), true) = (frame.get_mut(14), version > 0) {
            *first = if is_v6 { 0x60 } else { 0x45 };
        }
        if version > 1 && frame.len() >= 34 {
            let len = ((frame.len() - 14 - if is_v6 { 40.min(frame.len() - 14) } else { 0 }) as u16).to_be_bytes();
            let at = if is_v6 { 18 } else { 16 };
            frame[at..at + 2].copy_from_slice(&len);
            if !is_v6 {
                support::fix_checksum(&mut frame);
            }
        }
        Gate::new().send(&frame);
        Gate::with(scrub::Settings::null()).send(&frame);
    }
}
