//! A group of hosts that have loaded one library and form a cluster. It starts them, runs loads on all at the same
//! time, and compares their committed write-sets.

use std::fs;
use std::path::Path;
use std::slice;
use std::time::Duration;

use trireme_testbed::directories::make_private_dir;
use trireme_testbed::ports::{self, NodePorts};
use trireme_wsrep_host::{Command, Digest, LoadPlan, LoadResult, Reply, Start};

use super::error::HostsError;
use super::ground::{HostSetup, Library};
use super::host::{Host, ask};
use crate::frame::LabError;

/// The time limit for a host to join, settle or leave, unless it reports an error itself.
const TIMEOUT: Duration = Duration::from_secs(90);

/// The time limit for a host's answer after the end of its load.
const END_OF_LOAD: Duration = Duration::from_secs(60);

/// Hosts that form a cluster. Dropping it kills them.
pub struct Group {
    library: Library,
    options: Vec<String>,
    hosts: Vec<Host>,
}

impl Group {
    /// Starts the hosts below `dir`, one after the other.
    pub fn start(library: &Library, setup: &HostSetup, dir: &Path) -> Result<Self, LabError> {
        let ports = match setup.base_port {
            Some(base) => ports::from_base(base, setup.nodes),
            None => ports::find_free(setup.nodes),
        };
        let ports = ports.map_err(HostsError::from)?;
        make_private_dir(dir)?;
        let mut group = Self {
            library: library.clone(),
            options: ports.iter().map(|ports| setup.options(ports)).collect(),
            hosts: Vec::new(),
        };
        let address = |ports: &NodePorts| format!("{}:{}", ports.host, ports.group);
        for (i, own) in ports.iter().enumerate() {
            let node = format!("node{}", i + 1);
            let data_dir = dir.join(&node);
            // An earlier group may have left files there.
            let _ = fs::remove_dir_all(&data_dir);
            make_private_dir(&data_dir)?;
            let mut host = Host::spawn(library.name(), &node, &data_dir.join("error.log"))?;
            let start = Command::Start(Start {
                library: library.path().map(Path::to_path_buf),
                name: node,
                address: address(own),
                peers: ports[..i].iter().map(address).collect(),
                data_dir,
                options: group.options[i].clone(),
                appliers: setup.appliers,
            });
            ask(slice::from_mut(&mut host), &[start], TIMEOUT)?;
            group.hosts.push(host);
        }
        Ok(group)
    }

    /// The library.
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// The provider options of every node.
    pub fn options(&self) -> &[String] {
        &self.options
    }

    /// Runs one load on each node, all at the same time, on a new sequence.
    pub fn load(&mut self, plans: &[LoadPlan]) -> Result<Vec<LoadResult>, LabError> {
        let begin = vec![Command::Begin; self.hosts.len()];
        ask(&mut self.hosts, &begin, TIMEOUT)?;
        let lasts = plans.iter().map(|plan| plan.warmup_ms + plan.measured_ms);
        let lasts = Duration::from_millis(lasts.max().unwrap_or(0));
        let commands: Vec<Command> = plans.iter().cloned().map(Command::Load).collect();
        let replies = ask(&mut self.hosts, &commands, lasts + END_OF_LOAD)?;
        let each = self.hosts.iter().zip(replies);
        each.map(|(host, reply)| match reply {
            Reply::Loaded(result) => Ok(result),
            _ => Err(host.confused()),
        })
        .collect()
    }

    /// Waits until all nodes have committed everything up to `seqno`. Fails unless all have committed the same.
    pub fn compare(&mut self, seqno: i64) -> Result<(), LabError> {
        let settle = vec![Command::Settle(seqno); self.hosts.len()];
        let replies = ask(&mut self.hosts, &settle, TIMEOUT)?;
        let each = self.hosts.iter().zip(replies);
        let digests = each.map(|(host, reply)| match reply {
            Reply::Settled(digest) => Ok((host.node(), digest)),
            _ => Err(host.confused()),
        });
        let digests = digests.collect::<Result<Vec<_>, LabError>>()?;
        Ok(same(self.library.name(), &digests)?)
    }

    /// Lets the nodes leave, one after the other.
    pub fn end(mut self) -> Result<(), LabError> {
        while let Some(mut host) = self.hosts.pop() {
            ask(slice::from_mut(&mut host), &[Command::Leave], TIMEOUT)?;
        }
        Ok(())
    }
}

/// Fails unless all nodes have committed the same write-sets in the same order.
fn same(system: &str, digests: &[(&str, Digest)]) -> Result<(), HostsError> {
    for (node, digest) in digests {
        if digest.out_of_order > 0 {
            return Err(HostsError::OutOfOrder {
                system: system.to_string(),
                node: node.to_string(),
                count: digest.out_of_order,
            });
        }
    }
    let Some((first, wanted)) = digests.first() else {
        return Ok(());
    };
    match digests.iter().find(|(_, digest)| digest != wanted) {
        None => Ok(()),
        Some((second, found)) => {
            let told = |d: &Digest| {
                format!(
                    "{} committed and {} failed up to {}, hash {:016x}",
                    d.committed, d.failed, d.last, d.hash
                )
            };
            Err(HostsError::Diverged {
                system: system.to_string(),
                first: first.to_string(),
                second: second.to_string(),
                details: format!("{} against {}", told(wanted), told(found)),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_differ_are_named() {
        let one = Digest {
            hash: 7,
            committed: 5,
            failed: 1,
            out_of_order: 0,
            last: 9,
        };
        let other = Digest { hash: 8, ..one };
        assert!(same("x", &[("a", one), ("b", one)]).is_ok());
        let text = |digests: &[(&str, Digest)]| same("x", digests).unwrap_err().to_string();
        let differ = text(&[("a", one), ("b", one), ("c", other)]);
        assert!(differ.starts_with("a and c of x have not"), "{differ}");
        let disordered = Digest {
            out_of_order: 2,
            ..one
        };
        assert!(text(&[("a", disordered), ("b", disordered)]).contains("before an earlier one"));
    }
}
