//! Who takes in nothing any more behind the view that it leaves by keeps its control state as that of
//! where the group's log is by then: the next process lacks what was said in between, and its verdicts are no
//! longer the others' (seed 3005960).

pub(crate) const MISTAKE: &str =
    "who leaves keeps its control state as that of a later position of the log";
