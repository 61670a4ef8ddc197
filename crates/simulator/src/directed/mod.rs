//! Schedules written by hand, one file each: a situation that random schedules seldom reach, and the mistakes that
//! show in it (rule 24). A schedule fixes the cluster and plays with a [`Stage`]. It waits for events, cuts and heals
//! links, pauses, kills, and asks clients for single transactions. A seed still decides the duration of each frame,
//! flush and step. After the situation was reached, everything is healed and the run ends as every other one: all
//! nodes converge and serve, and the invariants watch all events.

mod cluster;
mod stage;

use trireme_mutants::Mutant;

use crate::digest::{Digest, Digests};
use crate::invariants;
use crate::plan::Plan;
use crate::run::{self, Outcome};
use crate::watch::Watch;

pub use cluster::{N1, N2, N3, N4, N5, cluster, hasty, patient, recovering, row};
pub use stage::{Missed, Play, Stage};

/// A schedule written by hand.
pub struct Directed {
    /// The mistakes that this schedule must find.
    pub mutants: &'static [Mutant],
    /// The plan of its cluster, for a seed.
    pub plan: fn(u64) -> Plan,
    /// The events of the schedule. Err: the situation was not reached.
    pub play: fn(&mut Stage) -> Play,
}

macro_rules! schedules {
    ($($name:ident,)*) => {
        $(mod $name;)*

        /// All schedules, by the names of their files.
        pub const ALL: &[(&str, &Directed)] = &[$((stringify!($name), &$name::SCHEDULE),)*];
    };
}

schedules! {
    figure_eight,
    late_acknowledgement,
    left_out_behind_in_log,
    left_out_writer,
    own_suffix,
    asked_twice,
    installed_late,
    best_log_leads,
    deferred_in_turns,
    old_leader_returns,
    lonely_leader,
    left_behind_leader,
    uncommitted_tail,
    two_halves,
    meet_after_long,
    takeover_without_view,
    far_founder,
    slow_founder,
    unable_successor,
    joins_beside_held_leader,
    outdated_view,
    two_pending_views,
    leaves_beside_silent,
    joiner_dies,
    promise_forgotten,
    behind_the_floor,
    action_behind_position,
    blackout_within_ddl,
    blackout_within_vote,
    blackout_before_vote,
    reconnected_before_vote,
    ddl_above_logs,
    ddl_done_elsewhere,
    dies_as_ddl_ends,
    dies_as_vote_ends,
    donor_dies,
    donor_never_met,
    seqno_refuted,
    abandoned_write,
    stopped_by_the_paused,
    slow_left_out,
    slow_of_two,
    amnesiac_voter,
    withdrawn_entry,
    withdrawn_before_reconnect,
    payload_dies_with_origin,
    pending_view_forgets,
    forced_view_of_half,
    ordered_twice,
    evicted_submission,
    fork_meets_rest,
    log_disk_replaced,
    old_log_put_back,
    old_notes_put_back,
    split_brain_ignored,
    ignored_quorum_meets_majority,
    bootstrapped_without_state,
    stale_read,
    read_of_dropped_suffix,
    read_beside_cut_link,
    arbitrator_has_the_rest,
    arbitrator_has_no_say,
    arbitrator_log_wraps,
    arbitrator_outlasts_power,
    arbitrator_alone_forgets,
    arbitrator_comes_late,
    arbitrator_votes_late,
    flush_under_way,
    flush_covers_its_own,
    full_disk,
    damaged_voter,
    joiner_writes,
    queue_of_fragments,
    abandoned_then_overwritten,
    unknown_overwrites,
    purged_success,
    donor_diverges,
    fork_below_tail,
    snapshot_of_old_branch,
    donor_goes_on_alone,
    origin_goes_on_alone,
    stream_ends_elsewhere,
    withdrawn_stream_commits,
    silent_peer_has_no_word,
    earlier_word,
    given_way_listed_again,
    half_does_not_promise,
    owner_may_not_go_on,
    leader_hears_other_branch,
    given_up_branch_returns,
    pending_override_meets_majority,
    override_on_slow_disk,
    override_beside_longer_log,
    override_of_unaware_log,
    heavier_forgets,
    minority_ignores_split_brain,
    late_snapshot,
    second_founder,
    founder_knows_its_log,
    founder_without_all,
    small_beside_large,
    parts_lost,
    log_behind_database,
    blackout_reforms,
    blackout_forgets,
    killed_before_notes,
    killed_in_bootstrap,
    killed_in_founding,
    founder_lost_views,
    unclear_database,
    log_of_older_term,
    learner_goes_on,
    left_with_the_best_log,
    two_lose_power,
    intact_before_override,
    memory_reforms,
    lost_views,
    majority_waits_for_evidence,
    blackout_in_pending_vote,
    replayed_stream,
    many_views_missed,
    vote_of_other_branch,
    state_ahead_of_log,
    state_of_other_branch,
    entries_of_other_branch,
    copied_directory,
    copy_beside_leader,
    overrides_meet,
    power_lost_in_override,
    full_disk_in_override,
    override_never_made,
    override_lost_before_restart,
    override_given_up,
    overrides_begun,
    override_begun_by_the_best,
    override_leads_nobody_else,
    override_survivor_meets_rest,
    override_returns_beside_rest,
    override_returns_beside_minority,
    forgotten_beside_ignored_quorum,
    repair_broken_off,
    wiped_in_pending_view,
    laggard_beyond_the_floor,
    slow_database_long_log,
    ist_outlasts_log,
    no_descriptors,
    cut_off_while_held,
    cut_off_stops_first,
    chosen_database_lost,
    commits_go_on,
    majority_shrinks,
    donor_cut_off,
    rollback_given_up,
    outvoted_connects_again,
    donor_owes_rollback,
    repeated_view_missed,
    donor_not_told_synced,
    device_fails,
    device_fails_unseen,
    device_fails_unmounted,
    killed_before_named,
    device_fails_markless,
    device_fails_again,
    dies_applying,
    flush_hangs,
    flush_fails_cached,
    full_disk_in_pending_view,
    notes_fail,
    promise_kept_late,
}

