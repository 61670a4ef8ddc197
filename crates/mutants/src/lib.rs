//! Mistakes that tests plant on purpose: a check that does not find its mistake checks nothing.
//!
//! A line in the code, at the place of the mistake, asks [`planted`]. Without the feature `planted` this is
//! constantly false and leaves nothing in the program. A new mutant needs one file here with the mistake and its
//! consequence, one line in the list below, and such a line in the code; several lines, if a second guard makes up
//! for the first.

#![forbid(unsafe_code)]

/// The check that finds a mistake outside of the simulator: `cargo test -p PACKAGE --test TARGET NAME`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// The crate.
    pub package: &'static str,
    /// The integration test of the crate.
    pub target: &'static str,
    /// The name of a test in it; empty: one of all its tests.
    pub name: &'static str,
}

macro_rules! mutants {
    (
        $($list:ident { $($file:ident: $name:ident,)* })*
        ; // Outside of the simulator.
        $($outer:ident {
            $($outer_file:ident: $outer_name:ident in $package:literal $target:literal $test:literal,)*
        })*
    ) => {
        $(mod $list { $(pub(crate) mod $file;)* })*
        $(mod $outer { $(pub(crate) mod $outer_file;)* })*

        /// A planted mistake.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)] // each has a file of its own
        pub enum Mutant {
            $($($name,)*)*
            $($($outer_name,)*)*
        }

        impl Mutant {
            /// The mistakes in the code that the simulator runs, each with its description.
            pub const ALL: &[(Mutant, &str)] = &[
                $($((Mutant::$name, $list::$file::MISTAKE),)*)*
            ];

            /// The mistakes in other code, each with its description and the check that finds it.
            pub const OUTSIDE: &[(Mutant, &str, Check)] = &[
                $($((
                    Mutant::$outer_name,
                    $outer::$outer_file::MISTAKE,
                    Check { package: $package, target: $target, name: $test },
                ),)*)*
            ];
        }
    };
}

