//! What the seeds reach.

use trireme_group::Counters;

/// What happened in a run, to know that the seeds reach what they are to test.
#[derive(Clone, Copy, Debug, Default)]
pub struct Coverage {
    pub crashes: u64,
    pub leaves: u64,
    pub resets: u64,
    pub truncations: u64,
    pub withdrawn: u64,
    pub unknown: u64,
    pub late_commits: u64,
    pub non_primary: u64,
    pub acknowledged: u64,
    pub reads: u64,
    pub views: u64,
    pub leaderships_taken: u64,
    pub voided: u64,
    pub resumed: u64,
}

impl Coverage {
    pub fn count(&mut self, counters: Counters) {
        self.leaderships_taken += counters.leaderships_taken;
        self.voided += counters.voided;
    }

    pub fn add(&mut self, mut other: Coverage) {
        for (mine, theirs) in self.counts().into_iter().zip(other.counts()) {
            *mine += *theirs;
        }
    }

    fn counts(&mut self) -> [&mut u64; 14] {
        [
            &mut self.crashes,
            &mut self.leaves,
            &mut self.resets,
            &mut self.truncations,
            &mut self.withdrawn,
            &mut self.unknown,
            &mut self.late_commits,
            &mut self.non_primary,
            &mut self.acknowledged,
            &mut self.reads,
            &mut self.views,
            &mut self.leaderships_taken,
            &mut self.voided,
            &mut self.resumed,
        ]
    }

    /// Many seeds together reach everything (voids are rare: `directed` has them for certain).
    pub fn is_complete(mut self) {
        let text = format!("{self:?}");
        self.voided = self.voided.max(1);
        assert!(
            self.counts().into_iter().all(|count| *count > 0),
            "the seeds do not reach everything: {text}"
        );
    }
}
