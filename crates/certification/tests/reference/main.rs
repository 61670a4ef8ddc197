//! The crate against a naive reference, on random orders of write-sets, views, cuts, resets and restarts.

mod model;

use model::{Model, Parts, WriteSet};
use proptest::prelude::*;
use trireme_certification::{
    Certification, KeySet, KeySetBuilder, KeyType, Outcome, Request, Seqno, Verdict,
};

/// What happens next in the order. Seqnos are relative, so that a shrunk case stays well-formed.
#[derive(Clone, Debug)]
enum Event {
    /// `seqno` is filled in; `last_seen` is how far back from the write-set.
    WriteSet(WriteSet),
    View,
    Skip,
    /// This far back from the position; negative: a lie.
    Cut(Seqno),
    /// This far ahead.
    Reset(Seqno),
    /// Go on with what a joiner decodes.
    Reload,
}

/// Few names, so that they meet; all levels.
fn parts() -> impl Strategy<Value = Parts> {
    let level = prop_oneof![1 => Just(0usize), 2 => Just(1), 4 => Just(2), 12 => Just(3)];
    let name = || prop::sample::select(vec!["a", "b", "c"]);
    (level, name(), name(), name())
        .prop_map(|(level, db, table, row)| vec![db, table, row][..level].to_vec())
}

fn key_type() -> impl Strategy<Value = KeyType> {
    prop::sample::select(KeyType::ALL.to_vec())
}

