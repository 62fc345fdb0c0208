//! Times of the cryptographic operations on a handshake's critical path, measured with the very code that it runs.

use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bump::Generator;
use clap::Args;
use identity::HostIdentity;
use identity::agreement::KeyPair;
use identity::schedule::Schedule;

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
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// Bytes that a handshake message has signed.
const SIGNED_LEN: usize = 600;

/// Runs the benchmark.
pub(crate) fn run(args: &BenchArgs) -> Result<(), Failure> {
    let text = std::fs::read_to_string(&args.identity)
        .map_err(|error| Failure::file(&args.identity, error, "name an identity file"))?;
    let identity =
        HostIdentity::from_pem(&text).map_err(|error| Failure::file(&args.identity, error, "name an identity file"))?;
    let mut random = Generator::from_seed([7; 32]);
    let message = [0x5a; SIGNED_LEN];
    let signature = identity.sign(&message).map_err(Failure::new)?;
    let certificate = identity.certificate();
    let valid_at = certificate.not_before_unix() + 1;
    let (mine, peer) = (key_pair(&mut random)?, key_pair(&mut random)?);
    let shared = mine.agree(&peer.public()).map_err(Failure::new)?;
    let site_key = identity.site_key();
    let rows = [
        ("sign", median_ns(args, || used(identity.sign(&message)))),
        ("verify", median_ns(args, || used(certificate.verify_signature(&message, &signature)))),
        ("certificate_verify", median_ns(args, || used(identity.anchor().verify(certificate.der(), valid_at)))),
        ("agree", median_ns(args, || used(mine.agree(&peer.public())))),
        ("derive", median_ns(args, || derive(&shared))),
        ("site_tag", median_ns(args, || used(site_key.tag(b"handshake", &[&message])))),
    ];
    print(&rows, args.json)
}

/// Keeps the optimiser from leaving an operation out.
fn used<T>(result: T) {
    let _ = black_box(result);
}

fn key_pair(random: &mut Generator) -> Result<KeyPair, Failure> {
    KeyPair::from_random(random.bytes()).map_err(Failure::new)
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

fn median_ns(args: &BenchArgs, mut operation: impl FnMut()) -> u64 {
    let mut times: Vec<u64> = (0..args.runs.max(1))
        .map(|_| {
            std::thread::sleep(Duration::from_millis(args.rest_ms));
            let start = Instant::now();
            operation();
            u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

fn print(rows: &[(&str, u64)], json: bool) -> Result<(), Failure> {
    if json {
        let rows: Vec<_> =
            rows.iter().map(|(name, ns)| serde_json::json!({ "operation": name, "median_ns": ns })).collect();
        say!("{}", serde_json::to_string_pretty(&rows).map_err(Failure::new)?);
        return Ok(());
    }
    for (name, ns) in rows {
        say!("{name:<20} {ns:>8} ns");
    }
    Ok(())
}
