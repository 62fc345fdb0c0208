//! Two gateways in memory, over three paths that lose, delay, reorder, repeat and forge.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod support;

use std::time::Duration;

use pair::limits::{HEARTBEATS_MISSED, LEASE_HEARTBEATS};
use pair::{Cards, Event, NotNow, Path, Refusal, Role, Why};
use proptest::prelude::*;

use support::{ALL_WELL, HEARTBEAT, STEP, World};

#[test]
fn one_takes_over_and_the_other_stays_on_standby() {
    let mut world = World::new([100, 50]);
    world.run(HEARTBEAT * 10);
    assert_eq!(world.roles(), [Role::Active, Role::Standby]);
    assert_eq!(world.overlap_max, Duration::ZERO);
}

#[test]
fn a_gateway_alone_takes_over_when_nobody_was_heard() {
    let mut world = World::new([100, 50]);
    world.kill(1);
    world.run(HEARTBEAT * (HEARTBEATS_MISSED + 1));
    assert_eq!(world.role(0), Some(Role::Active));
    assert!(world.events(0).contains(&Event::TookOver(Why::Silence)));
}

#[test]
fn the_standby_takes_over_when_the_active_one_dies_and_a_higher_priority_does_not_take_it_back() {
    let mut world = World::new([100, 50]);
    world.run(HEARTBEAT * 10);
    world.kill(0);
    world.run(HEARTBEAT * (HEARTBEATS_MISSED + 1));
    assert_eq!(world.role(1), Some(Role::Active));
    world.start(0);
    world.run(HEARTBEAT * 20);
    assert_eq!(world.roles(), [Role::Standby, Role::Active]);
    assert_eq!(world.overlap_max, Duration::ZERO);
}

#[test]
fn preemption_waits_until_the_one_that_comes_knows_all_flows() {
    let mut world = World::new([100, 50]);
    world.preempt[0] = true;
    world.kill(0);
    world.run(HEARTBEAT * 10);
    (0..500).for_each(|flow| world.change(1, flow));
    world.start(0);
    world.run(HEARTBEAT * 20);
    assert_eq!(world.roles(), [Role::Active, Role::Standby]);
    assert!(world.events(1).contains(&Event::StoodDown(Why::Preempted)));
    assert_eq!(world.known(0), world.known(1));
    assert_eq!(world.overlap_max, Duration::ZERO);
}

#[test]
fn a_cut_sync_link_alone_makes_no_split() {
    let mut world = World::new([100, 50]);
    world.run(HEARTBEAT * 10);
    world.cut[Path::Sync as usize] = true;
    world.run(HEARTBEAT * 50);
    assert_eq!(world.roles(), [Role::Active, Role::Standby]);
    assert_eq!(world.overlap_max, Duration::ZERO);
}

#[test]
fn a_split_ends_with_the_first_message_and_the_higher_priority_keeps_the_turn() {
    for priorities in [[100, 50], [50, 100]] {
        let mut world = World::new(priorities);
        world.run(HEARTBEAT * 10);
        world.cut = [true; 3];
        world.run(HEARTBEAT * 10);
        assert_eq!(world.roles(), [Role::Active, Role::Active]);
        world.cut = [false; 3];
        world.run(HEARTBEAT + STEP * 8);
        let expected = priorities.map(|priority| if priority == 100 { Role::Active } else { Role::Standby });
        assert_eq!(world.roles(), expected);
    }
}

#[test]
fn a_card_without_a_link_hands_the_turn_over_at_once() {
    let mut world = World::new([100, 50]);
    world.run(HEARTBEAT * 10);
    world.set_cards(0, Cards { untrusted: false, ..ALL_WELL });
    world.run(STEP * 6);
    assert_eq!(world.roles(), [Role::Standby, Role::Active]);
    assert_eq!(world.overlap_max, Duration::ZERO);
    // Both without: nobody is any better.
    world.set_cards(1, Cards { trusted: false, ..ALL_WELL });
    world.run(HEARTBEAT * 10);
    assert_eq!(world.roles(), [Role::Standby, Role::Active]);
    world.set_cards(0, ALL_WELL);
    world.run(HEARTBEAT * 3);
    assert_eq!(world.roles(), [Role::Active, Role::Standby]);
}

/// It forwards nothing more, whatever it is asked first when it goes on.
#[test]
fn a_gateway_that_was_stopped_stands_down_before_it_judges_a_frame() {
    let mut world = World::new([100, 50]);
    world.run(HEARTBEAT * 10);
    world.stop(0);
    world.run(HEARTBEAT * (LEASE_HEARTBEATS + 2));
    assert_eq!(world.role(1), Some(Role::Active));
    world.go_on(0);
    assert_eq!(world.role(0), Some(Role::Standby));
    world.run(HEARTBEAT * 20);
    assert_eq!(world.roles(), [Role::Standby, Role::Active]);
    assert_eq!(world.overlap_max, Duration::ZERO);
}

