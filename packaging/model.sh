#!/bin/sh
# `make model`: installs Verifpal below target/ where it is missing (about five minutes, nightly Rust) and runs the models.
set -eu
cd "$(dirname "$0")/.."
. packaging/common.sh

model/install.sh || skip "models of Verifpal: see above"
status=0
model/run.sh "$@" || status=$?
case $status in
0) ;;
3) skip "models: a tool is missing, named above; the others ran" ;;
*) fail "a verdict differs from what is expected" ;;
esac
