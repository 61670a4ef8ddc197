#!/usr/bin/env bash
# `make coverage`: what the simulator and the unit tests together reach of the pure cores. Needs cargo-llvm-cov and rustup's
# component llvm-tools.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v cargo-llvm-cov >/dev/null || {
    echo "coverage: cargo-llvm-cov is missing: cargo install --locked cargo-llvm-cov && rustup component add llvm-tools" >&2
    exit 1
}
seeds=${1:?how many schedules}
cores=(--package trireme-group --package trireme-certification --package trireme-replicator)

cargo llvm-cov clean --workspace
cargo llvm-cov --no-report test "${cores[@]}" --package trireme-engine
cargo llvm-cov --no-report run --release --package simulator -- run --seeds "0..$seeds" --jobs "$(nproc)"
# Tests and what only tests use do not count.
ignore='/(tests|examples|simulator|mutants|model|engine|log|handover)/|/tests\.rs|/fuzzing\.rs|/samples\.rs|/strategies\.rs'
cargo llvm-cov report --ignore-filename-regex "$ignore"
