//! Scenarios: a few replicators over a made-up total order, each with a made-up server.

mod ambiguous;
mod arbitrators;
mod blackout;
mod calls;
mod commits;
mod connection;
mod donations;
mod doubt;
mod driver;
mod flow;
mod joining;
mod large;
mod life;
mod pacing;
mod pauses;
mod queues;
mod random;
mod server;
mod streaming;
mod transfer;
mod votes;
mod wire;
