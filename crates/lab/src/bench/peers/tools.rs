//! The peers' programs: found on the machine, or fetched once and kept beside the build's other products.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cleanup::Run;
use crate::failure::Failure;
use crate::net::process;

/// Where Go's own installation lies when it is not on the path.
const GO_USUAL: &str = "/usr/local/go/bin/go";

/// Where fetched programs lie, and the run to which everything started belongs.
#[derive(Debug)]
pub struct Tools<'a> {
    /// The run.
    pub run: &'a Run,
    cache: PathBuf,
}

impl Tools<'_> {
    /// Keeps fetched programs in `peers` below the build directory of this program.
    ///
    /// # Errors
    /// This program's own path is unknown.
    pub fn new(run: &Run) -> Result<Tools<'_>, Failure> {
        let own = std::env::current_exe().map_err(Failure::io("finding this program"))?;
        let build = own.parent().and_then(Path::parent).unwrap_or(Path::new("target"));
        Ok(Tools { run, cache: build.join("peers") })
    }

    /// Path of the fetched file at `relative`.
    pub fn cached(&self, relative: &str) -> PathBuf {
        self.cache.join(relative)
    }

    /// Go's program, if there is one.
    pub fn go(&self) -> Option<&'static str> {
        ["go", GO_USUAL].into_iter().find(|program| process::installed(program))
    }

    /// Runs `command`, which fetches and builds; that may take minutes.
    ///
    /// # Errors
    /// It is missing or fails.
    pub fn fetch(&self, mut command: Command) -> Result<(), Failure> {
        let program = command.get_program().to_string_lossy().into_owned();
        eprintln!("ringwall-lab: fetching a peer with {program}, once; this may take minutes");
        self.run.mark(&mut command);
        let _permit = crate::cleanup::permit()?;
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(Failure::Command { command: program, said: format!("fetching ended with {status}") }),
            Err(_) => Err(Failure::MissingTool(program)),
        }
    }
}

/// The first line in which `program` names its version.
///
/// # Errors
/// It is not installed.
pub fn version_line(program: &Path) -> Result<String, Failure> {
    let mut command = Command::new(program);
    command.arg("--version");
    // Some end with a failure after printing it.
    let answer = process::ask(command, &[])?;
    let line = answer.stdout.lines().chain(answer.stderr.lines()).find(|line| !line.trim().is_empty());
    line.map(str::to_owned).ok_or_else(|| Failure::Unreadable(format!("{} --version", program.display())))
}
