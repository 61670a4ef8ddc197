//! Measurements of systems against each other on this machine.

pub mod latency;
pub mod measurement;
pub mod stats;
pub mod sysbench;
pub mod system;
