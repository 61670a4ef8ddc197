//! One server on one engine, which bootstraps: no network.

mod behaviour;
mod solo;
