# Sourced: how the files of a release are signed and verified, by release.sh and its test. POSIX shell.
# shellcheck shell=sh

# What a signature is for; one for something else does not count here.
signature_purpose=ringwall-release

# Writes SHA256SUMS over all files in $1, and its signature by the private key $2.
sign_files() {
    (cd "$1" && rm -f SHA256SUMS SHA256SUMS.sig && LC_ALL=C sha256sum -- * >SHA256SUMS.new && mv SHA256SUMS.new SHA256SUMS)
    ssh-keygen -q -Y sign -f "$2" -n "$signature_purpose" "$1/SHA256SUMS"
}

# Whether SHA256SUMS in $1 is signed by one of those in $2 (lines of NAME KEY), in the name $3, and every file is as it says.
verify_files() {
    ssh-keygen -q -Y verify -f "$2" -I "$3" -n "$signature_purpose" -s "$1/SHA256SUMS.sig" <"$1/SHA256SUMS" >/dev/null 2>&1 &&
        (cd "$1" && sha256sum --quiet --check --strict SHA256SUMS >/dev/null 2>&1)
}
