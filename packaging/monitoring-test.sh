#!/bin/sh
# Has Prometheus' own tool look at what is shipped for it: rules that are well formed, alerts that fire when they
# should, a configuration that loads. Status 3 says that the tool is missing.
set -eu
cd "$(dirname "$0")/.."
. packaging/common.sh

if ! command -v promtool >/dev/null; then
    skip "rules for Prometheus: no promtool (package prometheus)"
    exit 3
fi
promtool check rules packaging/monitoring/ringwall.rules.yml
promtool test rules packaging/monitoring/ringwall.rules.test.yml
promtool check config --syntax-only packaging/monitoring/prometheus.yml
