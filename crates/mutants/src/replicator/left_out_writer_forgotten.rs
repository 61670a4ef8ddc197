//! A member that was left out of flow control may not slow the writers down for its own clients.
//!
//! Under a load that it cannot follow it never catches up. Its clients' transactions begin further and further behind:
//! they wait for the whole queue, and then fail.

pub(crate) const MISTAKE: &str =
    "a member that the group has left out of flow control never paces the writers, though its own clients write";
