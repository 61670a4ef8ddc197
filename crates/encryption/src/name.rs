//! The names of a node in its certificate: parsed from the operator's text, and checked.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The longest CN that X.509 allows.
const MAX_NAME_BYTES: usize = 64;

/// A node, and the addresses that peers dial: `NAME` or `NAME=ADDRESS,...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeName {
    name: String,
    addresses: Vec<String>,
}

/// The error for a text that names no node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' names no node: give NAME or NAME=ADDRESS,..., each of at most 64 letters, digits and . - _ : without a dot or dash in \
     front"
)]
pub struct NodeNameError(String);

impl NodeName {
    /// The node's name, which is also the name of its directory.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All names for the certificate: the node's name and its addresses.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        let more = self.addresses.iter().map(String::as_str);
        std::iter::once(self.name.as_str()).chain(more.filter(|address| *address != self.name))
    }

    /// The node with this name and with the addresses of an earlier certificate.
    pub(crate) fn with_addresses(self, addresses: impl IntoIterator<Item = String>) -> NodeName {
        NodeName {
            addresses: addresses.into_iter().collect(),
            ..self
        }
    }

    /// Whether addresses were given with the name.
    pub(crate) fn has_addresses(&self) -> bool {
        !self.addresses.is_empty()
    }
}

impl FromStr for NodeName {
    type Err = NodeNameError;

    fn from_str(text: &str) -> Result<NodeName, NodeNameError> {
        let (name, addresses) = match text.split_once('=') {
            None => (text, Vec::new()),
            Some((name, list)) => (name, list.split(',').collect()),
        };
        let is_good = |part: &&str| {
            let allowed = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
            !part.is_empty()
                && part.len() <= MAX_NAME_BYTES
                && !part.starts_with(['.', '-'])
                && part.chars().all(allowed)
        };
        match is_good(&name) && addresses.iter().all(is_good) {
            true => Ok(NodeName {
                name: name.to_owned(),
                addresses: addresses.into_iter().map(str::to_owned).collect(),
            }),
            false => Err(NodeNameError(text.to_owned())),
        }
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Whether a text is an IP address. A certificate has a separate kind of name for these.
pub(crate) fn is_ip(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_are_read() {
        let node: NodeName = "node1=192.0.2.1,2001:db8::1,node1".parse().unwrap();
        assert_eq!(node.name(), "node1");
        assert_eq!(
            node.all().collect::<Vec<_>>(),
            ["node1", "192.0.2.1", "2001:db8::1"]
        );
        assert!(
            "192.0.2.1".parse::<NodeName>().is_ok() && "a.example.net".parse::<NodeName>().is_ok()
        );
    }

    #[test]
    fn what_could_leave_its_directory_or_break_a_file_is_refused() {
        let long = "a".repeat(65);
        for text in [
            "", ".", "..", "../x", "a/b", "a b", "-a", "a=", "a=b,,c", "a\nb", "a\"", "ä", &long,
        ] {
            assert!(text.parse::<NodeName>().is_err(), "{text:?}");
        }
    }
}
