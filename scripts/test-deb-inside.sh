#!/usr/bin/env bash
# The packages within a clean Debian release: install, configure, upgrade, run, remove, purge. scripts/test-deb.sh starts it there.
#
# Usage: scripts/test-deb-inside.sh DIRECTORY          that of the packages
set -euo pipefail

# It changes the packages and the configuration of the system that it runs on.
[ "${clean:-}" = 1 ] || { echo "$0: only scripts/debian-root.sh --clean runs this, in a root of its own" >&2; exit 1; }

packages=$1
sample=/etc/mysql/mariadb.conf.d/61-trireme.cnf
defaults=/etc/default/trireme-arbitrator
state=/var/lib/trireme-arbitrator
log=/tmp/log
server= started=
mapfile -t newer < <(find "$packages" -name 'trireme*.deb' -not -name '*dbgsym*')

say() { echo "test-deb: $(. /etc/os-release; echo "$VERSION_CODENAME"): $*"; }
fail() { say "FAILED: $*" >&2; tail -n 30 "$log" /tmp/server.log /tmp/trireme-*.log >&2 2>/dev/null; exit 1; }
check() { local what=$1; shift; "$@" >> "$log" 2>&1 || fail "$what"; }
apt() { DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0 --no-install-recommends "$@" >> "$log" 2>&1; }
sql() { mariadb -N -B -e "$1" 2>> "$log"; }
status_of() { sql "SHOW STATUS LIKE '$1'" | cut -f 2; }
status_is() { [ "$(status_of "$1")" = "$2" ]; }

# Waits until COMMAND succeeds, at most 60 s.
eventually() {
    local what=$1 i
    shift
    for ((i = 0; i < 300; i++)); do "$@" >> "$log" 2>&1 && return; sleep 0.2; done
    fail "not within 60 s: $what"
}

# The server as its unit starts it, but for systemd, which is not there.
start_server() {
    install -d -o mysql -g mysql /run/mysqld
    /usr/sbin/mariadbd --user=mysql "$@" >> /tmp/server.log 2>&1 &
    server=$!
    eventually "the server answers" sql "SELECT 1"
}

stop_server() {
    kill "$server"
    wait "$server" || fail "the server ended with an error"
}

# The command of a unit's ExecStart line, with its settings, as an ordinary user.
start_unit() {
    local unit=$1 user=$2 command
    command=$(sed -n 's/^ExecStart=//p' "/usr/lib/systemd/system/$unit.service")
    # systemd takes each ${NAME} for one argument.
    command=$(sed -e "s|%S/|/var/lib/|" -e 's|\(\S*\${[A-Z_]*}\)|"\1"|g' <<< "$command")
    (set -a && . "/etc/default/$unit" && eval "exec setpriv --reuid=$user --clear-groups $command") >> "/tmp/$unit.log" 2>&1 &
    started=$!
}

stop_unit() {
    kill "$started"
    wait "$started" || [ $? = 130 ] || fail "$1 ended with an error"
}

http() { exec 8<> /dev/tcp/127.0.0.1/8077 && printf 'GET %s HTTP/1.1\r\n\r\n' "$1" >&8 && cat <&8; }

# The packages under a lower version, with other comments in their configuration: dpkg asks then about what was changed.
make_older() {
    local package older
    mkdir /tmp/older
    for package in "${newer[@]}"; do
        older=/tmp/older/$(basename "$package" | cut -d_ -f1)
        dpkg-deb -R "$package" "$older"
        [ ! -d "$older/etc" ] || find "$older/etc" -type f -exec sed -i '1i # An earlier comment.' {} +
        sed -i -E 's/^Version: .*/Version: 0.0.1/; s/trireme \(= [^)]*\)/trireme (= 0.0.1)/' "$older/DEBIAN/control"
        (cd "$older" && find . -type f -not -path './DEBIAN/*' -printf '%P\0' | xargs -0 md5sum > DEBIAN/md5sums)
        check "an older package of $older" dpkg-deb -b "$older" "$older.deb"
    done
}

# As the options name a certificate and its key in a directory.
tls_options() { echo "socket.ssl_cert=$1/cert.pem; socket.ssl_key=$1/key.pem; socket.ssl_ca=$1/ca.pem; repl.require_encryption=yes"; }

