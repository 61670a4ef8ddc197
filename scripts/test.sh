#!/usr/bin/env bash
# `make test`, `make test-all` and `make test-lab`: every step runs, even after a failed one, so that one run shows all that is broken;
# a summary ends it.
# Usage: scripts/test.sh [rest|lab]
#   without   what every change has to pass, within a quarter of an hour of a built tree
#   rest      what takes longer: more seeds, and all clusters of real servers that the first leaves out
#   lab       the lab and its systems, with real servers
set -uo pipefail
cd "$(dirname "$0")/.."

gear=${1:-first}
[[ $gear =~ ^(first|rest|lab)$ ]] || { echo "usage: scripts/test.sh [rest|lab]" >&2; exit 2; }
scripts/packages.sh test || exit 1

summary=()
failed=0
step() {
    local title=$1 begin=$SECONDS status=0
    shift
    echo
    echo "=== $title"
    "$@" || status=$?
    if [ "$status" = 0 ]; then verdict=ok; else verdict=FAILED failed=1; fi
    summary+=("$(printf '%-7s %4d s  %s' "$verdict" $((SECONDS - begin)) "$title")")
    return "$status"
}

# With the planted mistakes compiled in, so that one build does for all that the simulator runs.
simulator() { cargo run --release --package simulator --features mutants -- "$1" --jobs "$(nproc)" "${@:2}"; }
simulate() { simulator run --seeds "$@"; }

# Tests with real servers are the files crates/*/tests/real_*.rs; they do nothing without TRIREME_REAL.
# They load the release build of the library. They themselves are those that the unit tests have built: another profile,
# or packages named instead of the workspace, would have cargo build most crates once more (minutes).
library=${CARGO_TARGET_DIR:-$PWD/target}/release/libtrireme.so
# Arguments: the file's name or a pattern of names, then filters of its tests.
real() {
    local file=$1
    shift
    env TRIREME_REAL=1 TRIREME_PROVIDER="$library" cargo test --workspace --no-fail-fast --test "$file" -- --test-threads=1 "$@"
}
# Those of every change: what makes a cluster one, and what a killed node costs. The rest leaves out exactly these.
every_change=(crash:: leave:: verify:: writes::)

first() {
    # The development profile checks debug assertions and arithmetic overflow.
    step "unit, property and simulation tests" cargo test --workspace --no-fail-fast
    step "simulation of whole nodes" simulate 0..1000
    if step "release build" make --no-print-directory build; then
        step "clusters of real servers: writes, leaving, kill -9" \
            real real_cluster "${every_change[@]}"
        step "core of MariaDB's suites" scripts/mtr-core.sh
    fi
}

rest() {
    # A thousand further seeds, which each commit has for itself: far above those of `make sim-soak`, and the same whenever it is tested.
    # Without a readable commit these are the seeds of commit 0.
    local head first
    head=$(git rev-parse HEAD 2>/dev/null) || head=0
    first=$((1000000000 + 16#${head:0:7} * 1000))
    echo
    echo "the seeds of this commit, to repeat them: make sim ARGS=\"--seeds $first..$((first + 1000))\""
    step "simulation of whole nodes, seeds of this commit ($first..)" simulate "$first..$((first + 1000))"
    step "planted mistakes, each with the schedules written for it" simulator mutants --directed
    step "nodes that lie, in 200 schedules" simulate 0..200 --profile liars
    if step "release build" make --no-print-directory build; then
        # `make bad-days` takes five minutes by itself.
        local skipped=(--skip bad_days::)
        for name in "${every_change[@]}"; do skipped+=(--skip "$name"); done
        step "clusters of real servers: all others" \
            real real_cluster "${skipped[@]}"
    fi
}

lab() {
    if step "release build" make --no-print-directory build; then
        step "systems and experiments of the lab, with real servers" \
            real 'real_[!c]*' # all but real_cluster
    fi
}

"$gear"

echo
echo "=== summary"
[ ${#summary[@]} -gt 0 ] || { echo "nothing has run" >&2; exit 1; }
printf '%s\n' "${summary[@]}"
exit "$failed"
