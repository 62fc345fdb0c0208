#!/bin/sh
# `make test`: everything that says whether this tree is good. Each step stops at the first failure;
# what a machine cannot do is skipped by name and listed again at the end. `make check` (test.sh
# check) is the part that makes no network namespaces and builds nothing optimised.
set -eu
cd "$(dirname "$0")/.."
case ${1:-} in
'') packaging/setup.sh test ;;
check) packaging/setup.sh build ;;
*) echo "usage: test.sh [check]" >&2 && exit 1 ;;
esac
. packaging/common.sh

# Where the time goes stands in any log.
# shellcheck disable=SC2034 # for `say`
started=$(date +%s)

SIM_RUNS=${SIM_RUNS:-50}
FUZZ_SMOKE_SECONDS=${FUZZ_SMOKE_SECONDS:-6}
privileged=yes
is_root || sudo -n true 2>/dev/null || privileged=no

# What the tests and the lab could leave behind, by the names they use. Only what is new at the end counts: what was there
# before may belong to another run on this machine, and may well be gone by then.
traces() {
    ip netns list 2>/dev/null | cut -d' ' -f1 | grep -E '^(rl|rw)' || true
    if [ "$privileged" = yes ]; then
        as_root nft list tables 2>/dev/null | grep ringwall || true
    fi
}

check_style() {
    say "format"
    if cargo fmt --version >/dev/null 2>&1; then
        cargo fmt --all --check
    else
        skip "format check: no rustfmt"
    fi
    say "lints"
    if cargo clippy --version >/dev/null 2>&1; then
        cargo clippy --workspace --all-targets --locked -- -D warnings
    else
        skip "lints: no clippy"
    fi
}

# The program as it is installed, without the paper profile, which the laboratory's crate switches
# on for the whole workspace. Checked only, in the same target directory; `make check` runs its
# tests.
check_features() {
    say "without the paper profile"
    if cargo clippy --version >/dev/null 2>&1; then
        cargo clippy -p ringwall --bins --locked -- -D warnings
    else
        cargo check -p ringwall --bins --locked
    fi
}

# Tests in namespaces and the demo run the programs as they are installed, so these are there before them.
build_programs() {
    say "release build"
    # shellcheck disable=SC2086 # words of cargo
    packaging/build.sh $lab_programs
    say "network stacks of others"
    # Sourced, so that what it skips is listed again at the end.
    . packaging/receivers.sh
}

# Lines of what failed that are shown once more, for whoever reads only the end of a log.
FAILED_LINES=300

