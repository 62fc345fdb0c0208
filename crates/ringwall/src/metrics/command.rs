//! `ringwall metrics`: what scrapers get, on the standard output or in a file.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use clap::Args;

use super::daemon;
use super::family::{Families, Format};
use crate::client::{self, DaemonArgs};
use crate::failure::Failure;
use crate::output::say;
use crate::protocol::{Answer, Ask};

/// Options of `ringwall metrics`
#[derive(Args, Debug)]
pub(crate) struct MetricsArgs {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// Writes this file instead, whole or not at all, for the textfile collector of node_exporter.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// In the form of OpenMetrics 1.0 instead of Prometheus text 0.0.4.
    #[arg(long)]
    open_metrics: bool,
}

/// `ringwall metrics`
pub(crate) fn metrics(args: &MetricsArgs) -> Result<(), Failure> {
    let format = if args.open_metrics { Format::OpenMetrics } else { Format::Plain };
    let sockets = args.daemon.sockets()?;
    let mut families = Families::new();
    let mut last = None;
    for socket in &sockets {
        match client::ask(socket, &Ask::Metrics) {
            Ok(Answer::Measured(measured)) => daemon::describe(&mut families, &measured),
            Ok(_) => last = Some(client::unexpected(socket)),
            Err(failure) => {
                last = Some(failure);
                daemon::silent(&mut families, &client::stem(socket));
            }
        }
    }
    // Where one daemon is meant, its silence is a failure; a file tells of it as a metric.
    if let (Some(failure), [_], None) = (last, &sockets[..], &args.out) {
        return Err(failure);
    }
    let text = families.text(format)?;
    match &args.out {
        Some(file) => {
            replace(file, &text).map_err(|error| Failure::file(file, error, "name a file that can be written"))
        }
        None => {
            say!("{}", text.trim_end());
            Ok(())
        }
    }
}

/// Readers see the file before or the file after.
fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    let mut beside = file.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let beside = PathBuf::from(beside);
    let mut made = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&beside)?;
    let done = made
        .write_all(text.as_bytes())
        // The collector runs as another user, whatever the mask of this process is.
        .and_then(|()| made.set_permissions(fs::Permissions::from_mode(0o644)))
        .and_then(|()| fs::rename(&beside, file));
    if done.is_err() {
        let _ = fs::remove_file(&beside);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_everybody_may_read_it() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("ringwall.prom");
        for text in ["first\n", "second\n"] {
            replace(&file, text).expect("written");
            assert_eq!(fs::read_to_string(&file).expect("there"), text);
        }
        assert_eq!(fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o644);
        assert_eq!(fs::read_dir(place.path()).expect("there").count(), 1, "nothing is left beside it");
        assert!(replace(&place.path().join("no/where.prom"), "x").is_err());
    }
}
