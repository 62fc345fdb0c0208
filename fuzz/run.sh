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
# Built once and then run as they are, so that a source file that changes meanwhile does not build all of it again.
cargo +nightly fuzz build
programs=fuzz/target/$(rustc +nightly -vV | sed -n 's/^host: //p')/release

# SQLite, which is compiled in, has statics of one name in several functions; the sanitizer takes them for one thing defined twice.
export ASAN_OPTIONS="detect_odr_violation=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}"

failed=
for target in $targets; do
    log=$logs/$target.log
    kept=fuzz/artifacts/$target
    inputs=fuzz/corpus/$target
    mkdir -p "$kept" "$inputs"
    # What once broke a law is tried at once, not by luck.
    [ ! -d "fuzz/regressions/$target" ] || inputs="$inputs fuzz/regressions/$target"
    status=0
    # The limit for one input is generous, because the fuzzer measures it by the wall clock of a machine that may be busy.
    # shellcheck disable=SC2086
    "$programs/$target" $inputs -artifact_prefix="$kept/" -max_total_time="$seconds" -timeout=120 -rss_limit_mb=2048 \
        -max_len=8192 -print_final_stats=1 >"$log" 2>&1 || status=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    edges=$(sed -n 's/.* cov: \([0-9]*\).*/\1/p' "$log" | tail -1)
    if [ "$status" -eq 0 ]; then
        echo "$target: $runs runs in $seconds s, $edges edges, nothing found"
    else
        echo "$target: BROKEN, see $log and $kept" >&2
        failed="$failed $target"
    fi
done
[ -z "$failed" ] || { echo "broken:$failed" >&2; exit 1; }
