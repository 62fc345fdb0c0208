//! The kernel's generator of random bytes.

use std::io;

use bump::SecretSource;
use rustix::rand::{GetRandomFlags, getrandom};
use zeroize::Zeroizing;

/// 32 bytes from the kernel's generator.
///
/// # Errors
/// The kernel has no generator, which no supported one lacks.
pub fn seed() -> io::Result<Zeroizing<[u8; 32]>> {
    let mut seed = Zeroizing::new([0_u8; 32]);
    let mut filled = 0;
    while filled < seed.len() {
        match getrandom(&mut seed[filled..], GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(seed)
}

/// Draws each secret from the kernel. Nothing of it stays in this process, and two machines that
/// were started from one snapshot draw different secrets, because the kernel notices.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelSource;

impl SecretSource for KernelSource {
    fn secret(&mut self) -> Option<Zeroizing<[u8; 32]>> {
        seed().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_the_kernel_differ_and_none_is_kept() {
        let (first, second) = (KernelSource.secret().expect("kernel"), KernelSource.secret().expect("kernel"));
        assert!(first != second && *first != [0; 32]);
        assert_eq!(size_of::<KernelSource>(), 0, "there is nothing to read in its memory");
    }
}
