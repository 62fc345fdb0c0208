//! Hosts with different network stacks look alike from behind the gateway, and ICMP keeps its pace there.

use std::time::Instant;

use ringwall_lab::disguise::{self, Guard, Row};
use ringwall_lab::failure::Failure;
use ringwall_lab::net::process;
use ringwall_lab::stacks::standing::Stack;

use super::{TRUSTED, perform_with};
use crate::stage::{Outcome, perform_alone, program};

/// `ringwall-lab disguise` looks at all stacks from behind all presets.
#[test]
fn nmap_and_p0f_tell_stacks_apart_but_not_from_behind_the_gateway() {
    perform_alone("nmap_and_p0f_tell_stacks_apart_but_not_from_behind_the_gateway", &["nmap", "p0f"], |run| {
        let mut rows: Vec<Row> = Vec::new();
        for stack in [Stack::LinuxTuned, Stack::Smoltcp, Stack::Lwip] {
            if let Some(missing) = stack.missing() {
                eprintln!("SKIPPED {} behind a gateway: needs {missing}", stack.name());
                continue;
            }
            for guard in [Guard::None, Guard::Strict] {
                rows.push(disguise::play(run, &program(), stack, guard)?);
            }
        }
        let wrong: Vec<_> = disguise::judge(&rows).into_iter().filter(disguise::Verdict::fails).collect();
        assert!(wrong.is_empty(), "{wrong:?}: {rows:#?}");
        Ok(()) as Outcome
    });
}

/// The paper's figure 9 between kernels: every request arrives, and no more answers leave than fit the time.
#[test]
fn figure_9_pings_every_20_ms_are_answered_at_the_gateways_pace() {
    perform_with(&[], "icmp = \"limit\"\nicmp_interval_ms = 50", |path| {
        let began = Instant::now();
        let mut ping = path.untrusted.command("ping");
        ping.args(["-n", "-i", "0.02", "-c", "90", "-W", "1", &TRUSTED.to_string()]);
        let said = process::ask(ping, &[])?.stdout;
        let intervals = began.elapsed().as_millis() / 50;
        let answered = said.matches("icmp_seq=").count();
        assert!(said.contains("90 packets transmitted"), "{said}");
        assert!(answered >= 2 && answered as u128 <= intervals + 1, "{answered} answers in {intervals} intervals");
        let snmp = path
            .trusted
            .enter(|| std::fs::read_to_string("/proc/thread-self/net/snmp").map_err(Failure::io("counting")))?;
        let mut icmp = snmp.lines().filter(|line| line.starts_with("Icmp: "));
        let (names, values) = (icmp.next().unwrap_or_default(), icmp.next().unwrap_or_default());
        let at = names.split(' ').position(|name| name == "InEchos");
        let heard = at.and_then(|at| values.split(' ').nth(at)).and_then(|value| value.parse().ok());
        assert_eq!(heard, Some(90), "{snmp}");
        Ok(())
    });
}
