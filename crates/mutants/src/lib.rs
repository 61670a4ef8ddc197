//! Mistakes planted on purpose: a check that does not find them checks nothing.
//!
//! One line at the place of the mistake asks [`planted`]; without the feature `planted` that is
//! constantly false and leaves nothing in the program. A new mutant is one file here that tells what is
//! wrong and what comes of it, one line in the list below, and such a line in the code: or several, if
//! a second guard makes up for the first.

#![forbid(unsafe_code)]

macro_rules! mutants {
    ($($list:ident { $($file:ident: $name:ident,)* })*) => {
        $(mod $list { $(pub(crate) mod $file;)* })*

        /// A planted mistake.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)] // each has a file of its own
        pub enum Mutant {
            $($($name,)*)*
        }

        impl Mutant {
            /// All of them, with what is wrong in each.
            pub const ALL: &[(Mutant, &str)] = &[
                $($((Mutant::$name, $list::$file::MISTAKE),)*)*
            ];
        }
    };
}

mutants! {
    group {
        old_ballot_acks_count: OldBallotAcksCount,
        old_entries_commit_by_count: OldEntriesCommitByCount,
        half_is_a_majority: HalfIsAMajority,
        promise_not_persisted: PromiseNotPersisted,
        lower_ballot_followed: LowerBallotFollowed,
        suffix_acknowledged: SuffixAcknowledged,
        shorter_log_leads: ShorterLogLeads,
        amnesiac_counts_as_intact: AmnesiacCountsAsIntact,
        duplicate_ordered: DuplicateOrdered,
        outdated_view_elects: OutdatedViewElects,
        two_pending_views: TwoPendingViews,
        joiner_votes_at_once: JoinerVotesAtOnce,
        evicted_delivered: EvictedDelivered,
        withdrawn_kept: WithdrawnKept,
        takeover_makes_view: TakeoverMakesView,
        read_point_from_own_log: ReadPointFromOwnLog,
        overrides_ignored: OverridesIgnored,
        other_branch_elects: OtherBranchElects,
        minority_refuses: MinorityRefuses,
        payload_not_awaited: PayloadNotAwaited,
        uncommitted_delivered: UncommittedDelivered,
        office_restless: OfficeRestless,
        office_to_unable: OfficeToUnable,
        support_forgotten: SupportForgotten,
        founder_without_all: FounderWithoutAll,
        support_moves_freely: SupportMovesFreely,
        large_not_awaited: LargeNotAwaited,
        lost_part_not_asked_again: LostPartNotAskedAgain,
        twins_vote: TwinsVote,
        split_not_told: SplitNotTold,
        survivor_says_nothing: SurvivorSaysNothing,
        pending_view_unheeded: PendingViewUnheeded,
        voided_one_by_one: VoidedOneByOne,
        override_of_follower_ignored: OverrideOfFollowerIgnored,
        other_branch_refuses: OtherBranchRefuses,
        install_drops_acknowledged: InstallDropsAcknowledged,
        read_point_not_committed: ReadPointNotCommitted,
    }
    engine {
        outcome_of_failed_lost: OutcomeOfFailedLost,
        flush_not_awaited: FlushNotAwaited,
        delivered_before_written: DeliveredBeforeWritten,
        damage_not_forgotten: DamageNotForgotten,
        log_outranks_database: LogOutranksDatabase,
        damage_repaired_first: DamageRepairedFirst,
        pause_fills_all_logs: PauseFillsAllLogs,
        restart_reads_all: RestartReadsAll,
        left_is_overtaken: LeftIsOvertaken,
        hang_unseen: HangUnseen,
        unkept_promise_given: UnkeptPromiseGiven,
        mark_lags: MarkLags,
        mark_not_heeded: MarkNotHeeded,
        failure_not_noted: FailureNotNoted,
        failure_forgotten: FailureForgotten,
        mark_begun_first: MarkBegunFirst,
        deaths_not_counted: DeathsNotCounted,
        idle_deaths_count: IdleDeathsCount,
        deaths_elsewhere_count: DeathsElsewhereCount,
    }
    certification {
        same_origin_always_exempt: SameOriginAlwaysExempt,
        floor_not_heeded: FloorNotHeeded,
        purged_before_floor: PurgedBeforeFloor,
        update_keys_free: UpdateKeysFree,
        view_is_no_barrier: ViewIsNoBarrier,
        rollback_overtakes: RollbackOvertakes,
    }
    replicator {
        last_seen_too_high: LastSeenTooHigh,
        depends_on_not_heeded: DependsOnNotHeeded,
        abort_not_remembered: AbortNotRemembered,
        waiter_not_woken: WaiterNotWoken,
        older_victim_aborted: OlderVictimAborted,
        replay_too_early: ReplayTooEarly,
        unknown_is_failure: UnknownIsFailure,
        abandoned_not_applied: AbandonedNotApplied,
        epoch_not_raised: EpochNotRaised,
        victim_stays_exempt: VictimStaysExempt,
        ist_skips_one: IstSkipsOne,
        ist_repeats_failed: IstRepeatsFailed,
        joiner_writes: JoinerWrites,
        stop_never_lapses: StopNeverLapses,
        continue_lost: ContinueLost,
        last_synced_left_out: LastSyncedLeftOut,
        left_out_stops: LeftOutStops,
        reads_do_not_wait: ReadsDoNotWait,
        read_waits_for_nothing: ReadWaitsForNothing,
        toi_not_alone: ToiNotAlone,
        donor_state_moves: DonorStateMoves,
        forked_database_used: ForkedDatabaseUsed,
        old_branch_snapshot_taken: OldBranchSnapshotTaken,
        fork_noted_too_high: ForkNotedTooHigh,
        desync_never_lifted: DesyncNeverLifted,
        anothers_write_set_replayed: AnothersWriteSetReplayed,
        vote_loser_stays: VoteLoserStays,
        purged_success_forgotten: PurgedSuccessForgotten,
        executed_action_forgotten: ExecutedActionForgotten,
        begun_counts_as_ended: BegunCountsAsEnded,
        doubt_not_said: DoubtNotSaid,
        doubt_is_a_success: DoubtIsASuccess,
        done_is_an_error: DoneIsAnError,
        inconsistent_donates: InconsistentDonates,
        snapshot_skips_one: SnapshotSkipsOne,
        donor_loss_ignored: DonorLossIgnored,
        arbitrator_donates: ArbitratorDonates,
        arbitrator_votes: ArbitratorVotes,
        arbitrator_serves_nothing: ArbitratorServesNothing,
        arbitrator_log_wraps: ArbitratorLogWraps,
        arbitrator_votes_at_once: ArbitratorVotesAtOnce,
        fragment_overtakes: FragmentOvertakes,
        first_fragment_repeated: FirstFragmentRepeated,
        rollback_not_sent: RollbackNotSent,
        abandoned_fragment_applied: AbandonedFragmentApplied,
        joins_before_donated: JoinsBeforeDonated,
        repeated_view_hidden: RepeatedViewHidden,
        closed_stream_goes_on: ClosedStreamGoesOn,
        undecided_commit_fails: UndecidedCommitFails,
        missed_fragments_unprepared: MissedFragmentsUnprepared,
        replay_begins_in_later_view: ReplayBeginsInLaterView,
        forgotten_view_guessed: ForgottenViewGuessed,
        queue_keeps_all: QueueKeepsAll,
        another_read_back: AnotherReadBack,
        waiting_not_pinned: WaitingNotPinned,
        laggard_not_pinned: LaggardNotPinned,
        non_primary_overtakes_pause: NonPrimaryOvertakesPause,
        old_view_is_primary: OldViewIsPrimary,
        pause_after_donors_loss: PauseAfterDonorsLoss,
        open_votes_not_kept: OpenVotesNotKept,
        inconsistency_forgotten: InconsistencyForgotten,
        rollback_left_to_server: RollbackLeftToServer,
    }
}

#[cfg(feature = "planted")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Mutant>> = const { std::cell::Cell::new(None) };
}

/// Plants a mistake in everything that this thread runs, or none.
#[cfg(feature = "planted")]
pub fn set(mutant: Option<Mutant>) {
    PLANTED.set(mutant);
}

/// True if this mistake is to be made.
#[cfg(feature = "planted")]
#[inline]
pub fn planted(mutant: Mutant) -> bool {
    PLANTED.get() == Some(mutant)
}

/// True if this mistake is to be made: never.
#[cfg(not(feature = "planted"))]
#[inline]
pub const fn planted(_: Mutant) -> bool {
    false
}
