//! After the script of an IST the server is not shown the view of its database.
//!
//! Its tables may know of the view after that already: it takes it for a repeated one, and undoes all streaming transactions.

pub(crate) const MISTAKE: &str = "after the script of an IST the view in the server's tables is believed";
