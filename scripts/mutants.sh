#!/usr/bin/env bash
# Mistakes planted in what the simulator does not run (transport, node, handover, provider, arbitrator): each must be found by the
# test that the list in crates/mutants/src/lib.rs names for it, and not by the unit tests of its crate.
# Usage: scripts/mutants.sh [NAME...]
set -uo pipefail
cd "$(dirname "$0")/.."

# A test that hangs has found the mistake, too.
patience=${PATIENCE:-120}
features="--features trireme-mutants/planted"
list=$(cargo run -q -p trireme-mutants --bin outside-mutants) || exit 1
wanted=" $* "
missed=0 count=0
clean=" "
while read -r mutant package target name; do
    [ "$wanted" = "  " ] || [[ $wanted == *" $mutant "* ]] || continue
    count=$((count + 1))
    check=(cargo test -q -p "$package" $features --test "$target" -- $name)
    [ -n "$name" ] || check=(cargo test -q -p "$package" $features --test "$target")
    # Without the mistake, once for each test.
    if [[ $clean != *" $target:$name "* ]]; then
        "${check[@]}" >/dev/null 2>&1 || { echo "$mutant: $package $target $name fails without it"; missed=$((missed + 1)); continue; }
        clean+="$target:$name "
    fi
    # Compiled before: the patience is for the tests.
    cargo test -q -p "$package" $features --lib --no-run >/dev/null 2>&1 ||
        { echo "$mutant: the unit tests of $package do not compile"; missed=$((missed + 1)); continue; }
    units="unit tests pass"
    TRIREME_MUTANT=$mutant timeout "$patience" cargo test -q -p "$package" $features --lib >/dev/null 2>&1 || units="UNIT TESTS FIND IT"
    if TRIREME_MUTANT=$mutant timeout "$patience" "${check[@]}" >/dev/null 2>&1; then
        echo "$mutant: NOT CAUGHT by $package $target $name"
        missed=$((missed + 1))
    else
        echo "$mutant: caught by $package $target ${name:-(any)}; $units"
    fi
done <<<"$list"
[ "$count" -gt 0 ] || { echo "no such mutant: $*; the list is in crates/mutants/src/lib.rs" >&2; exit 2; }
echo "$((count - missed)) of $count caught"
[ "$missed" = 0 ]
