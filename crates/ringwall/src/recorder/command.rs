//! A command for each attack that opens: mail, a webhook, whatever the operator has.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::protocol::attacks::Attack;

/// How long a command may take before it is ended.
const TIME_MAX: Duration = Duration::from_secs(60);
/// Commands at one time.
const RUNNING_MAX: usize = 4;
const HOUR: Duration = Duration::from_secs(3600);

/// Runs them, no more than so many in an hour.
pub(super) struct Commands {
    command: String,
    per_hour: usize,
    started: VecDeque<Instant>,
    running: Vec<(Instant, Child)>,
}

impl Commands {
    pub(super) fn new(command: &str, per_hour: u32) -> Commands {
        let (started, running) = (VecDeque::new(), Vec::new());
        Commands { command: command.to_owned(), per_hour: per_hour as usize, started, running }
    }

    /// Runs the command about `attack`; an error says why not.
    pub(super) fn run(&mut self, attack: &Attack, now: Instant) -> io::Result<()> {
        self.reap(now);
        while self.started.front().is_some_and(|at| now.saturating_duration_since(*at) >= HOUR) {
            self.started.pop_front();
        }
        if self.started.len() >= self.per_hour || self.running.len() >= RUNNING_MAX {
            return Err(io::Error::other("as many commands as may run were run for earlier attacks"));
        }
        self.started.push_back(now);
        let mut child = Command::new("sh")
            .args(["-c", &self.command])
            .envs(environment(attack))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        // Shorter than a pipe's room, so that nobody waits for a command that does not read.
        let told = child.stdin.take().map(|mut pipe| pipe.write_all(&serde_json::to_vec(attack).unwrap_or_default()));
        self.running.push((now, child));
        match told {
            Some(Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    }

    /// Sees to those that have ended, and ends those that take too long. Whether some still run.
    pub(super) fn reap(&mut self, now: Instant) -> bool {
        self.running.retain_mut(|(started, child)| {
            if now.saturating_duration_since(*started) >= TIME_MAX {
                let _ = child.kill();
            }
            matches!(child.try_wait(), Ok(None))
        });
        !self.running.is_empty()
    }
}

/// What a shell script has at hand without reading JSON.
fn environment(attack: &Attack) -> Vec<(&'static str, String)> {
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    vec![
        ("RINGWALL_KIND", attack.sort.kind.clone()),
        ("RINGWALL_SENTENCE", attack.sentence.clone()),
        ("RINGWALL_ADVICE", attack.sort.advice.clone()),
        ("RINGWALL_INTERFACE", attack.place.interface.clone()),
        ("RINGWALL_SOURCE_MAC", or_dash(&attack.source.mac)),
        ("RINGWALL_CLAIMED_IP", or_dash(&attack.claimed.ip)),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::process::tests::attack;
    use super::*;

    #[test]
    fn a_command_is_run_no_more_often_than_it_may() {
        let mut commands = Commands::new("true", 2);
        let now = Instant::now();
        let outcomes: Vec<bool> = (0..4).map(|_| commands.run(&attack(), now).is_ok()).collect();
        assert_eq!(outcomes, [true, true, false, false]);
        assert!(commands.run(&attack(), now + HOUR).is_ok(), "an hour later");
    }

    #[test]
    fn a_command_that_hangs_is_ended() {
        let mut commands = Commands::new("exec sleep 600", 9);
        let now = Instant::now();
        commands.run(&attack(), now).expect("started");
        assert!(commands.reap(now));
        let deadline = Instant::now() + Duration::from_secs(30);
        while commands.reap(now + TIME_MAX) {
            assert!(Instant::now() < deadline, "it was killed");
        }
    }
}
