#!/usr/bin/env bash
# MariaDB's whole Galera suites (hours), compared with what Galera 26.4.23 passes on the same packages
# (conformance/pass-galera.txt). Options are passed on to scripts/mtr.sh. Exit code 1 if a test of that list is lost.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C
results=${CARGO_TARGET_DIR:-target}/mtr/conformance.txt
rm -f "$results"
scripts/mtr.sh --results "$results" --suite=wsrep,galera,galera_3nodes,galera_sr,galera_3nodes_sr --parallel 2 "$@" || true
[ -s "$results" ] || { echo "conformance: no test ran" >&2; exit 1; }

ours=$(sed -n 's/^pass //p' "$results" | sort)
galera=$(sort conformance/pass-galera.txt)
lost=$(comm -13 <(echo "$ours") <(echo "$galera"))
gained=$(comm -23 <(echo "$ours") <(echo "$galera"))
lines() { grep -c . <<<"$1" || true; }

[ -z "$lost" ] || { echo "Galera passes these, Trireme does not:"; sed 's/^/  /' <<<"$lost"; }
[ -z "$gained" ] || { echo "Trireme passes these, Galera does not:"; sed 's/^/  /' <<<"$gained"; }
echo "$(lines "$ours") passed; of the $(lines "$galera") that Galera passes, $(lines "$lost") lost; $(lines "$gained") gained"
[ -z "$lost" ]
