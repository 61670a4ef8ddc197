//! What the `trireme` program has of its own: the arbitrator's process. Clusters are the business of `trireme-testbed`,
//! measurements of `trireme-lab`, and demo, crash schedules and soak of `trireme-trials`.

#![forbid(unsafe_code)]

pub mod arbitrator;
