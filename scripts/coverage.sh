#!/usr/bin/env bash
# `make coverage`: what the simulator and the tests together reach of the pure cores (group, certification, replicator). Fails
# below 95 % of the lines or regions of one of them; what is not reached is listed in coverage/uncovered.txt of the target
# directory. Needs cargo-llvm-cov, rustup's component llvm-tools, and python3.
set -euo pipefail
cd "$(dirname "$0")/.."

seeds=${1:?how many schedules}
# What must be reached of each core, in percent.
least=95

command -v cargo-llvm-cov >/dev/null || {
    echo "coverage: cargo-llvm-cov is missing: cargo install --locked cargo-llvm-cov && rustup component add llvm-tools" >&2
    exit 1
}
command -v python3 >/dev/null || { echo "coverage: python3 is missing" >&2; exit 1; }

# One profile for all, or the report would see only a part: development's checks, and fast enough for the simulator.
target=${CARGO_TARGET_DIR:-target}
export CARGO_LLVM_COV_TARGET_DIR=${CARGO_LLVM_COV_TARGET_DIR:-$target/coverage}
export CARGO_PROFILE_DEV_OPT_LEVEL=2 CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0
packages=(--package trireme-group --package trireme-certification --package trireme-replicator --package trireme-engine
          --package simulator)

cargo llvm-cov clean --workspace
cargo llvm-cov --no-report test "${packages[@]}" -- --quiet
cargo llvm-cov --no-report run --package simulator -- run --seeds "0..$seeds" --jobs "$(nproc)"

mkdir -p "$CARGO_LLVM_COV_TARGET_DIR"
report=$CARGO_LLVM_COV_TARGET_DIR/report
cargo llvm-cov report --lcov --output-path "$report.lcov"
cargo llvm-cov report --json --output-path "$report.json"
scripts/coverage.py "$report" "$least" "$CARGO_LLVM_COV_TARGET_DIR/uncovered.txt"
