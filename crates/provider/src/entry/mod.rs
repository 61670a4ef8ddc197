//! The functions of the wsrep API. Each turns its C arguments into a call of the node, and the answer into a C result.
//! Their meaning is in docs/server-contract.md.

mod life;
mod loader;
mod toi;
mod transfer;
mod writes;

pub use writes::certify;