/// What the active one said meanwhile waits, and is heard first.
#[test]
fn a_standby_that_was_stopped_does_not_take_over_beside_an_active_one() {
    let mut world = World::new([100, 50]);
    world.run(HEARTBEAT * 10);
    world.stop(1);
    world.run(HEARTBEAT * (HEARTBEATS_MISSED + 2));
    world.go_on(1);
    assert_eq!(world.roles(), [Role::Active, Role::Standby]);
    world.run(HEARTBEAT * 20);
    assert_eq!(world.roles(), [Role::Active, Role::Standby]);
    assert_eq!(world.overlap_max, Duration::ZERO);
    // It still takes over from one that is dead.
    world.stop(1);
    world.kill(0);
    world.run(HEARTBEAT * 10);
    world.go_on(1);
    world.run(HEARTBEAT * (HEARTBEATS_MISSED + 1));
    assert_eq!(world.role(1), Some(Role::Active));
}

#[test]
fn switches_hear_after_a_takeover_and_after_the_other_one_stood_down() {
    let mut world = World::new([100, 50]);
    world.run(HEARTBEAT * 10);
    assert_eq!([0, 1].map(|at| world.takes_announcement(at)), [true, false]);
    world.cut = [true; 3];
    world.run(HEARTBEAT * 10);
    assert_eq!([0, 1].map(|at| world.takes_announcement(at)), [false, true], "a split");
    world.cut = [false; 3];
    world.run(HEARTBEAT * 3);
    assert_eq!(world.roles(), [Role::Active, Role::Standby]);
    assert_eq!([0, 1].map(|at| world.takes_announcement(at)), [true, false], "the split is over");
    world.run(HEARTBEAT * 10);
    assert_eq!([0, 1].map(|at| world.takes_announcement(at)), [false, false]);
}

#[test]
fn with_a_cut_sync_link_nobody_is_in_sync_and_nobody_hands_over() {
    let mut world = World::new([100, 50]);
    world.run(HEARTBEAT * 10);
    let state = |world: &World| {
        let reports = [0, 1].map(|at| world.gateway(at).report(world.now));
        reports.map(|report| (report.in_sync, report.sync_is_silent))
    };
    assert_eq!(state(&world), [(true, false); 2]);
    world.cut[Path::Sync as usize] = true;
    world.run(HEARTBEAT * (HEARTBEATS_MISSED + 2));
    assert_eq!(state(&world), [(false, true); 2]);
    assert_eq!(world.hand_over(0), Err(NotNow::NotInSync));
    world.cut[Path::Sync as usize] = false;
    world.run(HEARTBEAT * 3);
    assert_eq!(state(&world), [(true, false); 2]);
    assert_eq!(world.hand_over(0), Ok(()));
}

/// Until the other one is gone, or begins anew.
#[test]
fn a_handover_is_not_undone_by_preemption() {
    let mut world = World::new([100, 50]);
    world.preempt[0] = true;
    world.start(0);
    world.run(HEARTBEAT * 10);
    assert_eq!(world.hand_over(0), Ok(()));
    world.run(HEARTBEAT * 60);
    assert_eq!(world.roles(), [Role::Standby, Role::Active]);
    world.kill(0);
    world.start(0);
    world.run(HEARTBEAT * 20);
    assert_eq!(world.roles(), [Role::Active, Role::Standby], "a new run was told nothing");
    assert_eq!(world.hand_over(0), Ok(()));
    world.run(HEARTBEAT * 10);
    world.kill(1);
    world.start(1);
    world.run(HEARTBEAT * 20);
    assert_eq!(world.roles(), [Role::Active, Role::Standby]);
}

#[test]
fn a_handover_loses_no_record_and_waits_for_a_standby_in_sync() {
    let mut world = World::new([100, 50]);
    world.kill(1);
    world.run(HEARTBEAT * 10);
    assert_eq!(world.hand_over(0), Err(NotNow::NoPeer));
    (0..2000).for_each(|flow| world.change(0, flow));
    world.start(1);
    world.run(HEARTBEAT * 20);
    assert_eq!(world.hand_over(1), Err(NotNow::NotActive));
    (0..300).for_each(|flow| world.change(0, flow));
    assert_eq!(world.hand_over(0), Ok(()));
    world.run(STEP * 6);
    assert_eq!(world.roles(), [Role::Standby, Role::Active]);
    assert_eq!(world.known(0), world.known(1));
    world.run(HEARTBEAT * 60);
    assert_eq!(world.roles(), [Role::Standby, Role::Active]);
    assert_eq!(world.overlap_max, Duration::ZERO);
}

