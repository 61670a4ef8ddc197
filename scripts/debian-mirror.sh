#!/usr/bin/env bash
# Prints the Debian mirror of this machine, for roots of other releases. Fails if /etc/apt names none by http.
#
# Usage: scripts/debian-mirror.sh
set -euo pipefail

# An archive named "debian" serves every release, in contrast to debian-security and other projects'.
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{sources,list} 2>/dev/null |
    grep -E '^(URIs:|deb )' | grep -oE 'https?://[^ ]*/debian/?( |$)' | head -n 1 | tr -d ' ' || true)
[ -n "$mirror" ] || { echo "debian-mirror: /etc/apt names no mirror of Debian: add one to /etc/apt/sources.list" >&2; exit 1; }
echo "$mirror"
