#!/usr/bin/env bash
# Runs tests of MariaDB's own suites (Debian package mariadb-test) against a wsrep provider.
#
# Usage: scripts/mtr.sh [OPTION]... [TEST]... [mtr option]...
#   TEST              such as galera.basic or wsrep.trans
#   --list FILE       the tests named in FILE, one a line; lines that begin with '#', and what follows two
#                     spaces, are comments (a name itself may contain '#': galera.galera#505)
#   --without FILE    leave out the tests named in FILE
#   --suite=A,B       whole suites (an option of mtr's own, like all that are not named here: --big-test, ...)
#   --provider FILE   the library under test (default: target/release/libtrireme.so)
#   --parallel N      clusters side by side (default 1)
#   --results FILE    write "pass|fail|skip NAME" for each test there
#   --no-skips        a skipped test counts as failed
#   --names A,B       only prints the names of all tests of these suites
# Warnings in the servers' logs and state that a test leaves behind fail the test, as mtr has it by default.
# Ends with "N passed, N failed, N skipped"; exit code 1 if any failed or none ran. Logs of failures: target/mtr/; there
# err/TEST/ has what the servers logged within each failed test.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
user=trireme-mtr

die() { echo "mtr.sh: $*" >&2; exit 1; }

provider=$target/release/libtrireme.so
parallel=1
results=
names_of=
skips_allowed=yes
tests=()
without=()
options=()
names_in() { sed '/^#/d; s/  .*//; /^ *$/d' "$1"; }
while [ $# -gt 0 ]; do
    case $1 in
        --help)     sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "$0"; exit 0 ;;
        --provider | --parallel | --results | --list | --without | --names)
            [ $# -ge 2 ] || die "$1 needs a value"
            case $1 in
                --provider) provider=$2 ;;
                --parallel) parallel=$2 ;;
                --results)  results=$2 ;;
                --names)    names_of=$2 ;;
                --list)     [ -r "$2" ] || die "cannot read $2"; mapfile -O "${#tests[@]}" -t tests < <(names_in "$2") ;;
                --without)  [ -r "$2" ] || die "cannot read $2"; mapfile -O "${#without[@]}" -t without < <(names_in "$2") ;;
            esac
            shift ;;
        --no-skips) skips_allowed=no ;;
        -*)         options+=("$1") ;;
        *)          tests+=("$1") ;;
    esac
    shift
