//! Programs that the lab runs: ask one and read its answer, or start one and stop it by its id.

use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::cleanup;
use crate::failure::Failure;

/// How often something awaited is looked at.
const POLL: Duration = Duration::from_millis(10);
/// How long a program that answers at once may take, with room for a loaded machine.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);
/// How long a program may take to end after it was asked to.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// What a program answered.
#[derive(Debug)]
pub struct Answer {
    /// How it ended.
    pub status: ExitStatus,
    /// Its output.
    pub stdout: String,
    /// Its error output.
    pub stderr: String,
}

/// Runs `command` to its end, with `input` on its standard input.
///
/// # Errors
/// It cannot be started or does not end within a minute.
pub fn ask(mut command: Command, input: &[u8]) -> Result<Answer, Failure> {
    let label = label(&command);
    let scratch = || tempfile::tempfile().map_err(Failure::io("making a scratch file"));
    let (mut stdin, mut stdout, mut stderr) = (scratch()?, scratch()?, scratch()?);
    let filled = stdin.write_all(input).and_then(|()| stdin.rewind());
    filled.map_err(Failure::io("filling a scratch file"))?;
    let share = |file: &File| file.try_clone().map_err(Failure::io("sharing a scratch file"));
    command.stdin(stdin).stdout(share(&stdout)?).stderr(share(&stderr)?);
    let mut child = spawn(&mut command)?;
    let status = match wait(&mut child, ANSWER_LIMIT) {
        Some(status) => status,
        None => {
            end(&mut child);
            return Err(Failure::Late { what: format!("the end of `{label}`"), limit: ANSWER_LIMIT });
        }
    };
    Ok(Answer { status, stdout: text(&mut stdout), stderr: text(&mut stderr) })
}

/// Runs `command`, which must succeed, and returns its output.
///
/// # Errors
/// As [`ask`], or it fails.
pub fn must(command: Command) -> Result<String, Failure> {
    must_with(command, &[])
}

/// What `ringwall status` says: its exit status of 1 or 2 is part of the answer.
///
/// # Errors
/// As [`must`].
pub fn told(command: Command) -> Result<String, Failure> {
    let label = label(&command);
    let answer = ask(command, &[])?;
    match answer.status.code() {
        Some(0..=2) if !answer.stdout.is_empty() => Ok(answer.stdout),
        _ => Err(Failure::Command { command: label, said: answer.stderr.trim().to_owned() }),
    }
}

/// As [`must`], with `input` on its standard input.
///
/// # Errors
/// As [`must`].
pub fn must_with(command: Command, input: &[u8]) -> Result<String, Failure> {
    let label = label(&command);
    let answer = ask(command, input)?;
    if answer.status.success() {
        return Ok(answer.stdout);
    }
    let said = answer.stderr.trim().lines().last().unwrap_or("nothing").to_owned();
    Err(Failure::Command { command: label, said })
}

/// Whether `program` can be found.
#[must_use]
pub fn installed(program: &str) -> bool {
    if program.contains('/') {
        return Path::new(program).exists();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Users without an administrator's login lack the system directories, although `sudo` adds them.
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&path).chain(system).any(|directory| directory.join(program).is_file())
}

/// A program that runs until it is stopped, its output going to a file. Dropping it kills it.
#[derive(Debug)]
pub struct Running {
    child: Child,
    label: String,
    log: PathBuf,
}

impl Running {
    /// Starts `command` with its output going to the file `log`.
    ///
    /// # Errors
    /// The program or the file cannot be opened.
    pub fn start(mut command: Command, log: &Path) -> Result<Running, Failure> {
        let output = File::create(log).map_err(Failure::file("making", log))?;
        let errors = output.try_clone().map_err(Failure::file("sharing", log))?;
        let label = label(&command);
        // A group of its own, so that Ctrl-C reaches the lab alone, which then ends things in order.
        command.stdin(Stdio::null()).stdout(output).stderr(errors).process_group(0);
        let child = spawn(&mut command)?;
        Ok(Running { child, label, log: log.to_owned() })
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has written so far.
    #[must_use]
    pub fn output(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until its output contains `text`.
    ///
    /// # Errors
    /// It ends first, or `limit` passes.
    pub fn await_output(&mut self, text: &str, limit: Duration) -> Result<(), Failure> {
        let what = format!("\"{text}\" from `{}`", self.label);
        until(&what, limit, || {
            if self.output().contains(text) {
                return Ok(true);
            }
            self.ensure_alive().map(|()| false)
        })
    }

    /// Checks that it still runs.
    ///
    /// # Errors
    /// [`Failure::Command`] with its last line when it has ended.
    pub fn ensure_alive(&mut self) -> Result<(), Failure> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            _ => {
                let said = self.output().trim().lines().last().unwrap_or("nothing").to_owned();
                Err(Failure::Command { command: self.label.clone(), said: format!("it ended early: {said}") })
            }
        }
    }

