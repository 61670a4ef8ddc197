//! Scenarios of a few cores, and messages that they are handed out of turn.

mod admission;
mod between_branches;
mod branches;
mod cores;
mod duplicates;
mod evidence;
mod feeding;
mod forced_wait;
mod founding;
mod full_list;
mod gap;
mod installs;
mod kills;
mod large;
mod leadership;
mod left;
mod reads;
mod reconnecting;
mod restarts;
mod staging;
mod strangers;
mod transfer;
mod unmade_views;
mod useless_logs;
mod withdrawn;
mod yielding;
