//! What the tests of the authority share.

/// Bytes that differ from call to call and from `seed` to `seed`, and are the same for the same.
pub(crate) fn random(seed: u8) -> impl FnMut(&mut [u8]) {
    let mut counter = 0u64;
    move |bytes| {
        for chunk in bytes.chunks_mut(32) {
            counter += 1;
            chunk.copy_from_slice(&identity::hash::sha256(&[&[seed], &counter.to_be_bytes()])[..chunk.len()]);
        }
    }
}
