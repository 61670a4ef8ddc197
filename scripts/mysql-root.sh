#!/usr/bin/env bash
# Makes a root of its own for the MySQL server with Group Replication, which only Debian's sid has; the benchmark lab runs it.
#
# Usage: scripts/mysql-root.sh
#
# The root lies in /var/cache/trireme/root-mysql, or in $TRIREME_ROOTS/root-mysql (330 MB; 60 MB are loaded from the mirror of
# this machine). It stays as it is; remove the directory to make it anew. Nothing is installed on this machine: apt chooses and
# verifies the packages with files of its own, and they are only unpacked. ROOT/mysqld starts the server with the root's own
# libraries, without chroot, so that no step needs to be root (if $TRIREME_ROOTS may be written).
set -euo pipefail

repository=$(cd "$(dirname "$0")/.." && pwd)
cache=${TRIREME_ROOTS:-/var/cache/trireme}
# sid moves on; measurements name the version that they ran with.
version=${TRIREME_MYSQL_VERSION:-9.7.4-2}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
root=$cache/root-mysql
work=$root.apt
log=$cache/root-mysql.log

die() { echo "mysql-root: $*" >&2; exit 1; }

# $1 = a program of apt, with lists, state and archives of their own. sid's release file may be past its date on this mirror.
apt_of_root() {
    local program=$1
    shift
    "$program" -q \
        -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
        -o Dir::State="$work" -o Dir::State::status="$work/status" -o Dir::Cache="$work" \
        -o APT::Install-Recommends=false -o APT::Sandbox::User=root \
        -o Acquire::Check-Valid-Until=false -o Acquire::Languages=none "$@"
}

make_root() {
    local mirror newest package
    mirror=$("$repository/scripts/debian-mirror.sh") || exit 1
    [ -f "$keyring" ] || die "$keyring not found; install it: apt-get install debian-archive-keyring"
    echo "mysql-root: making $root (log: $log)"
    # Under another name until it is whole: a broken-off run leaves nothing that looks finished.
    rm -rf "$root.new" "$work"
    mkdir -p "$work/lists/partial" "$work/archives/partial" "$root.new"
    : > "$work/status"
    echo "deb [signed-by=$keyring] $mirror sid main" > "$work/sources.list"
    apt_of_root apt-get update > "$log" 2>&1 || die "the mirror $mirror has no list of sid, see $log"
    newest=$(apt_of_root apt-cache policy mysql-server-core | sed -n 's/^ *Candidate: //p')
    [ -n "$newest" ] || die "sid has no mysql-server-core on $mirror"
    [ "$newest" = "$version" ] ||
        die "sid has MySQL $newest now, not $version; take it: TRIREME_MYSQL_VERSION=$newest scripts/mysql-root.sh"
    apt_of_root apt-get install -y --download-only "mysql-server-core=$version" >> "$log" 2>&1 ||
        die "packages cannot be loaded from $mirror, see $log"
    for package in "$work"/archives/*.deb; do dpkg-deb -x "$package" "$root.new" 2>> "$log"; done
    cat > "$root.new/mysqld" <<'SCRIPT'
#!/bin/sh
# Starts the server with the libraries, messages and plugins of this root. Only its first argument may be --defaults-file.
root=$(cd "$(dirname "$0")" && pwd)
libraries=$root/usr/lib/$(uname -m)-linux-gnu
exec "$libraries"/ld-linux-*.so.* --library-path "$libraries" --argv0 "$root/usr/sbin/mysqld" "$root/usr/sbin/mysqld" "$@" \
    --basedir="$root/usr" --plugin-dir="$root/usr/lib/mysql/plugin" --lc-messages-dir="$root/usr/share/mysql" \
    --character-sets-dir="$root/usr/share/mysql/charsets" --secure-file-priv=NULL
SCRIPT
    chmod 755 "$root.new" "$root.new/mysqld"
    "$root.new/mysqld" --version >> "$log" 2>&1 || die "the server does not run on this machine, see $log"
    [ -f "$root.new/usr/lib/mysql/plugin/group_replication.so" ] || die "mysql-server-core $version has no group_replication.so"
    rm -rf "$work"
    mv "$root.new" "$root"
}

mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ] ||
    die "$cache cannot be written; run it with sudo, or set TRIREME_ROOTS to another directory (for trireme, too)"
# One maker at a time; who comes second finds the root made.
exec 9> "$cache/root-mysql.lock"
flock 9
[ -d "$root" ] || make_root
"$root/mysqld" --version
