//! The control state as bytes: for joiners and for the log (format: `docs/wire-replicator.md`).

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use trireme_certification::Certification;
use trireme_group::OVERRIDES_MAX;
use xxhash_rust::xxh3::xxh3_64;

use crate::control::Control;
use crate::forks::{Fork, Forks};
use crate::member_state::{MemberState, NodeState};
use crate::member_states::{FAILED_MAX, MemberStates};
use crate::message::MessageError;
use crate::seqno_runs::SeqnoRuns;
use crate::wire::{Reader, put_configuration, put_count};

/// Version 1 lacked the joiners whose SST has failed.
const CONTROL_VERSION: u8 = 2;

/// Returns the overrides and choices in an encoded control state, in their order; None: it cannot be read.
pub fn forks_of(control: Bytes) -> Option<Vec<Fork>> {
    let control = Control::decode(control).ok()?;
    Some(control.forks.all().to_vec())
}

impl Control {
    /// Returns the state as bytes: version, digest of the rest, state. Equal states give equal bytes.
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = vec![CONTROL_VERSION];
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&self.history.0);
        out.extend_from_slice(&self.position.to_le_bytes());
        put_configuration(&mut out, self.members.configuration());
        put_count(&mut out, self.members.states().len());
        for (incarnation, member_state) in self.members.states() {
            out.extend_from_slice(&incarnation.0.0);
            out.push(member_state.state as u8);
            out.extend_from_slice(&member_state.desyncs.to_le_bytes());
            out.push(u8::from(member_state.donates_to.is_some()));
            out.extend_from_slice(&member_state.donates_to.unwrap_or_default().0.0);
            out.extend_from_slice(&member_state.applied.to_le_bytes());
            out.push(u8::from(member_state.counts));
            out.push(u8::from(member_state.left_out));
            out.push(u8::from(member_state.doubt.is_some()));
            out.extend_from_slice(&member_state.doubt.unwrap_or_default().to_le_bytes());
            out.push(u8::from(member_state.trusted));
        }
        put_count(&mut out, self.forks.all().len());
        for (id, seqno) in self.forks.all() {
            out.extend_from_slice(&id.0);
            out.extend_from_slice(&seqno.to_le_bytes());
        }
        put_count(&mut out, self.runs.first.len());
        for (position, seqno) in &self.runs.first {
            out.extend_from_slice(&position.to_le_bytes());
            out.extend_from_slice(&seqno.to_le_bytes());
        }
        put_count(&mut out, self.views.len());
        for (seqno, configuration) in self.views.iter() {
            out.extend_from_slice(&seqno.to_le_bytes());
            put_configuration(&mut out, configuration);
        }
        put_count(&mut out, self.members.failed().len());
        for joiner in self.members.failed() {
            out.extend_from_slice(&joiner.0.0);
        }
        self.votes.encode(&mut out);
        self.certification.encode(&mut out);
        let digest = xxh3_64(&out[9..]);
        out[1..9].copy_from_slice(&digest.to_le_bytes());
        Bytes::from(out)
    }

    /// Reads a state that was encoded.
    pub(crate) fn decode(bytes: Bytes) -> Result<Control, MessageError> {
        let mut reader = Reader::new(bytes.clone());
        let version = reader.u8()?;
        if !(1..=CONTROL_VERSION).contains(&version) {
            return Err(MessageError::Version(version, CONTROL_VERSION));
        }
        if reader.u64()? != xxh3_64(&bytes[9..]) {
            return Err(MessageError::Digest);
        }
        let (history, position) = (reader.uuid()?, reader.u64()?);
        let configuration = reader.configuration()?;
        let mut states = BTreeMap::new();
        for _ in 0..reader.count(58)? {
            states.insert(reader.incarnation()?, member_state(&mut reader)?);
        }
        let mut forks = Vec::new();
        let count = reader.count(24)?;
        if count > OVERRIDES_MAX {
            return Err(MessageError::Value("number of overrides", count as u64));
        }
        for _ in 0..count {
            forks.push((reader.uuid()?, reader.seqno()?));
        }
        let mut runs = SeqnoRuns::default();
        for _ in 0..reader.count(16)? {
            runs.first.push_back((reader.u64()?, reader.seqno()?));
        }
        let mut views = Vec::new();
        for _ in 0..reader.count(21)? {
            views.push((reader.seqno()?, reader.configuration()?));
        }
        let mut failed = VecDeque::new();
        let count = if version > 1 { reader.count(16)? } else { 0 };
        if count > FAILED_MAX {
            return Err(MessageError::Value("number of joiners", count as u64));
        }
        for _ in 0..count {
            failed.push_back(reader.incarnation()?);
        }
        let votes = crate::votes::Votes::decode(&mut reader)?;
        let certification = Certification::decode(&reader.rest())?;
        let control = Control {
            history,
            position,
            certification,
            members: MemberStates::decoded(configuration, states, failed),
            forks: Forks::from(forks),
            runs,
            views: views.into_iter().collect(),
            votes,
        };
        control.check()?;
        Ok(control)
    }

    /// Checks that the parts of a state fit together: later code relies on that.
    fn check(&self) -> Result<(), MessageError> {
        let seqno = self.seqno();
        if let Some((position, _)) = self.runs.misplaced(self.position, seqno) {
            return Err(MessageError::Value("run of seqnos at", position));
        }
        match self.views.misplaced(seqno) {
            Some(view) => Err(MessageError::Value("view at seqno", view as u64)),
            None => Ok(()),
        }
    }
}

fn member_state(reader: &mut Reader) -> Result<MemberState, MessageError> {
    let state = match reader.u8()? {
        0 => NodeState::Joiner,
        1 => NodeState::Donor,
        2 => NodeState::Joined,
        3 => NodeState::Synced,
        other => return Err(MessageError::Value("member state", u64::from(other))),
    };
    let desyncs = reader.u32()?;
    let (has_joiner, joiner) = (reader.bool()?, reader.incarnation()?);
    let (applied, counts, left_out) = (reader.seqno()?, reader.bool()?, reader.bool()?);
    let (is_in_doubt, doubt, trusted) = (reader.bool()?, reader.seqno()?, reader.bool()?);
    Ok(MemberState {
        state,
        desyncs,
        donates_to: has_joiner.then_some(joiner),
        applied,
        counts,
        left_out,
        doubt: is_in_doubt.then_some(doubt),
        trusted,
    })
}
