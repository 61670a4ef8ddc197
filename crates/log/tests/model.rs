//! Random histories of calls, compared with a model in memory after each.

use std::collections::BTreeMap;

use proptest::prelude::*;
use trireme_log::{Durability, Log, LogConfig, MemoryDisk, Outcome};

#[derive(Clone, Debug)]
enum Op {
    /// So many entries of this size.
    Append(u8, usize),
    /// An outcome for the entry so many behind the last; seqno or none; flags.
    Outcome(u64, bool, u8),
    Snapshot(u64),
    Truncate(u64),
    Reset(u64),
    Pins(u64),
    WriteOut,
    Flush,
    State(u8),
    /// The process ends and starts again: what was not written out is gone.
    Reopen,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (1..8u8, prop_oneof![0..40usize, 0..400usize]).prop_map(|(n, size)| Op::Append(n, size)),
        1 => Just(Op::Append(1, 300_000)),
        8 => (0..6u64, any::<bool>(), 0..4u8).prop_map(|(back, seqno, flags)| Op::Outcome(back, seqno, flags)),
        2 => (0..6u64).prop_map(Op::Snapshot),
        2 => (0..12u64).prop_map(Op::Truncate),
        1 => (0..50u64).prop_map(Op::Reset),
        3 => (0..40u64).prop_map(Op::Pins),
        3 => Just(Op::WriteOut),
        2 => Just(Op::Flush),
        1 => any::<u8>().prop_map(Op::State),
        3 => Just(Op::Reopen),
    ]
}

#[derive(Clone, Default)]
struct Model {
    next: Option<u64>,
    /// Everything since the last reset; the log may have dropped a prefix of it.
    entries: BTreeMap<u64, Vec<u8>>,
    outcomes: BTreeMap<u64, Outcome>,
    snapshots: BTreeMap<u64, Vec<u8>>,
    pins: u64,
    seqno: i64,
}

fn check(log: &Log, model: &Model) {
    assert_eq!(log.next_position(), model.next);
    assert_eq!(
        log.last_position(),
        log.first_position()
            .and(model.entries.keys().last().copied())
    );
    let first = log.first_position().unwrap_or(u64::MAX);
    // Dropped is only what no pin holds, and never the newest size_bytes.
    if let Some(pinned) = model.entries.range(model.pins..).next() {
        assert!(
            first <= *pinned.0,
            "pinned {} but the log begins at {first}",
            pinned.0
        );
    }
    for (position, payload) in &model.entries {
        let held = *position >= first;
        assert_eq!(
            log.read(*position).unwrap().as_ref(),
            held.then_some(payload),
            "{position}"
        );
        let outcome = model.outcomes.get(position).copied().filter(|_| held);
        assert_eq!(log.outcome(*position), outcome);
        if let Some(outcome) = outcome.filter(|o| o.seqno >= 0) {
            assert_eq!(log.position_of_seqno(outcome.seqno), Some(*position));
        }
    }
    if let Some(next) = model.next {
        assert_eq!(log.read(next).unwrap(), None);
        if let Some((at, state)) = log.snapshot_at(next).unwrap() {
            assert_eq!(model.snapshots.last_key_value(), Some((&at, &state)));
        }
    }
    let seqnos = || {
        model
            .outcomes
            .range(first..)
            .map(|(_, o)| o.seqno)
            .filter(|s| *s >= 0)
    };
    assert_eq!(
        (log.first_seqno_kept(), log.last_seqno()),
        (seqnos().next(), seqnos().next_back())
    );
    let served = log.served_from();
    let mut seqnos = model
        .outcomes
        .range(served.max(first.min(served))..)
        .filter(|(_, o)| o.seqno >= 0);
    assert_eq!(log.first_seqno(), seqnos.next().map(|(_, o)| o.seqno));
    let run = log.read_run(first, 1000).unwrap();
    let mut bytes = 0;
    for (item, (position, payload)) in run.iter().zip(model.entries.range(first..)) {
        assert_eq!((item.position, &item.payload), (*position, payload));
        assert_eq!(item.outcome, log.outcome(*position));
        bytes += payload.len();
    }
    assert!(bytes <= 1000 || run.len() == 1);
}

