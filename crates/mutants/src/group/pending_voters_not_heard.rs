//! Where all voters are to be heard, those of a view that was being proposed are not waited for (rules 3, 4).
//!
//! A and B have proposed a view with D in it, and D, with a majority of it, may have acknowledged what is in no other log.

pub(crate) const MISTAKE: &str =
    "where all voters are to be heard, those of a pending view are not waited for (rules 3, 4)";
