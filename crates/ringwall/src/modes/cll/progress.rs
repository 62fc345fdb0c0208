//! How far the move to sealed frames is: the mode in force, who has proved himself, and what an
//! operator changes of both while the daemon runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bump::{Instant, Ledger, Now};
use cll::limits::PROVED_MAX;
use cll::{Instruction, Migration, Policy, ProvedHost};
use wire::MacAddress;

use super::config::LegacyHost;
use super::guard::{Associations, LinkLayer};
use super::known::Known;
use super::{parts, reports};
use crate::config::{UNREADABLE, changed_keys, restart_line};
use crate::daemon::{Journal, Link};
use crate::failure::Failure;
use crate::modes::file::Config;
use crate::monitor::Disk;

/// What the supervisor knows of it.
pub(super) struct Progress {
    /// The configuration file.
    file: PathBuf,
    disk: Disk,
    policy: Policy,
    known: Known,
    /// How far each host's clock was ahead of ours in its last handshake, in seconds.
    clocks: BTreeMap<MacAddress, i64>,
}

impl Progress {
    /// Reads who has proved himself before. A damaged file is refused where it decides who is
    /// believed; elsewhere it is only lost, because a host must not be locked out of a network that
    /// is still in clear.
    pub(super) fn open(file: &Path, policy: Policy, disk: &Disk) -> Result<Progress, Failure> {
        let known = Known::open(disk).or_else(|failure| match policy.migration {
            Migration::Prefer => Err(failure),
            Migration::Observe | Migration::Enforce => {
                tracing::warn!("{failure}");
                Ok(Known::anew(disk))
            }
        })?;
        Ok(Progress { file: file.to_owned(), disk: disk.clone(), policy, known, clocks: BTreeMap::new() })
    }

    /// The hosts that have proved themselves.
    pub(super) fn proved(&self) -> &[ProvedHost] {
        self.known.hosts()
    }

    pub(super) fn remember(&mut self, host: ProvedHost, journal: &mut Journal) {
        if let Err(failure) = self.known.remember(host) {
            journal
                .note("peers-kept", &format!("a host that proved itself is forgotten with the next start: {failure}"));
        }
    }

    /// The newest time that each host has said in a handshake.
    pub(super) fn heard(&self) -> Vec<(MacAddress, u64)> {
        self.known.heard().collect()
    }

    /// A host has said this time in a handshake that was verified.
    pub(super) fn remember_time(&mut self, mac: MacAddress, unix_ms: u64, now: Now) {
        self.known.remember_time(mac, unix_ms);
        let Some(wall) = now.wall else { return };
        if self.clocks.len() < PROVED_MAX || self.clocks.contains_key(&mac) {
            let seconds = |unix_ms: u64| i64::try_from(unix_ms / 1000).unwrap_or(i64::MAX);
            self.clocks.insert(mac, seconds(unix_ms).saturating_sub(seconds(wall.unix_ms)));
        }
    }

    /// How far each host's clock was ahead of ours in its last handshake, in seconds.
    pub(super) fn clocks(&self) -> &BTreeMap<MacAddress, i64> {
        &self.clocks
    }

    /// Writes such times now and then.
    pub(super) fn save_times(&mut self, now: Instant, journal: &mut Journal) {
        if let Err(failure) = self.known.save_times(now) {
            journal
                .note("peers-kept", &format!("what hosts' clocks showed is forgotten with the next start: {failure}"));
        }
    }

    /// Forgets that a host has proved itself.
    pub(super) fn forget(
        &mut self,
        who: &str,
        journal: &mut Journal,
        link: &Link<LinkLayer>,
    ) -> Result<Vec<String>, Failure> {
        let gone = self.known.forget(who)?;
        if gone.is_empty() {
            return Err(Failure::new(format!(
                "no host \"{who}\" has proved itself; give its name or hardware address"
            )));
        }
        let mut lines = Vec::new();
        for host in gone {
            link.order(Instruction::Forget(host.mac)).map_err(Failure::new)?;
            let line =
                format!("{} ({}) is forgotten: it may speak in clear where the mode allows it", host.name, host.mac);
            journal.note("forgotten", &line);
            lines.push(line);
        }
        Ok(lines)
    }

    /// The rules in force are these from now on.
    pub(super) fn follow(&mut self, policy: &Policy) {
        self.policy = policy.clone();
    }

    /// Reads the configuration again. What cannot change without a restart stays, and is named;
    /// what else it says of frames in clear is in the configuration that comes back.
    pub(super) fn reload(&self, config: &mut Config) -> Result<(Config, Vec<String>), Failure> {
        let text = self.disk.read(&self.file).map_err(|error| Failure::file(&self.file, error, UNREADABLE))?.text;
        let read = Config::read(&self.file, &text)?;
        config.cll.migration = read.cll.migration;
        config.cll.exception.clone_from(&read.cll.exception);
        config.cll.management.clone_from(&read.cll.management);
        config.cll.legacy.clone_from(&read.cll.legacy);
        config.host.loosens_policy = read.host.loosens_policy;
        config.sets_mode = read.sets_mode;
        config.records.follow(&read.records);
        let mut lines: Vec<String> = read.warnings().into_iter().map(|warning| format!("warning: {warning}")).collect();
        lines.extend(restart_line(&changed_keys(config, &read)));
        Ok((read, lines))
    }

    pub(super) fn status(&self, legacy: &[LegacyHost], link: &Associations, ledger: &Ledger) -> parts::Migration {
        reports::migration((&self.policy, legacy), self.known.hosts().len(), link, ledger)
    }

    /// What the mode leaves open, if it does.
    pub(super) fn not_protected(&self) -> Option<String> {
        match self.policy.migration {
            Migration::Observe => Some("everything: in mode observe whoever speaks in clear is believed".to_owned()),
            Migration::Prefer => Some(
                "hosts that have never proved themselves, groups and what is not sealed in this version: in clear in mode prefer"
                    .to_owned(),
            ),
            Migration::Enforce => None,
        }
    }
}
