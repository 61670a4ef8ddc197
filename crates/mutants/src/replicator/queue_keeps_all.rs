//! A node keeps the payload of everything that waits to be applied in memory, however much that is.
//!
//! One that does not apply for long (it joins, is paused, or left out of flow control) runs out of memory.

pub(crate) const MISTAKE: &str = "what waits to be applied takes memory without a bound";
