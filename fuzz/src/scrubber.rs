//! The scrubber. Its laws are those of its own tests, which are taken in by path.

#[path = "../../crates/scrub/tests/whole/laws.rs"]
mod laws;

/// Frames of both sides while time passes, by a script: one half of all scripts with the rules of a preset, where all laws hold,
/// the other with any rules, limits and metadata, where nothing panics and the books balance.
pub fn scrub(data: &[u8]) {
    match data.split_first() {
        Some((choice, script)) if choice & 1 == 0 => laws::run(script),
        Some((_, script)) => laws::run_any(script),
        None => {}
    }
}
