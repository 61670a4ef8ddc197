use super::*;
use crate::ids::Uuid;

const ORIGIN: Incarnation = Incarnation(Uuid([1; 16]));

#[test]
fn memory_for_what_is_not_ordered_is_bounded_and_the_first_is_kept() {
    const MOST_BYTES: usize = 400;
    let mut submissions = Submissions::default();
    let quarter = Some(Bytes::from(vec![0; 100]));
    let come = |submissions: &mut Submissions, number, payload: &Option<Bytes>| {
        submissions.keep_within(MOST_BYTES, ORIGIN, number, payload.clone());
        assert!(submissions.bytes_of(ORIGIN) <= MOST_BYTES);
        let kept = submissions.pending[&ORIGIN].payloads.keys();
        kept.copied().collect::<Vec<u64>>()
    };
    for number in 6..=9 {
        come(&mut submissions, number, &quarter);
    }
    assert_eq!(come(&mut submissions, 10, &quarter), [6, 7, 8, 9]);
    assert_eq!(come(&mut submissions, 5, &quarter), [5, 6, 7, 8]);
    // A peer cannot get past the bound by counting downwards.
    assert_eq!(come(&mut submissions, 4, &quarter), [4, 5, 6, 7]);
    assert!(submissions.take_next(ORIGIN, 3).is_some());
    assert_eq!(come(&mut submissions, 8, &quarter), [5, 6, 7, 8]);
    assert!(come(&mut submissions, 10, &None).is_empty());
}

#[test]
fn what_was_withdrawn_stays_void_until_a_log_has_it() {
    let mut submissions = Submissions::default();
    let payload = || Some(Bytes::from_static(b"x"));
    let id = |number| SubmissionId {
        incarnation: ORIGIN,
        number,
    };
    for number in [3, 2] {
        submissions.keep(ORIGIN, number, None);
    }
    for number in 2..=4 {
        submissions.keep(ORIGIN, number, payload());
    }
    // An order record may refer to one that was withdrawn.
    let here = submissions.payload(Incarnation::default(), id(3));
    assert_eq!(here, payload().as_ref());
    submissions.ordered(id(2));
    assert_eq!(submissions.take_next(ORIGIN, 1), Some((3, None)));
    assert_eq!(submissions.take_next(ORIGIN, 3), Some((4, payload())));
    submissions.keep(ORIGIN, 5, None);
    submissions.ordered(id(5));
    assert_eq!(submissions.take_next(ORIGIN, 4), None);
}

#[test]
fn of_what_was_withdrawn_only_the_last_is_sent_again() {
    let mut submissions = Submissions::default();
    for number in 1..=3 {
        submissions.submit(number, Some(Bytes::from_static(b"x")), None, None, 5);
    }
    assert_eq!(
        submissions.withdraw(None, true, 1),
        [(1, false), (2, true), (3, true)]
    );
    submissions.submit(4, Some(Bytes::from_static(b"x")), None, None, 5);
    let resent = submissions.resend(0, 0, 6).into_iter();
    let resent: Vec<_> = resent.map(|r| (r.number, r.payload.is_some())).collect();
    assert_eq!(resent, [(3, false), (4, true)]);
    let certain = submissions.certain_withdrawals(ORIGIN).into_iter();
    assert_eq!(certain.map(|id| id.number).collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn what_was_sent_on_another_branch_fails_without_certainty() {
    let mut submissions = Submissions::default();
    let forced = Some(Uuid([7; 16]));
    for (number, branch) in [(1, None), (2, forced)] {
        submissions.submit(number, Some(Bytes::from_static(b"x")), None, branch, 5);
    }
    let withdrawn = submissions.withdraw(forced, true, 0);
    assert_eq!(withdrawn, [(1, false), (2, true)]);
}

#[test]
fn what_a_checkpoint_covers_fails_and_a_void_uses_up_the_rest() {
    let mut submissions = Submissions::default();
    for number in 1..=3 {
        submissions.submit(number, Some(Bytes::from_static(b"x")), None, None, 5);
    }
    assert_eq!(submissions.cover(1, 6), [1, 2, 3]);
    let resent = submissions.resend(1, 0, 6);
    assert_eq!(resent.len(), 1);
    assert_eq!((resent[0].number, &resent[0].payload), (3, &None));
}

#[test]
fn a_first_payload_beyond_the_bound_is_kept_alone() {
    let mut submissions = Submissions::default();
    submissions.keep_within(400, ORIGIN, 2, Some(Bytes::from(vec![0; 100])));
    submissions.keep_within(400, ORIGIN, 1, Some(Bytes::from(vec![0; 500])));
    assert_eq!(submissions.bytes_of(ORIGIN), 500);
}

#[test]
fn the_newest_withdrawals_are_told_and_no_more_than_fit() {
    let mut submissions = Submissions::default();
    let last = MAX_LIST as u64 + 10;
    for number in 1..=last {
        let void = Own {
            payload: None,
            bulk: None,
            sent_at: 0,
            branch: None,
            certain: false,
        };
        submissions.own.insert(number, void);
    }
    let withdrawn = submissions.withdrawn(ORIGIN);
    assert_eq!(withdrawn.len(), MAX_LIST);
    assert_eq!(withdrawn.first().map(|id| id.number), Some(11));
    assert_eq!(withdrawn.last().map(|id| id.number), Some(last));
}
