//! A node alone on its disk: what its client is told, what is left, and how the node comes back.

mod checkpoints;
#[path = "../common/mod.rs"]
mod common;
mod failing;
mod flushing;
mod found;
mod node;
