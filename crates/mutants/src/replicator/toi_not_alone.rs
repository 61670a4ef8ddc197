//! A total-order action starts before all earlier seqnos are released (server-contract.md#to_execute_start).
//!
//! DDL runs beside a transaction on the same table.

pub(crate) const MISTAKE: &str =
    "a total-order action starts before everything earlier is released";
