//! The rollout of docs/manual/migration.md on a small LAN: by its commands alone, under traffic between all
//! pairs, with printers, and with an attacker who never stops.

use std::time::Duration;

use ringwall_lab::rollout::{self, COMMANDS_MAX, Plan};

use crate::stage::{perform_alone, program};

/// The authority's machine, router and DHCP servers, and three workplaces.
const HOSTS: usize = 7;

#[test]
fn a_lan_with_printers_and_an_attacker_moves_to_sealed_frames_and_back_by_twelve_commands() {
    let name = "a_lan_with_printers_and_an_attacker_moves_to_sealed_frames_and_back_by_twelve_commands";
    perform_alone(name, &["dnsmasq", "udhcpc", "arpspoof", "ethtool"], |run| {
        let report_every = Duration::from_secs(5);
        let plan = Plan { program: program(), hosts: HOSTS, is_quick: true, report_every };
        let report = rollout::perform(run, &plan)?;
        // How long a pair was without an answer is told, and not a matter of this test.
        eprintln!("{}", report.in_words());
        assert_eq!(report.faults, Vec::<String>::new());
        assert!(report.until_enforced <= COMMANDS_MAX, "{:?}", report.typed);
        let guarded = |name: &str| report.stages.iter().find(|stage| stage.name == name).map(|stage| stage.guarded);
        for (stage, wanted) in [
            ("everybody in clear", (0, 0)),
            ("all have joined, and observe", (HOSTS, 0)),
            ("all enforce", (HOSTS, HOSTS)),
            ("back to observe at a time", (HOSTS, 0)),
            ("all have left", (0, 0)),
        ] {
            assert_eq!(guarded(stage), Some(wanted), "{stage}");
        }
        Ok(())
    });
}
