//! A schedule with parts left out: `shrink` finds it, and `replay` takes it.

use clap::Args;
use trireme_replicator::ScriptBeforeIst;

use crate::plan::Plan;
use crate::profiles;
use crate::seen::TimeUs;

/// A schedule, and the parts that are left out.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct Edit {
    /// The seed.
    pub seed: u64,
    /// The profile; without it, the profile that `run` without --profile takes for this seed
    #[arg(long)]
    pub profile: Option<String>,
    /// Keep only these of the plan's faults, by number from 0
    #[arg(long, value_delimiter = ',')]
    pub faults: Option<Vec<usize>>,
    /// Leave out all faults
    #[arg(long)]
    pub no_faults: bool,
    /// End the faults at this time
    #[arg(long)]
    pub calm_ms: Option<u64>,
    /// Maximum number of clients on each node
    #[arg(long)]
    pub clients: Option<usize>,
    /// Leave out DDL and the administrators
    #[arg(long)]
    pub plain_load: bool,
    /// Measure no round trips; leadership moves only after a failure, as in older schedules
    #[arg(long = "leadership-stays")]
    pub leadership_stays: bool,
    /// Use the shipped constants, as in older schedules, not scaled-down ones
    #[arg(long)]
    pub as_shipped: bool,
    /// No server wants a script before an IST, as in older schedules
    #[arg(long)]
    pub ist_alone: bool,
    /// Only servers with wsrep_gtid_mode want a script before an IST, as in older schedules
    #[arg(long)]
    pub gtid_scripts_only: bool,
    /// Let failing notes strike both files, and flushes hang for at most 5 s, as in older schedules
    #[arg(long)]
    pub old_disk_faults: bool,
    /// Give up no connects, as in older schedules
    #[arg(long)]
    pub plain_connects: bool,
    /// Use one stream of random numbers for all links, as in older schedules
    #[arg(long)]
    pub shared_jitter: bool,
}

impl Edit {
    /// The whole schedule.
    pub fn whole(seed: u64, profile: Option<String>) -> Edit {
        Edit {
            seed,
            profile,
            ..Edit::default()
        }
    }

    /// The plan of this edit. Err: there is no such profile.
    pub fn plan(&self) -> Result<Plan, String> {
        let profile = match &self.profile {
            Some(name) => profiles::named(name).ok_or_else(|| {
                let all = profiles::all();
                let names: Vec<_> = all.map(|profile| profile.name).collect();
                format!("no profile '{name}': there are {}", names.join(", "))
            })?,
            None => profiles::by_turn(self.seed),
        };
        let mut plan = match (self.as_shipped, self.old_disk_faults) {
            (true, _) => Plan::as_shipped(profile, self.seed),
            (false, true) => Plan::with_old_disk_faults(profile, self.seed),
            (false, false) if self.plain_connects => Plan::with_plain_connects(profile, self.seed),
            (false, false) => Plan::new(profile, self.seed),
        };
        if let Some(keep) = &self.faults {
            let faults = plan.faults.into_iter().enumerate();
            let kept = faults.filter(|(index, _)| keep.contains(index));
            plan.faults = kept.map(|(_, fault)| fault).collect();
        }
        if self.no_faults {
            plan.faults.clear();
        }
        if let Some(ms) = self.calm_ms {
            plan.calm_us = ms as TimeUs * 1000;
            plan.faults.retain(|(at, _)| *at < plan.calm_us);
        }
        plan.leadership_moves &= !self.leadership_stays;
        let only_if_free = plan.script_before_ist == ScriptBeforeIst::IfDonorIsFree;
        if self.ist_alone || self.gtid_scripts_only && only_if_free {
            plan.script_before_ist = ScriptBeforeIst::Never;
        }
        plan.links_apart &= !self.shared_jitter;
        for node in &mut plan.nodes {
            let load = &mut node.server.load;
            load.clients = load.clients.min(self.clients.unwrap_or(usize::MAX));
            if self.plain_load {
                load.ddl_per_mille = 0;
                node.server.admin.every_us = None;
            }
        }
        Ok(plan)
    }

    /// The command-line arguments that make this edit.
    pub fn arguments(&self) -> String {
        let mut words = vec![self.seed.to_string()];
        let mut option = |name: &str, value: Option<String>| {
            words.extend(value.map(|value| format!("--{name} {value}")));
        };
        option("profile", self.profile.clone());
        let join = |keep: &Vec<usize>| {
            let numbers: Vec<String> = keep.iter().map(usize::to_string).collect();
            numbers.join(",")
        };
        option(
            "faults",
            self.faults.as_ref().filter(|f| !f.is_empty()).map(join),
        );
        option("calm-ms", self.calm_ms.map(|ms| ms.to_string()));
        option("clients", self.clients.map(|n| n.to_string()));
        if self.plain_load {
            words.push("--plain-load".to_owned());
        }
        if self.leadership_stays {
            words.push("--leadership-stays".to_owned());
        }
        if self.as_shipped {
            words.push("--as-shipped".to_owned());
        }
        if self.ist_alone {
            words.push("--ist-alone".to_owned());
        }
        if self.gtid_scripts_only {
            words.push("--gtid-scripts-only".to_owned());
        }
        if self.old_disk_faults {
            words.push("--old-disk-faults".to_owned());
        }
        if self.plain_connects {
            words.push("--plain-connects".to_owned());
        }
        if self.shared_jitter {
            words.push("--shared-jitter".to_owned());
        }
        if self.no_faults || self.faults.as_ref().is_some_and(Vec::is_empty) {
            words.push("--no-faults".to_owned());
        }
        words.join(" ")
    }
}
