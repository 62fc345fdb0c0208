#!/bin/sh
# Fuzzes every target, one after the other: fuzz/run.sh [SECONDS for each, 60] [TARGET...]
# Prints one line for each. Status 1 when an input broke a law (it is kept in fuzz/artifacts/), 3 when this machine has no
# fuzzer: then `cargo test --manifest-path fuzz/Cargo.toml --no-default-features` runs the same harnesses without one.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -eq 0 ] || shift

skip() {
    echo "SKIPPED fuzz: $1" >&2
    exit 3
}
cargo +nightly --version >/dev/null 2>&1 || skip "no nightly Rust (rustup toolchain install nightly)"
cargo +nightly fuzz --version >/dev/null 2>&1 || skip "no cargo-fuzz (cargo install cargo-fuzz --version 0.13.2 --locked)"

targets=${*:-$(cargo +nightly fuzz list)}
logs=fuzz/artifacts/logs
mkdir -p "$logs"
cargo run --quiet --manifest-path fuzz/Cargo.toml --no-default-features --target-dir target --example seeds -- fuzz/corpus
cargo +nightly fuzz build

failed=
for target in $targets; do
    log=$logs/$target.log
    status=0
    # A crash that is known by its file in regressions/ is found again at once, not by luck.
    mkdir -p "fuzz/corpus/$target" "fuzz/regressions/$target"
    cargo +nightly fuzz run "$target" "fuzz/corpus/$target" "fuzz/regressions/$target" -- \
        -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=8192 -print_final_stats=1 >"$log" 2>&1 || status=$?
    rmdir "fuzz/regressions/$target" 2>/dev/null || true
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    coverage=$(sed -n 's/.* cov: \([0-9]*\).*/\1/p' "$log" | tail -1)
    if [ "$status" -eq 0 ]; then
        echo "$target: $runs runs in $seconds s, $coverage edges, nothing found"
    else
        echo "$target: BROKEN, see $log and fuzz/artifacts/$target" >&2
        failed="$failed $target"
    fi
done
[ -z "$failed" ] || { echo "broken:$failed" >&2; exit 1; }
