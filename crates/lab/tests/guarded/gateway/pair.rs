//! Two gateways in parallel between two switches, and hosts that talk through whichever is active.

use std::net::Ipv4Addr;
use std::time::Duration;

use ringwall_lab::failover::pair::{TRUSTED, UNTRUSTED};
use ringwall_lab::failover::talks::PORT;
use ringwall_lab::failover::{Fault, Gateway, Pair, Talks};
use ringwall_lab::failure::Failure;
use ringwall_lab::net::process;
use rustix::process::Signal;

use super::{PATIENCE, raw};
use crate::stage::{Outcome, assert_unhindered, name_of, perform_bare, program};

/// Connections that run through the pair.
const CONNECTIONS: usize = 40;

fn perform_in_pair<T: FnOnce(&mut Pair) -> Outcome>(test: T) {
    perform_bare(name_of(&test), &[], |run| {
        let mut pair = Pair::start(run, &program(), "")?;
        test(&mut pair)?;
        for gateway in &mut pair.gateways {
            gateway.stop(Signal::TERM);
            assert_unhindered(&gateway.log());
        }
        Ok(())
    });
}

/// What a command says that must fail.
fn refusal(gateway: &Gateway, words: &[&str]) -> Result<String, Failure> {
    let answer = process::ask(gateway.command(words), &[])?;
    assert!(!answer.status.success(), "{words:?} was carried out");
    Ok(answer.stderr)
}

/// How often each fault is tried, the gateways taking turns.
fn rounds() -> usize {
    std::env::var("RINGWALL_PAIR_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(4)
}

fn assert_intact(talks: Talks) {
    let ended = talks.end();
    assert!(ended.broken.is_empty() && ended.wrong_bytes == 0, "{ended:?}");
    assert!(ended.words > CONNECTIONS as u64);
}

fn fail_over(fault: Fault) {
    perform_in_pair(|pair| {
        let talks = Talks::start(pair, CONNECTIONS)?;
        let mut outages = Vec::new();
        for round in 0..rounds() {
            outages.push(fault.try_on(pair, &talks, round)?);
        }
        assert_intact(talks);
        outages.sort();
        println!(
            "failover by {}: {CONNECTIONS} connections, {} runs, outage median {:?}, worst {:?}, lost 0",
            fault.word(),
            outages.len(),
            outages[outages.len() / 2].wait,
            outages[outages.len() - 1].wait
        );
        Ok(())
    });
}

#[test]
fn connections_outlive_a_killed_gateway() {
    fail_over(Fault::Kill);
}

#[test]
fn connections_outlive_a_gateway_that_hangs() {
    fail_over(Fault::Hang);
}

#[test]
fn connections_outlive_a_cable() {
    fail_over(Fault::Cable);
}

#[test]
fn connections_outlive_a_machine() {
    fail_over(Fault::Machine);
}

#[test]
fn connections_outlive_a_handover() {
    fail_over(Fault::Handover);
}

/// The segments carry heartbeats, too: nobody takes over, and no frame passes twice.
#[test]
fn a_cut_sync_link_makes_no_split() {
    perform_in_pair(|pair| {
        let talks = Talks::start(pair, CONNECTIONS)?;
        pair.gateways[0].space.ip("link set sync0 down")?;
        talks.go_on()?;
        assert_eq!(duplicates(pair)?, 0);
        pair.until_role(0, "active")?;
        pair.until_role(1, "standby")?;
        let forwarded = pair.gateways[1].status()?["frames"]["forwarded_to_trusted"].clone();
        assert_eq!(forwarded, 0, "the standby forwards nothing");
        pair.until("both say that the sync link is silent", |statuses| {
            statuses.iter().all(|status| {
                let pair = &status["pair"];
                pair["in_sync"] == false && pair["sync_link_silent"] == true
            })
        })?;
        let refused = refusal(&pair.gateways[0], &["gate", "handover"])?;
        assert!(refused.contains("does not know all flows"), "{refused}");
        pair.gateways[0].space.ip("link set sync0 up")?;
        pair.until_settled()?;
        assert_intact(talks);
        Ok(())
    });
}

/// It hears first what the active one said meanwhile, so no frame passes twice.
#[test]
fn a_standby_that_hung_does_not_take_over() {
    perform_in_pair(|pair| {
        pair.gateways[1].signal(Signal::STOP);
        std::thread::sleep(Duration::from_secs(1));
        pair.gateways[1].signal(Signal::CONT);
        assert_eq!(duplicates(pair)?, 0);
        pair.until_settled()?;
        pair.until_role(0, "active")?;
        pair.until_role(1, "standby")?;
        let log = pair.gateways[1].log();
        assert!(!log.contains("this gateway forwards from now on"), "{log}");
        Ok(())
    });
}

/// Nothing is blocked there while the active one goes on.
#[test]
fn a_standby_blocks_nothing_and_says_whom_to_ask() {
    perform_in_pair(|pair| {
        let block = ["gate", "block", &format!("{TRUSTED}:{PORT}"), &format!("{UNTRUSTED}:40000")];
        let refused = refusal(&pair.gateways[1], &block)?;
        assert!(refused.contains("ask the active gateway"), "{refused}");
        process::must(pair.gateways[0].command(&block)).map(drop)
    });
}

/// Whoever makes up addresses must have his frames pass.
#[test]
fn frames_that_are_refused_teach_no_stations() {
    const STRANGERS: u8 = 50;
    perform_in_pair(|pair| {
        let stations = |pair: &Pair| Ok::<_, Failure>(pair.gateways[0].status()?["pair"]["stations"].as_u64());
        let before = stations(pair)?.expect("a number");
        let mut port = raw::raw(&pair.hosts[1])?;
        let mut send = |kind: u8, frame: &[u8]| {
            for number in 0..STRANGERS {
                let mut frame = frame.to_vec();
                frame[6..12].copy_from_slice(&[2, 0, 0, 9, kind, number]);
                raw::put(&mut port, &frame);
            }
        };
        let passes = raw::segment([UNTRUSTED, TRUSTED], [4000, PORT], 2);
        let mut refused = passes.clone();
        refused[14] = 0x4f;
        send(1, &refused);
        send(2, &passes);
        let after = before + u64::from(STRANGERS);
        process::until("those that pass", PATIENCE, || Ok(stations(pair)? >= Some(after)))?;
        // The hosts and the switches may have said something, too.
        let known = stations(pair)?;
        assert!(known < Some(after + 10), "{before} before, {known:?} now");
        Ok(())
    });
}

/// Answers to pings that came twice.
fn duplicates(pair: &Pair) -> Result<usize, Failure> {
    let mut command = pair.hosts[1].command("ping");
    command.args(["-c", "20", "-i", "0.05", "-w", "10", &Ipv4Addr::to_string(&TRUSTED)]);
    let said = process::must(command)?;
    Ok(said.matches("DUP!").count())
}
