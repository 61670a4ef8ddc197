#!/usr/bin/env bash
# The tests of MariaDB's suites that every change has to pass: conformance/core60.txt without what
# conformance/core60-later.txt puts off. Options and further tests are passed on to scripts/mtr.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
exec scripts/mtr.sh --no-skips --list conformance/core60.txt --without conformance/core60-later.txt "$@"
