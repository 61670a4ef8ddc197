//! Cluster addresses: `gcomm://host[:port],host[:port],...[?option=value&...]`, and the host:port pairs in them.

use std::fmt;
use std::str::FromStr;

/// A host name or IP address, perhaps with a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// Host name or address; IPv6 addresses without their brackets.
    pub host: String,
    /// Port, if one was given.
    pub port: Option<u16>,
}

/// The reason why an address was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The scheme is not `gcomm`.
    #[error("unsupported cluster address '{0}': only gcomm:// addresses are supported")]
    Scheme(String),
    /// There is no scheme at all.
    #[error("invalid cluster address '{0}': expected gcomm://host[:port],...")]
    NotAnAddress(String),
    /// A host of a list is malformed.
    #[error("invalid host '{0}' in an address: expected host, host:port, [IPv6] or [IPv6]:port")]
    Host(String),
    /// The port is not a number from 1 to 65535.
    #[error("invalid port '{port}' in address '{address}': expected 1 to 65535")]
    Port {
        /// The address.
        address: String,
        /// Its port.
        port: String,
    },
    /// An option of the address is not `name=value`.
    #[error("invalid option '{0}' in the cluster address: expected name=value")]
    Option(String),
}

impl HostPort {
    /// Reads an address that may carry a transport scheme (`tcp://`, `ssl://`), as listen addresses do.
    pub fn parse_with_scheme(text: &str) -> Result<HostPort, AddressError> {
        let text = text.trim();
        ["tcp://", "ssl://"]
            .iter()
            .find_map(|scheme| text.strip_prefix(scheme))
            .unwrap_or(text)
            .parse()
    }

    /// Returns the port, or `default` if none was given.
    pub fn port_or(&self, default: u16) -> u16 {
        self.port.unwrap_or(default)
    }

    /// Returns the host as written in an address: IPv6 in brackets.
    pub fn bracketed_host(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        }
    }
}

impl FromStr for HostPort {
    type Err = AddressError;

    /// Reads `host`, `host:port`, `[IPv6]`, `[IPv6]:port` or a bare IPv6 address.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let text = text.trim();
        let bad_host = || AddressError::Host(text.to_string());
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (host, after) = rest.split_once(']').ok_or_else(bad_host)?;
            match after.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if after.is_empty() => (host, None),
                None => return Err(bad_host()),
            }
        } else {
            match text.split_once(':') {
                // More than one colon without brackets is an IPv6 address without a port.
                Some((_, rest)) if rest.contains(':') => (text, None),
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            }
        };
        let is_ipv6 = host.contains(':');
        let allowed = |c: char| {
            if is_ipv6 {
                // '%' introduces a zone (fe80::1%eth0), '.' an embedded IPv4 address.
                c.is_ascii_alphanumeric() || ":.%_-".contains(c)
            } else {
                c.is_alphanumeric() || ".-_".contains(c)
            }
        };
        if host.is_empty() || !host.chars().all(allowed) || (text.starts_with('[') && !is_ipv6) {
            return Err(bad_host());
        }
        if is_ipv6
            && host
                .split('%')
                .next()
                .is_none_or(|address| address.parse::<std::net::Ipv6Addr>().is_err())
        {
            return Err(bad_host());
        }
        let port = port
            .map(|port| match port.parse::<u16>() {
                Ok(number) if number > 0 && port.bytes().all(|b| b.is_ascii_digit()) => Ok(number),
                _ => Err(AddressError::Port {
                    address: text.to_string(),
                    port: port.to_string(),
                }),
            })
            .transpose()?;
        Ok(HostPort {
            host: host.to_string(),
            port,
        })
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.bracketed_host()),
            None => f.write_str(&self.bracketed_host()),
        }
    }
}

/// Returns true for a host of `127.0.0.0/8`, for `::1`, and for the machine's own name for itself. Other names are not
/// looked up.
pub fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match host.parse::<std::net::IpAddr>() {
        Ok(ip) => ip.to_canonical().is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

/// A parsed `wsrep_cluster_address`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterUrl {
    /// Addresses at which the node looks for the group; its own may be among them.
    pub peers: Vec<HostPort>,
    /// Provider options of the address, to be set before connecting.
    pub options: Vec<(String, String)>,
}

impl ClusterUrl {
    /// Returns true if the address itself demands a new cluster: `gcomm://` without hosts, or with `0.0.0.0` alone.
    pub fn is_bootstrap(&self) -> bool {
        self.peers.iter().all(|peer| peer.host == "0.0.0.0")
    }
}

