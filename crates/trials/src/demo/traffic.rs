//! Runs sysbench on every node and shows its figures once a second.

use std::time::Duration;

use super::DemoError;
use super::display::Display;
use trireme_testbed::cluster::Cluster;
use trireme_testbed::interrupt;
use trireme_testbed::sysbench::{Load, Sysbench};
use trireme_testbed::sysbench_report::IntervalReport;

/// One sysbench per node; none for a node that is down.
pub struct Traffic {
    load: Load,
    names: Vec<String>,
    runs: Vec<Option<Sysbench>>,
    starts: u32,
    /// The text for a node without load.
    idle_text: &'static str,
}

impl Traffic {
    /// Starts the load on every node of the cluster.
    pub fn start(load: Load, cluster: &Cluster) -> Result<Self, DemoError> {
        let names: Vec<String> = cluster
            .nodes()
            .iter()
            .map(|node| node.name.clone())
            .collect();
        let runs = names.iter().map(|_| None).collect();
        let mut traffic = Self {
            load,
            names,
            runs,
            starts: 0,
            idle_text: "down",
        };
        for i in 0..cluster.nodes().len() {
            traffic.resume(i, cluster)?;
        }
        Ok(traffic)
    }

    /// Starts the load on node `i`.
    pub fn resume(&mut self, i: usize, cluster: &Cluster) -> Result<(), DemoError> {
        self.starts += 1;
        self.runs[i] = Some(self.load.start(cluster.node(i), None, self.starts)?);
        Ok(())
    }

    /// Sets the text for nodes without load.
    pub fn set_idle_text(&mut self, text: &'static str) {
        self.idle_text = text;
    }

    /// Ends the load on node `i`.
    pub fn stop(&mut self, i: usize) {
        self.runs[i] = None;
    }

    /// Ends all load.
    pub fn stop_all(&mut self) {
        self.runs.iter_mut().for_each(|run| *run = None);
    }

    /// Shows the figures once a second, for so many seconds.
    pub fn watch(&mut self, display: &mut Display, seconds: u64) -> Result<(), DemoError> {
        for _ in 0..seconds {
            self.tick(display)?;
        }
        Ok(())
    }

    /// Waits a second and shows its figures. Fails if the load on a node ended by itself.
    pub fn tick(&mut self, display: &mut Display) -> Result<(), DemoError> {
        interrupt::sleep(Duration::from_secs(1))?;
        let mut parts = Vec::new();
        let mut total = 0.0;
        for (name, run) in self.names.iter().zip(&mut self.runs) {
            let report = match run {
                Some(run) => {
                    if run.has_ended() {
                        return Err(run.failure().into());
                    }
                    Some(run.take_report())
                }
                None => None,
            };
            total += report.flatten().map_or(0.0, |report| report.tps);
            parts.push(format!(
                "{name} {}",
                figures(report, self.idle_text, display.is_narrow())
            ));
        }
        let between = if display.is_narrow() { "  " } else { " | " };
        parts.push(format!("all {total:>4.0}"));
        display.live(&parts.join(between));
        Ok(())
    }
}

/// The figures of one node. `None` is a node without load, `Some(None)` one whose report has not come yet.
fn figures(report: Option<Option<IntervalReport>>, idle_text: &str, narrow: bool) -> String {
    let text = match report {
        None => idle_text.to_string(),
        Some(None) => "...".to_string(),
        Some(Some(r)) => {
            let IntervalReport {
                tps,
                conflicts_per_s,
                p95_ms,
                ..
            } = r;
            if narrow {
                format!("{tps:>4.0} {conflicts_per_s:>3.0} {p95_ms:>4.0}")
            } else {
                format!("{tps:>4.0} c/s {conflicts_per_s:>3.0} conf p95 {p95_ms:>4.0} ms")
            }
        }
    };
    let width = if narrow { 13 } else { 29 };
    format!("{text:<width$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_states_take_the_same_width() {
        let report = IntervalReport {
            second: 1.0,
            tps: 1234.5,
            p95_ms: 18.2,
            conflicts_per_s: 7.0,
        };
        assert_eq!(
            figures(Some(Some(report)), "", false),
            "1234 c/s   7 conf p95   18 ms"
        );
        assert_eq!(figures(Some(Some(report)), "", true), "1234   7   18");
        for narrow in [false, true] {
            let widths =
                [None, Some(None), Some(Some(report))].map(|r| figures(r, "down", narrow).len());
            assert!(widths.iter().all(|w| *w == widths[0]), "{widths:?}");
        }
    }
}
