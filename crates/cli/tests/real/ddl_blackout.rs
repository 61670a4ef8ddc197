//! Everybody dies at once in the middle of DDL, and is started again with the ordinary configuration (rule 13).
//! The waits before the kills follow from a seed, which each run prints; `TRIREME_SEED` repeats them.

use std::fs;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use trireme_testbed::{Sql, StartMode};

use super::trial::{JOIN, SOON, Trial, await_true, pause};

/// What the log says of a node that goes on with its database though nobody's is beyond doubt.
const RESOLVED: &str = "goes on with the database of this node";

/// An ALTER that copies d.big takes at least so long on every node, and the kill comes less than [`WAIT_MS`] after its begin.
const COPY: Duration = Duration::from_secs(1);
const WAIT_MS: u64 = 400;

/// Rows that d.big grows by; it has at least two such portions.
const PORTION: usize = 100_000;

#[test]
fn a_cluster_that_was_killed_whole_within_ddl_comes_back_by_itself() {
    let Some(mut trial) = Trial::start(3, "") else {
        return;
    };
    if !trial.is_trireme() {
        return; // Galera's users bootstrap by hand
    }
    let mut random = Random::seeded();
    table_to_copy(&mut trial);
    let copied = |n| format!("ALTER TABLE d.big ADD COLUMN c{n} INT DEFAULT {n}, ALGORITHM=COPY");
    let statements = [
        copied(0),
        "ALTER TABLE d.big ADD INDEX made (v), ALGORITHM=COPY".to_owned(),
        copied(2),
        "ALTER TABLE d.big ADD UNIQUE INDEX twice (v, id), ALGORITHM=COPY".to_owned(),
        copied(4),
        "ALTER TABLE d.big DROP COLUMN c0, ALGORITHM=COPY".to_owned(),
    ];
    let mut resolved = 0;
    for (round, statement) in statements.iter().enumerate() {
        let origin = round % 3;
        trial.await_size(origin, 3, SOON);
        trial.exec(origin, "INSERT INTO d.t SELECT COUNT(*), 0 FROM d.t");
        let acknowledged = begin(&trial, origin, statement.clone());
        // On all of them the action has begun, and has not ended.
        let within = await_true(SOON / 3, || (0..3).all(|i| is_unsafe(&trial, i)));
        let wait = Duration::from_millis(random.below(WAIT_MS));
        pause(wait);
        for victim in [2, 0, 1] {
            trial.kill(victim);
        }
        let acknowledged = acknowledged.join().expect("the client does not panic");
        let logs_before: Vec<usize> = (0..3).map(|i| trial.node(i).log_text().len()).collect();
        eprintln!(
            "  {statement}: killed after {wait:?}, begun everywhere: {within}, acknowledged: {acknowledged}"
        );

        let mode = [StartMode::Join, StartMode::JoinUnprepared][round % 2];
        let started = Instant::now();
        // In half of the rounds the last one comes when the others have a view, which lists its dead process.
        let later = Duration::from_millis(1_500) * (round / 3) as u32;
        for i in 0..3 {
            pause(if i == 2 { later } else { Duration::ZERO });
            if let Err(error) = trial.spawn_node(i, mode) {
                panic!("{} does not start: {error}", trial.name(i));
            }
        }
        for i in 0..3 {
            trial.await_size(i, 3, JOIN);
        }
        let logs = (0..3).map(|i| trial.node(i).log_text()[logs_before[i]..].contains(RESOLVED));
        let here = logs.filter(|resolved| *resolved).count();
        assert!(here <= 1, "{here} nodes went on with their own database");
        resolved += here;
        eprintln!(
            "  back after {:?}, {here} went on with its own database",
            started.elapsed()
        );
        let shown = |i| trial.value(i, SCHEMA);
        let there = shown(0);
        assert!((1..3).all(|i| shown(i) == there), "schemas differ");
        trial.exec(1, "INSERT INTO d.t SELECT COUNT(*), 0 FROM d.t");
        trial.assert_equal();
    }
    assert!(resolved > 0, "no round came upon what it is there for");
    // Ordered before all died, it was executed by those who were left.
    let columns = trial.value(0, SCHEMA);
    for column in ["c2", "c4", "twice", "made"] {
        assert!(columns.contains(column), "{column} is missing: {columns}");
    }
    assert!(!columns.contains("c0"), "c0 is still there: {columns}");
}

/// Makes d.big on all nodes. It has more rows on a faster machine.
fn table_to_copy(trial: &mut Trial) {
    trial.exec(0, "CREATE TABLE d.big (id INT PRIMARY KEY, v INT NOT NULL)");
    for portion in 0.. {
        let (first, last) = (portion * PORTION + 1, (portion + 1) * PORTION);
        let more = format!("INSERT INTO d.big SELECT seq, seq FROM d.seq_{first}_to_{last}");
        trial.exec(0, &more);
        let began = Instant::now();
        trial.exec(0, "ALTER TABLE d.big FORCE, ALGORITHM=COPY");
        if portion > 0 && began.elapsed() > COPY {
            eprintln!("  {last} rows");
            break;
        }
    }
    trial.assert_equal();
}

/// All columns and indexes.
const SCHEMA: &str = "SELECT GROUP_CONCAT(text ORDER BY text SEPARATOR ' ') FROM (SELECT CONCAT(table_name, '.', \
    column_name) AS text FROM information_schema.columns WHERE table_schema = 'd' UNION SELECT CONCAT(table_name, '#', \
    index_name, column_name) FROM information_schema.statistics WHERE table_schema = 'd') AS texts";

/// Runs it in a thread: whether it was acknowledged.
fn begin(trial: &Trial, i: usize, statement: String) -> thread::JoinHandle<bool> {
    let socket = trial.node(i).socket();
    thread::spawn(move || {
        let connected = Sql::connect_socket(&socket, Duration::from_secs(60));
        connected.and_then(|mut sql| sql.exec(&statement)).is_ok()
    })
}

/// grastate.dat says that something goes on that a crash would leave half-done.
pub fn is_unsafe(trial: &Trial, i: usize) -> bool {
    let file = trial.node(i).datadir().join("grastate.dat");
    let text = fs::read_to_string(file).unwrap_or_default();
    text.contains("00000000-0000-0000-0000-000000000000")
}

/// Random numbers that follow from a seed (SplitMix64).
struct Random(u64);

impl Random {
    /// The seed is that of `TRIREME_SEED`, or else the time.
    fn seeded() -> Self {
        let seed = match std::env::var("TRIREME_SEED") {
            Ok(text) => text.parse().expect("TRIREME_SEED is a number"),
            Err(_) => {
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
                u64::from(now.expect("it is past 1970").subsec_micros())
            }
        };
        eprintln!("  TRIREME_SEED={seed}");
        Self(seed)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}
