//! The functions of the wsrep API. Each turns its C arguments into a call of the node and the
//! answer back. Their meaning is in docs/server-contract.md.

mod life;
mod loader;
mod toi;
mod transfer;
mod writes;

pub use writes::certify;
