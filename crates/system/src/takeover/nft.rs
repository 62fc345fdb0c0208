//! Handing a script to `nft`.

use std::io::{self, Write};
use std::process::{Command, Output, Stdio};

use super::TakeoverError;

/// Where `nft` is looked for: services often run without the administrator's directories in their search path.
const NFT_PATHS: [&str; 3] = ["nft", "/usr/sbin/nft", "/sbin/nft"];

/// Runs `script` for `interface` as one transaction in the calling thread's namespace.
pub(super) fn run(interface: &str, script: &str) -> Result<(), TakeoverError> {
    for program in NFT_PATHS {
        match run_program(program, script) {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stderr);
                let cause = text.lines().next().unwrap_or("no message").to_owned();
                return Err(TakeoverError::Filter { interface: interface.to_owned(), cause });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(TakeoverError::Filter { interface: interface.to_owned(), cause: error.to_string() });
            }
        }
    }
    Err(TakeoverError::NoNft { interface: interface.to_owned() })
}

fn run_program(program: &str, script: &str) -> io::Result<Output> {
    let mut command = Command::new(program);
    command.args(["-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // If `nft` ends early its message says why.
        let _ = input.write_all(script.as_bytes());
    }
    child.wait_with_output()
}
