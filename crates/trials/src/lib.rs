//! Clusters on trial: the demo, crash schedules with their checks, and long mixed load.

#![forbid(unsafe_code)]

pub mod crash;
pub mod demo;
pub mod soak;
