#!/bin/sh
# Has the real tshark read the golden vectors with packaging/ringwall.lua, and compares what it says
# with what the vectors themselves say was put in. Status 3 says that a tool is missing.
set -eu
cd "$(dirname "$0")/.."
. packaging/common.sh

for tool in tshark python3 setpriv; do
    if ! command -v "$tool" >/dev/null; then
        skip "dissector: no $tool (packages tshark, python3, util-linux)"
        exit 3
    fi
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
cp packaging/ringwall.lua "$work"
python3 packaging/dissector.py write "$work/vectors.pcap"
chmod 644 "$work"/*
# As root tshark reads no script.
as_nobody=
! is_root || as_nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
# shellcheck disable=SC2086 # words of a command
HOME=$work $as_nobody tshark -X "lua_script:$work/ringwall.lua" -r "$work/vectors.pcap" -T json \
    >"$work/said.json" 2>"$work/errors" || fail "tshark: $(cat "$work/errors")"
! grep -i lua "$work/errors" || fail "the script has a fault"
python3 packaging/dissector.py check "$work/said.json"
