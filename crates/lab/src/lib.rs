//! The benchmark lab: experiments that measure systems against each other on this machine, statistics, reports.
//!
//! [`frame`] runs an experiment cell by cell and reports on it. The experiments are [`inserts`], [`latency`],
//! [`nodes`], [`optimum`], [`provider`], [`sysbench`] and [`tpcc`]. [`client_processes`] is a load that experiments
//! share, and [`doe`] is the design of experiments as pure code.

#![forbid(unsafe_code)]

pub mod client_processes;
mod cpu;
pub mod doe;
pub mod frame;
pub mod inserts;
pub mod latency;
pub mod nodes;
pub mod oltp;
pub mod optimum;
pub mod provider;
pub mod stats;
pub mod sysbench;
pub mod tpcc;
mod work_dir;