mutants! {
    group {
        old_term_acks_count: OldTermAcksCount,
        old_entries_commit_by_count: OldEntriesCommitByCount,
        half_is_a_majority: HalfIsAMajority,
        promise_not_persisted: PromiseNotPersisted,
        old_promise_not_written: OldPromiseNotWritten,
        lower_term_followed: LowerTermFollowed,
        lonely_leader_obeyed: LonelyLeaderObeyed,
        suffix_acknowledged: SuffixAcknowledged,
        shorter_log_leads: ShorterLogLeads,
        amnesiac_counts_as_intact: AmnesiacCountsAsIntact,
        old_log_end_makes_intact: OldLogEndMakesIntact,
        majority_counts_as_all: MajorityCountsAsAll,
        database_not_heeded: DatabaseNotHeeded,
        deferral_outlives_attempt: DeferralOutlivesAttempt,
        pending_voters_not_heard: PendingVotersNotHeard,
        learner_not_heard: LearnerNotHeard,
        unclear_database_ignored: UnclearDatabaseIgnored,
        unmade_view_counts: UnmadeViewCounts,
        unmade_view_kept: UnmadeViewKept,
        term_starts_before_override: TermStartsBeforeOverride,
        outsiders_follow_forced_view: OutsidersFollowForcedView,
        reforms_as_elected: ReformsAsElected,
        minority_reforms: MinorityReforms,
        leavers_log_preferred: LeaversLogPreferred,
        pending_view_always_required: PendingViewAlwaysRequired,
        pending_view_elects_nobody: PendingViewElectsNobody,
        forced_view_needs_others: ForcedViewNeedsOthers,
        arbitrator_needs_database: ArbitratorNeedsDatabase,
        met_elector_not_asked: MetElectorNotAsked,
        lost_views_vouch: LostViewsVouch,
        tail_counts_as_known: TailCountsAsKnown,
        duplicate_ordered: DuplicateOrdered,
        outdated_view_elects: OutdatedViewElects,
        two_pending_views: TwoPendingViews,
        silent_member_counts: SilentMemberCounts,
        joiner_votes_at_once: JoinerVotesAtOnce,
        evicted_delivered: EvictedDelivered,
        withdrawn_kept: WithdrawnKept,
        other_branch_forgotten: OtherBranchForgotten,
        silent_peer_outvotes: SilentPeerOutvotes,
        followers_word_ignored: FollowersWordIgnored,
        unpromised_half_counts: UnpromisedHalfCounts,
        learners_seat_counts: LearnersSeatCounts,
        given_up_branch_revived: GivenUpBranchRevived,
        pending_override_leads: PendingOverrideLeads,
        own_delay_is_silence: OwnDelayIsSilence,
        forced_view_on_own_log: ForcedViewOnOwnLog,
        fork_point_from_own_log: ForkPointFromOwnLog,
        earlier_word_counts: EarlierWordCounts,
        tries_alone_for_ever: TriesAloneForEver,
        other_branch_heard: OtherBranchHeard,
        takeover_makes_view: TakeoverMakesView,
        read_point_from_own_log: ReadPointFromOwnLog,
        overrides_ignored: OverridesIgnored,
        other_branch_elects: OtherBranchElects,
        minority_refuses: MinorityRefuses,
        removed_at_once: RemovedAtOnce,
        silence_from_tick: SilenceFromTick,
        payload_not_awaited: PayloadNotAwaited,
        uncommitted_delivered: UncommittedDelivered,
        leadership_restless: LeadershipRestless,
        leadership_to_unable: LeadershipToUnable,
        held_leader_stays: HeldLeaderStays,
        support_forgotten: SupportForgotten,
        founder_without_all: FounderWithoutAll,
        support_moves_freely: SupportMovesFreely,
        large_not_awaited: LargeNotAwaited,
        lost_part_not_asked_again: LostPartNotAskedAgain,
        duplicates_vote: DuplicatesVote,
        copy_speaks: CopySpeaks,
        split_not_told: SplitNotTold,
        survivor_says_nothing: SurvivorSaysNothing,
        wait_in_vain_untold: WaitInVainUntold,
        pending_view_unheeded: PendingViewUnheeded,
        voided_one_by_one: VoidedOneByOne,
        override_of_follower_ignored: OverrideOfFollowerIgnored,
        given_up_override_counts: GivenUpOverrideCounts,
        other_branch_refuses: OtherBranchRefuses,
        majority_yields_to_ignored_quorum: MajorityYieldsToIgnoredQuorum,
        install_drops_acknowledged: InstallDropsAcknowledged,
        withdrawal_doubted: WithdrawalDoubted,
        install_goes_back: InstallGoesBack,
        read_point_not_committed: ReadPointNotCommitted,
        read_waits_for_all: ReadWaitsForAll,
        ahead_ordered: AheadOrdered,
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
        cache_counts_as_disk: CacheCountsAsDisk,
        note_ahead_of_log: NoteAheadOfLog,
        lost_override_note_kept: LostOverrideNoteKept,
        old_log_removed_first: OldLogRemovedFirst,
        founders_action_forgotten: FoundersActionForgotten,
        staged_head_kept: StagedHeadKept,
        mark_lags: MarkLags,
        mark_not_heeded: MarkNotHeeded,
        failure_not_noted: FailureNotNoted,
        failure_forgotten: FailureForgotten,
        mark_begun_first: MarkBegunFirst,
        mark_removed_unread: MarkRemovedUnread,
        unnamed_log_marked: UnnamedLogMarked,
        deaths_not_counted: DeathsNotCounted,
        idle_deaths_count: IdleDeathsCount,
        deaths_elsewhere_count: DeathsElsewhereCount,
        withdrawals_forgotten: WithdrawalsForgotten,
        lost_notes_trusted: LostNotesTrusted,
        old_notes_trusted: OldNotesTrusted,
        log_id_kept: LogIdKept,
        founder_stays_amnesiac: FounderStaysAmnesiac,
    }
    log {
        pinned_purged: PinnedPurged,
        names_not_flushed: NamesNotFlushed,
        flush_covers_later: FlushCoversLater,
        purge_awaits_flush: PurgeAwaitsFlush,
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
        left_out_writer_forgotten: LeftOutWriterForgotten,
        reads_do_not_wait: ReadsDoNotWait,
        read_waits_for_nothing: ReadWaitsForNothing,
        toi_not_alone: ToiNotAlone,
        donor_state_moves: DonorStateMoves,
        forked_database_used: ForkedDatabaseUsed,
        ordered_override_forks: OrderedOverrideForks,
        old_branch_snapshot_taken: OldBranchSnapshotTaken,
        donors_report_not_awaited: DonorsReportNotAwaited,
        fork_noted_too_high: ForkNotedTooHigh,
        desync_never_lifted: DesyncNeverLifted,
        anothers_write_set_replayed: AnothersWriteSetReplayed,
        vote_loser_stays: VoteLoserStays,
        purged_success_forgotten: PurgedSuccessForgotten,
        executed_action_forgotten: ExecutedActionForgotten,
        begun_counts_as_ended: BegunCountsAsEnded,
        end_noted_first: EndNotedFirst,
        end_noted_in_vote: EndNotedInVote,
        presumption_forgotten: PresumptionForgotten,
        doubt_not_said: DoubtNotSaid,
        doubt_is_a_success: DoubtIsASuccess,
        choice_not_noted: ChoiceNotNoted,
        choice_missed: ChoiceMissed,
        inconsistent_donates: InconsistentDonates,
        snapshot_skips_one: SnapshotSkipsOne,
        other_branchs_entries_taken: OtherBranchsEntriesTaken,
        other_branchs_state_taken: OtherBranchsStateTaken,
        state_ahead_of_log: StateAheadOfLog,
        donor_loss_ignored: DonorLossIgnored,
        donor_not_awaited: DonorNotAwaited,
        arbitrator_donates: ArbitratorDonates,
        arbitrator_votes: ArbitratorVotes,
        arbitrator_serves_nothing: ArbitratorServesNothing,
        arbitrator_log_wraps: ArbitratorLogWraps,
        arbitrator_drops_unflushed: ArbitratorDropsUnflushed,
        arbitrator_votes_at_once: ArbitratorVotesAtOnce,
        arbitrator_votes_unflushed: ArbitratorVotesUnflushed,
        fragment_overtakes: FragmentOvertakes,
        first_fragment_repeated: FirstFragmentRepeated,
        rollback_not_sent: RollbackNotSent,
        abandoned_fragment_applied: AbandonedFragmentApplied,
        repeated_view_hidden: RepeatedViewHidden,
        script_before_probe: ScriptBeforeProbe,
        view_of_tables_believed: ViewOfTablesBelieved,
        closed_stream_goes_on: ClosedStreamGoesOn,
        undecided_commit_fails: UndecidedCommitFails,
        given_up_commit_skipped: GivenUpCommitSkipped,
        overtaken_behind_fork_fails: OvertakenBehindForkFails,
        missed_fragments_unprepared: MissedFragmentsUnprepared,
        replay_begins_in_later_view: ReplayBeginsInLaterView,
        forgotten_view_guessed: ForgottenViewGuessed,
        queue_keeps_all: QueueKeepsAll,
        another_read_back: AnotherReadBack,
        waiting_not_pinned: WaitingNotPinned,
        laggard_not_pinned: LaggardNotPinned,
        begun_transfer_not_pinned: BegunTransferNotPinned,
        non_primary_overtakes_pause: NonPrimaryOvertakesPause,
        old_view_is_primary: OldViewIsPrimary,
        pause_after_donors_loss: PauseAfterDonorsLoss,
        open_votes_not_kept: OpenVotesNotKept,
        applied_dependence_dropped: AppliedDependenceDropped,
        inconsistency_forgotten: InconsistencyForgotten,
        rollback_left_to_server: RollbackLeftToServer,
    }
    ; // Outside of the simulator: each with the check that finds it.
    transport {
        allowlist_ignored: AllowlistIgnored in "trireme-transport" "strangers" "the_allowlist_decides_and_both_sides_say_so",
        silent_callers_kept: SilentCallersKept in "trireme-transport" "strangers" "silent_callers_are_bounded",
        last_words_lost: LastWordsLost in "trireme-transport" "meshing" "closing_sends_what_is_queued",
        gap_not_told: GapNotTold in "trireme-transport" "meshing" "a_full_queue_overflows_once_and_drains",
        second_link_taken: SecondLinkTaken in "trireme-transport" "strangers" "a_second_connection_is_refused_while_the_first_stands",
        links_unbounded: LinksUnbounded in "trireme-transport" "strangers" "a_node_takes_so_many_peers_and_no_more",
        strangers_frames_long: StrangersFramesLong in "trireme-transport" "members" "a_stranger_sends_short_frames_only",
        newcomers_not_told: NewcomersNotTold in "trireme-transport" "strangers" "members_are_told_of_each_other",
        plain_taken_under_tls: PlainTakenUnderTls in "trireme-transport" "tls" "plaintext_and_tls_tell_each_other_apart",
        verdict_not_awaited: VerdictNotAwaited in "trireme-transport" "tls" "a_stranger_with_a_certificate_is_named_on_both_sides",
        handshakes_unbounded: HandshakesUnbounded in "trireme-transport" "tls" "silent_and_half_open_callers_lock_nobody_out",
        proof_not_examined: ProofNotExamined in "trireme-transport" "identity" "a_recorded_hello_is_worth_nothing",
        key_speaks_for_anybody: KeySpeaksForAnybody in "trireme-transport" "identity" "a_certificate_does_not_make_anybody_another_replica",
        link_taken_by_another: LinkTakenByAnother in "trireme-transport" "identity" "a_link_is_replaced_by_the_same_key_only",
        all_encrypted_at_once: AllEncryptedAtOnce in "trireme-transport" "tls" "large_and_small_frames_arrive_in_order",
        accept_spins: AcceptSpins in "trireme-transport" "descriptors" "a_node_without_a_free_descriptor_keeps_its_peers_and_takes_others_later",
    }
    handover {
        answer_at_the_end_lost: AnswerAtTheEndLost in "trireme-handover" "schedules" "an_answer_meets_the_end_of_timeout",
        last_applier_leaves: LastApplierLeaves in "trireme-handover" "schedules" "the_last_applier_stays",
    }
    node {
        peers_fill_the_log: PeersFillTheLog in "trireme-node" "flood" "a_peer_that_keeps_on_is_a_few_warnings",
        dropped_peer_heard: DroppedPeerHeard in "trireme-node" "flood" "a_batch_of_nonsense_is_one_warning",
        nonsense_tolerated: NonsenseTolerated in "trireme-node" "flood" "a_peer_that_keeps_on_is_a_few_warnings",
    }
    provider {
        too_large_replicated: TooLargeReplicated in "trireme-provider" "host" "a_write_set_that_is_too_large_is_not_certified",
        keys_are_shared: KeysAreShared in "trireme-provider" "host" "of_two_conflicting_transactions_the_later_one_fails",
        failed_connect_stays: FailedConnectStays in "trireme-provider" "host" "a_failed_connect_can_be_followed_by_another",
    }
    arbitrator {
        arbitrator_waits_for_ever: ArbitratorWaitsForEver in "trireme-provider" "host" "an_arbitrator_without_a_cluster_gives_up",
        arbitrator_without_weight: ArbitratorWithoutWeight in "trireme-provider" "host" "a_node_that_loses_the_other_goes_on_with_the_arbitrator",
    }
}

