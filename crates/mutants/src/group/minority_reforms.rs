//! With pc.wait_evidence a minority reforms the cluster from its logs (rule 4).
//!
//! The majority goes on as well.

pub(crate) const MISTAKE: &str =
    "with pc.wait_evidence a minority goes on (rule 4)";