fn run(ops: Vec<Op>, size_bytes: u64, segment_bytes: u64, durability: Durability) {
    let disk = MemoryDisk::new();
    let config = LogConfig {
        segment_bytes,
        ..LogConfig::new("".into(), size_bytes, [1; 16], durability)
    };
    let mut log = Log::create_on(Box::new(disk.clone()), config.clone()).unwrap();
    let mut model = Model::default();
    let mut state = None;
    for op in ops {
        match op {
            Op::Append(count, size) => {
                for _ in 0..count {
                    let position = model.next.unwrap_or(17);
                    let payload = vec![position as u8 ^ size as u8; size];
                    let (a, b) = payload.split_at(size / 3);
                    log.append(position, &[a, b]).unwrap();
                    model.entries.insert(position, payload);
                    model.next = Some(position + 1);
                }
            }
            Op::Outcome(back, with_seqno, flags) => {
                let Some(position) = model.entries.keys().rev().nth(back as usize).copied() else {
                    continue;
                };
                let known = model.outcomes.get(&position).map(|o| o.seqno);
                // A new seqno is the highest yet, so its position must be beyond all others with one.
                let newest = model.outcomes.range(position..).all(|(_, o)| o.seqno < 0);
                let held = log.first_position().is_some_and(|first| position >= first);
                let seqno = match known {
                    Some(seqno) => seqno,
                    None if with_seqno && newest && held => model.seqno + 1,
                    None => -1,
                };
                model.seqno = model.seqno.max(seqno);
                let outcome = Outcome {
                    seqno,
                    flags,
                    depends_on: seqno / 2,
                };
                log.set_outcome(position, outcome).unwrap();
                model.outcomes.insert(position, outcome);
            }
            Op::Snapshot(back) => {
                let Some(position) = model.entries.keys().rev().nth(back as usize).copied() else {
                    continue;
                };
                let bytes = vec![position as u8; 20];
                log.put_snapshot(position, &bytes).unwrap();
                model.snapshots.split_off(&position);
                model.snapshots.insert(position, bytes);
            }
            Op::Truncate(back) => {
                let Some(next) = model.next else { continue };
                let position = next.saturating_sub(1 + back);
                log.truncate_after(position).unwrap();
                if position + 1 < next {
                    model.entries.split_off(&(position + 1));
                    model.outcomes.split_off(&(position + 1));
                    model.snapshots.split_off(&(position + 1));
                    model.next = Some(position + 1);
                }
            }
            Op::Reset(ahead) => {
                let next = model.next.unwrap_or(17) + ahead;
                log.reset(next).unwrap();
                model = Model {
                    next: Some(next),
                    seqno: model.seqno,
                    pins: model.pins,
                    ..Model::default()
                };
            }
            Op::Pins(back) => {
                model.pins = model.next.unwrap_or(0).saturating_sub(back);
                log.set_pins(model.pins).unwrap();
            }
            Op::WriteOut => log.write_out().unwrap(),
            Op::Flush => log.flush().unwrap(),
            Op::State(byte) => {
                log.save_state(&[byte; 9]).unwrap();
                state = Some([byte; 9]);
            }
            Op::Reopen => {
                log.write_out().unwrap();
                let first = log.first_position();
                drop(log);
                let (reopened, recovered) =
                    Log::open_on(Box::new(disk.clone()), config.clone()).unwrap();
                log = reopened;
                assert_eq!((recovered.dropped_bytes, recovered.damage.len()), (0, 0));
                assert_eq!(log.first_position(), first);
                model.pins = 0;
            }
        }
        assert_eq!(log.state(), state.as_ref().map(|s| s.as_slice()));
        check(&log, &model);
        // What is gone for good cannot be pinned again.
        let first = log.first_position().unwrap_or(u64::MAX);
        model.entries = model.entries.split_off(&first);
        model.outcomes = model.outcomes.split_off(&first);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn the_log_behaves_like_its_model(
        ops in prop::collection::vec(op(), 1..60),
        size_bytes in prop_oneof![Just(1u64), 500..4000u64, Just(1 << 20)],
        segment_bytes in prop_oneof![Just(0u64), 300..2000u64],
        durability in prop_oneof![Just(Durability::Memory), Just(Durability::Os), Just(Durability::Disk)],
    ) {
        run(ops, size_bytes, segment_bytes, durability);
    }
}
