//! Members that are silent, or have not promised, count as the half that `pc.ignore_sb` needs (rule 11).
//!
//! A node of a minority goes on alone. The messages of the others are lost, or they belong to a majority.

pub(crate) const MISTAKE: &str =
    "pc.ignore_sb counts silent members, and those that have not promised (rule 11)";
