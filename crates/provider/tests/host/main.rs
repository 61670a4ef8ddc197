//! What is checked is the contract between server and provider (docs/server-contract.md), with the host of
//! tests/common.

mod arbitrator;
mod cluster;
#[path = "../common/mod.rs"]
mod common;
mod errors;
mod left_out;
mod options;
mod secret;
mod single;
mod told;

use common::{AtEnd, call, server, transaction};
