//! The library of the `trireme` program: the arbitrator's process. Clusters are in `trireme-testbed`, measurements in
//! `trireme-lab`, and demo, crash schedules and soak in `trireme-trials`.

#![forbid(unsafe_code)]

pub mod arbitrator;
