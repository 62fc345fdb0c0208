//! Everything that a daemon counts, for Prometheus and what speaks its formats
//! (docs/decisions/0084-metrics.md).
//!
//! - `family.rs`: metrics with their samples, in an order that never changes, as text in both
//!   formats.
//! - `daemon.rs`: what is told of every daemon; `host.rs` and `gate.rs`: what only one of them has.
//! - `command.rs`: `ringwall metrics`; `exporter/`: the process that answers scrapers.

mod command;
mod daemon;
pub(crate) mod exporter;
mod family;
mod gate;
mod host;

pub(crate) use command::{MetricsArgs, metrics};
pub(crate) use exporter::Exporter;

use family::{Families, Format};

use crate::failure::Failure;
use crate::protocol::Measured;

/// What was measured at one daemon, as text.
fn text(measured: &Measured, format: Format) -> Result<String, Failure> {
    let mut families = Families::new();
    daemon::describe(&mut families, measured);
    families.text(format)
}

#[cfg(test)]
pub(crate) mod tests;
