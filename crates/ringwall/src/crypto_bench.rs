//! Times of the cryptographic operations on the critical path of a handshake, or of an answer of S-ARP, measured with the very
//! code that runs there.

use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bump::Generator;
use clap::Args;
use identity::agreement::KeyPair;
use identity::kem::{KemPair, encapsulate};
use identity::profile::PAIR_RANDOM_LEN;
use identity::schedule::Schedule;
use identity::signing::SigningKey;
use identity::{HostIdentity, Profile};

use crate::failure::Failure;
use crate::output::say;

/// Options of `ringwall bench-crypto`
#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    /// Identity file of any host.
    #[arg(long)]
    identity: PathBuf,
    /// How often each operation is measured.
    #[arg(long, default_value_t = 200)]
    runs: usize,
    /// Rests so long before each measurement. A handshake meets its operations after a rest, with cold caches; without one
    /// the best case is measured.
    #[arg(long, default_value_t = 0)]
    rest_ms: u64,
    /// Length of the messages in bytes: a handshake has 600 signed, an answer of S-ARP 44.
    #[arg(long, default_value_t = 600)]
    message_len: usize,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// What was measured of one operation, in nanoseconds.
struct Row {
    operation: &'static str,
    min: u64,
    median: u64,
    max: u64,
    mean: f64,
    deviation: f64,
}

/// Runs the benchmark.
pub(crate) fn run(args: &BenchArgs) -> Result<(), Failure> {
    let text = std::fs::read_to_string(&args.identity)
        .map_err(|error| Failure::file(&args.identity, error, "name an identity file"))?;
    let identity =
        HostIdentity::from_pem(&text).map_err(|error| Failure::file(&args.identity, error, "name an identity file"))?;
    let mut random = Generator::from_seed([7; 32]);
    let message = vec![0x5a; args.message_len];
    let certificate = identity.certificate();
    let signs_handshakes = certificate.signs_as_the_cll_paper();
    let key = if signs_handshakes { identity.handshake_key() } else { identity.record_signing_key() };
    let unprepared = prepare(args, &key, &message, &mut random);
    let signature = key.sign(&message).map_err(Failure::new)?;
    let verify = || match signs_handshakes {
        true => certificate.verify_signature(&message, &signature),
        false => certificate.verify_record_signature(&message, &signature),
    };
    let valid_at = certificate.not_before_unix() + 1;
    let profile = certificate_profile(&identity);
    let (mine, peer) = (key_pair(profile, &mut random)?, key_pair(profile, &mut random)?);
    let shared = mine.agree(peer.public()).map_err(Failure::new)?;
    let site_key = identity.site_key();
    let mut rows = vec![
        row_after(args, "sign", || fill(&key, &mut random), || used(key.sign(&message))),
        row(args, "verify", || used(verify())),
        row(args, "certificate_verify", || used(identity.anchor().verify(certificate.der(), valid_at))),
        row(args, "key_pair", || used(KeyPair::of_profile(profile, &[9; 32]))),
        row(args, "agree", || used(mine.agree(peer.public()))),
        row(args, "derive", || derive(&shared)),
        row(args, "site_tag", || used(site_key.frame_tag(b"handshake", &[&message]))),
    ];
    rows.extend(unprepared);
    rows.extend(post_quantum(args)?);
    if let Some(key) = identity.request_key() {
        rows.push(row(args, "request_tag", || used(key.credential(&message))));
    }
    if let Some(master) = identity.request_master() {
        let tag = master.key_of(1).tag(&message);
        rows.push(row(args, "request_check", || used(master.key_of(1).verify(&message, &tag))));
    }
    print(&rows, args.json)
}

/// What ML-KEM takes: a pair is made ahead, the rest each exchange waits for.
fn post_quantum(args: &BenchArgs) -> Result<[Row; 3], Failure> {
    let pair = KemPair::generate().map_err(Failure::new)?;
    let (ciphertext, _) = encapsulate(pair.public()).map_err(Failure::new)?;
    Ok([
        row(args, "ml_kem_pair", || used(KemPair::generate())),
        row(args, "ml_kem_encapsulate", || used(encapsulate(pair.public()))),
        row(args, "ml_kem_decapsulate", || used(pair.decapsulate(&ciphertext))),
    ])
}

