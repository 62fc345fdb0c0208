//! Secret numbers of signatures: the generator of RFC 6979, section 3.2, over HMAC with SHA-1.

use aws_lc_rs::hmac::{self, HMAC_SHA1_FOR_LEGACY_USE_ONLY};
use zeroize::Zeroizing;

use super::SCALAR_LEN;

type State = Zeroizing<[u8; SCALAR_LEN]>;

/// A sequence of numbers that only the key's owner can tell. q has as many bits as SHA-1, so that each step gives one.
pub(super) struct Secrets {
    key: State,
    value: State,
    is_first: bool,
}

impl Secrets {
    /// The sequence for the secret key `x` and the hash `h` of what is to be signed, both as long as q; `more` is what section
    /// 3.6 calls additional data.
    pub(super) fn new(x: &[u8; SCALAR_LEN], h: &[u8; SCALAR_LEN], more: &[u8]) -> Secrets {
        let mut secrets =
            Secrets { key: Zeroizing::new([0; SCALAR_LEN]), value: Zeroizing::new([1; SCALAR_LEN]), is_first: true };
        for round in [0, 1] {
            secrets.key = secrets.mac(&[&*secrets.value, &[round], x, h, more]);
            secrets.value = secrets.mac(&[&*secrets.value]);
        }
        secrets
    }

    /// The next number, which need not be below q.
    pub(super) fn next(&mut self) -> State {
        if !self.is_first {
            self.key = self.mac(&[&*self.value, &[0]]);
            self.value = self.mac(&[&*self.value]);
        }
        self.is_first = false;
        self.value = self.mac(&[&*self.value]);
        self.value.clone()
    }

    fn mac(&self, parts: &[&[u8]]) -> State {
        let mut context = hmac::Context::with_key(&hmac::Key::new(HMAC_SHA1_FOR_LEGACY_USE_ONLY, &*self.key));
        parts.iter().for_each(|part| context.update(part));
        let mut state = Zeroizing::new([0; SCALAR_LEN]);
        state.copy_from_slice(context.sign().as_ref());
        state
    }
}
