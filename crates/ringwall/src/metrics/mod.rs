//! Everything that a daemon counts, for Prometheus and what speaks its formats
//! (docs/decisions/0084-metrics.md).
//!
//! - `family.rs`: metrics with their samples, in an order that never changes, as text in both
//!   formats.
//! - `daemon.rs`: what is told of every daemon; `books.rs`: what became of frames. What only some
//!   daemons have is measured by their parts (`status.rs`, `modes/*/parts.rs`).
//! - `command.rs`: `ringwall metrics`; `exporter/`: the process that answers scrapers.

pub(crate) mod books;
mod command;
mod daemon;
pub(crate) mod exporter;
pub(crate) mod family;

pub(crate) use command::{MetricsArgs, metrics};

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
