#!/usr/bin/env bash
# Tests the packages in clean roots of Debian releases: `make test-deb`.
#
# Usage: scripts/test-deb.sh DIRECTORY [SUITE]...          where scripts/deb.sh put them [default: bookworm trixie]
set -euo pipefail
cd "$(dirname "$0")/.."

directory=$(cd "${1:?usage: scripts/test-deb.sh DIRECTORY [SUITE]...}" && pwd)
shift
if [ $# = 0 ]; then
    # A release older than the one that built them lacks their C library.
    case $(. /etc/os-release && echo "${VERSION_ID:-}") in
        12) set -- bookworm trixie ;;
        *) set -- trixie ;;
    esac
fi
for suite in "$@"; do
    scripts/debian-root.sh --clean "$suite" scripts/test-deb-inside.sh "$directory"
    scripts/debian-root.sh --clean "$suite" scripts/quick-start-inside.sh "$directory"
done
