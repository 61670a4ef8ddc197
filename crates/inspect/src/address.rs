//! Addresses as the server's variables name them. Pure.

use trireme_agent::Endpoint;

/// Port of MariaDB.
const SQL_PORT: u16 = 3306;
/// `base_port` by default.
const GROUP_PORT: u16 = 4567;

/// Where the clients of a member connect: an entry of `wsrep_incoming_addresses`. `None` for a member without a database.
pub(crate) fn endpoint(entry: &str) -> Option<Endpoint> {
    let (host, port) = split(entry.trim(), SQL_PORT)?;
    Some(Endpoint::Tcp { host, port })
}

/// The group addresses that `wsrep_cluster_address` names, as `host:port`.
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

/// A group address as `host:port`.
pub(crate) fn group(entry: &str) -> Option<String> {
    let (host, port) = split(entry, GROUP_PORT)?;
    Some(joined(&host, port))
}

pub(crate) fn joined(host: &str, port: u16) -> String {
    let host = host.to_owned();
    Endpoint::Tcp { host, port }.to_string()
}

/// Host without brackets, and port.
pub(crate) fn split(text: &str, default_port: u16) -> Option<(String, u16)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            (host, rest.strip_prefix(':'))
        }
        None => match text.rsplit_once(':') {
            // More colons than one, and no brackets: an address of IPv6 alone.
            Some((host, _)) if host.contains(':') => (text, None),
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = match port {
        None | Some("") => default_port,
        Some(port) => port.parse().ok()?,
    };
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

/// Whether the host can be nobody else's than this machine.
pub(crate) fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host
            .parse()
            .is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_incoming_addresses() {
        let at = |entry| endpoint(entry).map(|endpoint| endpoint.to_string());
        assert_eq!(at("192.0.2.1"), Some("192.0.2.1:3306".to_owned()));
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

    #[test]
    fn loopback_is_known() {
        assert!(is_loopback("127.0.1.1") && is_loopback("::1") && is_loopback("localhost"));
        assert!(!is_loopback("192.0.2.1") && !is_loopback("db1"));
    }
}
