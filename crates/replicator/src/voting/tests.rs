use super::*;
use crate::Options;

const ERROR: Bytes = Bytes::from_static(b"a, Error_code: 1062;");

fn disputed(standpoint: Standpoint) -> (Voting, Vec<VotingOutput>) {
    let context = Context::new(Options::default());
    let mut voting = Voting::default();
    let outputs = voting.dispute(&context, (5, &ERROR), Caller::Commit(1), standpoint);
    (voting, outputs)
}

fn outvoted() -> VotingOutput {
    VotingOutput::Outvoted {
        seqno: 5,
        text: "a, Error_code: 1062;".to_owned(),
        caller: Caller::Commit(1),
    }
}

#[test]
fn a_voter_waits_for_the_decision() {
    let (mut voting, outputs) = disputed(Standpoint::Voter);
    assert_eq!(outputs, [VotingOutput::MarkUnsafe]);
    assert!(voting.is_disputing());
    assert_eq!(voting.decided(6, 0), None);
    let agreed = VotingOutput::Agreed {
        seqno: 5,
        caller: Caller::Commit(1),
    };
    let settled = voting.decided(5, ballot(5, &ERROR));
    assert_eq!(settled, Some(vec![agreed, VotingOutput::MarkSafe]));
    let (mut voting, _) = disputed(Standpoint::Voter);
    let lost = Some(vec![outvoted(), VotingOutput::MarkSafe]);
    assert_eq!(voting.decided(5, 0), lost);
    let (mut voting, _) = disputed(Standpoint::Voter);
    assert_eq!(voting.abandon_next(), lost);
    assert_eq!(voting.abandon_next(), None);
}

#[test]
fn a_node_that_catches_up_has_lost_and_the_first_to_know_goes_on_until_the_vote() {
    let (_, outputs) = disputed(Standpoint::Behind);
    assert_eq!(outputs, [outvoted()]);
    let (mut voting, outputs) = disputed(Standpoint::FirstToKnow);
    assert!(matches!(
        outputs[..],
        [VotingOutput::MarkUnsafe, VotingOutput::Agreed { .. }]
    ));
    let diverged = VotingOutput::Diverged {
        seqno: 5,
        text: "a, Error_code: 1062;".to_owned(),
    };
    let ended = voting.decided(5, 0);
    assert_eq!(ended, Some(vec![diverged, VotingOutput::MarkSafe]));
    let (mut voting, _) = disputed(Standpoint::FirstToKnow);
    voting.snapshot_taken(9);
    assert_eq!(voting.decided(5, 0), None);
}
