//! Trireme: simulator.
