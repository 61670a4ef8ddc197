#!/usr/bin/env bash
# Puts reports of `trireme bench` into docs/results, a page for each experiment, with its plots and raw data.
#
# Usage: scripts/results.sh DIRECTORY[=PAGE]...   each is one in which `trireme bench EXPERIMENT` has put its report; PAGE is
#                                                 the name of a page beside that of the whole experiment
set -euo pipefail
pages=$(cd "$(dirname "$0")/.." && pwd)/docs/results

declare -A filled
[ $# != 0 ] || { echo "usage: scripts/results.sh DIRECTORY[=PAGE]..." >&2; exit 2; }
for argument in "$@"; do
    directory=${argument%%=*}
    for file in plan.json report.md results.csv seconds.csv records.jsonl facts.json; do
        [ -e "$directory/$file" ] || { echo "$directory: no $file: not a directory of trireme bench's" >&2; exit 1; }
    done
    # plan.json is a list: the experiment's name, then its choices.
    experiment=$(sed -nE '1,2s/^[[ ]*"([a-z]+)",?$/\1/p' "$directory/plan.json" | head -n 1)
    [ -n "$experiment" ] || { echo "$directory/plan.json names no experiment" >&2; exit 1; }
    page=$experiment
    [[ $argument != *=* ]] || page=${argument#*=}
    [[ $page =~ ^[a-z0-9-]+$ ]] || { echo "'$page' is no name of a page: letters, digits and dashes" >&2; exit 2; }
    [ -z "${filled[$page]:-}" ] ||
        { echo "${filled[$page]} and $directory would be one page: give one a page of its own, $directory=PAGE" >&2; exit 2; }
    filled[$page]=$directory
    page=$pages/$page
    # The page is removed before it is filled.
    case $(realpath "$directory")/ in
        "$(realpath -m "$page")"/*) echo "$directory is in the page itself: copy it elsewhere, and resume the copy" >&2; exit 1 ;;
    esac
    rm -rf "$page"
    mkdir -p "$page"
    cp "$directory/report.md" "$page/README.md"
    # With the plan, the records, the facts and the settings, `trireme bench --resume` goes on from a copy of this directory.
    cp "$directory"/{plan.json,results.csv,seconds.csv,records.jsonl,facts.json} "$page"
    # A run in which no system started has no settings.
    [ ! -e "$directory/settings.json" ] || cp "$directory/settings.json" "$page"
    find "$directory" -maxdepth 1 -name 'plot-*.svg' -exec cp -t "$page" {} +
    echo "$page/README.md"
done
