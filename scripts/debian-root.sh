#!/usr/bin/env bash
# Runs a command of this repository inside another Debian release, so that one machine tests several servers.
#
# Usage: scripts/debian-root.sh [--clean] SUITE COMMAND [ARGUMENT]...     for instance: trixie scripts/mtr.sh galera.basic
#
# The release lies in /var/cache/trireme/root-SUITE. The first run makes it (debootstrap, about 1.5 GB, the mirror of this
# machine) and installs what MariaDB's suites need; later runs use it as it is. Remove the directory to begin anew.
# With --clean it is a minimal one without MariaDB, in clean-SUITE, whose apt has the packages of docs/quick-start.md at hand. What the
# command changes in it is thrown away at the end.
# The command has namespaces of its own for processes, mounts and network (cut off from all others): nothing it starts survives it,
# and no port of this machine is taken. It runs what was built here, so the release must not be older than this machine's.
set -euo pipefail

repository=$(cd "$(dirname "$0")/.." && pwd)
cache=${TRIREME_ROOTS:-/var/cache/trireme}

die() { echo "debian-root: $*" >&2; exit 1; }

clean=
if [ "${1:-}" = --clean ]; then clean=1; shift; fi
[ $# -ge 2 ] || die "usage: scripts/debian-root.sh [--clean] SUITE COMMAND [ARGUMENT]..."
suite=$1
shift
[[ $suite =~ ^[a-z]+$ ]] || die "'$suite' is no name of a Debian release (for instance: trixie)"
[ "$(id -u)" = 0 ] || die "chroot and namespaces need root: run it with sudo"
if [ -n "$clean" ]; then kind=clean; else kind=root; fi
root=$cache/$kind-$suite

make_root() {
    local mirror log
    mirror=$("$repository/scripts/debian-mirror.sh") || exit 1
    command -v debootstrap >/dev/null || DEBIAN_FRONTEND=noninteractive apt-get -q -y install debootstrap >/dev/null 2>&1 ||
        die "debootstrap cannot be installed: run 'apt-get update && apt-get install debootstrap'"
    mkdir -p "$cache"
    log=$root.log
    echo "debian-root: making $root (log: $log)"
    # Under another name until it is whole: a broken-off run leaves nothing that looks finished.
    remove_unfinished
    # What it mounts goes with its namespace, however it ends.
    unshare --mount debootstrap --variant=minbase "$suite" "$root.new" "$mirror" > "$log" 2>&1 ||
        die "debootstrap failed, see $log"
    # The machine's own settings for apt (a proxy, say) hold in the root, too.
    cp -r /etc/apt/apt.conf.d/. "$root.new/etc/apt/apt.conf.d/" 2>/dev/null || true
    cp /etc/resolv.conf "$root.new/etc/resolv.conf" 2>/dev/null || true
    local status=0
    if [ -n "$clean" ]; then fetch_server >> "$log" 2>&1 || status=$?
    else install_suites >> "$log" 2>&1 || status=$?; fi
    [ "$status" = 0 ] || die "packages cannot be installed, see $log"
    mv "$root.new" "$root"
}

# Through a mount, rm would delete what is mounted: earlier versions of this script left the repository there.
remove_unfinished() {
    local mounts
    mounts=$(findmnt --list --noheadings --output TARGET | grep -F "$(realpath -m "$root.new")/" || true)
    [ -z "$mounts" ] || die "a broken-off run left a mount; end it, then run this again: umount $mounts"
    rm -rf --one-file-system "$root.new"
}

install_suites() {
    mkdir -p "$root.new/repository"
    # The mount goes with its namespace, however the installation ends.
    unshare --mount bash -c 'mount --bind "$0" "$1/repository" && chroot "$1" /repository/scripts/packages.sh suites' \
        "$repository" "$root.new"
}

# Packages that apt finds later without a network. No service starts as it is installed.
fetch_server() {
    printf '#!/bin/sh\nexit 101\n' > "$root.new/usr/sbin/policy-rc.d"
    chmod 755 "$root.new/usr/sbin/policy-rc.d"
    chroot "$root.new" apt-get -q update &&
        chroot "$root.new" apt-get -q -y --download-only install mariadb-server systemd libssl3 rsync stunnel4 curl
}

# One maker at a time; who comes second finds the root made.
mkdir -p "$cache"
exec 9> "$root.lock"
flock 9
[ -d "$root" ] || make_root
flock -u 9
exec 9>&-

target=${CARGO_TARGET_DIR:-$repository/target}
# There is no git in the root.
commit=$(git -C "$repository" describe --always --dirty 2>/dev/null || echo unknown)
export repository root target commit clean
# shellcheck disable=SC2016  # expanded by the inner shell
exec unshare --mount --pid --net --ipc --fork --kill-child bash -c '
    set -euo pipefail
    mount --make-rprivate /
    if [ -n "$clean" ]; then
        # Changes go into memory, and with the namespace.
        lower=$root root=$root.changed
        mkdir -p "$root"
        mount -t tmpfs tmpfs "$root"
        mkdir "$root/upper" "$root/work" "$root/root"
        mount -t overlay -o "lowerdir=$lower,upperdir=$root/upper,workdir=$root/work" overlay "$root/root"
        root=$root/root
    fi
    for directory in "$repository" "$target"; do
        mkdir -p "$root$directory"
        mount --bind "$directory" "$root$directory"
    done
    mount --rbind /dev "$root/dev"
    mount --rbind /sys "$root/sys"
    mount -t proc proc "$root/proc"
    mount -t tmpfs tmpfs "$root/tmp"
    # A server guesses its address from an interface beside loopback, and warns where there is none.
    ip link add node type veth peer name other
    ip address add 192.0.2.1/24 dev node
    for interface in lo node other; do ip link set "$interface" up; done
    exec chroot "$root" env CARGO_TARGET_DIR="$target" TRIREME_COMMIT="$commit" LC_ALL=C.UTF-8 bash -c '\''cd "$0" && exec "$@"'\'' "$repository" "$@"
' debian-root "$@"
