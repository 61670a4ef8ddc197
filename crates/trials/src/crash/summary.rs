//! Adds up the results of all schedules.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use super::Plan;
use super::trial::Report;
use super::violation::Violation;
use trireme_lab::stats::median;

/// Number of violations that the line of a schedule shows.
const SHOWN: usize = 4;

/// The results of all schedules together.
pub struct Summary {
    plan: Plan,
    schedules: usize,
    acknowledged: usize,
    unknown: usize,
    snapshots: usize,
    since_start_s: Vec<f64>,
    since_recovery_s: Vec<f64>,
    violations: BTreeMap<&'static str, usize>,
    failed: Vec<u64>,
}

impl Summary {
    /// A summary of no schedules yet.
    pub fn new(plan: &Plan) -> Self {
        Self {
            plan: plan.clone(),
            schedules: 0,
            acknowledged: 0,
            unknown: 0,
            snapshots: 0,
            since_start_s: Vec::new(),
            since_recovery_s: Vec::new(),
            violations: BTreeMap::new(),
            failed: Vec::new(),
        }
    }

    /// Adds a schedule's report and returns its line of output.
    pub fn add(&mut self, seed: u64, report: Report) -> String {
        self.schedules += 1;
        self.acknowledged += report.acknowledged;
        self.unknown += report.unknown;
        self.snapshots += report.snapshots;
        let seconds = |time: Option<Duration>| time.map(|time| time.as_secs_f64());
        self.since_start_s
            .extend(seconds(report.served_since_start));
        self.since_recovery_s
            .extend(seconds(report.served_since_recovery));
        let mut text = format!("{} appends", report.acknowledged);
        if let Some(time) = seconds(report.served_since_start) {
            let _ = write!(text, ", serving {time:.1} s after the last start");
        }
        if report.snapshots > 0 {
            let _ = write!(text, ", {} snapshots", report.snapshots);
        }
        if let Some(loss) = &report.loss {
            let _ = write!(
                text,
                ", {} unflushed writes lost ({} survived)",
                loss.changes, loss.survived
            );
        }
        if report.told_lost > 0 {
            let _ = write!(text, ", {} appends lost, as a node tells", report.told_lost);
        }
        if report.violations.is_empty() {
            return text + ", ok";
        }
        self.failed.push(seed);
        for violation in &report.violations {
            *self.violations.entry(violation.kind()).or_default() += 1;
        }
        for violation in report.violations.iter().take(SHOWN) {
            let _ = write!(text, "\n      {}", shortened(&violation.to_string()));
        }
        if let Some(more) = report.violations.len().checked_sub(SHOWN + 1) {
            let _ = write!(text, "\n      and {} more", more + 1);
        }
        let _ = write!(text, "\n      again: {}", self.command(seed));
        text
    }

    /// Number of schedules that broke a promise.
    pub fn failed(&self) -> usize {
        self.failed.len()
    }

    /// The summary.
    pub fn text(&self) -> String {
        let mut text = format!(
            "\n{} schedules, {} failed; {} appends acknowledged, {} transactions with unknown outcome, {} snapshots\n",
            self.schedules,
            self.failed.len(),
            self.acknowledged,
            self.unknown,
            self.snapshots
        );
        let counts = Violation::KINDS.iter().map(|kind| {
            let count = self.violations.get(kind).copied().unwrap_or(0);
            format!("{count} {kind}")
        });
        text += &counts.collect::<Vec<_>>().join(", ");
        text.push('\n');
        for (what, times) in [
            ("the last start", &self.since_start_s),
            ("the last recovery", &self.since_recovery_s),
        ] {
            if let Some(middle) = median(times) {
                let max = times.iter().copied().fold(0.0, f64::max);
                let within = times.iter().filter(|time| **time <= 10.0).count();
                let _ = writeln!(
                    text,
                    "serving after {what}: median {middle:.1} s, at most {max:.1} s, {within} of {} within 10 s",
                    times.len()
                );
            }
        }
        for seed in &self.failed {
            let _ = writeln!(text, "failed: {}", self.command(*seed));
        }
        text
    }

    /// The command that plays a schedule again.
    fn command(&self, seed: u64) -> String {
        let plan = &self.plan;
        let mut text = format!("trireme crash --schedules 1 --seed {seed:#018x}");
        if plan.provider != "trireme" {
            let _ = write!(text, " --provider {}", plan.provider);
        }
        let _ = write!(
            text,
            " --durability {} --clients {} --serve-within-s {}",
            plan.durability(),
            plan.clients,
            plan.serve_within_s
        );
        for (flag, name) in [
            (plan.power_loss, "--power-loss"),
            (plan.lying_disk, "--lying-disk"),
        ] {
            if flag {
                let _ = write!(text, " {name}");
            }
        }
        text
    }
}

/// The beginning of a text.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}