#[test]
fn a_standby_that_missed_records_hears_all_of_them_again() {
    let mut world = World::new([100, 50]);
    (0..100).for_each(|flow| world.change(0, flow));
    world.run(HEARTBEAT * 10);
    world.cut[Path::Sync as usize] = true;
    (0..50).for_each(|flow| world.change(0, flow));
    world.run(HEARTBEAT * 2);
    world.cut[Path::Sync as usize] = false;
    world.run(HEARTBEAT * 10);
    assert_eq!(world.known(0), world.known(1));
    assert!(world.gateway(1).report(world.now).in_sync && world.gateway(1).report(world.now).losses > 0);
}

/// It knows no flow of the other one's, whatever rounds come to their end.
#[test]
fn a_standby_that_cannot_read_records_is_not_in_sync_until_it_can() {
    let mut world = World::new([100, 50]);
    world.reads(1, false);
    (0..100).for_each(|flow| world.change(0, flow));
    world.run(HEARTBEAT * 10);
    assert!(!world.gateway(1).report(world.now).in_sync && world.known(1).is_empty());
    assert_eq!(world.hand_over(0), Err(NotNow::NotInSync));
    // Whoever updates it starts it anew.
    world.kill(1);
    world.reads(1, true);
    world.start(1);
    world.run(HEARTBEAT * 10);
    assert!(world.gateway(1).report(world.now).in_sync);
    // One change that it cannot read is enough, and the next whole round makes good for it.
    world.reads(1, false);
    world.change(0, 5);
    world.run(HEARTBEAT * 2);
    assert!(!world.gateway(1).report(world.now).in_sync);
    world.reads(1, true);
    world.cut[Path::Sync as usize] = true;
    world.change(0, 6);
    world.run(HEARTBEAT * 2);
    world.cut[Path::Sync as usize] = false;
    world.run(HEARTBEAT * 10);
    assert!(world.gateway(1).report(world.now).in_sync);
    assert_eq!(world.known(0), world.known(1));
}

/// What one sends before a restart proves nothing afterwards.
#[test]
fn recordings_of_an_earlier_run_are_refused() {
    let mut world = World::new([100, 50]);
    world.record = true;
    world.run(HEARTBEAT * 10);
    world.kill(0);
    world.run(HEARTBEAT * 10);
    world.start(0);
    world.run(HEARTBEAT * 10);
    world.kill(0);
    world.run(HEARTBEAT * (HEARTBEATS_MISSED + 1));
    let recorded = std::mem::take(&mut world.recorded);
    assert!(recorded.len() > 100);
    world.run(HEARTBEAT);
    for (to, path, message) in recorded.into_iter().filter(|(to, ..)| *to == 1) {
        let refused = world.hear(to, path, &message).expect_err("heard before");
        let expected = [Refusal::Replayed, Refusal::Unproven];
        assert!(expected.contains(&refused), "{refused:?}");
    }
    assert!(world.gateway(1).report(world.now).peer.is_none(), "nobody is there");
}

#[test]
fn every_refusal_has_its_reason() {
    let mut world = World::new([100, 50]);
    world.record = true;
    world.run(HEARTBEAT * 10);
    let (to, path, message) = world.recorded.iter().rev().find(|(to, ..)| *to == 1).cloned().expect("sent");
    assert_eq!(to, 1);
    world.run(STEP * 2);
    let before: u64 = world.gateway(1).report(world.now).refused.values().sum();
    assert_eq!(world.hear(0, path, &message), Err(Refusal::Reflected));
    assert_eq!(world.hear(1, path, &message), Err(Refusal::Replayed));
    let other = Path::ALL.into_iter().find(|other| *other != path).expect("three");
    assert_eq!(world.hear(1, other, &message), Err(Refusal::WrongPath));
    for len in 0..message.len() {
        let refused = world.hear(1, path, &message[..len]).expect_err("cut short");
        assert!([Refusal::Malformed, Refusal::Forged].contains(&refused), "{len}: {refused:?}");
    }
    for at in 0..message.len() {
        let mut changed = message.clone();
        changed[at] ^= 1;
        let refused = world.hear(1, path, &changed).expect_err("changed");
        assert!([Refusal::Malformed, Refusal::Forged, Refusal::WrongPath].contains(&refused), "{at}: {refused:?}");
    }
    let long = vec![1; pair::limits::MESSAGE_MAX_BYTES + 1];
    assert_eq!(world.hear(1, path, &long), Err(Refusal::Malformed));
    let counted: u64 = world.gateway(1).report(world.now).refused.values().sum();
    assert_eq!(counted - before, 2 * message.len() as u64 + 3);
}

