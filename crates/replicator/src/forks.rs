//! The points at which databases of one history may part: operators' overrides, and choices of one database. Control
//! state and database each have a list of them.
//!
//! An override drops entries, so logs and databases fork there (rule 11). A choice drops none: the cluster goes on with
//! one in-doubt database, which executes its DDL again (rule 13). So only databases part there. On the wire and on the
//! disk only the ids tell the two apart.

use trireme_certification::Seqno;
use trireme_group::{Incarnation, OVERRIDES_MAX, Position, Uuid};

/// The end of the id, if the point is the choice of a database.
const CHOICE: [u8; 4] = *b"ddl1";
/// With so many points, no further choice is noted: the rest of the places is for overrides.
const CHOICES_UP_TO: usize = OVERRIDES_MAX / 2;

/// The id of an override or of a choice, with the last seqno at which all databases are alike.
pub type Fork = (Uuid, Seqno);

/// The points so far, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Forks(Vec<Fork>);

/// Returns true if this is the id of a choice, and not of an operator's override.
pub(crate) fn is_choice(id: &Uuid) -> bool {
    id.0.ends_with(&CHOICE)
}

impl From<Vec<Fork>> for Forks {
    fn from(points: Vec<Fork>) -> Forks {
        let mut forks = Forks(points);
        forks.make_room(0);
        forks
    }
}

impl Forks {
    /// Notes an operator's override, unless it is known.
    pub(crate) fn add_override(&mut self, id: Uuid, fork: Seqno) {
        if !self.has(&id) {
            self.make_room(1);
            self.0.push((id, fork));
        }
    }

    /// Notes that the entry at `position` chose the in-doubt database of this process, which is at `seqno`.
    pub(crate) fn choose(&mut self, position: Position, process: Incarnation, seqno: Seqno) {
        if self.0.len() >= CHOICES_UP_TO {
            return;
        }
        // One process may be chosen at several positions, and on two branches different ones at the same position.
        let mut id = process.0;
        id.0[..8].copy_from_slice(&position.to_le_bytes());
        id.0[12..].copy_from_slice(&CHOICE);
        self.0.push((id, seqno));
    }

    /// Every node must be able to note all points: the oldest choices make room for `overrides` more.
    fn make_room(&mut self, overrides: usize) {
        while self.0.len() + overrides > OVERRIDES_MAX {
            let Some(oldest) = self.0.iter().position(|(id, _)| is_choice(id)) else {
                return;
            };
            self.0.remove(oldest);
        }
    }

    pub(crate) fn has(&self, id: &Uuid) -> bool {
        self.seqno_of(id).is_some()
    }

    /// Returns the last seqno at which all databases are alike, if this override or choice is known.
    pub(crate) fn seqno_of(&self, id: &Uuid) -> Option<Seqno> {
        let point = self.0.iter().find(|(known, _)| known == id);
        point.map(|(_, seqno)| *seqno)
    }

    pub(crate) fn all(&self) -> &[Fork] {
        &self.0
    }

    /// Returns the operators' overrides.
    pub(crate) fn overrides(&self) -> impl Iterator<Item = Fork> {
        self.0.iter().copied().filter(|(id, _)| !is_choice(id))
    }

    /// Returns true if these are all overrides that are known here.
    pub(crate) fn are_overrides(&self, ids: &[Uuid]) -> bool {
        self.overrides().count() == ids.len() && ids.iter().all(|id| self.has(id))
    }

    /// Returns true if both have the same choices.
    pub(crate) fn has_choices_of(&self, other: &Forks) -> bool {
        let lacks = |there: &Forks, (id, _): &Fork| is_choice(id) && !there.has(id);
        !self.0.iter().any(|point| lacks(other, point))
            && !other.0.iter().any(|point| lacks(self, point))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn override_id(number: usize) -> Uuid {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&number.to_le_bytes());
        Uuid(id)
    }

    fn of(overrides: usize) -> Forks {
        let ids = (0..overrides).map(override_id);
        Forks::from(ids.map(|id| (id, 1)).collect::<Vec<_>>())
    }

    const PROCESS: Incarnation = Incarnation(Uuid([9; 16]));

    #[test]
    fn a_choice_is_no_override() {
        let mut forks = of(2);
        forks.choose(5, PROCESS, 7);
        assert_eq!((forks.all().len(), forks.overrides().count()), (3, 2));
        let mut again = forks.clone();
        again.choose(6, PROCESS, 7);
        assert_eq!(again.all().len(), 4, "the same process is chosen again");
        assert!(forks.has_choices_of(&forks) && of(1).has_choices_of(&of(2)));
        assert!(!forks.has_choices_of(&again) && !again.has_choices_of(&forks));
    }

    #[test]
    fn choices_leave_the_places_to_the_overrides() {
        let mut forks = of(CHOICES_UP_TO - 1);
        forks.choose(5, PROCESS, 7);
        forks.choose(6, PROCESS, 8);
        assert_eq!(forks.all().len(), CHOICES_UP_TO);
        for number in CHOICES_UP_TO..=OVERRIDES_MAX {
            forks.add_override(override_id(number), 9);
        }
        assert_eq!(forks.all().len(), OVERRIDES_MAX);
        assert_eq!(forks.overrides().count(), OVERRIDES_MAX);
        let mut noted = of(OVERRIDES_MAX - 1).all().to_vec();
        let mut with_choice = Forks::default();
        with_choice.choose(5, PROCESS, 7);
        noted.extend(with_choice.all());
        noted.push((override_id(OVERRIDES_MAX), 9));
        assert_eq!(Forks::from(noted).all().len(), OVERRIDES_MAX);
    }
}
