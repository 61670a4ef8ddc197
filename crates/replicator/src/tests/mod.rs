//! Scenarios: a few replicators over a made-up total order, each with a made-up server.

#[cfg(test)]
mod ambiguous;
#[cfg(test)]
mod arbitrators;
#[cfg(test)]
mod blackout;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod catching_up;
mod clients;
#[cfg(test)]
mod commits;
#[cfg(test)]
mod connection;
#[cfg(test)]
mod donations;
mod driver;
#[cfg(test)]
mod flow;
#[cfg(test)]
mod fragments;
#[cfg(test)]
mod in_doubt;
#[cfg(test)]
mod ist_parts;
#[cfg(test)]
mod ist_script;
#[cfg(test)]
mod ist_sources;
#[cfg(test)]
mod joining;
#[cfg(test)]
mod joining_forks;
#[cfg(test)]
mod large;
#[cfg(test)]
mod late_votes;
pub mod liar;
#[cfg(test)]
mod life;
#[cfg(test)]
mod losses;
#[cfg(test)]
mod pauses;
#[cfg(test)]
mod queues;
#[cfg(test)]
mod random;
mod records;
#[cfg(test)]
mod retaining;
mod server;
mod steps;
#[cfg(test)]
mod streaming;
#[cfg(test)]
mod streaming_unknown;
#[cfg(test)]
mod streaming_views;
#[cfg(test)]
mod transfer;
#[cfg(test)]
mod victims;
#[cfg(test)]
mod votes;
#[cfg(test)]
mod wire;

#[cfg(test)]
pub(crate) use driver::incarnation;
