//! `ringwall console login`: asks the console for a link.

use std::io::{BufRead as _, BufReader};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::LoginArgs;
use super::tokens::TOKEN_TIME;
use crate::config;
use crate::failure::Failure;
use crate::output::{complain, say};

/// How long the console may take.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);

/// Where a console is asked. It is no daemon's: those end in `.sock`.
pub(super) fn socket(run_dir: &Path) -> PathBuf {
    run_dir.join("console.login")
}

/// `ringwall console login`: the link alone goes to the standard output.
pub(super) fn login(args: &LoginArgs) -> Result<(), Failure> {
    let run_dir = args.run_dir.clone().unwrap_or_else(config::default_run_dir);
    let name = socket(&run_dir);
    let ask = || {
        let stream = UnixStream::connect(&name)?;
        stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line)?;
        Ok(line)
    };
    let remedy = "start it with `systemctl start ringwall-console.service`, and ask as root";
    let line = ask().map_err(|error: std::io::Error| Failure::file(&name, error, remedy))?;
    if line.is_empty() {
        return Err(Failure::file(&name, "the console gives no link", "ask as root; see its log"));
    }
    say!("{}", line.trim_end());
    complain(format_args!("the link signs one person in, within {} minutes", TOKEN_TIME.as_secs() / 60));
    Ok(())
}
