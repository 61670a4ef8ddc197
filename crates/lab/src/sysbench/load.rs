//! One run of sysbench on all nodes, and the servers' counters for it.

use std::time::Duration;

use trireme_testbed::SqlError;
use trireme_testbed::interrupt::{self, Interrupted};
use trireme_testbed::node::Node;
use trireme_testbed::sysbench::{Load, Sysbench, Whole};
use trireme_testbed::sysbench_report::IntervalReport;
use trireme_testbed::systems::Deployed;

use crate::frame::LabError;
use crate::oltp::OltpError;

/// Runs the load on `nodes`; its threads connect to them in turns. `per_second` gets the commits of each second, also if
/// the run ends early.
pub fn run(
    nodes: &[Node],
    load: &Load,
    duration: Duration,
    seed: u32,
    per_second: &mut Vec<u64>,
) -> Result<Whole, LabError> {
    let mut run = load
        .start_counted(nodes, duration, seed)
        .map_err(OltpError::from)?;
    let ended = wait(&mut run);
    let mut intervals = run.take_reports();
    *per_second = seconds(&intervals);
    ended?;
    let mut whole = run.finish_whole().map_err(OltpError::from)?;
    // The last lines may have come meanwhile.
    intervals.append(&mut whole.intervals);
    *per_second = seconds(&intervals);
    Ok(Whole { intervals, ..whole })
}

fn wait(run: &mut Sysbench) -> Result<(), Interrupted> {
    while !run.has_ended() {
        interrupt::sleep(Duration::from_millis(100))?;
    }
    Ok(())
}

/// The commits in each second.
fn seconds(intervals: &[IntervalReport]) -> Vec<u64> {
    let tps = intervals.iter().map(|interval| interval.tps);
    tps.map(|tps| tps.round() as u64).collect()
}

/// The counters of the servers: totals since their start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// The COMMITs that clients asked of each node, failed ones included.
    pub commits: Vec<u64>,
    /// Write-sets that failed certification at their commit.
    pub certification_failures: u64,
    /// Transactions that were rolled back in favour of a write-set of another node.
    pub brute_force_aborts: u64,
    /// Deadlocks among the transactions of one node.
    pub innodb_deadlocks: u64,
    /// Leader changes in Trireme although the old leader was alive.
    pub leader_changes_needless: u64,
}

impl Counters {
    /// Reads the counters from all nodes.
    pub fn of(deployed: &Deployed) -> Result<Self, LabError> {
        let mut all = Self::default();
        for node in deployed.cluster().nodes() {
            let failed = |source: SqlError| LabError::Load {
                node: node.name.clone(),
                source,
            };
            let mut sql = node.sql()?;
            // A plain server lacks the provider's counters.
            let mut count = |name: &str| -> Result<u64, LabError> {
                let value = sql.status(name).map_err(failed)?;
                Ok(value.and_then(|value| value.parse().ok()).unwrap_or(0))
            };
            all.commits.push(count("Com_commit")?);
            all.certification_failures += count("wsrep_local_cert_failures")?;
            all.brute_force_aborts += count("wsrep_local_bf_aborts")?;
            all.innodb_deadlocks += count("Innodb_deadlocks")?;
            all.leader_changes_needless += count("wsrep_trireme_leaderships_needless")?;
        }
        Ok(all)
    }

    /// The difference to `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        let less = |now: u64, then: u64| now.saturating_sub(then);
        Self {
            commits: self
                .commits
                .iter()
                .zip(&earlier.commits)
                .map(|(now, then)| less(*now, *then))
                .collect(),
            certification_failures: less(
                self.certification_failures,
                earlier.certification_failures,
            ),
            brute_force_aborts: less(self.brute_force_aborts, earlier.brute_force_aborts),
            innodb_deadlocks: less(self.innodb_deadlocks, earlier.innodb_deadlocks),
            leader_changes_needless: less(
                self.leader_changes_needless,
                earlier.leader_changes_needless,
            ),
        }
    }
}
