//! Table 1 of the CLL paper as a table of speeds: every cipher with every length of its key, every hash, the key agreement and
//! derivation, and RSA signatures, beside the suites of the modern profile. All in this process, on one processor.

use std::hint::black_box;
use std::time::{Duration, Instant};

use authority::{Request, Site};
use bump::Generator;
use identity::aead::{OpeningKey, SealingKey, Suite, TAG_LEN};
use identity::agreement::KeyPair;
use identity::profile::{PaperKey, RsaHash, RsaKey};
use identity::schedule::Schedule;
use identity::{HostIdentity, PaperSuite, Profile};
use wire::MacAddress;

use super::mode::NAME;
use super::row::Row;
use super::stats::Series;
use super::{Schedule as Runs, cpu};
use crate::failure::Failure;

/// Bytes of a frame that are encrypted: those of a full frame without its headers.
const BODY_LEN: usize = 1447;
/// Bytes of its headers, which are authenticated.
const CLEAR_LEN: usize = 28;
/// Bytes that a handshake has signed.
const MESSAGE_LEN: usize = 900;
/// How long one run takes.
const RUN: Duration = Duration::from_millis(40);
/// When the site of the keys was founded.
const UNIX_S: u64 = 1_800_000_000;

/// Measures all of it.
///
/// # Errors
/// An algorithm fails, or the lab is interrupted.
pub fn measure(runs: Runs) -> Result<Vec<Row>, Failure> {
    cpu::settle()?;
    let mut rows = Vec::new();
    for suite in Suite::ALL.iter().copied().chain(PaperSuite::all().map(Suite::Paper)) {
        if suite.name().ends_with("-hmac-md5") || suite.profile() == Profile::Modern {
            rows.extend(frames(runs, suite, "suite", true)?);
        }
        if suite.name().starts_with("aes-128-hmac-") {
            rows.extend(frames(runs, suite, "authentication", false)?);
        }
    }
    for profile in [Profile::Modern, Profile::Paper] {
        rows.extend(agreement(runs, profile)?);
    }
    rows.extend(signatures(runs)?);
    Ok(rows)
}

/// Keeps the optimiser from leaving an operation out.
fn used<T>(result: T) {
    let _ = black_box(result);
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Unreadable(format!("table 1: {error}"))
}

/// MB/s of a suite on full frames: sealing, with opening beside it.
fn frames(runs: Runs, suite: Suite, kind: &str, confidential: bool) -> Result<Option<Row>, Failure> {
    let key = vec![7; suite.key_len()];
    let (sealing, opening) = (
        SealingKey::new(suite, &key, [1; 12]).map_err(failed)?,
        OpeningKey::new(suite, &key, [1; 12]).map_err(failed)?,
    );
    let clear = vec![2; if confidential { CLEAR_LEN } else { CLEAR_LEN + BODY_LEN }];
    let mut body = vec![3; if confidential { BODY_LEN } else { 0 }];
    let mut opened = body.clone();
    let mut number = 0;
    let sealed = rate(runs, || {
        number += 1;
        sealing.seal(number, &clear, &mut body).map(used).map_err(failed)
    })?;
    let tag: [u8; TAG_LEN] = sealing.seal(0, &clear, &mut body).map_err(failed)?;
    let read = rate(runs, || opening.open(0, &clear, &body, &tag, &mut opened).map_err(failed))?;
    let name = if confidential { suite.name() } else { suite.name().trim_start_matches("aes-128-") };
    let row = Row::new(NAME, format!("table1/{kind}/{name}"), "MB/s", &megabytes(&sealed));
    Ok(row.map(|row| row.with_stat("open", super::stats::median(&super::stats::present(&megabytes(&read))))))
}

