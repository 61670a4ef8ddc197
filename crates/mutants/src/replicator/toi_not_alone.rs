//! A total-order action starts before everything earlier is released (contract 2.16).
//!
//! DDL runs beside a transaction on the same table.

pub(crate) const MISTAKE: &str =
    "a total-order action starts before everything earlier is released (contract 2.16)";
