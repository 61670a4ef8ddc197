//! A caller that names the same process replaces a link, with any key.
//!
//! Any admitted process can cut off a member and get the frames meant for that member.

pub(crate) const MISTAKE: &str = "a link is replaced by whoever names the same process, with any key";
