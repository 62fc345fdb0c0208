//! Writes the seeds of every target below the directory named on the command line.

use std::path::Path;

use ringwall_fuzz::{TARGETS, seeds::seeds};

fn main() -> std::io::Result<()> {
    let corpus = std::env::args().nth(1).unwrap_or_else(|| "fuzz/corpus".to_owned());
    for target in TARGETS.iter().map(|(name, _)| *name).chain(["config"]) {
        let directory = Path::new(&corpus).join(target);
        std::fs::create_dir_all(&directory)?;
        for (number, seed) in seeds(target).iter().enumerate() {
            std::fs::write(directory.join(format!("seed-{number}")), seed)?;
        }
    }
    Ok(())
}
