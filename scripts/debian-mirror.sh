#!/usr/bin/env bash
# Prints the Debian mirror of this machine, for roots of other releases. Fails if /etc/apt names none.
#
# Usage: scripts/debian-mirror.sh
set -euo pipefail

# deb822 files first, then the one-line format; the first mirror named serves every release.
mirror=$(sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb \(\[[^]]*\] \)\{0,1\}\([^ ]*\) .*/\2/p' \
    $(ls /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null) /dev/null | head -n 1)
[ -n "$mirror" ] || { echo "debian-mirror: /etc/apt names no mirror: add one to /etc/apt/sources.list" >&2; exit 1; }
echo "$mirror"
