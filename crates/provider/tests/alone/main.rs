//! Tests that measure the whole process: its memory, descriptors and time are theirs alone. They have a binary of their
//! own, since other tests start servers in their process, too.

#[path = "../common/mod.rs"]
mod common;
mod costs;
mod flags;
mod flood;
mod stranger;

use common::{AtEnd, server, transaction};

/// One such test at a time.
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
