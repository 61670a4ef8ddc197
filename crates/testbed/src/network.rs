//! A private network between the nodes of a cluster, with chosen delays and cuts.
//!
//! The kernel here has no netem. Each node runs in a [`Namespace`] whose only way out is a TUN device. A thread of
//! this program carries the packets between the nodes, late or not at all.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::packages::PackageError;
use router::{Router, Wires};

mod namespace;
mod router;

pub use namespace::Namespace;

/// The reason why there is no network.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// A namespace cannot be made.
    #[error("cannot make a network namespace ({0}); needs root: sudo")]
    Namespace(io::Error),
    /// A TUN device cannot be made.
    #[error("cannot make a TUN device ({0}); needs root and /dev/net/tun: modprobe tun")]
    Device(io::Error),
    /// `ip` failed.
    #[error("ip {arguments}: {reason}")]
    Ip {
        /// The arguments of `ip`.
        arguments: String,
        /// The error text of `ip`.
        reason: String,
    },
    /// A program is missing.
    #[error(transparent)]
    Package(#[from] PackageError),
}

/// A network between nodes. Dropping it ends the router.
pub struct Network {
    namespaces: Vec<Namespace>,
    wires: Arc<Wires>,
    router: Option<JoinHandle<()>>,
}

impl Network {
    /// Makes a network for `nodes` nodes, without delays.
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

    /// The namespace of node `i`.
    pub fn namespace(&self, i: usize) -> &Namespace {
        &self.namespaces[i]
    }

    /// From now on a round trip between nodes `a` and `b` takes `round_trip` longer than without delay.
    pub fn set_round_trip(&self, a: usize, b: usize, round_trip: Duration) {
        self.wires.set_delay(a, b, round_trip / 2);
    }

    /// From now on, packets from and to node `i` vanish.
    pub fn cut(&self, i: usize) {
        self.wires.cut(i);
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.wires.end();
        if let Some(router) = self.router.take() {
            // A panicked router routes nothing either, so its result does not matter.
            let _ = router.join();
        }
    }
}

/// The address of node `i`. Each node is in a private network, so the address cannot conflict with others.
fn address(i: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, i as u8 + 1)
}

/// The node with this address.
fn node_at(address: [u8; 4], nodes: usize) -> Option<usize> {
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
