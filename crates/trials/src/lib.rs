//! Tests of whole clusters: the demo, crash schedules with their checks, and a long mixed load.

#![forbid(unsafe_code)]

pub mod crash;
pub mod demo;
pub mod soak;
