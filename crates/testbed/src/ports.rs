//! The TCP ports of a cluster: four per node, all on 127.0.0.1, in blocks of ten.

use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

/// The distance between the blocks of two nodes.
const BLOCK: u16 = 10;

/// The range to search for free blocks. It lies below the range of ports for outgoing connections
/// (`ip_local_port_range`, from 32768), because such a connection could take a port between the check and the start.
const SEARCH: Range<u16> = 10_000..32_000;

/// The ports of one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodePorts {
    /// The address that the node announces to the others. SQL is always served on 127.0.0.1.
    #[serde(default = "loopback")]
    pub host: Ipv4Addr,
    /// The port for SQL clients.
    pub mysql: u16,
    /// The port of the provider's group communication. IST uses the next one, as Galera's default does.
    pub group: u16,
    /// The port on which a joiner receives an SST.
    pub sst: u16,
}

/// The reason why no ports were assigned.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    /// A port of a block that the user chose, or of a stopped cluster, is taken.
    #[error(
        "port {port} (node {node}, {role}) is in use; see the process that has it, and end it: ss -ltnp sport = :{port} \
         (a new cluster can take another --base-port)"
    )]
    InUse {
        /// The port.
        port: u16,
        /// The node's number, from 1.
        node: usize,
        /// The purpose of the port.
        role: &'static str,
    },
    /// The blocks would end above port 65535.
    #[error(
        "{nodes} nodes need {BLOCK} ports each and do not fit above --base-port {base}; choose a lower one"
    )]
    TooHigh {
        /// The base port that the user chose.
        base: u16,
        /// The number of nodes.
        nodes: usize,
    },
    /// There are not enough free ports in a row.
    #[error(
        "no {nodes} x {BLOCK} free ports between {} and {}; stop other servers or give --base-port",
        SEARCH.start,
        SEARCH.end
    )]
    NoneFree {
        /// The number of nodes.
        nodes: usize,
    },
}

impl NodePorts {
    fn at(first: u16) -> Self {
        Self {
            host: Ipv4Addr::LOCALHOST,
            mysql: first,
            group: first + 1,
            sst: first + 3,
        }
    }

    /// The port on which the provider receives an IST.
    pub fn ist(&self) -> u16 {
        self.group + 1
    }

    /// All ports with their purposes.
    pub fn roles(&self) -> [(u16, &'static str); 4] {
        [
            (self.mysql, "SQL"),
            (self.group, "group"),
            (self.ist(), "IST"),
            (self.sst, "SST"),
        ]
    }
}

/// The ports of `nodes` nodes from `base` on. Fails if one is taken.
pub fn from_base(base: u16, nodes: usize) -> Result<Vec<NodePorts>, PortError> {
    let ports = blocks(base, nodes).ok_or(PortError::TooHigh { base, nodes })?;
    check_free(&ports)?;
    Ok(ports)
}

/// Fails if a process listens on one of these ports.
pub fn check_free(ports: &[NodePorts]) -> Result<(), PortError> {
    for (i, node) in ports.iter().enumerate() {
        for (port, role) in node.roles() {
            if !is_free(port) {
                return Err(PortError::InUse {
                    port,
                    node: i + 1,
                    role,
                });
            }
        }
    }
    Ok(())
}

/// Finds free ports for `nodes` nodes. Two calls in one process never return the same ports; other processes start
/// their search elsewhere.
pub fn find_free(nodes: usize) -> Result<Vec<NodePorts>, PortError> {
    static NEXT: Mutex<Option<u16>> = Mutex::new(None);
    let mut next = NEXT.lock().unwrap_or_else(|poisoned| poisoned.into_inner());

    let block_count = (SEARCH.end - SEARCH.start) / BLOCK;
    let mut first = next.unwrap_or_else(|| {
        let block = (std::process::id().wrapping_mul(2_654_435_761) >> 8) % u32::from(block_count);
        SEARCH.start + block as u16 * BLOCK
    });
    for _ in 0..block_count {
        let candidate =
            blocks(first, nodes).filter(|ports| ports.iter().all(|p| p.sst < SEARCH.end));
        match candidate {
            Some(ports) if check_free(&ports).is_ok() => {
                *next = Some(first.saturating_add(BLOCK * nodes as u16));
                return Ok(ports);
            }
            Some(_) => first += BLOCK,
            None => first = SEARCH.start,
        }
    }
    Err(PortError::NoneFree { nodes })
}

fn blocks(base: u16, nodes: usize) -> Option<Vec<NodePorts>> {
    let end = usize::from(base) + nodes * usize::from(BLOCK);
    if end > usize::from(u16::MAX) {
        return None;
    }
    Some(
        (0..nodes)
            .map(|i| NodePorts::at(base + i as u16 * BLOCK))
            .collect(),
    )
}

/// The address of nodes whose cluster file names none.
fn loopback() -> Ipv4Addr {
    Ipv4Addr::LOCALHOST
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_do_not_overlap() {
        let ports = blocks(20_000, 4).unwrap();
        let mut all: Vec<u16> = ports
            .iter()
            .flat_map(|p| p.roles().map(|(port, _)| port))
            .collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 16);
        assert_eq!(ports[1].mysql, 20_010);
        assert_eq!(ports[1].ist(), ports[1].group + 1);
    }

    #[test]
    fn a_taken_port_is_named() {
        // Hold a port below the ephemeral range, where a block of ours could lie.
        let free = find_free(1).unwrap()[0];
        let _held = TcpListener::bind((Ipv4Addr::LOCALHOST, free.ist())).unwrap();
        assert_eq!(
            from_base(free.mysql, 1),
            Err(PortError::InUse {
                port: free.ist(),
                node: 1,
                role: "IST"
            })
        );
    }

    #[test]
    fn two_searches_differ() {
        assert_ne!(find_free(3).unwrap(), find_free(3).unwrap());
    }

    #[test]
    fn a_base_near_the_end_is_refused() {
        assert_eq!(
            from_base(65_530, 1),
            Err(PortError::TooHigh {
                base: 65_530,
                nodes: 1
            })
        );
    }

    #[test]
    fn more_nodes_than_ports_end_the_search() {
        assert_eq!(find_free(5_000), Err(PortError::NoneFree { nodes: 5_000 }));
    }
}
