//! Mistakes planted on purpose: a check that does not find them checks nothing.
//!
//! One line at the place of the mistake asks [`planted`]; without the feature `planted` that is
//! constantly false and leaves nothing in the program. A new mutant is one line in the list below, and
//! one such line in the code.

macro_rules! mutants {
    ($($name:ident: $mistake:literal,)*) => {
        /// A planted mistake.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Mutant {
            $(#[doc = $mistake] $name,)*
        }

        impl Mutant {
            /// All of them, with what is wrong in each.
            pub const ALL: &[(Mutant, &str)] = &[$((Mutant::$name, $mistake),)*];
        }
    };
}

mutants! {
    // group
    OldBallotAcksCount: "acknowledgements of another ballot count (rule 1)",
    OldEntriesCommitByCount: "entries of an older ballot commit by count, without one of the sequencer's own (rule 1)",
    HalfIsAMajority: "half of the votes, rounded down, is a majority (rules 1, 3)",
    PromiseNotPersisted: "a promise leaves before it is on disk (rule 4)",
    LowerBallotFollowed: "a sequencer of a ballot below the promised one is followed (rule 1)",
    SuffixAcknowledged: "a member acknowledges its own suffix, of which the sequencer knows nothing (rule 1)",
    ShorterLogLeads: "a candidate leads although a promiser's log is better (rules 1, 3)",
    AmnesiacCountsAsIntact: "a restarted member's promise counts as if it had its log (rule 4)",
    DuplicateOrdered: "a submission is ordered again after a takeover (rule 9)",
    OutdatedViewElects: "promises of a majority of the last committed view are enough, whatever later views the log has (rule 3)",
    TwoPendingViews: "a view is proposed while another one is uncommitted (rule 3)",
    JoinerVotesAtOnce: "a joiner votes from its first view on (rule 3)",
    EvictedDelivered: "entries of an incarnation that is not in the view in force are delivered (rule 9)",
    WithdrawnKept: "a new sequencer keeps what its origin has withdrawn (rule 7)",
    TakeoverMakesView: "taking over the office makes a view (rule 2)",
    ReadPointFromOwnLog: "a reader takes its own log's end for the group's (rule 17)",
    OverridesIgnored: "a component takes back members of a fork without asking (rule 11)",

    // engine
    OutcomeOfFailedLost: "the log does not note that an entry failed certification (rule 16)",

    // certification
    SameOriginAlwaysExempt: "write-sets of one origin never conflict, whatever it has abandoned (rule 9)",
    FloorNotHeeded: "a write-set that has seen less than what was purged passes (rule 16)",
    PurgedBeforeFloor: "keys above the floor are purged (rule 16)",
    UpdateKeysFree: "two updates of a row do not conflict (certification)",
    ViewIsNoBarrier: "write-sets behind a view are applied before it (rule 16)",

    // replicator
    LastSeenTooHigh: "last_seen is what was ordered, not what is visible here (certification)",
    DependsOnNotHeeded: "appliers do not wait for what a write-set depends on (rule 16)",
    AbortNotRemembered: "a victim in certify is not told that it was aborted (lost wake-up)",
    WaiterNotWoken: "a victim that waits for commit order is marked, but not woken (lost wake-up)",
    OlderVictimAborted: "a transaction ordered before its aborter is aborted all the same (contract 2.11)",
    ReplayTooEarly: "a replay begins before all that were ordered earlier have committed (contract 2.10)",
    UnknownIsFailure: "an unknown outcome is reported as a definite failure (rule 7)",
    AbandonedNotApplied: "what its client has given up and is ordered after all is not applied at its origin (rule 7)",
    EpochNotRaised: "abandoning a write-set does not end its origin's exemption (rule 9)",
    VictimStaysExempt: "a victim that is to be replayed does not end its origin's exemption, although its locks are gone (rule 9)",
    IstSkipsOne: "a joiner skips the first entry that it misses (rule 6)",
    IstRepeatsFailed: "a joiner applies what failed certification (rules 6, 16)",
    JoinerWrites: "write-sets of a member that has not joined count (rule 9)",
    StopNeverLapses: "a flow-control stop holds until it is withdrawn (rule 15)",
    ReadsDoNotWait: "a current read is answered when its point is known, not when it is applied (rule 17)",
    ToiNotAlone: "a total-order action starts before everything earlier is released (contract 2.16)",
    DonorStateMoves: "commits go on at a donor while it takes its snapshot (rule 19)",
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