impl FromStr for ClusterUrl {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let text = text.trim();
        let (scheme, rest) = text
            .split_once("://")
            .ok_or_else(|| AddressError::NotAnAddress(text.to_string()))?;
        if scheme != "gcomm" {
            return Err(AddressError::Scheme(text.to_string()));
        }
        let (hosts, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut url = ClusterUrl::default();
        // A trailing comma is common and harmless; a list of only commas must not become a bootstrap.
        for host in hosts
            .split(',')
            .map(str::trim)
            .filter(|host| !host.is_empty())
        {
            url.peers.push(host.parse()?);
        }
        if url.peers.is_empty() && !hosts.trim().is_empty() {
            return Err(AddressError::Host(hosts.to_string()));
        }
        for pair in query.split('&').filter(|pair| !pair.trim().is_empty()) {
            match pair.split_once('=') {
                Some((name, value)) if !name.trim().is_empty() => {
                    url.options
                        .push((name.trim().to_string(), value.trim().to_string()));
                }
                _ => return Err(AddressError::Option(pair.to_string())),
            }
        }
        Ok(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn host(host: &str, port: Option<u16>) -> HostPort {
        HostPort {
            host: host.to_string(),
            port,
        }
    }

    #[test]
    fn loopback_is_known() {
        assert!(is_loopback("127.0.1.1") && is_loopback("::1") && is_loopback("localhost"));
        assert!(!is_loopback("192.0.2.1") && !is_loopback("db1"));
    }

    #[test]
    fn hosts_ports_and_options_are_read() {
        let url: ClusterUrl = "gcomm://127.0.0.1:4567,node-2.example,[::1]:5000,[fe80::1%eth0], n5 ,?gmcast.segment=3&pc.weight=2"
            .parse()
            .unwrap();
        assert_eq!(
            url.peers,
            [
                host("127.0.0.1", Some(4567)),
                host("node-2.example", None),
                host("::1", Some(5000)),
                host("fe80::1%eth0", None),
                host("n5", None)
            ]
        );
        let options: Vec<(&str, &str)> = url
            .options
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect();
        assert_eq!(options, [("gmcast.segment", "3"), ("pc.weight", "2")]);
        assert!(!url.is_bootstrap());
    }

    #[test]
    fn an_empty_host_list_is_a_bootstrap() {
        for text in [
            "gcomm://",
            " gcomm:// ",
            "gcomm://?pc.weight=2",
            "gcomm://0.0.0.0",
            "gcomm://0.0.0.0:4567",
        ] {
            assert!(text.parse::<ClusterUrl>().unwrap().is_bootstrap(), "{text}");
        }
        assert!("gcomm://,".parse::<ClusterUrl>().is_err());
        assert!(
            !"gcomm://n1,0.0.0.0"
                .parse::<ClusterUrl>()
                .unwrap()
                .is_bootstrap()
        );
    }

    #[test]
    fn what_is_no_gcomm_address_is_refused() {
        assert_eq!(
            "foo://".parse::<ClusterUrl>(),
            Err(AddressError::Scheme("foo://".into()))
        );
        for text in ["", "NULL", "AUTO", "ON", "a", "gcomm:/x", "127.0.0.1:4567"] {
            assert_eq!(
                text.parse::<ClusterUrl>(),
                Err(AddressError::NotAnAddress(text.into()))
            );
        }
        for text in [
            "gcomm://a:0",
            "gcomm://a:65536",
            "gcomm://a:",
            "gcomm://a:+5",
            "gcomm://:4567",
            "gcomm://[::1",
            "gcomm://[::1]x",
            "gcomm://[]",
            "gcomm://[node1]",
            "gcomm://a/b",
            "gcomm://tcp://a",
            "gcomm://a b",
            "gcomm://1:2:3:4",
            "gcomm://a?x",
            "gcomm://a?=1",
        ] {
            assert!(text.parse::<ClusterUrl>().is_err(), "{text}");
        }
    }

    #[test]
    fn listen_addresses_may_have_a_scheme() {
        assert_eq!(
            HostPort::parse_with_scheme("tcp://[::]:4567").unwrap(),
            host("::", Some(4567))
        );
        assert_eq!(
            HostPort::parse_with_scheme("ssl://127.0.0.1").unwrap(),
            host("127.0.0.1", None)
        );
        assert_eq!(
            HostPort::parse_with_scheme("127.0.0.2").unwrap(),
            host("127.0.0.2", None)
        );
        assert!(HostPort::parse_with_scheme("udp://127.0.0.2").is_err());
        assert_eq!(host("::1", Some(7)).to_string(), "[::1]:7");
        assert_eq!(host("n1", None).port_or(4567), 4567);
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "(gcomm://)?.{0,60}") {
            let _ = text.parse::<ClusterUrl>();
            let _ = HostPort::parse_with_scheme(&text);
        }

        #[test]
        fn host_round_trip(name in "[a-z][a-z0-9.-]{0,20}", address: u128, v6: bool, port in proptest::option::of(1u16..)) {
            let host = if v6 { std::net::Ipv6Addr::from(address).to_string() } else { name };
            let original = HostPort { host, port };
            prop_assert_eq!(original.to_string().parse(), Ok(original));
        }
    }
}
