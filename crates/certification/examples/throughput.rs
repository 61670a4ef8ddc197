//! Measures the certification time per write-set: `cargo run --release -p trireme-certification --example throughput`.

use std::time::Instant;
use trireme_certification::{
    Certification, DEFAULT_MAX_LENGTH, KeySet, KeySetBuilder, KeyType, Request, Verdict,
};

const WRITE_SETS: usize = 200_000;
const ROWS: u64 = 1_000_000;
/// The lag of the origins behind the order, in seqnos.
const UNSEEN: i64 = 10;

fn main() {
    for (rows_per_write_set, cut_lag) in
        [(1, 200), (10, 200), (10, DEFAULT_MAX_LENGTH), (1000, 200)]
    {
        run(rows_per_write_set, cut_lag);
    }
}

fn run(rows_per_write_set: u64, cut_lag: i64) {
    let write_sets = WRITE_SETS.min(2_000_000 / rows_per_write_set as usize);
    let mut random = 1u64;
    let mut key_sets = Vec::new();
    for _ in 0..write_sets {
        let mut builder = KeySetBuilder::new();
        for _ in 0..rows_per_write_set {
            random = random
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let row = ((random >> 33) % ROWS).to_be_bytes();
            builder.append(&[b"sbtest", b"sbtest1", &row], KeyType::Update);
        }
        let mut bytes = Vec::new();
        builder.encode(&mut bytes);
        key_sets.push(bytes);
    }

    let mut node = Certification::new(0, DEFAULT_MAX_LENGTH);
    let (mut passed, mut most_keys) = (0, 0);
    let start = Instant::now();
    for (bytes, seqno) in key_sets.iter().zip(1i64..) {
        let (keys, _) = KeySet::parse(bytes).expect("own encoding");
        let outcome = node.certify(&Request {
            seqno,
            last_seen: (seqno - UNSEEN).max(node.floor()),
            origin: [(seqno % 3) as u8; 16],
            epoch: 0,
            isolation: false,
            pa_unsafe: false,
            rollback: false,
            keys,
        });
        passed += u32::from(outcome.verdict == Verdict::Pass);
        if seqno % 100 == 0 {
            node.cut(seqno - cut_lag);
            most_keys = most_keys.max(node.len());
        }
    }
    let ns = start.elapsed().as_nanos() / write_sets as u128;
    println!(
        "{rows_per_write_set} rows, cut {cut_lag} behind: {ns} ns per write-set ({passed} of {write_sets} passed, at most {most_keys} keys in memory)"
    );
}
