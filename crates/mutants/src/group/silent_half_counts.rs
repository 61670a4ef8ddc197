//! Members that are connected and silent count as the half that `pc.ignore_sb` needs (rule 11).
//!
//! A node of a minority goes on alone, beside a majority that it does not hear.

pub(crate) const MISTAKE: &str = "silent members count as the half that pc.ignore_sb needs (rule 11)";
