//! The network between the nodes of one trial: delays and cuts of our choice.
//!
//! The kernel here has no netem. Each node lives in a [`Namespace`] whose only way out is a TUN device, and the [`Router`]
//! carries the packets from one to the other, later or never.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::namespace::Namespace;
use super::router::{Router, Wires};
use trireme_testbed::packages::PackageError;

/// Why there is no network.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// No namespace.
    #[error(
        "cannot make a network namespace ({0}); this part needs root: sudo trireme bench latency ..., or leave it out: --part windows"
    )]
    Namespace(io::Error),
    /// No TUN device.
    #[error("cannot make a TUN device ({0}); needs root and /dev/net/tun: modprobe tun")]
    Device(io::Error),
    /// `ip` refused.
    #[error("ip {arguments}: {reason}")]
    Ip {
        /// What it was asked.
        arguments: String,
        /// Its words.
        reason: String,
    },
    /// A program is missing.
    #[error(transparent)]
    Package(#[from] PackageError),
}

/// The network between the nodes of one trial. Dropping it ends it.
pub struct Network {
    namespaces: Vec<Namespace>,
    wires: Arc<Wires>,
    router: Option<JoinHandle<()>>,
}

impl Network {
    /// A network for `nodes` nodes, without delays.
    pub fn new(nodes: usize) -> Result<Self, NetworkError> {
        let namespaces: Vec<Namespace> = (0..nodes)
            .map(|_| Namespace::new())
            .collect::<Result<_, _>>()?;
        let devices = namespaces
            .iter()
            .enumerate()
            .map(|(i, namespace)| namespace.plug(address(i)))
            .collect::<Result<_, _>>()?;
        let wires = Arc::new(Wires::new(nodes));
        let router = Router::new(devices, Arc::clone(&wires));
        Ok(Self {
            namespaces,
            wires,
            router: Some(thread::spawn(|| router.run())),
        })
    }

    /// The nodes' addresses.
    pub fn addresses(&self) -> Vec<Ipv4Addr> {
        (0..self.namespaces.len()).map(address).collect()
    }

    /// Where node `i` lives.
    pub fn namespace(&self, i: usize) -> &Namespace {
        &self.namespaces[i]
    }

    /// From now on a packet and its answer between nodes `a` and `b` take `round_trip` longer than without delay.
    pub fn set_round_trip(&self, a: usize, b: usize, round_trip: Duration) {
        self.wires.set_delay(a, b, round_trip / 2);
    }

    /// From now on packets from and to node `i` vanish.
    pub fn cut(&self, i: usize) {
        self.wires.cut(i);
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.wires.end();
        if let Some(router) = self.router.take() {
            // A router that panicked routes no more, which is what is wanted here.
            let _ = router.join();
        }
    }
}

/// The address of node `i`. Each node sees a network of its own, so these clash with nobody's.
fn address(i: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, i as u8 + 1)
}

/// The node with this address.
pub(super) fn node_at(address: [u8; 4], nodes: usize) -> Option<usize> {
    (0..nodes).find(|i| self::address(*i).octets() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_found_by_address() {
        assert_eq!(node_at(address(2).octets(), 3), Some(2));
        assert_eq!(node_at(address(3).octets(), 3), None);
        assert_eq!(node_at([127, 0, 0, 1], 3), None);
    }
}
