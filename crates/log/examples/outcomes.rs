//! Prints "position seqno failed depends_on bytes" of every entry in a copy of a node's log files, to compare nodes.

use trireme_log::{Durability, Log, LogConfig, Outcome};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::args()
        .nth(1)
        .ok_or("usage: outcomes DIR (a copy: opening repairs a torn tail)")?;
    let dir = std::path::PathBuf::from(dir);
    let identity = Log::identity_in(&dir)?.ok_or("no log there")?;
    let (log, _) = Log::open(LogConfig::new(dir, u64::MAX, identity, Durability::Os))?;
    let Some(first) = log.first_position() else {
        return Ok(());
    };
    for item in log.read_run(first, u64::MAX)? {
        let outcome = item.outcome.unwrap_or(Outcome {
            seqno: -1,
            flags: 0,
            depends_on: -1,
        });
        let failed = outcome.flags & Outcome::FAILED != 0;
        println!(
            "{} {} {} {} {}",
            item.position,
            outcome.seqno,
            u8::from(failed),
            outcome.depends_on,
            item.payload.len()
        );
    }
    Ok(())
}
