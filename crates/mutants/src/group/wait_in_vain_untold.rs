//! A survivor that hears every member, and none that is primary, does not say why it waits (rule 18).
//!
//! Too many members may have forgotten what they acknowledged, and only an operator can decide. Nobody asks for one.

pub(crate) const MISTAKE: &str = "a survivor that waits in vain for an election does not say so (rule 18)";
