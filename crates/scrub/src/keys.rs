//! Secrets of a scrubber, drawn by whoever runs it and handed in.

/// Secrets of a scrubber.
#[derive(Clone)]
pub struct Keys {
    /// For the tables: with it nobody can foresee which rows share a place (SipHash-1-3).
    pub tables: [u8; 16],
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys")
    }
}