#[cfg(feature = "planted")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Mutant>> = const { std::cell::Cell::new(None) };
}

/// Plants a mistake on this thread; None: no mistake.
#[cfg(feature = "planted")]
pub fn set(mutant: Option<Mutant>) {
    PLANTED.set(mutant);
}

/// The mistake that `TRIREME_MUTANT` names, planted in the whole process.
#[cfg(feature = "planted")]
static OF_PROCESS: std::sync::LazyLock<Option<Mutant>> = std::sync::LazyLock::new(|| {
    let name = std::env::var("TRIREME_MUTANT").ok()?;
    let all = Mutant::ALL.iter().map(|(mutant, _)| *mutant);
    let mut all = all.chain(Mutant::OUTSIDE.iter().map(|(mutant, ..)| *mutant));
    let found = all.find(|mutant| format!("{mutant:?}") == name);
    Some(found.expect("TRIREME_MUTANT names a mutant"))
});

/// True if this mistake is planted.
#[cfg(feature = "planted")]
#[inline]
pub fn planted(mutant: Mutant) -> bool {
    PLANTED.get() == Some(mutant) || *OF_PROCESS == Some(mutant)
}

/// True if this mistake is planted: never, without the feature.
#[cfg(not(feature = "planted"))]
#[inline]
pub const fn planted(_: Mutant) -> bool {
    false
}
