//! The benchmark lab: experiments that measure systems against each other on this machine, statistics, reports.
//!
//! [`frame`] runs an experiment of the field's literature cell by cell and reports on it; [`inserts`],
//! [`nodes`], [`optimum`], [`sysbench`] and [`tpcc`] are within it.
//! [`client_processes`] is a load that experiments share, [`doe`] the design of experiments as pure code. [`latency`] is
//! older and stands beside it.

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
pub mod stats;
pub mod sysbench;
pub mod tpcc;
mod work_dir;
