#!/usr/bin/env bash
# Coverage-guided fuzzing of what decodes foreign bytes, on stable Rust: libFuzzer with LLVM's coverage pass, as
# cargo-fuzz builds it, without a sanitizer (the decoders hold no unsafe code).
# Usage: scripts/fuzz.sh SECONDS [TARGET]...     targets: the files of fuzz/src/bin (default: all)
# Inputs found so far are kept in target/fuzz/corpus/TARGET; inputs from fuzz/seeds/TARGET are added, when there are any.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:?usage: scripts/fuzz.sh SECONDS [TARGET]...}
shift
[ $# -gt 0 ] || set -- $(cd fuzz/src/bin && ls ./*.rs 2>/dev/null | sed 's|^\./||; s/\.rs$//')
[ $# -gt 0 ] || { echo "fuzz: no targets in fuzz/src/bin" >&2; exit 1; }

out=${CARGO_TARGET_DIR:-$PWD/target}/fuzz
host=$(rustc -vV | sed -n 's/^host: //p')
# With --target the flags reach neither build scripts nor procedural macros.
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares"
cargo build --release --manifest-path fuzz/Cargo.toml --target "$host" --target-dir "$out" $(printf -- '--bin %s ' "$@")

# libFuzzer ends at an interrupt as after an error.
trap 'exit 130' INT
failed=()
for target in "$@"; do
    echo "=== $target: $seconds s"
    mkdir -p "$out/corpus/$target" "$out/crashes"
    seeds=()
    [ ! -d "fuzz/seeds/$target" ] || seeds=("fuzz/seeds/$target")
    "$out/$host/release/$target" -max_total_time="$seconds" -max_len=16384 -timeout=10 -rss_limit_mb=1024 \
        -print_final_stats=1 -verbosity=1 -artifact_prefix="$out/crashes/$target-" \
        "$out/corpus/$target" ${seeds[@]+"${seeds[@]}"} 2> "$out/$target.log" || failed+=("$target")
    grep -E '^stat::(number_of_executed_units|peak_rss_mb)' "$out/$target.log" || true
done

for target in ${failed[@]+"${failed[@]}"}; do
    echo "failed: $target"
    grep -E -A 12 'panicked at|ERROR: libFuzzer|Test unit written' "$out/$target.log" | head -40
done
echo "$(($# - ${#failed[@]})) targets passed, ${#failed[@]} failed"
[ ${#failed[@]} -eq 0 ]
