#!/usr/bin/env bash
# Installs, through apt-get, the Debian packages that a task needs and that are missing; does nothing when none is.
# Usage: scripts/packages.sh build|deb|lint|fuzz|demo|bench|test|suites|conformance
# No package is removed, a MariaDB that runs is neither stopped nor upgraded, and a newly installed service is not started.
set -euo pipefail

rust_min=1.85
policy=/usr/sbin/policy-rc.d
ours="# put here by Trireme while it installs packages"

die() { echo "packages: $*" >&2; exit 1; }

packages_of() {
    case $1 in
        build)       echo gcc libc6-dev libssl-dev pkgconf ;;
        deb)         packages_of build; echo build-essential debhelper lintian python3 ;;
        lint)        packages_of build ;;
        fuzz)        packages_of build; echo g++ ;;
        demo)        packages_of build; echo mariadb-server rsync socat sysbench ;;
        bench)       packages_of demo; echo lsof iproute2 ;;
        test)        packages_of demo; echo mariadb-backup mariadb-test patch lsof procps iproute2 openssl stunnel4 haproxy ;;
        # MariaDB's suites alone, with a library that was built elsewhere.
        suites)      echo mariadb-server mariadb-backup mariadb-test rsync socat patch perl lsof procps iproute2 openssl stunnel4 ;;
        conformance) packages_of test ;;
        *) die "unknown set '$1' (known: build deb lint fuzz demo bench test suites conformance)" ;;
    esac
}

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

can_be_root() { [ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && { sudo -n true 2>/dev/null || sudo -v; }; }; }

# Held packages count as well; one of two architectures has two states.
installed() { dpkg-query -W -f='${db:Status-Abbrev}' "$1" 2>/dev/null | grep -qE '(^| )[ih]i '; }

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

# A run that was killed has left its policy: no service of this machine would start any more.
if grep -qsxF "$ours" "$policy" && flock -n "${policy%/*}" true; then
    can_be_root || die "a run that was killed left $policy, which keeps services from starting; as root, run: rm $policy"
    as_root rm -f "$policy"
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

can_be_root || die "root is needed once; as root, run: $0 $set_name"

# One run at a time: another one's end would remove the policy.
exec 9< "${policy%/*}"
flock 9

as_root apt-get -q -q update 9>&- || echo "packages: apt-get update failed; going on with the lists that are there" >&2
for names in ${rust_missing[@]+"${rust_missing[@]}"}; do
    package=$(rust_package $names) ||
        die "Debian has no $names of version $rust_min here: install Rust from https://rustup.rs, or enable backports"
    missing+=("$package")
done

get=(apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 install --no-remove --no-install-recommends "${missing[@]}")
log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed() { tail -n 20 "$log" >&2; die "apt-get could not install: ${missing[*]}"; }

"${get[@]}" --simulate > "$log" 2>&1 || failed
if grep -q '^Inst mariadb-server \[' "$log" && grep -qsx mariadbd /proc/[0-9]*/comm; then
    die "apt-get would upgrade MariaDB, which runs: upgrade it yourself, then run this again"
fi

echo "packages: installing ${missing[*]}"
# Debian starts a service as it installs it, unless the policy says 101 ("forbidden by policy"). One shell writes and removes it,
# so that sudo does not ask again.
as_root env DEBIAN_FRONTEND=noninteractive bash -c '
    policy=$1 ours=$2
    shift 2
    if [ ! -e "$policy" ]; then
        trap "rm -f $policy" EXIT
        printf "#!/bin/sh\n%s\nexit 101\n" "$ours" > "$policy"
        chmod 755 "$policy"
    fi
    "$@"' packages "$policy" "$ours" "${get[@]}" > "$log" 2>&1 9>&- || failed
for service in mariadb-server haproxy stunnel4; do
    case " ${missing[*]} " in
        *" $service "*) echo "packages: the service of $service is not started; its package enables it for the next boot" ;;
    esac
done
