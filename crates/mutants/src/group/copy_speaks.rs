//! A process that has met the original of its copied data directory goes on to speak, and acknowledges entries.
//!
//! A leader that has lost its connection to the original takes the copy for it. With the copy's acknowledgements the
//! leader commits, while the original and the others elect another leader. Planted where the copy's messages are
//! dropped, and where its own acknowledgement is asked for.

pub(crate) const MISTAKE: &str =
    "a copied data directory that has met its original speaks and acknowledges entries (rule 14)";
