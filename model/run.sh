#!/bin/sh
# Runs the models of this directory and compares each query's verdict with the expected one.
#
#   model/run.sh                every model that Verifpal decides, and the SPIN models
#   model/run.sh --quick        without those marked slow
#   model/run.sh --open SECONDS also those that it does not decide, each for so long
#   model/run.sh --only NAME    one model, all its variants
#
# Exit status: 0 all verdicts as expected, 1 one differs, 3 a tool is missing (its models were skipped).
# What is expected stands in the models: `// expect VARIANT SESSIONS: CODE [slow|open]`. In CODE each query
# has a letter (c confidentiality, a authentication, f freshness, e equivalence) and 0 for a pass or 1
# for an attack.
set -eu
cd "$(dirname "$0")"

quick=no only= open=0
while [ $# -gt 0 ]; do
    case $1 in
    --quick) quick=yes ;;
    --open) shift; open=${1:?seconds} ;;
    --only) shift; only=${1:?name of a model} ;;
    *) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 2 ;;
    esac
    shift
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
differing=0 missing=0 decided=0 queries=0

# Where a user-level root below target/ or the path has it.
verifpal=${VERIFPAL:-../target/verifpal/bin/verifpal}
[ -x "$verifpal" ] || verifpal=$(command -v verifpal || true)

# The model of one variant: lines `//@ NAME ...` are its own, lines from `//< NAMES` to `//>` are those
# variants' alone, and a variant with queries of its own has no others.
variant() {
    awk -v want="$2" '
        $1 == "//<" { skip = 1; for (i = 2; i <= NF; i++) if ($i == want) skip = 0; next }
        $1 == "//>" { skip = 0; next }
        skip { next }
        $1 == "//@" { if ($2 == want) { sub(/\/\/@ +[^ ]+ /, ""); print }; next }
        /^queries\[/ { inside = 1 }
        inside && /\?/ && want != "base" && own { next }
        { print }
        /^\]/ { inside = 0 }
    ' own="$(grep -cE "^[[:space:]]*//@ $2 .*\\?[[:space:]]" "$1")" "$1"
}

verdicts() {
    sed -n '/^queries\[/,/^\]/p' "$1" | grep '?' | sed 's/^[[:space:]]*//' | awk -v code="$2" '{
        verdict = substr(code, 2 * NR, 1)
        print "    " (verdict == "0" ? "pass  " : verdict == "1" ? "ATTACK" : "?     ") "  " $0
    }'
}

run_verifpal() {
    file=$1 name=$2 sessions=$3 expected=$4 mark=$5
    model=$scratch/model.vp
    variant "$file" "$name" >"$model"
    limit=0
    if [ "$mark" = open ]; then
        limit=$open
        if [ "$open" = 0 ]; then
            echo "== ${file%.vp} $name, sessions $sessions: not run, not decided in reasonable time (README.md)"
            return
        fi
    fi
    begun=$(date +%s)
    code=$(timeout -k 5 "$limit" "$verifpal" verify "$model" --sessions "$sessions" --result-code --quiet --color never 2>"$scratch/error" | tail -n 1) || true
    took=$(($(date +%s) - begun))
    if [ -z "$code" ] && [ "$mark" = open ]; then
        echo "== ${file%.vp} $name, sessions $sessions: no verdict after $took s"
        return
    fi
    echo "== ${file%.vp} $name, sessions $sessions, $took s: ${code:-no verdict}"
    verdicts "$model" "$code"
    decided=$((decided + 1)) queries=$((queries + ${#code} / 2))
    if [ "$code" != "$expected" ]; then
        echo "    DIFFERS: expected $expected"
        cat "$scratch/error"
        differing=$((differing + 1))
    fi
}

for file in *.vp; do
    [ -z "$only" ] || [ "${file%.vp}" = "$only" ] || continue
    if [ -z "$verifpal" ]; then
        echo "SKIPPED: $file: no verifpal (make model installs it)"
        missing=1
        continue
    fi
    sed -n 's|^// expect \([a-z_]*\) \([0-9]*\): \([a-z0-9]*\) *\([a-z]*\).*|\1 \2 \3 \4|p' "$file" >"$scratch/expected"
    while read -r name sessions expected mark; do
        [ "$quick" = no ] || [ -z "$mark" ] || continue
        run_verifpal "$file" "$name" "$sessions" "$expected" "$mark"
    done <"$scratch/expected"
done

# The attacker of a SPIN model is one of its processes; `found` is a trace to a violated assertion.
run_spin() {
    file=$1 name=$2 expected=$3
    flag=
    [ "$name" = base ] || flag=-D$name
    begun=$(date +%s)
    cp "$file" "$scratch/"
    (cd "$scratch" && spin -a $flag "$file" && cc -O1 -DSAFETY -DMEMLIM=2000 -o pan pan.c && timeout 300 ./pan -m20000 -E) >"$scratch/spin" 2>&1 || true
    case $(cat "$scratch/spin") in
    *"max search depth too small"* | *"out of memory"*) verdict="no verdict" ;;
    *"errors: 0"*) verdict=holds ;;
    *"assertion violated"*) verdict=found ;;
    *) verdict="no verdict" ;;
    esac
    states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$scratch/spin")
    echo "== $file $name, $(($(date +%s) - begun)) s, ${states:-no} states: $verdict"
    decided=$((decided + 1)) queries=$((queries + 1))
    if [ "$verdict" != "$expected" ]; then
        echo "    DIFFERS: expected $expected"
        tail -n 20 "$scratch/spin"
        differing=$((differing + 1))
    fi
}

for file in *.pml; do
    [ -z "$only" ] || [ "${file%.pml}" = "$only" ] || continue
    if ! command -v spin >/dev/null || ! command -v cc >/dev/null; then
        echo "SKIPPED: $file: no spin, or no C compiler (packaging/setup.sh test installs them)"
        missing=1
        continue
    fi
    sed -n 's|^ \* expect \([A-Za-z_0-9]*\): \([a-z]*\).*|\1 \2|p' "$file" >"$scratch/expected"
    while read -r name expected; do
        run_spin "$file" "$name" "$expected"
    done <"$scratch/expected"
done

echo
echo "$decided models and variants, $queries queries, $differing differ from what is expected"
[ "$differing" = 0 ] || exit 1
[ "$missing" = 0 ] || exit 3
