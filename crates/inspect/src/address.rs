//! Parses the addresses in the server's variables. Pure.

use trireme_agent::Endpoint;
use trireme_node::url::{HostPort, is_loopback};

/// MariaDB's default port.
const SQL_PORT: u16 = 3306;
/// The default of `base_port`.
const GROUP_PORT: u16 = 4567;

/// Parses an entry of `wsrep_incoming_addresses`: the address of a member's clients. None for a member without a
/// database. MariaDB writes port 0 if its configuration has no port.
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
pub(crate) fn named(cluster_address: &str) -> Vec<String> {
    let (_, rest) = cluster_address
        .split_once("://")
        .unwrap_or(("", cluster_address));
    let hosts = rest.split(['?', '/']).next().unwrap_or_default();
    hosts
        .split(',')
        .filter_map(|entry| group(entry.trim()))
        .collect()
}

/// Parses a group address, and returns it as `host:port`.
pub(crate) fn group(entry: &str) -> Option<String> {
    let (host, port) = split(entry, GROUP_PORT)?;
    Some(joined(&host, port))
}

pub(crate) fn joined(host: &str, port: u16) -> String {
    let host = host.to_owned();
    Endpoint::Tcp { host, port }.to_string()
}

/// Splits an address into the host without brackets, and the port.
pub(crate) fn split(text: &str, default_port: u16) -> Option<(String, u16)> {
    let address: HostPort = text.parse().ok()?;
    let port = address.port_or(default_port);
    Some((address.host, port))
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
            named("gcomm://a,b:4568?pc.wait_prim=no"),
            ["a:4567", "b:4568"]
        );
        assert_eq!(named("gcomm://"), Vec::<String>::new());
        assert_eq!(named(""), Vec::<String>::new());
    }
}
