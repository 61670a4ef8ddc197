//! The durability that a cluster is given.

use std::fmt;

/// `repl.durability`: how strongly a member holds an entry when it acknowledges it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Durability {
    /// Nothing is kept when a process dies.
    Memory,
    /// Survives the process.
    Os,
    /// Survives a power loss.
    Disk,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory",
            Self::Os => "os",
            Self::Disk => "disk",
        })
    }
}
