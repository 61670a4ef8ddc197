//! Options with values that follow from others: addresses from `wsrep_node_address`, TLS from its certificate.

use super::Options;
use crate::url::{AddressError, HostPort};

impl Options {
    /// Returns the address to listen on: `gmcast.listen_addr`, by default every IPv4 address, and `base_port`.
    pub fn listen_address(&self) -> Result<HostPort, AddressError> {
        let text = self.str("gmcast.listen_addr");
        let address = HostPort::parse_with_scheme(if text.is_empty() { "0.0.0.0" } else { text })?;
        Ok(HostPort {
            port: Some(address.port_or(self.base_port())),
            ..address
        })
    }

    /// Returns the default port of group traffic.
    pub fn base_port(&self) -> u16 {
        // The registry limits it to 1..=65535.
        u16::try_from(self.int("base_port")).unwrap_or(u16::MAX)
    }

    /// Takes `base_host` and `base_port` from the node address, if it has them.
    pub(super) fn derive_from_node_address(
        &mut self,
        node_address: &str,
    ) -> Result<(), AddressError> {
        if node_address.trim().is_empty() {
            self.values.remove("base_host");
            return Ok(());
        }
        let node = HostPort::parse_with_scheme(node_address)?;
        self.values.insert("base_host", node.bracketed_host());
        if let Some(port) = node.port {
            self.values.insert("base_port", port.to_string());
        }
        Ok(())
    }

    /// Gives `ist.recv_addr` its default when `base_host` is final.
    pub(super) fn complete_addresses(&mut self) {
        if self.str("ist.recv_addr").is_empty() {
            match self.values.get("base_host").cloned() {
                Some(host) => self.values.insert("ist.recv_addr", host),
                None => self.values.remove("ist.recv_addr"),
            };
        }
    }

    /// A certificate and a key turn TLS on, unless `socket.ssl` is set. Shows the options that TLS adds.
    pub(super) fn complete_tls(&mut self) {
        let has_files =
            !self.str("socket.ssl_cert").is_empty() && !self.str("socket.ssl_key").is_empty();
        if !self.is_shown("socket.ssl") && has_files {
            self.values.insert("socket.ssl", "YES".to_string());
        }
        self.show_tls();
    }

    /// Shows the options that TLS, or a secret, adds.
    pub(super) fn show_tls(&mut self) {
        // The server requests a reload of certificates, or of the secret, only if the option string contains
        // `socket.ssl_reload`.
        let shown: &[(&str, &str)] = match self.bool("socket.ssl") {
            true => &[("socket.ssl_cipher", ""), ("socket.ssl_reload", "1")],
            false if self.str("repl.secret_file").is_empty() => &[],
            false => &[("socket.ssl_reload", "1")],
        };
        for (key, text) in shown {
            self.values.entry(key).or_insert_with(|| text.to_string());
        }
    }
}

#[cfg(test)]
mod tests;
