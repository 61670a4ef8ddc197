//! The thread that writes large payloads into the log's files while they come in. The next pieces are asked for as fast as
//! it writes, and it yields to all other threads as far as its work goes: on a busy machine a large write-set takes its time,
//! and small commits hardly wait for it (measured, three nodes on two processors).

use trireme_engine::StageJob;
use trireme_node::now_ms;

use crate::worker::Craft;

/// Its niceness, the highest: it gets a sixtieth of what a server's thread gets, where both want the processor.
const NICE: i32 = 19;

/// What the thread does.
pub const STAGER: Craft<StageJob> = Craft {
    name: "trireme-stage",
    prepare: yield_to_all,
    work: |node, job| {
        let done = job.run();
        node.with(|core| core.engine.staged(now_ms(), done))
    },
};

fn yield_to_all() {
    // SAFETY: no memory is involved; 0 is the calling thread. Where it fails the thread is like the others.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
}
