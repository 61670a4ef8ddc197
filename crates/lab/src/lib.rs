//! The benchmark lab: experiments that measure systems against each other on this machine, statistics, reports.

#![forbid(unsafe_code)]

pub mod latency;
pub mod measurement;
pub mod stats;
pub mod sysbench;