    /// Sends `signal`.
    pub fn signal(&self, signal: Signal) {
        // It may have ended by itself; then there is nobody to tell.
        let _gone = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).map(|pid| kill_process(pid, signal));
    }

    /// Asks it to end with `signal`, waits, and kills it if it does not. Returns its output.
    pub fn stop(mut self, signal: Signal) -> String {
        self.signal(signal);
        if wait(&mut self.child, STOP_LIMIT).is_none() {
            end(&mut self.child);
        }
        self.output()
    }

    /// Lets it run on after this program has ended.
    pub fn release(self) {
        std::mem::forget(self);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Looks every few milliseconds until `condition` holds.
///
/// # Errors
/// The condition's own, [`Failure::Late`] naming `what` when `limit` passes, [`Failure::Interrupted`].
pub fn until(what: &str, limit: Duration, mut condition: impl FnMut() -> Result<bool, Failure>) -> Result<(), Failure> {
    let deadline = Instant::now() + limit;
    while !condition()? {
        if Instant::now() >= deadline {
            return Err(Failure::Late { what: what.to_owned(), limit });
        }
        pause(POLL)?;
    }
    Ok(())
}

/// Waits until `condition` holds or `limit` has passed; returns whether it came to hold.
///
/// # Errors
/// The condition's own, and [`Failure::Interrupted`].
pub fn within(limit: Duration, condition: impl FnMut() -> Result<bool, Failure>) -> Result<bool, Failure> {
    match until("", limit, condition) {
        Ok(()) => Ok(true),
        Err(Failure::Late { .. }) => Ok(false),
        Err(other) => Err(other),
    }
}

/// Sleeps, unless the lab is being ended.
///
/// # Errors
/// [`Failure::Interrupted`].
pub fn pause(time: Duration) -> Result<(), Failure> {
    thread::sleep(time);
    cleanup::permit().map(drop)
}

fn spawn(command: &mut Command) -> Result<Child, Failure> {
    let _permit = cleanup::permit()?;
    let program = command.get_program().to_string_lossy().into_owned();
    command.spawn().map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => Failure::MissingTool(program),
        _ => Failure::Io { doing: format!("starting {program}"), source },
    })
}

fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let deadline = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(2)),
            _ => return None,
        }
    }
}

fn end(child: &mut Child) {
    // Both fail only when it has ended already.
    let _ended = child.kill();
    let _reaped = child.wait();
}

fn text(file: &mut File) -> String {
    let mut bytes = Vec::new();
    // An unreadable scratch file reads as empty output, which every caller treats as a failed program.
    let _read = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The command as a person would type it, without the way into the namespace.
fn label(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let start = words.iter().position(|word| word == "--").map_or(0, |at| at + 1);
    words[start..].join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_output_status_and_input() {
        let mut command = Command::new("sh");
        command.args(["-c", "cat; echo no >&2; exit 3"]);
        let answer = ask(command, b"hello").expect("sh runs");
        assert_eq!((answer.status.code(), answer.stdout.as_str(), answer.stderr.as_str()), (Some(3), "hello", "no\n"));
    }

    #[test]
    fn a_failure_names_the_command_and_its_last_line() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo first >&2; echo last >&2; exit 1"]);
        let failure = must(command).expect_err("it fails");
        assert!(failure.to_string().ends_with("failed: last"), "{failure}");
    }

    #[test]
    fn a_missing_program_is_named() {
        let failure = must(Command::new("no-such-program-here")).expect_err("missing");
        assert!(matches!(failure, Failure::MissingTool(name) if name == "no-such-program-here"));
        assert!(!installed("no-such-program-here"));
        assert!(installed("sh"));
    }

    #[test]
    fn dropping_a_running_program_ends_it() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let mut command = Command::new("sleep");
        command.arg("100");
        let running = Running::start(command, &directory.path().join("log")).expect("sleep starts");
        let proc = format!("/proc/{}", running.id());
        assert!(Path::new(&proc).exists());
        drop(running);
        assert!(!Path::new(&proc).exists());
    }
}