fn write_set() -> impl Strategy<Value = WriteSet> {
    let flags = (
        prop::bool::weighted(0.06),
        prop::bool::weighted(0.06),
        prop::bool::weighted(0.04),
    );
    let back = prop_oneof![8 => 1..6i64, 1 => 0..40i64];
    let keys = prop::collection::vec((parts(), key_type()), 0..5);
    (back, 0..3u8, prop::bool::weighted(0.1), flags, keys).prop_map(
        |(back, origin, new_epoch, (isolation, pa_unsafe, rollback), mut keys)| {
            if isolation {
                keys.iter_mut().for_each(|(_, ty)| *ty = KeyType::Exclusive);
            }
            let epoch = u64::from(new_epoch);
            WriteSet {
                seqno: 0,
                last_seen: back,
                origin,
                epoch,
                isolation,
                pa_unsafe,
                rollback,
                keys,
            }
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        40 => write_set().prop_map(Event::WriteSet),
        1 => Just(Event::View),
        1 => Just(Event::Skip),
        2 => (-3..25i64).prop_map(Event::Cut),
        1 => (0..3i64).prop_map(Event::Reset),
        1 => Just(Event::Reload),
    ]
}

fn certify(node: &mut Certification, write_set: &WriteSet) -> Outcome {
    let mut builder = KeySetBuilder::new();
    for (parts, ty) in &write_set.keys {
        let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
        builder.append(&parts, *ty);
    }
    let mut bytes = Vec::new();
    builder.encode(&mut bytes);
    let (keys, _) = KeySet::parse(&bytes).expect("own encoding");
    node.certify(&Request {
        seqno: write_set.seqno,
        last_seen: write_set.last_seen,
        origin: [write_set.origin; 16],
        epoch: write_set.epoch,
        isolation: write_set.isolation,
        pa_unsafe: write_set.pa_unsafe,
        rollback: write_set.rollback,
        keys,
    })
}

fn encoded(node: &Certification) -> Vec<u8> {
    let mut bytes = Vec::new();
    node.encode(&mut bytes);
    bytes
}

/// Gives `event` to one node; for a write-set, what it says.
fn step(node: &mut Certification, event: &Event) -> Option<Outcome> {
    let next = node.position() + 1;
    match event {
        Event::WriteSet(write_set) => {
            let last_seen = next - write_set.last_seen;
            return Some(certify(
                node,
                &WriteSet {
                    seqno: next,
                    last_seen,
                    ..write_set.clone()
                },
            ));
        }
        Event::View => node.view(next),
        Event::Skip => node.skip(next),
        Event::Cut(back) => node.cut(node.position() - back),
        Event::Reset(ahead) => node.reset(node.position() + ahead),
        Event::Reload => *node = Certification::decode(&encoded(node)).expect("own snapshot"),
    }
    None
}

fn step_model(model: &mut Model, event: &Event) -> Option<(Verdict, Seqno)> {
    let next = model.position() + 1;
    match event {
        Event::WriteSet(write_set) => {
            let last_seen = next - write_set.last_seen;
            return Some(model.certify(&WriteSet {
                seqno: next,
                last_seen,
                ..write_set.clone()
            }));
        }
        Event::View => model.view(),
        Event::Skip => model.skip(),
        Event::Cut(back) => model.cut(model.position() - back),
        Event::Reset(ahead) => model.reset(model.position() + ahead),
        Event::Reload => {}
    }
    None
}

fn max_length() -> impl Strategy<Value = Seqno> {
    prop_oneof![1..10i64, Just(30), Just(16384)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Verdict, dependency, floor and size are those of the reference, whatever happens.
    #[test]
    fn agrees_with_the_reference(
        start in -1..3i64,
        max_length in max_length(),
        events in prop::collection::vec(event(), 1..120),
    ) {
        let mut node = Certification::new(start, max_length);
        let mut model = Model::new(start, max_length);
        for event in &events {
            let said = step(&mut node, event).map(|outcome| (outcome.verdict, outcome.depends_on));
            prop_assert_eq!(said, step_model(&mut model, event), "{:?}", event);
            prop_assert_eq!(node.position(), model.position());
            prop_assert_eq!(node.floor(), model.floor());
            prop_assert!(node.len() >= model.live_keys());
        }
        // With nothing new, the purge catches up.
        for _ in 0..events.len() {
            step(&mut node, &Event::Cut(Seqno::MAX / 2));
        }
        prop_assert_eq!(node.len(), model.live_keys());
    }

    /// A node that starts from another's snapshot, anywhere, is that node; whether or not it has purged as much.
    #[test]
    fn a_joiner_goes_on_as_its_donor(
        max_length in max_length(),
        before in prop::collection::vec(event(), 0..60),
        after in prop::collection::vec(event(), 0..60),
    ) {
        let mut donor = Certification::new(0, max_length);
        for event in &before {
            step(&mut donor, event);
        }
        let mut joiner = Certification::decode(&encoded(&donor)).expect("own snapshot");
        for event in &after {
            prop_assert_eq!(encoded(&donor), encoded(&joiner));
            prop_assert_eq!(donor.digest(), joiner.digest());
            if !matches!(event, Event::Reload) {
                prop_assert_eq!(step(&mut donor, event), step(&mut joiner, event));
            }
        }
        prop_assert_eq!(encoded(&donor), encoded(&joiner));
    }
}

/// The strategy above must reach what it is there for.
#[test]
fn the_strategy_reaches_every_verdict() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let (mut pass, mut conflict, mut too_old, mut too_wide, mut parallel) = (0, 0, 0, 0, 0);
    for _ in 0..50 {
        let tree = (max_length(), prop::collection::vec(event(), 100)).new_tree(&mut runner);
        let (max_length, events) = tree.expect("a case").current();
        let mut node = Certification::new(0, max_length);
        for event in &events {
            let Some(outcome) = step(&mut node, event) else {
                continue;
            };
            match outcome.verdict {
                Verdict::Pass => pass += 1,
                Verdict::Conflict { .. } => conflict += 1,
                Verdict::TooOld => too_old += 1,
                Verdict::TooWide => too_wide += 1,
            }
            parallel += u32::from(outcome.depends_on + 1 < node.position());
        }
    }
    let reached = [pass, conflict, too_old, too_wide, parallel];
    assert!(reached.iter().all(|&count| count > 100), "{reached:?}");
}
