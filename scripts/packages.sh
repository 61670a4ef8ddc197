#!/usr/bin/env bash
# Installs, through apt-get, the Debian packages that a task needs and that are missing; does nothing when none is.
# Usage: scripts/packages.sh build|deb|lint|fuzz|demo|bench|test|suites|conformance
# An existing MariaDB service is neither stopped nor changed, and a newly installed one is not started.
set -euo pipefail

rust_min=1.85
policy=/usr/sbin/policy-rc.d
ours="# put here by Trireme while it installs packages"

die() { echo "packages: $*" >&2; exit 1; }

packages_of() {
    case $1 in
        build)       echo gcc libc6-dev libssl-dev pkgconf ;;
        deb)         packages_of build; echo dpkg-dev debhelper lintian python3 ;;
        lint)        packages_of build ;;
        fuzz)        packages_of build; echo g++ ;;
        demo)        packages_of build; echo mariadb-server rsync socat sysbench ;;
        bench)       packages_of demo; echo lsof iproute2 ;;
        test)        packages_of demo; echo mariadb-backup mariadb-test patch lsof procps iproute2 openssl haproxy ;;
        # MariaDB's suites alone, with a library that was built elsewhere.
        suites)      echo mariadb-server mariadb-backup mariadb-test rsync socat patch perl lsof procps iproute2 openssl stunnel4 ;;
        conformance) packages_of test; echo stunnel4 ;;
        *) die "unknown set '$1' (known: build deb lint fuzz demo bench test suites conformance)" ;;
    esac
}

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

installed() { [ "$(dpkg-query -W -f='${db:Status-Abbrev}' "$1" 2>/dev/null)" = "ii " ]; }

at_least() { dpkg --compare-versions "$1" ge "$2"; }

# Debian 12 keeps its recent Rust (for browsers) in packages named *-web; Debian 13 in the plain ones.
rust_package() {
    local name version
    for name in "$@"; do
        version=$(apt-cache policy "$name" 2>/dev/null | sed -n 's/^ *Candidate: //p')
        if [ -n "$version" ] && [ "$version" != "(none)" ] && at_least "$version" "$rust_min"; then
            echo "$name"
            return
        fi
    done
    return 1
}

set_name=${1:-}
wanted=$(packages_of "$set_name")
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "packages: this is not Debian; needed are Rust >= $rust_min and the counterparts of:" $wanted
    exit 0
fi

missing=()
for package in $wanted; do
    installed "$package" || missing+=("$package")
done

# Rust counts as present wherever it comes from (rustup, Debian).
rust_missing=()
if [ "$set_name" = suites ]; then
    : # nothing is built
elif command -v cargo >/dev/null; then
    version=$(rustc --version | cut -d' ' -f2)
    at_least "$version" "$rust_min" ||
        die "Rust $version is too old, $rust_min is needed: 'rustup update', or Debian's cargo-web (12) or cargo (13)"
else
    rust_missing+=("cargo cargo-web")
fi
if [ "$set_name" = lint ]; then
    command -v cargo-fmt >/dev/null || rust_missing+=("rustfmt rustfmt-web")
    command -v cargo-clippy >/dev/null || rust_missing+=("rust-clippy rust-web-clippy")
fi

[ $((${#missing[@]} + ${#rust_missing[@]})) -gt 0 ] || exit 0

if [ "$(id -u)" != 0 ] && ! { command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; }; then
    die "root is needed once; as root, run: $0 $set_name"
fi

# One run at a time: another one's end would remove the policy.
exec 9< "${policy%/*}"
flock 9

as_root apt-get -q -q update 9>&- || echo "packages: apt-get update failed; going on with the lists that are there" >&2
for names in ${rust_missing[@]+"${rust_missing[@]}"}; do
    package=$(rust_package $names) ||
        die "Debian has no $names of version $rust_min here: install Rust from https://rustup.rs, or enable backports"
    missing+=("$package")
done

echo "packages: installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# A run that was killed has left its own.
if [ ! -e "$policy" ] || grep -qxF "$ours" "$policy"; then
    # Debian starts a service as it installs it, unless this file says 101 ("forbidden by policy").
    trap 'rm -f "$log"; as_root rm -f "$policy"' EXIT
    printf '#!/bin/sh\n%s\nexit 101\n' "$ours" |
        as_root sh -c "cat > '$policy' && chmod 755 '$policy'"
fi
as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
    install --no-install-recommends "${missing[@]}" > "$log" 2>&1 9>&- ||
    { tail -n 20 "$log" >&2; die "apt-get could not install: ${missing[*]}"; }
case " ${missing[*]} " in
    *" mariadb-server "*) echo "packages: the mariadb service is not started; the package enables it for the next boot" ;;
esac
