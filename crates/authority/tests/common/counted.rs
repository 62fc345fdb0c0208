//! Random bytes for tests that ask for them in many places.

use std::sync::atomic::{AtomicU64, Ordering};

/// Other bytes with each call, whoever asks.
pub(crate) fn random() -> impl FnMut(&mut [u8]) {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    |bytes: &mut [u8]| {
        for part in bytes.chunks_mut(32) {
            let count = CALLS.fetch_add(1, Ordering::Relaxed).to_be_bytes();
            part.copy_from_slice(&identity::hash::sha256(&[&count])[..part.len()]);
        }
    }
}
