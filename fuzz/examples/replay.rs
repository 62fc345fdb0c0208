//! Gives files to a harness without a fuzzer: `cargo run --example replay -- TARGET FILE...`.

use ringwall_fuzz::TARGETS;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let target = arguments.next().unwrap_or_default();
    let harness = TARGETS.iter().find(|(name, _)| *name == target).map(|(_, harness)| harness);
    let harness = harness.ok_or_else(|| std::io::Error::other(format!("no target {target:?}")))?;
    for file in arguments {
        harness(&std::fs::read(&file)?);
        println!("{file}: no law broken");
    }
    Ok(())
}