/// Key pairs, shared secrets and the keys of an association.
fn agreement(runs: Runs, profile: Profile) -> Result<Vec<Row>, Failure> {
    let pair = |byte| KeyPair::of_profile(profile, &[byte; 32]).map_err(failed);
    let (one, other) = (pair(5)?, pair(6)?);
    let shared = one.agree(other.public()).map_err(failed)?;
    let made = rate(runs, || pair(7).map(used))?;
    let agreed = rate(runs, || one.agree(other.public()).map(used).map_err(failed))?;
    let derived = rate(runs, || {
        let schedule = Schedule::new(&shared, &[1; 32]);
        used((schedule.expand::<64>(&[b"key"]), schedule.expand::<12>(&[b"iv"]), schedule.expand::<16>(&[b"spin"])));
        Ok(())
    })?;
    let row = |name: &str, rate: &Series| Row::new(NAME, format!("table1/{profile}/{name}"), "us", &microseconds(rate));
    Ok([row("key_pair", &made), row("agree", &agreed), row("derive", &derived)].into_iter().flatten().collect())
}

/// RSA-PSS of every length with every hash.
fn signatures(runs: Runs) -> Result<Vec<Row>, Failure> {
    let mut random = Generator::from_seed([1; 32]);
    let mut fill = |bytes: &mut [u8]| bytes.fill_with(|| random.bytes::<1>()[0]);
    let year = Duration::from_secs(365 * 86_400);
    let site = Site::create_for("table-1", year, Profile::Paper, &mut fill, UNIX_S).map_err(failed)?;
    let request = Request::new("a", MacAddress([2, 0, 0, 0, 0, 1]), Vec::new()).map_err(failed)?;
    let message = [9; MESSAGE_LEN];
    let mut rows = Vec::new();
    for key in RsaKey::LENGTHS.into_iter().flat_map(|bits| RsaHash::ALL.map(|hash| RsaKey::new(bits, hash))).flatten() {
        let asked = request.clone().with_paper_key(PaperKey::Rsa(key));
        let text = site.issue_identity(&asked, &mut fill, UNIX_S).map_err(failed)?;
        let identity = HostIdentity::from_pem(&text).map_err(failed)?;
        let signature = identity.sign(&message).map_err(failed)?;
        let signed = rate(runs, || identity.sign(&message).map(used).map_err(failed))?;
        let verified = rate(runs, || identity.certificate().verify_signature(&message, &signature).map_err(failed))?;
        let name = format!("table1/rsa-{}-{}", key.bits(), key.hash().name());
        rows.extend(Row::new(NAME, format!("{name}/sign"), "us", &microseconds(&signed)));
        rows.extend(Row::new(NAME, format!("{name}/verify"), "us", &microseconds(&verified)));
    }
    Ok(rows)
}

/// How often `work` is done in a second, run by run.
fn rate(runs: Runs, mut work: impl FnMut() -> Result<(), Failure>) -> Result<Series, Failure> {
    let mut series = Series::new();
    for _ in 0..runs.pairs {
        let start = Instant::now();
        let mut count = 0_u32;
        while start.elapsed() < RUN {
            for _ in 0..8 {
                work()?;
            }
            count += 8;
        }
        series.push(Some(f64::from(count) / start.elapsed().as_secs_f64()));
    }
    Ok(series)
}

fn megabytes(rate: &Series) -> Series {
    rate.iter().map(|per_second| per_second.map(|rate| rate * (CLEAR_LEN + BODY_LEN) as f64 / 1e6)).collect()
}

fn microseconds(rate: &Series) -> Series {
    rate.iter().map(|per_second| per_second.map(|rate| 1e6 / rate)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_has_its_row() {
        let rows = measure(Runs { pairs: 1, seconds: 1, quick: true }).unwrap();
        let count = |part: &str| rows.iter().filter(|row| row.row.starts_with(&format!("table1/{part}"))).count();
        assert_eq!((count("suite/"), count("authentication/")), (4 + 27, 5));
        assert_eq!((count("modern/"), count("paper/"), count("rsa-")), (3, 3, 18));
        assert!(rows.iter().all(|row| row.median > 0.0));
    }

    #[test]
    fn a_rate_becomes_bytes_and_times() {
        let rate = vec![Some(1000.0), None];
        assert_eq!((megabytes(&rate), microseconds(&rate)), (vec![Some(1.475), None], vec![Some(1000.0), None]));
    }
}
