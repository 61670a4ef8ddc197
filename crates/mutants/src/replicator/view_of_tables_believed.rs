//! After the script of an IST, the server does not see the view of its database.
//!
//! Its tables may already know of the view after that. Then the server treats that view as repeated and undoes all
//! streaming transactions.

pub(crate) const MISTAKE: &str = "after the script of an IST the view in the server's tables is believed";
