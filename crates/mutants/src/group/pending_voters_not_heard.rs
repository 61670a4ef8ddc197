//! Where all voters must be heard, a candidate does not wait for the voters of a pending view (rules 3, 4).
//!
//! A and B have proposed a view with D in it. D, with a majority of that view, may have acknowledged entries that are
//! in no other log.

pub(crate) const MISTAKE: &str =
    "where all voters are to be heard, those of a pending view are not waited for (rules 3, 4)";
