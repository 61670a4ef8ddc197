#!/usr/bin/env bash
# `make bench`: a quick pass over all experiments, one after the other. Each leaves its report in a directory below OUT; a summary
# ends the run. An experiment that fails is a line of the summary, and the others run.
# Usage: scripts/bench.sh TRIREME OUT [OPTION]...   (the options go to every experiment, as in --systems trireme)
set -uo pipefail

# A new experiment is one more name here; it needs --quick and --out.
experiments=(sysbench nodes optimum tpcc inserts latency provider)

trireme=$1 out=$2
shift 2
mkdir -p "$out" || exit 1

summary=()
failed=0
for experiment in "${experiments[@]}"; do
    begin=$SECONDS status=0
    echo
    echo "=== $experiment"
    error=$out/$experiment.err
    as_root=
    # It gives each node a network of its own.
    if [ "$experiment" = latency ] && [ "$(id -u)" != 0 ]; then as_root=sudo; fi
    $as_root "$trireme" bench "$experiment" --quick --out "$out/$experiment" "$@" 2>"$error" || status=$?
    cat "$error" >&2
    # The report belongs to the user, as the others do.
    if [ -n "$as_root" ] && [ -e "$out/$experiment" ]; then sudo chown -R "$(id -u):$(id -g)" "$out/$experiment"; fi
    report=$out/$experiment/report.html
    [ -e "$report" ] || report="no report"
    verdict=ok
    if [ "$status" != 0 ]; then
        verdict=FAILED failed=1
        report+="; $(tail -n 1 "$error")"
    fi
    rm -f "$error"
    summary+=("$(printf '%-7s %4d s  %-10s %s' "$verdict" $((SECONDS - begin)) "$experiment" "$report")")
    # Ctrl-C ends all of them.
    [ "$status" != 130 ] || break
done

echo
echo "=== summary"
printf '%s\n' "${summary[@]}" | tee "$out/summary.txt"
exit "$failed"
