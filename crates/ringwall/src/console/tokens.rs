//! Tokens that sign one person in, once.

use std::fmt;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

/// How long a token is good.
pub(super) const TOKEN_TIME: Duration = Duration::from_secs(300);
/// Tokens that wait to be used.
pub(super) const TOKENS_MAX: usize = 8;
/// Of a token and of a session, in bytes.
pub(super) const SECRET_LEN: usize = 32;
/// The same as text.
pub(super) const SECRET_TEXT_LEN: usize = 43;

/// What nobody guesses: of a token, or of a session.
#[derive(Clone)]
pub(super) struct Secret(Zeroizing<[u8; SECRET_LEN]>);

/// Nothing of what it is: requests and sessions have one, and may come into a log.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(redacted)")
    }
}

impl Secret {
    pub(super) fn new(bytes: [u8; SECRET_LEN]) -> Secret {
        Secret(Zeroizing::new(bytes))
    }

    /// None for what is no secret's text.
    pub(super) fn parse(text: &str) -> Option<Secret> {
        if text.len() != SECRET_TEXT_LEN {
            return None;
        }
        let bytes = Zeroizing::new(URL_SAFE_NO_PAD.decode(text).ok()?);
        Some(Secret(Zeroizing::new(bytes.as_slice().try_into().ok()?)))
    }

    pub(super) fn text(&self) -> Zeroizing<String> {
        Zeroizing::new(URL_SAFE_NO_PAD.encode(*self.0))
    }

    /// Without telling by the time how much of it is right.
    pub(super) fn is(&self, other: &Secret) -> bool {
        self.0[..].ct_eq(&other.0[..]).into()
    }
}

/// Tokens that were given out and not used.
#[derive(Debug, Default)]
pub(super) struct Tokens(Vec<(Secret, Instant)>);

impl Tokens {
    /// Takes one in; the oldest makes room.
    pub(super) fn give(&mut self, token: Secret, now: Instant) {
        self.forget(now);
        if self.0.len() >= TOKENS_MAX {
            self.0.remove(0);
        }
        self.0.push((token, now));
    }

    /// Whether it is one of them, which it is no more.
    pub(super) fn redeem(&mut self, token: &Secret, now: Instant) -> bool {
        self.forget(now);
        let before = self.0.len();
        self.0.retain(|(one, _)| !one.is(token));
        self.0.len() < before
    }

    fn forget(&mut self, now: Instant) {
        self.0.retain(|(_, given)| now.saturating_duration_since(*given) < TOKEN_TIME);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn secret(number: u8) -> Secret {
        Secret::new([number; SECRET_LEN])
    }

    #[test]
    fn a_secret_is_not_printed() {
        assert_eq!(format!("{:?}", secret(201)), "Secret(redacted)");
    }

    #[test]
    fn a_token_is_good_once_and_for_a_time() {
        let start = Instant::now();
        let mut tokens = Tokens::default();
        tokens.give(secret(1), start);
        tokens.give(secret(2), start);
        assert!(!tokens.redeem(&secret(3), start));
        assert!(tokens.redeem(&secret(1), start + TOKEN_TIME / 2));
        assert!(!tokens.redeem(&secret(1), start + TOKEN_TIME / 2), "once");
        assert!(!tokens.redeem(&secret(2), start + TOKEN_TIME), "it is over");
    }

    #[test]
    fn the_oldest_makes_room() {
        let now = Instant::now();
        let mut tokens = Tokens::default();
        (0..=TOKENS_MAX).for_each(|number| tokens.give(secret(u8::try_from(number).expect("few")), now));
        assert!(!tokens.redeem(&secret(0), now));
        assert!(tokens.redeem(&secret(1), now) && tokens.redeem(&secret(8), now));
    }

    proptest! {
        #[test]
        fn a_text_is_read_as_it_was_written(bytes: [u8; SECRET_LEN]) {
            let secret = Secret::new(bytes);
            let text = secret.text();
            prop_assert_eq!(text.len(), SECRET_TEXT_LEN);
            prop_assert!(Secret::parse(&text).is_some_and(|read| read.is(&secret)));
        }

        #[test]
        fn no_text_is_read_as_a_secret_that_it_is_not(text in "\\PC{0,60}") {
            if let Some(secret) = Secret::parse(&text) {
                let written = secret.text();
                prop_assert_eq!(written.as_str(), text);
            }
        }
    }
}