/// What happens to the pair in a run.
#[derive(Clone, Debug)]
enum Fault {
    Loss(u8),
    Delay(u8),
    Repeat(u8),
    Forge(u8),
    Cut([bool; 3]),
    Kill(usize),
    Start(usize),
    Stop(usize),
    GoOn(usize),
    Card(usize, bool, bool),
    Change(u16),
    HandOver(usize),
}

fn fault() -> impl Strategy<Value = Fault> {
    let side = || 0..2_usize;
    prop_oneof![
        (0..60_u8).prop_map(Fault::Loss),
        (0..20_u8).prop_map(Fault::Delay),
        (0..60_u8).prop_map(Fault::Repeat),
        (0..60_u8).prop_map(Fault::Forge),
        any::<[bool; 3]>().prop_map(Fault::Cut),
        side().prop_map(Fault::Kill),
        side().prop_map(Fault::Start),
        side().prop_map(Fault::Stop),
        side().prop_map(Fault::GoOn),
        (side(), any::<bool>(), any::<bool>()).prop_map(|(at, trusted, untrusted)| Fault::Card(at, trusted, untrusted)),
        any::<u16>().prop_map(Fault::Change),
        side().prop_map(Fault::HandOver),
    ]
}

impl World {
    fn suffer(&mut self, fault: &Fault) {
        match *fault {
            Fault::Loss(percent) => self.loss = percent.into(),
            Fault::Delay(steps) => self.delay = steps.into(),
            Fault::Repeat(percent) => self.repeat = percent.into(),
            Fault::Forge(percent) => self.forge = percent.into(),
            Fault::Cut(cut) => self.cut = cut,
            Fault::Kill(at) => self.kill(at),
            Fault::Start(at) if self.role(at).is_none() => self.start(at),
            Fault::Stop(at) => self.stop(at),
            Fault::GoOn(at) => self.go_on(at),
            Fault::Card(at, trusted, untrusted) => self.set_cards(at, Cards { trusted, untrusted }),
            Fault::Change(flow) => (0..2).for_each(|at| self.change_if_active(at, flow)),
            Fault::HandOver(at) => _ = self.role(at).map(|_| self.hand_over(at)),
            Fault::Start(_) => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Two are both active no longer than it takes until a message gets through each way; and once
    /// the faults end, exactly one forwards and the other one knows what it knows.
    #[test]
    fn whatever_happens_one_forwards_in_the_end(
        seed in any::<u64>(),
        faults in proptest::collection::vec((fault(), 1..40_u32), 0..40),
        priorities in any::<[u8; 2]>(),
    ) {
        let mut world = World::seeded(seed, priorities);
        for (fault, steps) in &faults {
            world.suffer(fault);
            world.run(STEP * *steps);
        }
        prop_assert!(world.overlap_heard <= World::OVERLAP_MAX, "both active for {:?}", world.overlap_heard);
        world.end_faults();
        world.run(HEARTBEAT * 60);
        let roles = world.roles();
        prop_assert!(roles[0] != roles[1], "{roles:?}");
        world.overlap_max = Duration::ZERO;
        world.run(HEARTBEAT * 10);
        prop_assert_eq!(world.roles(), roles);
        prop_assert_eq!(world.overlap_max, Duration::ZERO);
        let active = usize::from(roles[1] == Role::Active);
        prop_assert!(world.gateway(active).report(world.now).in_sync);
        prop_assert!(world.knows_all_of(active), "the standby lacks what the active one knows");
    }

    /// Whichever of the two is stopped, and for however long: they are never both active.
    #[test]
    fn pauses_alone_never_make_two_active(
        pauses in proptest::collection::vec((0..2_usize, 1..200_u32, 80..200_u32), 0..20),
        priorities in any::<[u8; 2]>(),
    ) {
        let mut world = World::new(priorities);
        world.run(HEARTBEAT * 10);
        for (at, stopped, between) in pauses {
            world.stop(at);
            world.run(STEP * stopped);
            world.go_on(at);
            world.run(STEP * between);
            prop_assert_eq!(world.overlap_max, Duration::ZERO);
        }
    }

    #[test]
    fn no_bytes_make_it_panic_or_count_as_heard(
        path in 0..3_usize,
        message in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut world = World::new([100, 50]);
        prop_assert!(world.hear(0, Path::ALL[path], &message).is_err());
    }
}
