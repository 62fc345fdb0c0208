#!/bin/sh
# Writes packaging/pages anew: manual pages and completions, from the command line's declarations and
# docs/manual/configuration.md. A test of the crate compares them.
set -eu
cd "$(dirname "$0")/.."
. packaging/common.sh

mkdir -p packaging/pages
RINGWALL_WRITE_PAGES=1 cargo test -p ringwall --locked --quiet -- pages_in_the_tree the_document_names_every
ls packaging/pages
