//! A node keeps the payloads of its whole apply queue in memory, without a limit.
//!
//! A node that does not apply for long (it joins, is paused, or left out of flow control) runs out of memory.

pub(crate) const MISTAKE: &str = "what waits to be applied takes memory without a bound";