/// The schedule with this name. Err: there is none.
pub fn named(name: &str) -> Result<&'static Directed, String> {
    let found = ALL.iter().find(|(known, _)| *known == name);
    found.map(|(_, directed)| *directed).ok_or_else(|| {
        let names: Vec<_> = ALL.iter().map(|(name, _)| *name).collect();
        format!(
            "no directed schedule '{name}': there are {}",
            names.join(", ")
        )
    })
}

impl Directed {
    /// Plays the schedule. The second result is an error if the situation was not reached.
    pub fn run(&self, seed: u64, watch: Watch) -> (Outcome, Play) {
        let mut reached = Err(Missed("it broke off".to_owned()));
        let outcome = run::run_world((self.plan)(seed), watch, |world| {
            let mut stage = Stage::new(world);
            reached = (self.play)(&mut stage);
            stage.clear();
        });
        (outcome, reached)
    }
}

/// Plays all schedules with all seeds below this number; true if each situation was reached and nothing was violated.
/// The digests go to `digests`.
pub fn play_all(seeds: u64, digests: Option<&Digests>) -> bool {
    let mut clean = true;
    for (name, directed) in ALL {
        for seed in 0..seeds {
            let digest = digests.map(|_| Digest::default());
            let watch = Watch::new(invariants::all()).digesting(digest);
            let (outcome, reached) = directed.run(seed, watch);
            if let (Some(digests), Some(digest)) = (digests, &outcome.watch.digest) {
                digests.take(format!("{name} --seed {seed}"), digest);
            }
            if let Err(Missed(what)) = reached {
                clean = false;
                println!("{name} --seed {seed}: not reached: {what}");
            }
            if let Some(violation) = outcome.violation {
                clean = false;
                println!(
                    "{name} --seed {seed}: {}: {}",
                    violation.what, violation.text
                );
            }
        }
    }
    clean
}
