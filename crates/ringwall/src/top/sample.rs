//! What is shown: how all daemons of this machine are at one moment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::client;
use crate::modes::part::Account;
use crate::protocol::attacks::Attack;
use crate::protocol::{Answer, Ask, Example, Flow, GateStatus, Peer, Status};
use crate::recorder::rfc3339;
use crate::status::Certificate;
use crate::verdict::{Level, Verdict};

/// Connections of one gateway that are looked at: more than a person reads, few enough to fetch each second.
const FLOWS_MAX: usize = 1000;

/// All of them.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// For rates.
    pub(super) at: Instant,
    pub(super) unix_s: u64,
    pub(super) daemons: Vec<Daemon>,
}

/// One daemon.
#[derive(Clone, Debug)]
pub(super) struct Daemon {
    pub(super) interface: String,
    pub(super) level: Level,
    /// The first line of `ringwall status`.
    pub(super) verdict: String,
    /// One that started anew counts from zero.
    pub(super) uptime_s: u64,
    pub(super) drops: BTreeMap<String, u64>,
    pub(super) examples: Vec<Example>,
    pub(super) peers: Vec<Peer>,
    pub(super) attacks: Vec<Attack>,
    pub(super) flows: Vec<Flow>,
    pub(super) certificates: Vec<Certificate>,
}

impl Sample {
    /// Asks all daemons that listen on `sockets`.
    pub(super) fn take(sockets: &[PathBuf]) -> Sample {
        let daemons = sockets.iter().map(|socket| Daemon::ask(socket)).collect();
        let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Sample { at: Instant::now(), unix_s, daemons }
    }

    pub(super) fn level(&self) -> Level {
        self.daemons.iter().map(|daemon| daemon.level).max().unwrap_or(Level::Unknown)
    }

    /// When it was taken, as a person reads it.
    pub(super) fn time(&self) -> String {
        rfc3339(self.unix_s * 1000)
    }
}

impl Daemon {
    fn ask(socket: &Path) -> Daemon {
        let mut daemon = match client::ask(socket, &Ask::Status) {
            Ok(Answer::Status(status)) => Daemon::of_host(*status),
            Ok(Answer::Gate(status)) => Daemon::of_gate(*status),
            Ok(_) => Daemon::silent(&client::stem(socket), &client::unexpected(socket).to_string()),
            Err(failure) => Daemon::silent(&client::stem(socket), &failure.to_string()),
        };
        if daemon.level == Level::Unknown {
            return daemon;
        }
        if let Ok(Answer::Peers { peers }) = client::ask(socket, &Ask::Peers) {
            let of = |peer: &Peer| Certificate {
                of: peer.name.clone(),
                not_after_unix: peer.shown.certificate_not_after_unix,
            };
            daemon.certificates.extend(peers.iter().map(of));
            daemon.peers = peers;
        }
        if let Ok(Answer::Drops { examples, .. }) = client::ask(socket, &Ask::Drops) {
            daemon.examples = examples;
        }
        if let Ok(Answer::Flows { flows }) =
            client::ask(socket, &Ask::Flows { limit: FLOWS_MAX, address: None, state: None })
        {
            daemon.flows = flows;
        }
        daemon
    }

    pub(super) fn of_host(status: Status) -> Daemon {
        let verdict = status.verdict();
        let mut daemon = Daemon::new(&status.interface, &verdict);
        daemon.certificates = status.certificates();
        Daemon { uptime_s: status.uptime_s, drops: status.drops, attacks: status.attacks.open, ..daemon }
    }

    pub(super) fn of_gate(status: GateStatus) -> Daemon {
        let daemon = Daemon::new(&status.interface, &status.verdict());
        Daemon { uptime_s: status.uptime_s, drops: status.drops, attacks: status.attacks.open, ..daemon }
    }

    fn silent(interface: &str, why: &str) -> Daemon {
        Daemon::new(interface, &Verdict::unknown(why))
    }

    fn new(interface: &str, verdict: &Verdict) -> Daemon {
        Daemon {
            interface: interface.to_owned(),
            level: verdict.level,
            verdict: verdict.line(interface),
            uptime_s: 0,
            drops: BTreeMap::new(),
            examples: Vec::new(),
            peers: Vec::new(),
            attacks: Vec::new(),
            flows: Vec::new(),
            certificates: Vec::new(),
        }
    }
}
