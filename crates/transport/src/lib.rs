//! The TCP mesh of Trireme: opaque frames between processes.
//!
//! This crate finds peers, shakes hands with them, keeps exactly one connection per pair of processes, reconnects, and
//! bounds the bytes that wait for each peer. It does not know the meaning of a frame and decides nothing about order or
//! membership. A broken connection ([`MeshEvent::PeerDown`]) is not a death (rule 10 of the protocol rules).
//!
//! # Threads
//! [`Mesh`] lives inside the node's core, under the core's lock. [`Poller`] belongs to one reactor
//! thread, which waits without the lock:
//!
//! ```no_run
//! # use std::sync::Mutex;
//! # use std::time::{Duration, Instant};
//! # use trireme_transport::*;
//! # fn reactor(core: &Mutex<Mesh>, mut poller: Poller) -> std::io::Result<()> {
//! # let start = Instant::now();
//! let (mut ready, mut events) = (Ready::default(), Vec::new());
//! loop {
//!     let now_ms = start.elapsed().as_millis() as u64;
//!     let deadline_ms = core.lock().unwrap().next_deadline_ms();
//!     let timeout = deadline_ms.map(|d| Duration::from_millis(d.saturating_sub(now_ms)));
//!     poller.wait(timeout, &mut ready)?; // accepts, too
//!     let now_ms = start.elapsed().as_millis() as u64;
//!     let mut mesh = core.lock().unwrap();
//!     mesh.handle_ready(&mut ready, now_ms, &mut events);
//!     mesh.tick(now_ms, &mut events);
//!     for event in events.drain(..) { /* the core handles it, and calls mesh.send() */ }
//!     mesh.flush();
//! }
//! # }
//! ```
//!
//! Any other thread that holds the lock may [`Mesh::send`] and [`Mesh::flush`]: a write is tried at once, and the
//! reactor writes the rest later. The mesh starts threads when it needs them: for host names one for each look-up, the
//! handshaker, for TLS, and one that asks the allowlist. When the mesh is dropped, the handshaker is joined. The
//! others may hang in a call of the system or of the server: they are left behind.
//!
//! The bytes on the wire are described in `docs/wire-transport.md`.

#![forbid(unsafe_code)]

mod address;
mod allowlist;
mod book;
mod codec;
mod config;
mod connection;
mod connections;
mod error;
mod event;
mod frame;
#[cfg(test)]
mod golden;
mod handshake;
mod handshaker;
mod heed;
mod identities;
mod members;
mod mesh;
mod poller;
mod queue;
mod rejections;
mod reports;
mod resolver;
mod security;
mod socket;
mod stream;
#[cfg(feature = "testing")]
pub mod testing;
mod threads;

pub use address::HostPort;
pub use config::{AllowAddress, Identity, MeshConfig};
pub use error::TransportError;
pub use event::{DownReason, MeshEvent, PeerId, PeerInfo, RejectReason, SendOutcome};
pub use frame::{Frame, FrameDecoder, FrameError, FrameKind, HEADER_BYTES, PREAMBLE};
pub use handshake::{Gossip, Hello, Refusal, RefusalCode};
pub use mesh::Mesh;
pub use poller::{Poller, Ready, Waker};
pub use security::Security;
pub use trireme_tls::{IdentityKey, Proof, PublicKey};
