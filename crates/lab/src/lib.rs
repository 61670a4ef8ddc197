//! The benchmark lab: experiments that measure systems against each other on this machine, statistics, reports.
//!
//! [`frame`] runs an experiment of the field's literature cell by cell and reports on it; [`inserts`] and
//! [`tpcc`] are within it.
//! [`sysbench`] and [`latency`] are older and stand beside it.

#![forbid(unsafe_code)]

mod cpu;
pub mod frame;
pub mod inserts;
pub mod latency;
pub mod measurement;
pub mod stats;
pub mod sysbench;
pub mod tpcc;