galera_files() { dpkg -L galera-4 | while read -r file; do [ ! -f "$file" ] || md5sum "$file"; done; }
installed() { [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null)" = "ii " ]; }
# What is left of ours, but for the packages under test, a server's data and what dpkg itself keeps.
traces() {
    find / -xdev -iname '*trireme*' -not -path '/proc/*' -not -path '/var/lib/mysql/*' -not -path '/tmp/*' \
        -not -path '/var/lib/dpkg/*' -not -path '/var/log/*' | sed 's/$/ is left/'
}


say "installing MariaDB"
apt install mariadb-server systemd || fail "MariaDB cannot be installed"
galera_files > /tmp/galera

say "installing"
make_older
apt install /tmp/older/*.deb || fail "the packages cannot be installed"
for package in trireme trireme-provider trireme-arbitrator; do check "$package is installed" installed $package; done
start_server
[ "$(sql 'SELECT @@wsrep_on')" = 0 ] || fail "the sample configuration does something before it is enabled"
stop_server

say "upgrading, with configuration that an administrator has changed"
sed -i 's/^#\([a-z_-]* *=\)/\1/; s/192\.0\.2\.1,192\.0\.2\.2,192\.0\.2\.3/127.0.0.1/; s/192\.0\.2\.1/127.0.0.1/' $sample
sed -i 's/^GALERA_NODES=.*/GALERA_NODES="127.0.0.1:4567"/; s/base_port=4567/base_port=4570/' $defaults
sed -i "s|^GALERA_OPTIONS=\"|&$(tls_options /etc/trireme-arbitrator); |" $defaults
md5sum $sample $defaults > /tmp/changed
apt -o Dpkg::Options::=--force-confold install "${newer[@]}" || fail "the packages cannot be upgraded"
check "an upgrade keeps the administrator's configuration" md5sum -c /tmp/changed
[ "$(dpkg-query -W -f '${Version}' trireme)" != 0.0.1 ] || fail "trireme is still the older one"

say "a node bootstraps with the sample configuration, which asks for a certificate"
check "certificates are made" trireme tls init --dir /tmp/tls node1 arbitrator
install -d -m 0750 -g mysql /etc/mysql/trireme
install -m 0640 -g mysql /tmp/tls/nodes/node1/*.pem /etc/mysql/trireme
install -d -m 0700 -o nobody /etc/trireme-arbitrator
install -m 0600 -o nobody /tmp/tls/nodes/arbitrator/*.pem /etc/trireme-arbitrator
check "the node's certificate is good" trireme tls check --name node1
start_server --wsrep-new-cluster
check "the node presents it" trireme tls check --peer 127.0.0.1:4567
eventually "the node is ready" status_is wsrep_ready ON
status_is wsrep_provider_name Trireme || fail "the provider is $(status_of wsrep_provider_name)"
check "the node takes writes" sql "CREATE DATABASE deb; CREATE TABLE deb.t (a INT PRIMARY KEY); INSERT INTO deb.t VALUES (1)"

say "an arbitrator starts as its unit says"
for unit in trireme-arbitrator trireme-agent; do check "systemd takes $unit" systemd-analyze verify $unit.service; done
check "systemd takes the setting for the server" sh -c "! systemd-analyze verify mariadb.service 2>&1 | grep -i trireme"
install -d -m 0700 -o nobody $state
start_unit trireme-arbitrator nobody
eventually "the cluster has two members" status_is wsrep_cluster_size 2
check "a write with the arbitrator" sql "INSERT INTO deb.t VALUES (2)"
stop_unit trireme-arbitrator
eventually "the arbitrator has left" status_is wsrep_cluster_size 1

say "an agent starts as its unit says, and needs no password"
trireme agent grant | mariadb
useradd --system trireme-agent
start_unit trireme-agent trireme-agent
eventually "the agent answers" http /health/live
check "the node takes writes" grep -q '^ok: Synced' <(http /health/write)
check "the node has metrics" grep -q '^wsrep_cluster_size 1$' <(http /metrics)
stop_unit trireme-agent

say "the program, its pages and completions"
check "trireme --version" trireme --version
for page in trireme trireme-arbitrator trireme-cluster-up; do check "a page of $page" ls /usr/share/man/man1/$page.1.gz; done
check "bash completes" bash -c '. /usr/share/bash-completion/completions/trireme && complete -p trireme'
stop_server

say "removing"
apt remove trireme trireme-provider trireme-arbitrator || fail "the packages cannot be removed"
[ ! -e /usr/lib/trireme ] || fail "the library is left"
[ -e $sample ] || fail "removing takes the configuration"
say "purging"
rm -r /etc/mysql/trireme /etc/trireme-arbitrator /tmp/tls
apt purge trireme trireme-provider trireme-arbitrator || fail "the packages cannot be purged"
[ -z "$(traces)" ] || fail "$(traces)"
galera_files | cmp -s - /tmp/galera || fail "Galera's package was touched"
check "Galera's package is whole" dpkg -V galera-4
start_server
[ "$(sql 'SELECT @@wsrep_on')" = 0 ] || fail "the server is still in a cluster"
[ "$(sql 'SELECT COUNT(*) FROM deb.t')" = 2 ] || fail "the rows are gone"
stop_server
say ok
