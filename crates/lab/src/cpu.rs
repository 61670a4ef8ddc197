//! The processor time of a system's servers and of the load, which runs in this process or in its ended children.

use trireme_testbed::process;
use trireme_testbed::systems::Deployed;

/// Processor time, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuTimes {
    /// The time of all servers.
    pub servers_ms: u64,
    /// The time of this process and of its children that have ended.
    pub client_ms: u64,
}

impl CpuTimes {
    /// The time since the start of the servers and of this process.
    pub fn of(deployed: &Deployed) -> Self {
        let pids = deployed.cluster().nodes().iter().filter_map(|n| n.pid());
        Self {
            servers_ms: pids.filter_map(process::cpu_ms).sum(),
            client_ms: process::cpu_ms(std::process::id()).unwrap_or(0)
                + process::ended_children_cpu_ms().unwrap_or(0),
        }
    }

    /// The time since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            servers_ms: self.servers_ms.saturating_sub(earlier.servers_ms),
            client_ms: self.client_ms.saturating_sub(earlier.client_ms),
        }
    }
}
