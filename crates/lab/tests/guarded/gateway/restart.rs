//! A gateway that is killed or hangs while hosts talk through it: connections go on or end, as it is configured.

use std::io::{ErrorKind, Write};
use std::net::Ipv4Addr;
use std::time::Duration;

use ringwall_lab::failure::Failure;
use ringwall_lab::net::{Direction, Watch, process};
use rustix::process::Signal;
use wire::{layer, tcp};

use super::life::{await_resets, say};
use super::watchdog::{Hang, Watchdog};
use super::{HOST_INTERFACE, PATIENCE, Path, TRUSTED, UNTRUSTED, perform_between};
use crate::stage::{Outcome, SOON};
use crate::wire::Stream;

/// Bytes over TCP before and after each restart.
const BULK: u64 = 4 << 20;
/// How long a connection that ended is watched for any sign of life.
const SILENCE: Duration = Duration::from_secs(2);

/// Bulk both ways.
fn streams(path: &Path) -> Result<[Stream; 2], Failure> {
    let up = Stream::start(&path.untrusted, &path.trusted, TRUSTED, 5001)?;
    let down = Stream::start(&path.trusted, &path.untrusted, UNTRUSTED, 5002)?;
    progress([up, down])
}

fn progress(streams: [Stream; 2]) -> Result<[Stream; 2], Failure> {
    for stream in &streams {
        stream.await_progress(BULK, PATIENCE)?;
    }
    Ok(streams)
}

#[test]
fn bulk_goes_on_after_each_kill_where_connections_are_adopted() {
    perform_between("adopt = true", |path| {
        let mut streams = streams(path)?;
        for signal in [Signal::KILL, Signal::TERM, Signal::KILL] {
            path.stop(signal);
            path.start()?;
            streams = progress(streams)?;
        }
        Ok(())
    });
}

#[test]
fn bulk_ends_with_the_gateway_where_they_are_not() {
    perform_between("adopt = false", |path| {
        let [up, down] = streams(path)?;
        path.stop(Signal::KILL);
        path.start()?;
        let ended = || Ok(path.status()?["drops"]["flow-severed"].as_u64() >= Some(2));
        process::until("the end of connections that are older than the gateway", SOON, ended)?;
        let before = [up.delivered(), down.delivered()];
        process::pause(SILENCE)?;
        assert_eq!([up.delivered(), down.delivered()], before, "they have ended");
        let fresh = Stream::start(&path.untrusted, &path.trusted, TRUSTED, 5003)?;
        fresh.await_progress(BULK, PATIENCE)
    });
}

/// The sequence number of the trusted host's segment that carries `word`, as it was seen on the interface of a host.
fn sequence(watch: &Watch, word: &[u8]) -> Result<u32, Failure> {
    let carries = |frame: &ringwall_lab::net::Frame| frame.ipv4_source() == Some(TRUSTED) && frame.contains(word);
    let frame = watch.await_frame("the word on the wire", SOON, carries)?;
    let start = layer::transport_layer(&frame.0).expect("a segment").1;
    Ok(tcp::View::new(&frame.0[start..]).expect("a segment").sequence())
}

/// The keys outlive the daemon, so the numbers that the untrusted host knows mean the same to the next one.
#[test]
fn the_shift_of_sequence_numbers_is_the_same_after_a_restart() {
    perform_between("adopt = true", |path| {
        let watch = |host, direction, label: &str| {
            Watch::start_matching(host, HOST_INTERFACE, direction, &path.run.directory(), label, "tcp")
        };
        let inside = watch(&path.trusted, Direction::Out, "inside")?;
        let outside = watch(&path.untrusted, Direction::In, "outside")?;
        let [mut client, mut server] = path.connect(&path.untrusted, &path.trusted, TRUSTED, 5001)?;
        let mut shifts = Vec::new();
        for word in [&b"before the restart"[..], b"after the restart"] {
            say(&mut server, &mut client, word).map_err(Failure::io("talking"))?;
            shifts.push(sequence(&outside, word)?.wrapping_sub(sequence(&inside, word)?));
            path.stop(Signal::KILL);
            path.start()?;
        }
        say(&mut server, &mut client, b"once more").map_err(Failure::io("talking"))?;
        assert_ne!(shifts[0], 0, "numbers are hidden");
        assert_eq!(shifts[0], shifts[1]);
        drop((inside.stop()?, outside.stop()?));
        Ok(())
    });
}

/// As after a reboot: nobody knows any more by how much the numbers were shifted. So the connection ends at both hosts, and
/// neither reads a byte of it.
#[test]
fn without_the_keys_of_the_run_before_a_shifted_connection_ends() {
    perform_between("adopt = true", end_with_lost_keys);
}

/// The same where nobody has said what is to become of older connections.
#[test]
fn without_the_keys_and_unless_told_older_connections_end() {
    perform_between("", end_with_lost_keys);
}

fn end_with_lost_keys(path: &mut Path) -> Outcome {
    let [mut client, mut server] = path.connect(&path.untrusted, &path.trusted, TRUSTED, 5001)?;
    say(&mut server, &mut client, b"before").map_err(Failure::io("talking"))?;
    path.stop(Signal::KILL);
    let keys = path.directory.join("run/in0.keys");
    std::fs::remove_file(&keys).map_err(Failure::file("removing", &keys))?;
    path.start()?;
    let mut waiting = Vec::new();
    for mut end in [client, server] {
        match end.write_all(b"is this right") {
            Ok(()) => waiting.push(end),
            // What the first said has ended both before the second speaks.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            Err(error) => return Err(Failure::io("talking")(error)),
        }
    }
    await_resets(waiting)?;
    let events = path.ask(&["events"])?.stdout;
    assert!(events.contains("older-ended"), "{events}");
    Stream::start(&path.untrusted, &path.trusted, TRUSTED, 5002)?.await_progress(BULK, PATIENCE)
}

/// A hung gateway lets nothing through until its watchdog has it started again; adopted connections go on then.
fn hang(path: &mut Path, how: Hang) -> Outcome {
    path.stop(Signal::TERM);
    let mut watchdog = Watchdog::start(path)?;
    watchdog.await_feeds(2)?;
    let streams = streams(path)?;
    let [mut client, mut server] = path.connect(&path.untrusted, &path.trusted, TRUSTED, 5004)?;
    say(&mut client, &mut server, b"before").map_err(Failure::io("talking"))?;
    watchdog.hang(how)?;
    assert!(!pings_through(path)?, "nothing passes a gateway that hangs");
    watchdog.await_restart()?;
    assert_eq!(path.status()?["adopted"], true);
    progress(streams)?;
    say(&mut server, &mut client, b"after").map_err(Failure::io("talking after the restart"))?;
    watchdog.await_feeds(2)?;
    assert_eq!(watchdog.restarts(), 1, "and then it was left in peace");
    watchdog.stop();
    Ok(())
}

fn pings_through(path: &Path) -> Result<bool, Failure> {
    let to = |from, to: Ipv4Addr| crate::wire::pings(from, to, "-W 1");
    Ok(to(&path.untrusted, TRUSTED)? || to(&path.trusted, UNTRUSTED)?)
}

#[test]
fn a_stopped_gateway_is_restarted_by_its_watchdog() {
    perform_between("adopt = true", |path| hang(path, Hang::Process));
}

#[test]
fn a_gateway_whose_data_path_hangs_is_restarted_by_its_watchdog() {
    perform_between("adopt = true", |path| hang(path, Hang::DataPath));
}
