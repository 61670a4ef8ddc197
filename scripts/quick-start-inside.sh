#!/usr/bin/env bash
# Walks docs/quick-start.md within a clean Debian release: three hosts with an address and a data directory each, and the
# page's own commands. scripts/test-deb.sh starts it there.
#
# Usage: scripts/quick-start-inside.sh DIRECTORY          that of the packages
#
# A command is taken from the page by its beginning: a page without it fails the test. The hosts share what packages install, and have
# namespaces of their own for the network, and for /etc/mysql, /etc/default, /var/lib, /run and the home directory. There is no systemd:
# a systemctl of this test runs what the units say.
set -euo pipefail

# It changes the packages and the configuration of the system that it runs on.
[ "${clean:-}" = 1 ] || { echo "$0: only scripts/debian-root.sh --clean runs this, in a root of its own" >&2; exit 1; }

packages=$1
page=$PWD/docs/quick-start.md
hosts=/tmp/hosts
log=/tmp/log
declare -A keeper

say() { echo "quick-start: $(. /etc/os-release; echo "$VERSION_CODENAME"): $*"; }
fail() { say "FAILED: $*" >&2; tail -n 20 "$log" $hosts/*/tmp/*.log >&2 2>/dev/null; exit 1; }

# The page's command that begins with WORDS, with what the shell would make of its continuation lines.
command_of() {
    awk -v words="    $1" '!found && index($0, words) == 1 { found = 1 } found && /^    / { print substr($0, 5); if (!/,$/) exit }' "$page" | grep . ||
        fail "the page has no command '$1'"
}

# Runs a command on host N as its administrator would type it.
on() { nsenter --target "${keeper[$1]}" --mount --net --uts --root --wd="$hosts/$1/home" env DEBIAN_FRONTEND=noninteractive bash -c "$2"; }
run() { on "$1" "$2" >> "$log" 2>&1 || fail "host $1: $2"; }
page() { run "$1" "$(command_of "$2")"; }
everywhere() { local i; for i in 1 2 3; do page $i "$1"; done; }
shows() { local what; what=$(on "$1" "$2" 2>> "$log") || true; echo "$what" >> "$log"; grep -q -- "$3" <<< "$what"; }
expect() { shows "$@" || fail "host $1: '$2' does not say '$3'"; }
# The same within a minute.
eventually() { local i; for ((i = 0; i < 120; i++)); do shows "$@" && return; sleep 0.5; done; fail "host $1: '$2' did not say '$3' within 60 s"; }

make_host() {
    local i=$1 at=$hosts/$1 directory
    mkdir -p "$at/home" "$at/tmp"
    for directory in etc/mysql etc/default var/lib run; do
        mkdir -p "$at/$directory"
        cp -a "/$directory/." "$at/$directory"
    done
    # shellcheck disable=SC2016  # expanded by the inner shell
    unshare --mount --net --uts bash -c '
        for directory in etc/mysql etc/default var/lib run; do mount --bind "$0/$directory" "/$directory"; done
        mount --bind "$0/tmp" /mnt
        hostname "node$1"
        exec sleep infinity' "$at" "$i" &
    keeper[$i]=$!
    until [ "$(nsenter --target "${keeper[$i]}" --uts hostname 2>/dev/null)" = "node$i" ]; do sleep 0.1; done
    ip link add "host$i" type veth peer name eth0 netns "${keeper[$i]}"
    ip link set "host$i" master hosts up
    run "$i" "install -d -o mysql -g mysql /run/mysqld; ip link set lo up; ip link set eth0 up; ip address add 192.0.2.$i/24 dev eth0"
}

# What the units of a host say, without systemd.
cat > /usr/local/bin/systemctl <<'END'
#!/bin/bash
set -eu
verb=$1 unit=${!#}
unit=${unit%.service}
pid=/run/$unit.pid
alive() { [ -e "$pid" ] && kill -0 "$(cat "$pid")" 2>/dev/null; }
stop() { ! alive || { kill "${1:--TERM}" "$(cat "$pid")"; while alive; do sleep 0.1; done; }; }
start() {
    ! alive || return 0
    if [ "$unit" = mariadb ]; then
        install -d -o mysql -g mysql /run/mysqld
        # Where galera_new_cluster leaves its word for the unit.
        environment=$(sed -n 's/^EnvironmentFile=-//p' /usr/lib/systemd/system/mariadb.service /lib/systemd/system/mariadb.service | head -n 1)
        set -a; [ ! -e "$environment" ] || . "$environment"; set +a
        position=$(setpriv --reuid=mysql --regid=mysql --clear-groups --no-new-privs galera_recovery 2>> /mnt/mariadb.log)
        setsid /usr/sbin/mariadbd --user=mysql ${_WSREP_NEW_CLUSTER:-} $position >> /mnt/mariadb.log 2>&1 < /dev/null &
        echo $! > "$pid"
        until mariadb -e "SELECT 1" > /dev/null 2>&1; do alive || exit 1; sleep 0.2; done
    else
        command=$(sed -n 's/^ExecStart=//p' "/usr/lib/systemd/system/$unit.service" | sed -e 's|\(\S*\${[A-Z_]*}\)|"\1"|g')
        getent passwd "$unit" > /dev/null || useradd --system "$unit"
        (set -a && . "/etc/default/$unit" && eval "exec setsid setpriv --reuid=$unit --clear-groups $command") >> "/mnt/$unit.log" 2>&1 < /dev/null &
        echo $! > "$pid"
    fi
}
case $verb in
    start | enable) start ;;
    stop) stop ;;
    restart) stop; start ;;
    kill) stop "-${2#--signal=SIG}" ;;
    *) echo "systemctl of this test knows no $verb" >&2; exit 1 ;;
esac
END
printf '#!/bin/sh\nexec "$@"\n' > /usr/local/bin/sudo
chmod 755 /usr/local/bin/systemctl /usr/local/bin/sudo
# As who answers yes; apt has what it needs, but not what is only recommended.
printf 'APT::Get::Assume-Yes "true";\nAPT::Install-Recommends "false";\n' > /etc/apt/apt.conf.d/90-quick-start

say "1. packages"
cp "$packages"/*.deb /tmp
(cd /tmp && DEBIAN_FRONTEND=noninteractive bash -c "$(command_of 'sudo apt-get install')") >> "$log" 2>&1 || fail "the packages cannot be installed"
ip address flush dev node
ip link add hosts type bridge
ip link set hosts up
mkdir -p $hosts
for i in 1 2 3; do make_host $i; done
everywhere "sudo systemctl stop mariadb"

say "2. certificates"
page 1 "trireme tls init"
for i in 1 2 3; do cp $hosts/1/home/trireme-tls/nodes/node$i/* $hosts/$i/home; done
everywhere "sudo install -d -m 0750 -o root -g mysql /etc/mysql/trireme"
everywhere "sudo install -m 0640 -o root -g mysql cert.pem"
everywhere "rm key.pem"
everywhere "sudo trireme tls check"

say "3. configuration"
everywhere "sudo sed -i"
for i in 1 2 3; do
    for setting in "$(command_of 'wsrep_cluster_address ')" "$(command_of 'wsrep_node_name ')" "$(command_of 'wsrep_node_address ')"; do
        setting=$(sed -e 's/ *#.*//' -e "s/node1$/node$i/" -e "s/= 192.0.2.1$/= 192.0.2.$i/" <<< "$setting")
        name=${setting%% *}
        run $i "sed -i 's|^$name .*|$setting|; ' /etc/mysql/mariadb.conf.d/61-trireme.cnf; grep -qxF '$setting' /etc/mysql/mariadb.conf.d/61-trireme.cnf"
    done
done

say "5. start"
page 1 "sudo galera_new_cluster"
for i in 2 3; do page $i "sudo systemctl start mariadb"; done
look=$(command_of 'sudo mariadb -e "SHOW STATUS WHERE')
for i in 1 2 3; do
    eventually $i "$look" "wsrep_local_state_comment.Synced"
    for fact in "wsrep_provider_name.Trireme" "wsrep_cluster_size.3" "wsrep_cluster_status.Primary" "wsrep_trireme_plaintext_links.0" \
        "wsrep_incoming_addresses.*192.0.2.1:.*192.0.2.2:.*192.0.2.3:"; do expect $i "$look" "$fact"; done
done
expect 1 "$(command_of 'sudo trireme status')" "3 member(s)"
if shows 1 "$(command_of 'sudo trireme status')" "of them arbitrators"; then fail "members are taken for arbitrators"; fi
doctor=$(on 1 "$(command_of 'sudo trireme doctor')") || true
echo "$doctor" >> "$log"
if grep "^FAILED" <<< "$doctor"; then fail "the doctor finds something wrong with a new cluster"; fi

say "6. health check and metrics"
page 1 "trireme agent grant"
for i in 1 2 3; do
    page $i "sudo systemctl enable --now trireme-agent"
    eventually $i "$(command_of 'curl -s http://127.0.0.1:8077/health/write')" "ok: Synced, one of 3 members"
    expect $i "$(command_of 'curl -s http://127.0.0.1:8077/metrics')" "^# "
    expect $i "curl -s http://127.0.0.1:8077/metrics" "^wsrep_cluster_size 3"
done

say "7. lose a node"
page 3 "sudo systemctl kill --signal=SIGKILL mariadb"
eventually 1 "$(command_of 'sudo mariadb -e "SHOW STATUS LIKE')" "wsrep_cluster_size.2"
run 1 "mariadb -e 'CREATE DATABASE quick; CREATE TABLE quick.start (a INT PRIMARY KEY); INSERT INTO quick.start VALUES (1)'"
page 3 "sudo systemctl start mariadb"
eventually 3 "$look" "wsrep_local_state_comment.Synced"
expect 3 "mariadb -e 'SET wsrep_sync_wait=1; SELECT COUNT(*) AS rows_here FROM quick.start'" "^1$"
for i in 3 2 1; do run $i "systemctl stop trireme-agent; systemctl stop mariadb"; done
kill "${keeper[@]}"
say ok
