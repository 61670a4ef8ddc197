#!/usr/bin/env bash
# MariaDB's whole Galera suites (hours), compared with what packaged Galera passes on the same server
# (conformance/pass-galera-SERIES.txt, SERIES as in 10.11; with --big-test also pass-galera-SERIES-big.txt).
# Options are passed on to scripts/mtr.sh. Exit code 1 if a test of those lists is lost.
#
# --baseline  runs the suites with packaged Galera instead, and writes its list.
# A run of the whole suites, without further options, puts its row into docs/conformance.md.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

die() { echo "conformance: $*" >&2; exit 1; }
lines() { grep -c . <<<"$1" || true; }

baseline=no big=no
options=()
for option in "$@"; do
    case $option in
        --baseline) baseline=yes ;;
        --big-test) big=yes options+=("$option") ;;
        *) options+=("$option") ;;
    esac
done

version=$(mariadbd --version 2>/dev/null | sed -n 's/.*Ver \([0-9.]*\)-MariaDB.*/\1/p')
[ -n "$version" ] || die "there is no mariadbd: run 'scripts/packages.sh conformance'"
series=${version%.*}
suites=wsrep,galera,galera_3nodes,galera_sr,galera_3nodes_sr
results=${CARGO_TARGET_DIR:-target}/mtr/conformance-$series.txt
rm -f "$results"
run() { scripts/mtr.sh --results "$results" --suite=$suites --parallel 2 ${options[@]+"${options[@]}"} "$@" || true; }

# Tests that only run with --big-test have a list of their own.
list=conformance/pass-galera-$series.txt
lists=("$list")
[ "$big" = no ] || lists+=("conformance/pass-galera-$series-big.txt")

if [ "$baseline" = yes ]; then
    run --provider /usr/lib/galera/libgalera_smm.so
    [ -s "$results" ] || die "no test ran"
    passed=$(sed -n 's/^pass //p' "$results" | sort)
    if [ "$big" = yes ]; then
        [ -r "$list" ] || die "$list is missing: make it first, without --big-test"
        passed=$(comm -23 <(echo "$passed") <(sort "$list"))
    fi
    echo "$passed" > "${lists[-1]}"
    echo "conformance: Galera passes $(lines "$passed"): ${lists[-1]}"
    exit
fi

for file in "${lists[@]}"; do
    [ -r "$file" ] || die "$file is missing: run scripts/conformance.sh --baseline on MariaDB $series"
done
run
[ -s "$results" ] || die "no test ran"
ours=$(sed -n 's/^pass //p' "$results" | sort)
galera=$(sort "${lists[@]}")
lost=$(comm -13 <(echo "$ours") <(echo "$galera"))
gained=$(comm -23 <(echo "$ours") <(echo "$galera"))

[ -z "$lost" ] || { echo "Galera passes these, Trireme does not:"; sed 's/^/  /' <<<"$lost"; }
[ -z "$gained" ] || { echo "Trireme passes these, Galera does not:"; sed 's/^/  /' <<<"$gained"; }
echo "$(lines "$ours") passed; of the $(lines "$galera") that Galera passes, $(lines "$lost") lost; $(lines "$gained") gained"

# One row per server and kind of run, the newest replaces the one before. A run with further options is none of these.
[ "${#options[@]}" = "$([ "$big" = no ] && echo 0 || echo 1)" ] || { [ -z "$lost" ]; exit; }
key="| $version | $big |"
commit=${TRIREME_COMMIT:-$(git describe --always --dirty 2>/dev/null || echo unknown)}
row="$key $(lines "$ours") | $(lines "$galera") | $(lines "$lost") | $(lines "$gained") | $commit | $(date -u +%F) | $(paste -sd, <<<"$lost" | sed 's/,/, /g') |"
{ grep -vF "$key" docs/conformance.md; echo "$row"; } > docs/conformance.md.new
mv docs/conformance.md.new docs/conformance.md
[ -z "$lost" ]
