use super::*;
use crate::event::Fate;
use crate::fixture::{Fixture, member};

const PRIMARY: Place = Place {
    is_primary: true,
    is_leader: false,
};

fn sent(outputs: &Outputs) -> Vec<&Message> {
    let mut messages = Vec::new();
    for output in outputs {
        if let DisseminationOutput::Send(_, message) = output {
            messages.push(message);
        }
    }
    messages
}

fn fates(outputs: &Outputs) -> Vec<(u64, Fate)> {
    let fate = |output: &DisseminationOutput| match output {
        DisseminationOutput::Act(Action::Failed { id, fate }) => Some((id.number, *fate)),
        _ => None,
    };
    outputs.iter().filter_map(fate).collect()
}

#[test]
fn a_submission_goes_to_all_and_again_to_the_leader_alone() {
    let fixture = Fixture::of(3);
    let known = fixture.known();
    let mut dissemination = Dissemination::default();
    let payload = Bytes::from_static(b"a");
    let outputs = dissemination.submit(known, PRIMARY, 1, payload.clone());
    let message = Message::Submit {
        number: 1,
        payload: Some(payload),
    };
    assert_eq!(sent(&outputs), [&message]);
    let second = member(2).incarnation;
    let again = dissemination.resend(known, Some(second), 0);
    assert!(
        matches!(&again[..], [DisseminationOutput::Send(to, m)] if to[..] == [second] && *m == message)
    );
    assert!(dissemination.resend(known, None, 0).is_empty());
}

#[test]
fn without_a_majority_a_client_hears_what_is_certain_and_a_new_term_is_promised() {
    // Of two, nothing is committed without this one.
    for (members, fate) in [(2, Fate::Withdrawn), (3, Fate::Unknown)] {
        let fixture = Fixture::of(members);
        let known = fixture.known();
        let mut dissemination = Dissemination::default();
        dissemination.submit(known, PRIMARY, 1, Bytes::from_static(b"a"));
        let outputs = dissemination.withdraw(known, &Incoming::default());
        assert_eq!(fates(&outputs), [(1, fate)]);
        let promises = matches!(outputs.last(), Some(DisseminationOutput::PromiseAnew));
        assert_eq!(promises, fate == Fate::Withdrawn);
    }
}

#[test]
fn a_process_that_is_not_primary_submits_nothing() {
    let fixture = Fixture::of(3);
    let place = Place {
        is_primary: false,
        ..PRIMARY
    };
    let mut dissemination = Dissemination::default();
    let outputs = dissemination.submit(fixture.known(), place, 1, Bytes::new());
    assert_eq!(fates(&outputs), [(1, Fate::Withdrawn)]);
    assert!(sent(&outputs).is_empty());
}
