//! Scenarios: a few replicators over a made-up total order, each with a made-up server.

mod commits;
mod driver;
mod joining;
mod life;
mod random;
mod server;
mod votes;
mod wire;
