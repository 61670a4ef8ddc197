//! The functions of the wsrep API. Each turns its C arguments into a call of the node and the
//! answer back; `docs` of their meaning: wsrep_api.h and DESIGN.md.

mod life;
mod loader;
mod toi;
mod transfer;
mod writes;

pub use writes::certify;
