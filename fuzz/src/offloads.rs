//! Cutting and joining of super-frames.

use wire::offload::{Cut, Kind, Plan, Run, complete_checksum};
use wire::{EtherType, ipv4, layer};

use crate::input::Input;

/// Segments of one plan that are written; a plan may have thousands.
const WRITTEN_MAX: usize = 64;
/// Frames offered to one run.
const FRAMES_MAX: usize = 24;
/// Longest frame offered to a run, in bytes.
const FRAME_LEN_MAX: usize = 2000;

/// Cuts a frame as its metadata says: every payload byte once, nothing outside the segment, and a segment that is cut
/// again stays as it is.
pub fn segment(data: &[u8]) {
    let mut input = Input::new(data);
    let kind = [Kind::TcpV4, Kind::TcpV6, Kind::Udp][input.below(3)];
    let transport = input.chance().then(|| usize::from(input.byte()));
    let cut = Cut { kind, size: input.word() };
    let mut frame = input.rest().to_vec();
    fit_length(&mut frame);
    let Ok(plan) = Plan::new(&frame, transport, cut) else { return };
    let mut next = plan.headers_len();
    for index in 0..plan.segments() {
        let payload = plan.payload_range(index);
        assert_eq!(payload.start, next, "payload in order and without a hole");
        next = payload.end;
    }
    assert_eq!(next, frame.len(), "payload to the end");
    for index in (0..plan.segments()).take(WRITTEN_MAX) {
        write_segment(&plan, &frame, index, transport, cut);
    }
    assert_eq!(plan.write(&frame, plan.segments(), &mut vec![0; 70_000]), None);
}

fn write_segment(plan: &Plan, frame: &[u8], index: usize, transport: Option<usize>, cut: Cut) {
    let len = plan.segment_len(index);
    assert!(len <= plan.longest_segment());
    let mut room = vec![0xa5; len + 1];
    assert_eq!(plan.write(frame, index, &mut room), Some(len));
    assert_eq!(room.pop(), Some(0xa5), "nothing behind the segment is written");
    assert_eq!(room[plan.headers_len()..], frame[plan.payload_range(index)]);
    let again = Plan::new(&room, transport, cut).expect("a segment can be cut");
    assert_eq!(again.segments(), 1);
    let mut twice = vec![0x5a; len];
    assert_eq!(again.write(&room, 0, &mut twice), Some(len));
    assert_eq!(twice, room, "cutting a segment changes nothing");
    let (start, offset) = plan.checksum();
    complete_checksum(&mut room, start, offset).expect("inside");
}

/// Gives the IP header the length of the frame, which mutations rarely hit.
fn fit_length(frame: &mut [u8]) {
    let Some((ethertype, at)) = layer::network_layer(frame) else { return };
    let len = (frame.len() - at) as u16;
    match ethertype {
        EtherType::IPV4 if frame.len() >= at + 4 => frame[at + 2..at + 4].copy_from_slice(&len.to_be_bytes()),
        EtherType::IPV6 if frame.len() >= at + 40 => frame[at + 4..at + 6].copy_from_slice(&(len - 40).to_be_bytes()),
        _ => {}
    }
}

/// Joins frames of one flow: what was joined is cut into the same frames again, but for identifications and checksums.
pub fn coalesce(data: &[u8]) {
    let mut input = Input::new(data);
    let mut frames = Vec::new();
    while !input.is_empty() && frames.len() < FRAMES_MAX {
        let mut frame = input.counted(FRAME_LEN_MAX).to_vec();
        fit_length(&mut frame);
        right_checksum(&mut frame);
        frames.push(frame);
    }
    let Some((first, others)) = frames.split_first() else { return };
    let Some(mut run) = Run::begin(first) else { return };
    let mut joined = first.clone();
    let mut taken = vec![first];
    for frame in others {
        if let Some(payload) = run.append(first, frame) {
            joined.extend(&frame[payload]);
            taken.push(frame);
        }
    }
    assert_eq!((run.segments(), run.frame_len()), (taken.len(), joined.len()));
    run.finish(&mut joined);
    if taken.len() > 1 {
        check_cut(&run, &joined, &taken);
    }
}

fn check_cut(run: &Run, joined: &[u8], taken: &[&Vec<u8>]) {
    let (start, offset) = run.checksum();
    let plan = Plan::new(joined, Some(start), Cut { kind: run.kind(), size: run.size() });
    let plan = plan.expect("what was joined can be cut");
    assert_eq!((plan.segments(), plan.checksum()), (taken.len(), (start, offset)));
    for (index, frame) in taken.iter().enumerate() {
        let mut cut = vec![0xa5; plan.segment_len(index)];
        plan.write(joined, index, &mut cut).expect("planned");
        let [cut, frame] = [&cut, *frame].map(|frame| without_volatile(frame, start, offset));
        assert_eq!(cut, frame, "segment {index}");
    }
}

/// The frame without what a card may choose: IP identification and the two checksums.
fn without_volatile(frame: &[u8], transport: usize, checksum: usize) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let network = transport - ipv4::HEADER_LEN;
    for at in [network + ipv4::IDENTIFICATION, network + ipv4::CHECKSUM, transport + checksum] {
        frame[at..at + 2].fill(0);
    }
    frame
}

fn right_checksum(frame: &mut [u8]) {
    let Some((EtherType::IPV4, at)) = layer::network_layer(frame) else { return };
    let Ok(header_len) = ipv4::View::new(&frame[at..]).map(|view| view.header_len()) else { return };
    ipv4::fill_checksum(&mut frame[at..at + header_len]);
}
