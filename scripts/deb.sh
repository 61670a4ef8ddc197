#!/usr/bin/env bash
# Builds the Debian packages from packaging/debian and checks them with lintian: `make deb`.
#
# Usage: scripts/deb.sh DIRECTORY          where the packages are put; `make build` comes first
#
# They run on this Debian release and on later ones. The version is that of Cargo.toml with the date and name of the
# commit, so that a package of a later commit is an upgrade.
set -euo pipefail
cd "$(dirname "$0")/.."

die() { echo "deb: $*" >&2; exit 1; }

[ $# = 1 ] || die "usage: scripts/deb.sh DIRECTORY"
mkdir -p "$1"
out=$(cd "$1" && pwd)
built=${CARGO_TARGET_DIR:-$PWD/target}/release
tree=$out/tree
log=$out/build.log

cargo_version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
# Without a repository (a source archive) the version of Cargo.toml has to do.
version=$cargo_version date=$(date -R)
if [ -e .git ]; then
    # The bare version is above all with a commit: no later package would be an upgrade.
    commit=$(git log -1 --format=%h) || die "git cannot read this repository: its message above says why"
    version=$cargo_version~git$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y%m%d.%H%M%S).$commit
    date=$(git log -1 --format=%cD)
    [ -z "$(git status --porcelain)" ] || version=$version.changed
fi

rm -rf "$tree" "$out"/trireme*.{deb,buildinfo,changes}
mkdir -p "$tree/stage"
cp -r packaging/debian README.md ARCHITECTURE.md SECURITY.md docs "$tree/"
cp "$built/libtrireme.so" "$built/trireme" "$tree/stage/"
"$built/trireme" pages "$tree/stage"
# bash looks for the completions of a program under its bare name.
mkdir "$tree/stage/completions/bash"
mv "$tree/stage/completions/trireme.bash" "$tree/stage/completions/bash/trireme"
scripts/third-party-notices.py trireme-provider trireme-cli > "$tree/stage/third-party-notices"
cat > "$tree/debian/changelog" <<END
trireme ($version) unstable; urgency=medium

  * The state of the repository at this version; git log tells the changes.

 -- $(sed -n 's/^Maintainer: //p' "$tree/debian/control")  $date
END

(cd "$tree" && dpkg-buildpackage --build=binary --no-sign) > "$log" 2>&1 || { tail -n 20 "$log" >&2; die "see $log"; }
rm -rf "$tree"
lintian --fail-on error,warning --tag-display-limit 0 --allow-root "$out"/trireme*.changes
(cd "$out" && printf "$out/%s\n" trireme*.deb)
