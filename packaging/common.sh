# Sourced by the other scripts, from the root of the tree: what all of them need. POSIX shell.
# shellcheck shell=sh

# A script that sets `started` has the minutes and seconds since then beside each step.
say() {
    printf '\n==> %s%s\n' "$*" "${started:+ [$(minutes_since "$started")]}"
}

minutes_since() {
    passed_s=$(($(date +%s) - $1))
    printf '%d:%02d' $((passed_s / 60)) $((passed_s % 60))
}

fail() {
    echo "$(basename "$0"): $*" >&2
    exit 1
}

# What cannot be done here is said by name, never passed over.
skip() {
    echo "SKIPPED: $*"
    skipped="${skipped:-}
  $*"
}

is_root() {
    [ "$(id -u)" -eq 0 ]
}

# Runs a command as root; fails where there is no way to.
as_root() {
    if is_root; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        fail "needs root for '$1' and there is no sudo: run as root"
    fi
}

# What the laboratory runs, for packaging/build.sh. Its program has the paper profile, which what is
# installed has not (record 0078).
# shellcheck disable=SC2034 # for who sources this
lab_programs="-p ringwall -p ringwall-lab --features ringwall/paper"

# The oldest Rust that builds this tree, as Cargo.toml says.
rust_wanted() {
    sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml
}

# The Rust that releases are built with; rustup reads the same line by itself.
rust_pinned() {
    sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml
}

# Where rustup does not have that one, its own default takes the place, and nothing is fetched.
take_installed_rust() {
    [ -z "${RUSTUP_TOOLCHAIN:-}" ] && command -v rustup >/dev/null || return 0
    ! rustup toolchain list | grep -q "^$(rust_pinned)-" || return 0
    RUSTUP_TOOLCHAIN=$(rustup default | cut -d' ' -f1)
    export RUSTUP_TOOLCHAIN
    echo "Rust $(rust_pinned) of rust-toolchain.toml is not installed; building with $RUSTUP_TOOLCHAIN" >&2
}

# Whether the cargo and the rustc in the path are new enough.
rust_is_new_enough() {
    for program in cargo rustc; do
        found=$("$program" --version 2>/dev/null | cut -d' ' -f2) || return 1
        [ -n "$found" ] || return 1
        lowest=$(printf '%s\n%s\n' "$(rust_wanted)" "$found" | sort -V | head -n 1)
        [ "$lowest" = "$(rust_wanted)" ] || return 1
    done
}

# Administrators' directories are missing from the path of ordinary users, and Rust may have been installed for this user.
PATH=$PATH:/usr/sbin:/sbin
if ! command -v cargo >/dev/null && [ -x "$HOME/.cargo/bin/cargo" ]; then
    PATH=$HOME/.cargo/bin:$PATH
fi
take_installed_rust
# Where the Rust in front is too old, Debian's may be new enough.
if ! rust_is_new_enough && [ -x /usr/bin/cargo ]; then
    PATH=/usr/bin:$PATH
fi
export PATH