# Runs tests and shows of those that pass only by what lines they say that they skipped something,
# which is hidden otherwise and listed again at the end. What failed is shown again behind the rest.
run_listed() {
    work=$(mktemp -d)
    {
        code=0
        "$@" -- --show-output 2>&1 || code=$?
        echo "$code" >"$work/code"
    } | awk -v said="$work/said" -v failed="$work/failed" '
        /^successes:$/ { quiet = 1 }
        /^failures:$/ { quiet = 0; failing = 1 }
        /^test result: / { quiet = 0; failing = 0 }
        failing || /^error(\[|:)/ || /process didn.t exit successfully/ { print >failed }
        /^SKIPPED / || /^skipped: / { print >said }
        !quiet || /^SKIPPED / || /^skipped: / { print; fflush() }'
    if [ -s "$work/said" ]; then
        skipped="${skipped:-}
$(sed -e 's/^SKIPPED //; s/^skipped: //; s/^/  test: /' "$work/said" | sort -u)"
    fi
    if [ -s "$work/failed" ]; then
        say "what failed, once more"
        tail -n "$FAILED_LINES" "$work/failed"
    fi
    code=$(cat "$work/code")
    rm -r "$work"
    return "$code"
}

# Without the laboratory no crate switches the paper profile on, so these are the tests of the
# program as it is installed.
check_quickly() {
    say "unit, property and documentation tests"
    run_listed cargo test --workspace --exclude ringwall-lab --exclude system --locked
    say "the rules of the architecture, and the simulation's own tests"
    run_listed cargo test -p ringwall-lab --lib --bins --test architecture --locked
}

# Debug builds, because the assertions of the contract are in them. Only the tests run as root, never the compiler.
run_tests() {
    say "unit, property, documentation, architecture and namespace tests"
    if [ "$privileged" = no ]; then
        skip "tests that make network namespaces: neither root nor sudo without a password"
    elif ! is_root; then
        host=$(rustc -vV | sed -n 's/^host: //p' | tr a-z- A-Z_)
        export "CARGO_TARGET_${host}_RUNNER=sudo --preserve-env"
    fi
    # Tests in namespaces wait more than they compute, so more of them run than there are processors.
    threads=$((2 * $(nproc)))
    RUST_TEST_THREADS=$((threads < 16 ? threads : 16)) run_listed cargo test --workspace --locked --no-fail-fast
    say "the fuzz targets' harnesses on their examples, without a fuzzer"
    cargo test --manifest-path fuzz/Cargo.toml --target-dir target --no-default-features --locked
    unset "CARGO_TARGET_${host:-NONE}_RUNNER"
}

# The program in the kernel is in the tree as the compiler of Debian 12 made it, so that nobody else needs one.
check_kernel_program() {
    say "the program in the kernel, compiled anew"
    if command -v clang-14 >/dev/null; then
        /usr/bin/python3 crates/shield/bpf/make.py --check
    else
        skip "the program in the kernel, compiled anew: no clang-14"
    fi
}

# What we are made of: whose licence, whose unsafe code, from where.
check_dependencies() {
    say "dependencies: unsafe code and its reasons"
    /usr/bin/python3 packaging/dependencies.py --check
    say "dependencies: licences, duplicates, sources, advisories"
    if ! cargo deny --version >/dev/null 2>&1; then
        skip "licences, bans, sources and advisories: no cargo-deny (cargo install cargo-deny --version 0.20.2 --locked)"
        return 0
    fi
    cargo deny --locked --offline check bans licenses sources
    # Only a copy that is there is read; who wants news fetches them.
    if ls "${CARGO_HOME:-$HOME/.cargo}"/advisory-dbs/*/crates >/dev/null 2>&1; then
        cargo deny --locked --offline check --disable-fetch advisories
    else
        skip "advisories: no copy of the RustSec database (cargo deny fetch db)"
    fi
}

check_release() {
    say "a signed release is verified, a changed one is not"
    packaging/release-test.sh
}

# The laboratory's program, which is there; the one of `make package` differs from it by the paper profile.
check_package() {
    say "Debian package"
    status=0
    packaging/package-test.sh target/release/ringwall || status=$?
    case $status in
    0) ;;
    3) skip "Debian package, in part: a tool is missing, named above" ;;
    *) fail "the Debian package is not as it must be" ;;
    esac
}

check_monitoring() {
    say "alerts for Prometheus"
    status=0
    packaging/monitoring-test.sh || status=$?
    case $status in
    0) ;;
    3) skip "alerts for Prometheus: no promtool" ;;
    *) fail "what is shipped for Prometheus is not as it must be" ;;
    esac
}

check_dissector() {
    say "the dissector for Wireshark"
    status=0
    packaging/dissector-test.sh || status=$?
    case $status in
    0) ;;
    3) skip "the dissector for Wireshark: no tshark, or another tool" ;;
    *) fail "the dissector does not read what the protocol says" ;;
    esac
}

# Two restarts of two machines are five minutes with KVM and a quarter of an hour without.
check_machines() {
    say "machines: NetworkManager and networkd, guarded through a restart"
    if ! is_root; then
        skip "machines: not root (make test-machine has all cases)"
    elif [ "${RINGWALL_MACHINES:-}" = yes ] || packaging/machine/kvm.sh; then
        packaging/machine.sh --built --only NetworkManager --only networkd --boots 1
    else
        skip "machines: none starts under KVM here (RINGWALL_MACHINES=yes has them emulated; make test-machine has all cases)"
    fi
}

check_vectors() {
    say "golden vectors, made anew from the written protocol"
    /usr/bin/python3 vectors/make.py --check
    /usr/bin/python3 vectors/paper.py --check
}

# Building Verifpal takes minutes, so whoever wants its verdicts here runs `make model` once before; SPIN comes with Debian.
check_models() {
    say "models of the protocol, the quick ones"
    status=0
    model/run.sh --quick || status=$?
    case $status in
    0) ;;
    3) skip "models of the protocol: a tool is missing, named above (make model installs Verifpal); the other models ran" ;;
    *) fail "a model's verdict differs from what is expected" ;;
    esac
}

run_programs() {
    say "simulation, $SIM_RUNS runs"
    target/release/ringwall-lab sim --seed 1 --runs "$SIM_RUNS"
    say "fuzz smoke"
    status=0
    fuzz/run.sh "$FUZZ_SMOKE_SECONDS" || status=$?
    case $status in
    0) ;;
    3) skip "fuzz smoke: no fuzzer here; the harnesses above ran on their examples instead" ;;
    *) fail "a fuzz target failed" ;;
    esac
    say "demo, the test from end to end"
    if [ "$privileged" = yes ]; then
        as_root target/release/ringwall-lab demo --all --page target/demo.html --eve target/demo.eve.json
        check_eve
    else
        skip "demo: neither root nor sudo without a password"
    fi
}

# Suricata's schema is under the GPL and so not in this tree (record 0094).
check_eve() {
    say "what the demo's daemons told, by Suricata's schema"
    status=3
    [ -z "${RINGWALL_EVE_SCHEMA:-}" ] || {
        status=0
        packaging/eve-test.py "$RINGWALL_EVE_SCHEMA" <target/demo.eve.json || status=$?
    }
    case $status in
    0) ;;
    3) skip "EVE by Suricata's schema: RINGWALL_EVE_SCHEMA names none, or no python3-jsonschema" ;;
    *) fail "what the daemons told is not as Suricata's schema has it, or nothing" ;;
    esac
}

new_traces() {
    traces | while read -r trace; do
        printf '%s\n' "$before" | grep -Fxq -- "$trace" || printf '%s\n' "$trace"
    done
}

check_all() {
    check_features
    check_dependencies
    check_release
    check_vectors
    check_models
    check_kernel_program
    build_programs
    check_package
    check_monitoring
    check_dissector
    run_tests
    run_programs
    check_machines
}

before=$(traces)
check_style
if [ "${1:-}" = check ]; then
    check_quickly
else
    check_all
fi
left=$(new_traces)
[ -z "$left" ] || fail "something was left behind: $left"
if [ -n "${skipped:-}" ]; then
    say "all that ran passed; skipped:$skipped"
else
    say "all passed, nothing skipped"
fi
