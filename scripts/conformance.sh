#!/usr/bin/env bash
# MariaDB's whole Galera suites (hours), compared with what packaged Galera passes on the same server
# (conformance/pass-galera-SERIES.txt, SERIES as in 10.11; with --big-test also pass-galera-SERIES-big.txt).
# Options are passed on to scripts/mtr.sh. Exit code 1 if a test of those lists is lost.
#
# --baseline   runs the suites with packaged Galera instead, and writes its list; with --big-test only the tests that the
#              list without --big-test does not name.
# --minutes N  starts no further tests after N minutes: the next call goes on with the rest (exit code 2: tests are left).
#              A run that was broken off is resumed as well. Verdicts on other sources, or with other options, are not mixed in.
# A run of the whole suites, without further options, puts its row into docs/conformance.md.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

die() { echo "conformance: $*" >&2; exit 1; }
lines() { grep -c . <<<"$1" || true; }

baseline=no big=no minutes=
suites=wsrep,galera,galera_3nodes,galera_sr,galera_3nodes_sr
options=()
while [ $# -gt 0 ]; do
    case $1 in
        --baseline) baseline=yes ;;
        --big-test) big=yes options+=("$1") ;;
        --minutes)  [[ ${2:-} =~ ^[0-9]+$ ]] || die "--minutes needs a number"; minutes=$2; shift ;;
        *) options+=("$1") ;;
    esac
    shift
done

# Debian's server is no program of ordinary users.
version=$(PATH=$PATH:/usr/sbin mariadbd --version 2>/dev/null | sed -n 's/.*Ver \([0-9.]*\)-MariaDB.*/\1/p')
[ -n "$version" ] || die "there is no mariadbd: run 'scripts/packages.sh conformance'"
series=${version%.*}

# What is tested: our sources, or Galera's library. Each state of them keeps verdicts of its own until all tests have run.
provider=()
sources() { find crates Cargo.toml Cargo.lock \( -name '*.rs' -o -name 'Cargo.*' \) -type f -print0 | sort -z | xargs -0 sha1sum; }
if [ "$baseline" = yes ]; then
    provider=(--provider /usr/lib/galera/libgalera_smm.so)
    sources() { sha1sum "${provider[1]}"; }
fi
code=$({ sources; echo "$version ${options[*]-}"; } | sha1sum | cut -c1-12)
kept=${CARGO_TARGET_DIR:-target}/mtr
results=$kept/conformance-$series.txt
verdicts=$kept/conformance-$series-$code
mkdir -p "$kept"
exec 9> "$kept/conformance-$series.lock"
flock -n 9 || die "another run of this directory goes on: its verdicts are in $verdicts"
touch "$verdicts"

# So many tests are one run of mtr: what a break costs at most, and how late a run ends.
at_once=25
# run [KNOWN]: all tests that have no verdict yet, and are not named in the file KNOWN, as far as the time goes; then $results
# has them all.
run() {
    local all left
    all=$(comm -23 <(scripts/mtr.sh --names "$suites" | sort) <(cut -d' ' -f1 "${1:-/dev/null}" | sort -u))
    [ -n "$all" ] || die "the suites have no tests"
    while true; do
        left=$(comm -23 <(sort <<<"$all") <(cut -d' ' -f2 "$verdicts" | sort -u) | grep . || true)
        [ -n "$left" ] || break
        if [ -n "$minutes" ] && [ "$SECONDS" -ge $((minutes * 60)) ]; then
            echo "conformance: $(lines "$left") of $(lines "$all") tests are left: the same call goes on with them"
            exit 2
        fi
        head -n "$at_once" <<<"$left" > "$verdicts.next"
        rm -f "$results"
        scripts/mtr.sh --results "$results" --list "$verdicts.next" --parallel 2 ${provider[@]+"${provider[@]}"} \
            ${options[@]+"${options[@]}"} 9>&- || true
        [ -s "$results" ] || die "no test ran"
        cat "$results" >> "$verdicts"
    done
    rm -f "$verdicts.next"
    mv "$verdicts" "$results"
}

# Tests that only run with --big-test have a list of their own.
list=conformance/pass-galera-$series.txt
lists=("$list")
[ "$big" = no ] || lists+=("conformance/pass-galera-$series-big.txt")

if [ "$baseline" = yes ]; then
    if [ "$big" = yes ]; then
        [ -r "$list" ] || die "$list is missing: make it first, without --big-test"
        run "$list"
    else
        run
    fi
    passed=$(sed -n 's/^pass //p' "$results" | sort)
    echo "$passed" > "${lists[-1]}"
    echo "conformance: Galera passes $(lines "$passed"): ${lists[-1]}"
    exit
fi

for file in "${lists[@]}"; do
    [ -r "$file" ] || die "$file is missing: run scripts/conformance.sh --baseline on MariaDB $series"
done
run
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
row="$key $(lines "$ours") | $(lines "$galera") | $(lines "$lost") | $(lines "$gained") | $commit | $(date -u +%F) | ${lost//$'\n'/, } |"
{ grep -vF "$key" docs/conformance.md; echo "$row"; } > docs/conformance.md.new
mv docs/conformance.md.new docs/conformance.md
[ -z "$lost" ]
