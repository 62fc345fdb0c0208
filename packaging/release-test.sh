#!/bin/sh
# Shows with throw-away keys that signed files of a release verify, and that a changed byte, a changed sum, another's key and a
# signature for another purpose do not.
set -eu
cd "$(dirname "$0")/.."
. packaging/common.sh
. packaging/signing.sh

if ! command -v ssh-keygen >/dev/null; then
    skip "signature of a release: no ssh-keygen"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
files=$work/files
mkdir "$files"
for who in maintainer stranger; do
    ssh-keygen -q -t ed25519 -N '' -C "$who" -f "$work/$who"
done
printf 'maintainer %s\n' "$(cut -d' ' -f1,2 "$work/maintainer.pub")" >"$work/allowed"
head -c 4096 /dev/zero >"$files/ringwall-0.tar.gz"
printf '{}\n' >"$files/ringwall-0.cdx.json"
sign_files "$files" "$work/maintainer"

# Whether a copy of the signed files verifies after $1 was run in it.
verifies_after() {
    rm -rf "$work/copy"
    cp -r "$files" "$work/copy"
    (cd "$work/copy" && eval "$1")
    verify_files "$work/copy" "$work/allowed" maintainer
}

refused() {
    if verifies_after "$2"; then
        fail "$1 was taken"
    fi
    echo "refused: $1"
}

verifies_after true || fail "a good signature was refused"
echo "verified: the files as they were signed"
refused "a changed byte of the archive" 'printf x | dd of=ringwall-0.tar.gz bs=1 seek=2000 conv=notrunc status=none'
refused "a changed bill of materials" 'printf "{ }\n" >ringwall-0.cdx.json'
refused "a changed file with its sum made anew" 'printf x >>ringwall-0.tar.gz; sha256sum ringwall-0.* >SHA256SUMS'
refused "a missing file" 'rm ringwall-0.cdx.json'
refused "a stranger's signature" 'rm SHA256SUMS.sig; ssh-keygen -q -Y sign -f ../stranger -n "$signature_purpose" SHA256SUMS'
refused "a signature for another purpose" 'rm SHA256SUMS.sig; ssh-keygen -q -Y sign -f ../maintainer -n file SHA256SUMS'
