//! Prints `docs/records.md`.

use std::io::Write;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(bump::record::kind::page().as_bytes())
}
