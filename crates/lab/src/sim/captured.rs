//! What an attacker has seen on the wire, and how he spoils it before he sends it again.

use bump::Generator;

/// Frames that are kept; a random one goes for a new one, so that old ones stay around.
const CAPTURED_MAX: usize = 400;

/// Frames of the wire.
#[derive(Debug, Default)]
pub struct Captured(Vec<Vec<u8>>);

impl Captured {
    /// Keeps a frame.
    pub fn see(&mut self, random: &mut Generator, frame: &[u8]) {
        if self.0.len() < CAPTURED_MAX {
            self.0.push(frame.to_vec());
        } else {
            let at = random.below(CAPTURED_MAX as u64) as usize;
            self.0[at] = frame.to_vec();
        }
    }

    /// All that is kept.
    pub fn all(&self) -> &[Vec<u8>] {
        &self.0
    }

    /// Any of them.
    pub fn any(&self, random: &mut Generator) -> Option<Vec<u8>> {
        let at = random.below(self.0.len() as u64) as usize;
        self.0.get(at).cloned()
    }
}

/// Changes one or two bits.
pub fn flip_bits(frame: &mut [u8], random: &mut Generator) {
    for _ in 0..=random.below(2) {
        let at = random.below(frame.len() as u64) as usize;
        frame[at] ^= 1 << random.below(8);
    }
}

/// Cuts a frame off, perhaps with noise behind.
pub fn cut(frame: &mut Vec<u8>, random: &mut Generator) {
    frame.truncate(random.below(frame.len() as u64 + 1) as usize);
    if random.chance(8) {
        frame.extend(random.bytes::<32>());
    }
}

/// Writes noise over a few bytes.
pub fn mutate(frame: &mut [u8], random: &mut Generator) {
    let from = random.below(frame.len() as u64) as usize;
    for byte in frame.iter_mut().skip(from).take(1 + random.below(16) as usize) {
        *byte = random.bytes::<1>()[0];
    }
}
