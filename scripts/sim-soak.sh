#!/usr/bin/env bash
# `make sim-soak`: COUNT more schedules of the simulator, on from the last range in crates/simulator/ranges.txt; a range
# without a violation is added there.
set -euo pipefail
cd "$(dirname "$0")/.."

count=${1:?how many schedules}
ranges=crates/simulator/ranges.txt
first=$(sed -nE 's/^[0-9]+\.\.([0-9]+) .*/\1/p' "$ranges" | tail -1)
last=$((${first:=0} + count))

log=$(mktemp)
trap 'rm -f "$log"' EXIT
cargo run --release --package simulator -- run --seeds "$first..$last" --jobs "$(nproc)" | tee "$log"

commit=$(git rev-parse --short HEAD)
printf '%s..%s  %s  %s  %s\n' "$first" "$last" "$(date +%F)" "$commit" "$(tail -1 "$log")" >>"$ranges"
echo "noted in $ranges"
