//! A node with TLS accepts peers without TLS.
//!
//! An attacker on the way can read and change their frames and the answers.

pub(crate) const MISTAKE: &str = "a node with TLS takes peers without";
