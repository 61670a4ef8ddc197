//! Addresses `host:port`, as users write them and as peers advertise them.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use crate::TransportError;

/// The longest host name that is accepted (a DNS name has at most 253 bytes).
const MAX_HOST_BYTES: usize = 253;

/// A host (name or literal address, without brackets) and a TCP port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// A host name, an IPv4 address, or an IPv6 address without brackets.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

impl HostPort {
    /// Reads `host`, `host:port`, `[v6]`, `[v6]:port` or a bare IPv6 address, each with an optional `tcp://` or
    /// `ssl://` in front. `default_port` is used where the text has no port.
    pub fn parse(text: &str, default_port: Option<u16>) -> Result<Self, TransportError> {
        let bad = |why| TransportError::InvalidAddress {
            text: text.to_owned(),
            why,
        };
        let rest = text.trim();
        let rest = rest
            .strip_prefix("tcp://")
            .or_else(|| rest.strip_prefix("ssl://"))
            .unwrap_or(rest);
        let (host, port) = if let Some(v6) = rest.strip_prefix('[') {
            let (host, tail) = v6.split_once(']').ok_or_else(|| bad("']' is missing"))?;
            if !matches!(host.parse(), Ok(IpAddr::V6(_))) {
                return Err(bad("no IPv6 address between the brackets"));
            }
            match tail {
                "" => (host, None),
                _ => (
                    host,
                    Some(
                        tail.strip_prefix(':')
                            .ok_or_else(|| bad("':' expected after ']'"))?,
                    ),
                ),
            }
        } else if matches!(rest.parse(), Ok(IpAddr::V6(_))) {
            (rest, None)
        } else {
            match rest.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (rest, None),
            }
        };
        if host.is_empty() {
            return Err(bad("the host is missing"));
        }
        if host.len() > MAX_HOST_BYTES || !host.bytes().all(|b| b.is_ascii_graphic() && b != b'/') {
            return Err(bad("the host is no host name or IP address"));
        }
        if host.contains(':') && host.parse::<IpAddr>().is_err() {
            return Err(bad("the host is no host name or IP address"));
        }
        let port = match port {
            // `u16::from_str` accepts a leading '+'.
            Some(port) if port.bytes().all(|b| b.is_ascii_digit()) => port
                .parse()
                .map_err(|_| bad("the port is no number from 0 to 65535"))?,
            Some(_) => return Err(bad("the port is no number from 0 to 65535")),
            None => default_port.ok_or_else(|| bad("the port is missing"))?,
        };
        Ok(Self {
            host: host.to_owned(),
            port,
        })
    }

    /// Returns the socket address, if the host is a literal IP address.
    pub fn literal(&self) -> Option<SocketAddr> {
        self.host
            .parse()
            .ok()
            .map(|ip| SocketAddr::new(ip, self.port))
    }

    /// Returns true if the host is the "any" address, which can be listened on but not called.
    pub fn is_unspecified(&self) -> bool {
        self.literal()
            .is_some_and(|addr| addr.ip().is_unspecified())
    }
}

impl From<SocketAddr> for HostPort {
    fn from(addr: SocketAddr) -> Self {
        Self {
            host: addr.ip().to_canonical().to_string(),
            port: addr.port(),
        }
    }
}

/// Returns the name by which the user knows a peer: the address that was called, or the caller's IP address.
pub(crate) fn label(called: Option<&HostPort>, remote: SocketAddr) -> String {
    match called {
        Some(called) => called.to_string(),
        None => remote.ip().to_canonical().to_string(),
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> String {
        HostPort::parse(text, Some(4567)).map_or_else(|e| e.to_string(), |a| a.to_string())
    }

    #[test]
    fn the_forms_that_users_write() {
        assert_eq!(parsed("127.0.0.1:13000"), "127.0.0.1:13000");
        assert_eq!(parsed("127.0.0.2"), "127.0.0.2:4567");
        assert_eq!(parsed("tcp://[::]:13000"), "[::]:13000");
        assert_eq!(parsed("ssl://db1"), "db1:4567");
        assert_eq!(parsed("[::1]"), "[::1]:4567");
        assert_eq!(parsed("::1"), "[::1]:4567");
        assert_eq!(parsed(" db1.example:1 "), "db1.example:1");
        assert!(HostPort::parse("db1", None).is_err());
    }

    #[test]
    fn what_is_no_address() {
        for text in [
            "",
            ":1",
            "a:b",
            "a:1:2",
            "a:70000",
            "a:",
            "a:+1",
            "[::1",
            "[x]:1",
            "[::1]1",
            "a b:1",
            "http://a:1",
        ] {
            assert!(HostPort::parse(text, Some(1)).is_err(), "{text:?}");
        }
        assert!(parsed("a:").contains("port"));
    }

    proptest! {
        #[test]
        fn what_is_read_reads_back(text in ".{0,40}") {
            if let Ok(address) = HostPort::parse(&text, Some(1)) {
                prop_assert_eq!(HostPort::parse(&address.to_string(), None).ok(), Some(address));
            }
        }
    }
}