/// What a key of the paper profile does ahead, and a signature without that; nothing for other keys. Its own signatures come
/// first, while nothing is there ahead.
fn prepare(args: &BenchArgs, key: &SigningKey, message: &[u8], random: &mut Generator) -> Vec<Row> {
    if !key.wants_preparation() {
        return Vec::new();
    }
    let random: [u8; PAIR_RANDOM_LEN] = random.bytes();
    let whole = row(args, "sign_whole", || used(key.sign(message)));
    vec![whole, row(args, "exponential", || key.prepare(&random, 1))]
}

/// As the daemon does in idle moments.
fn fill(key: &SigningKey, random: &mut Generator) {
    while key.wants_preparation() {
        key.prepare(&random.bytes(), identity::limits::PAIRS_PER_BATCH);
    }
}

/// Keeps the optimiser from leaving an operation out.
fn used<T>(result: T) {
    let _ = black_box(result);
}

/// The profile of the handshakes that this identity takes part in: a host of a paper site with a DSA key speaks S-ARP.
fn certificate_profile(identity: &HostIdentity) -> Profile {
    if identity.certificate().signs_as_the_cll_paper() { Profile::Paper } else { Profile::Modern }
}

fn key_pair(profile: Profile, random: &mut Generator) -> Result<KeyPair, Failure> {
    KeyPair::of_profile(profile, &random.bytes()).map_err(Failure::new)
}

/// As many derivations as one association of one lane takes: key, vector and spinning nonce, both ways.
fn derive(shared: &identity::agreement::SharedSecret) {
    let schedule = Schedule::new(shared, &[1; 32]);
    for direction in [0_u8, 1] {
        black_box(schedule.expand::<32>(&[b"ringwall cll 2 key", &[direction]]));
        black_box(schedule.expand::<12>(&[b"ringwall cll 2 iv", &[direction]]));
        black_box(schedule.expand::<16>(&[b"ringwall cll 2 spin", &[direction]]));
    }
}

fn row(args: &BenchArgs, operation: &'static str, work: impl FnMut()) -> Row {
    row_after(args, operation, || (), work)
}

/// As [`row`], with something before each measurement.
fn row_after(args: &BenchArgs, operation: &'static str, mut before: impl FnMut(), mut work: impl FnMut()) -> Row {
    let mut times: Vec<u64> = (0..args.runs.max(1))
        .map(|_| {
            before();
            std::thread::sleep(Duration::from_millis(args.rest_ms));
            let start = Instant::now();
            work();
            u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
        })
        .collect();
    times.sort_unstable();
    let count = times.len() as f64;
    let mean = times.iter().map(|time| *time as f64).sum::<f64>() / count;
    let squares: f64 = times.iter().map(|time| (*time as f64 - mean).powi(2)).sum();
    let (min, median, max) = (times[0], times[times.len() / 2], times[times.len() - 1]);
    Row { operation, min, median, max, mean, deviation: (squares / (count - 1.0).max(1.0)).sqrt() }
}

fn print(rows: &[Row], json: bool) -> Result<(), Failure> {
    if json {
        let rows: Vec<_> = rows.iter().map(as_json).collect();
        say!("{}", serde_json::to_string_pretty(&rows).map_err(Failure::new)?);
        return Ok(());
    }
    for row in rows {
        say!("{:<20} {:>8} ns, mean {:.0}, {} to {}", row.operation, row.median, row.mean, row.min, row.max);
    }
    Ok(())
}

fn as_json(row: &Row) -> serde_json::Value {
    serde_json::json!({
        "operation": row.operation,
        "median_ns": row.median,
        "min_ns": row.min,
        "max_ns": row.max,
        "mean_ns": row.mean.round(),
        "deviation_ns": row.deviation.round(),
    })
}
