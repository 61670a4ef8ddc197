#!/usr/bin/env bash
# `make sim-soak`: COUNT more schedules of the simulator, on from the highest seed in crates/simulator/ranges.txt. Every range is
# added there, also one that violates, with a hash of the crates under test: how many schedules are clean is counted for one hash.
set -euo pipefail
cd "$(dirname "$0")/.."

count=${1:?how many schedules}
ranges=crates/simulator/ranges.txt
crates=(group certification replicator engine log simulator)

# Two runs would count the same seeds.
exec 9< "$ranges"
flock -n 9 || { echo "sim-soak: another run counts in this directory" >&2; exit 1; }

# Of the code as it lies there: without comments, tests, fuzzing, and what random schedules know nothing of (those written by hand,
# seeds kept, the hunt for planted mistakes).
paths=("${crates[@]/#/crates/}" ":!$ranges" ":!crates/simulator/src/directed" ":!crates/simulator/src/mutants.rs"
    ":!crates/simulator/regressions.txt" ":!crates/*/src/fuzzing*")
code=$(git ls-files -z --cached --others --exclude-standard -- "${paths[@]}" | grep -zvE '/tests/|tests\.rs$' |
    xargs -0 awk '/^mod tests \{$/ { nextfile } !/^[[:space:]]*(\/\/.*)?$/ { print FILENAME ":" $0 }' | sha1sum | cut -c1-12)
first=$(sed -nE 's/^[0-9]+\.\.([0-9]+) .*/\1/p' "$ranges" | sort -n | tail -1)
last=$((${first:=0} + count))

simulator=$(scripts/fast-simulator.sh "$code")
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
"$simulator" run --seeds "$first..$last" --jobs "$(nproc)" | tee "$log" || status=$?

commit=$(git rev-parse --short HEAD)
[ -z "$(git status --porcelain -- "${paths[@]}")" ] || commit+=" and changes"
summary=$(tail -1 "$log")
[ "$status" = 0 ] || summary="exit $status, ${summary:-no output}"
printf '%s..%s  %s  %s  code %s  %s\n' "$first" "$last" "$(date +%F)" "$commit" "$code" "$summary" >>"$ranges"
clean=$(grep -F "  code $code  " "$ranges" | grep -E ', 0 violations$' | grep -vF '  exit ' |
    sed -nE 's/^([0-9]+)\.\.([0-9]+) .*/\2 - \1/p' | paste -sd+ || true)
echo "noted in $ranges; clean on this code: $((${clean:-0})) schedules"
exit "$status"
