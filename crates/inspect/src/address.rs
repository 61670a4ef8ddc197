//! Parses the addresses in the server's variables. Pure.

use std::net::IpAddr;

use trireme_agent::Endpoint;
use trireme_node::url::{HostPort, is_loopback};

/// MariaDB's default port.
const SQL_PORT: u16 = 3306;

/// Parses an entry of `wsrep_incoming_addresses`: the address of a member's clients. None for an arbitrator, and for a
/// server that listens on loopback only. MariaDB writes port 0 if its configuration has no port.
pub(crate) fn endpoint(entry: &str) -> Option<Endpoint> {
    let entry = entry.trim();
    let (host, port) = split(entry.strip_suffix(":0").unwrap_or(entry), SQL_PORT)?;
    Some(Endpoint::Tcp { host, port })
}

/// Whether the server runs on this machine, by its endpoint.
pub(crate) fn is_here(endpoint: &Endpoint) -> bool {
    match endpoint {
        Endpoint::Socket(_) => true,
        Endpoint::Tcp { host, .. } => is_loopback(host),
    }
}

/// The group addresses in `wsrep_cluster_address`, as `host:port`.
pub(crate) fn named(cluster_address: &str, base_port: u16) -> Vec<String> {
    let (_, rest) = cluster_address
        .split_once("://")
        .unwrap_or(("", cluster_address));
    let hosts = rest.split(['?', '/']).next().unwrap_or_default();
    hosts
        .split(',')
        .filter_map(|entry| split(entry.trim(), base_port))
        .map(|(host, port)| joined(&host, port))
        .collect()
}

pub(crate) fn joined(host: &str, port: u16) -> String {
    let host = canonical(host);
    Endpoint::Tcp { host, port }.to_string()
}

/// Splits an address into the host without brackets, in its one spelling, and the port.
pub(crate) fn split(text: &str, default_port: u16) -> Option<(String, u16)> {
    let address: HostPort = text.parse().ok()?;
    let port = address.port_or(default_port);
    Some((canonical(&address.host), port))
}

/// The one spelling of a host: an IP address has several, and a name's letters have no case.
pub(crate) fn canonical(host: &str) -> String {
    let host = host.trim_matches(['[', ']']);
    match host.parse::<IpAddr>() {
        Ok(ip) => ip.to_canonical().to_string(),
        Err(_) => host.to_lowercase(),
    }
}

/// Whether a host is a name, and no IP address. An address with a zone (`fe80::1%eth0`) is no name.
pub(crate) fn is_name(host: &str) -> bool {
    !host.contains(':') && host.parse::<IpAddr>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_incoming_addresses() {
        let at = |entry| endpoint(entry).map(|endpoint| endpoint.to_string());
        assert_eq!(at("192.0.2.1"), Some("192.0.2.1:3306".to_owned()));
        assert_eq!(at("192.0.2.1:0"), Some("192.0.2.1:3306".to_owned()));
        assert_eq!(at("[2001:db8::1]:0"), Some("[2001:db8::1]:3306".to_owned()));
        assert_eq!(at("db1:3307"), Some("db1:3307".to_owned()));
        assert_eq!(
            at("[2001:db8::1]:3307"),
            Some("[2001:db8::1]:3307".to_owned())
        );
        assert_eq!(at("2001:db8::1"), Some("[2001:db8::1]:3306".to_owned()));
        assert_eq!(at(""), None);
        assert_eq!(at("db1:port"), None);
    }

    #[test]
    fn members_of_a_cluster_address() {
        assert_eq!(
            named("gcomm://a,b:4568?pc.wait_prim=no", 4567),
            ["a:4567", "b:4568"]
        );
        assert_eq!(
            named("gcomm://DB1,[2001:DB8:0::1],::ffff:192.0.2.1", 4600),
            ["db1:4600", "[2001:db8::1]:4600", "192.0.2.1:4600"]
        );
        assert_eq!(named("gcomm://", 4567), Vec::<String>::new());
        assert_eq!(named("", 4567), Vec::<String>::new());
    }
}