done
if [ ${#without[@]} -gt 0 ]; then
    mapfile -t tests < <(printf '%s\n' ${tests[@]+"${tests[@]}"} | grep -vxFf <(printf '%s\n' "${without[@]}"))
fi
mtr_dir=
for dir in /usr/share/mariadb/mariadb-test /usr/share/mariadb/mysql-test /usr/share/mysql/mariadb-test /usr/share/mysql/mysql-test; do
    if [ -x "$dir/mariadb-test-run.pl" ]; then mtr_dir=$dir; break; fi
done
[ -n "$mtr_dir" ] || die "MariaDB's test suite is not installed: run 'scripts/packages.sh test'"
if [ -n "$names_of" ]; then
    for suite in ${names_of//,/ }; do
        find "$mtr_dir/suite/$suite" -name '*.test' -printf "$suite.%f\n" | sed 's/\.test$//' | LC_ALL=C sort
    done
    exit
fi
[ -f "$provider" ] || die "no provider at $provider: run 'make build' first"
[[ " ${options[*]-} " == *" --suite="* ]] || [ ${#tests[@]} -gt 0 ] || die "name tests, --list FILE or --suite=... (--help)"

# Memory where there is enough of it (about 1 GB per cluster) and a library may be loaded from it, else disk.
# The path is short: sockets lie below it.
need_kib=$((parallel * 1500 * 1024))
free_kib=$(df --output=avail /dev/shm 2>/dev/null | tail -n 1 || echo 0)
base=/tmp
loads_libraries() { ! findmnt --noheadings --output OPTIONS --target "$1" | tr , '\n' | grep -qx noexec; }
if [ -w /dev/shm ] && [ "${free_kib:-0}" -ge "$need_kib" ] && loads_libraries /dev/shm; then base=/dev/shm; fi
work=$(mktemp -d "$base/mtr-XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/lib"
cp "$provider" "$work/lib/"
# The suites look for an arbitrator there.
program=$(dirname "$provider")/trireme
if [ -x "$program" ] && [ "$(basename "$provider")" = libtrireme.so ]; then
    mkdir "$work/lib/garb"
    cp "$program" "$work/lib/garb/garbd"
fi
chmod -R a+rX "$work"

# mariadbd refuses to run as root, and mtr as root does not test what users run.
run_as=()
if [ "$(id -u)" = 0 ]; then
    getent passwd "$user" >/dev/null ||
        useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "$user"
    chown "$user:" "$work"
    run_as=(setpriv "--reuid=$user" "--regid=$user" --init-groups)
fi

log=$work/mtr.log
: > "$log"
mtr_pid=
# shellcheck disable=SC2329  # called by trap
clean_up() {
    if [ -n "$mtr_pid" ]; then
        kill -INT -- "-$mtr_pid" 2>/dev/null || true
        wait "$mtr_pid" || true
    fi
    # mtr's watchdogs end the servers a little later than mtr itself ends.
    for _ in {1..50}; do pgrep -f -- "$work/var" >/dev/null || break; sleep 0.2; done
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

cd "$mtr_dir"
# setsid, setpriv and env replace themselves by mtr: this is the id of mtr, and of the group of mtr and its workers.
setsid ${run_as[@]+"${run_as[@]}"} env HOME="$work" WSREP_PROVIDER="$work/lib/$(basename "$provider")" \
    perl ./mariadb-test-run.pl --vardir="$work/var" --force --max-test-fail=0 --retry=0 --testcase-timeout=8 \
    --parallel="$parallel" ${options[@]+"${options[@]}"} ${tests[@]+"${tests[@]}"} \
    > "$log" 2>&1 < /dev/null &
mtr_pid=$!
tail --pid="$mtr_pid" -n +1 -f "$log" &
tail_pid=$!
mtr_status=0
wait "$mtr_pid" || mtr_status=$?
mtr_pid=
wait "$tail_pid" || true
cd "$root"

# One "pass|fail|skip name" per test. A test that left state behind is reported as passed at first, and named in
# "Check of testcase failed for:" at the end.
verdicts=$work/verdicts
sed -nE "s/^([a-z0-9_]+\.[^ ]+( '[^']*')?) +(w[0-9]+ +)?\[ (retry-)?(pass|fail|exp-fail|skipped) \].*/\5 \1/p" "$log" |
    sed 's/^exp-fail/fail/; s/^skipped/skip/' | LC_ALL=C sort -u > "$verdicts"
for name in $(sed -n 's/^Check of testcase failed for: //p' "$log"); do
    sed -i "s|^pass \($name\( '.*'\)\{0,1\}\)\$|fail \1|" "$verdicts"
done
not_run=$(printf '%s\n' ${tests[@]+"${tests[@]}"} | grep -vxFf <(cut -d' ' -f2 "$verdicts") | grep . || true)
[ -z "$not_run" ] || sed 's/^/fail /' <<<"$not_run" >> "$verdicts"
[ -z "$results" ] || { mkdir -p "$(dirname "$results")" && cp "$verdicts" "$results"; }

count() { grep -c "^$1 " "$verdicts" || true; }
passed=$(count pass) failed=$(count fail) skipped=$(count skip)

bad=0
if [ "$failed" -gt 0 ] || [ "$passed" -eq 0 ] || [ "$mtr_status" -ne 0 ]; then bad=1; fi
if [ "$skips_allowed" = no ] && [ "$skipped" -gt 0 ]; then bad=1; fi

echo
if [ "$bad" = 1 ]; then
    kept=$target/mtr/$(date +%Y%m%d-%H%M%S)-$$
    mkdir -p "$kept"
    cp "$log" "$verdicts" "$kept/"
    # The failed tests' saved directories: logs and configuration, not the databases.
    (cd "$work/var" 2>/dev/null && find . \( -name std_data -o -name install.db \) -prune -o -type f \
        \( -name '*.err' -o -name '*.log' -o -name '*.reject' -o -name 'my.cnf' -o -name warnings -o -name 'core*' \) \
        -size -64M -exec cp --parents -t "$kept" {} +) || true
    # A server's log holds all tests of the run: for each failed one, what belongs to it.
    for test in $(sed -n 's/^fail \([^ ]*\).*/\1/p' "$verdicts" | LC_ALL=C sort -u); do
        mkdir -p "$kept/err/$test"
        find "$work/var" -maxdepth 3 -path '*/log/mysqld.*.err' -type f | while read -r err; do
            awk -v test="$test" '/^CURRENT_TEST: / { is_its = $2 == test } is_its' "$err" >> "$kept/err/$test/${err##*/}"
        done
    done
    sed -n 's/^fail /failed: /p' "$verdicts" | grep -vxFf <(sed 's/^/failed: /' <<<"$not_run") || true
    [ -z "$not_run" ] || sed 's/^/did not run: /' <<<"$not_run"
    [ "$skips_allowed" = yes ] || sed -n 's/^skip /skipped, but required: /p' "$verdicts"
    if [ "$failed" -eq 0 ] && [ "$mtr_status" -ne 0 ]; then
        echo "mtr itself failed (exit code $mtr_status), for instance by warnings while servers shut down"
    fi
    echo "logs: $kept"
fi
echo "$passed passed, $failed failed, $skipped skipped"
exit "$bad"
