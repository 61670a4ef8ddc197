#!/usr/bin/env bash
# `make test`: every step runs, even after a failed one, so that one run shows all that is broken; a summary ends it.
set -uo pipefail
cd "$(dirname "$0")/.."

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

# The development profile checks debug assertions and arithmetic overflow.
step "unit, property and simulation tests" cargo test --workspace --no-fail-fast

step "simulation of whole nodes" cargo run --release --package simulator -- run --seeds 0..3000 --jobs "$(nproc)"

# A thousand seeds more, which each commit has for itself: far above those of `make sim-soak`, and the same whenever it is tested.
first=$((1000000000 + 16#$(git rev-parse HEAD 2>/dev/null | cut -c1-7 || true) * 1000))
rotating=(cargo run --release --package simulator -- run --seeds "$first..$((first + 1000))")
echo
echo "the seeds of this commit, to repeat them: ${rotating[*]}"
step "simulation of whole nodes, seeds of this commit ($first..)" "${rotating[@]}" --jobs "$(nproc)"

if step "release build" make --no-print-directory build; then
    # Tests with real servers are the files crates/*/tests/real_*.rs; they do nothing without TRIREME_REAL.
    if compgen -G 'crates/*/tests/real_*.rs' >/dev/null; then
        step "clusters of real servers" env TRIREME_REAL=1 \
            cargo test --release --package trireme-cli --package trireme-testbed --package trireme-lab --no-fail-fast --test 'real_*' -- --test-threads=1
    fi
    step "core of MariaDB's suites" scripts/mtr-core.sh
fi

echo
echo "=== summary"
printf '%s\n' "${summary[@]}"
exit "$failed"
