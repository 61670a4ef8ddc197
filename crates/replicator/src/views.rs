//! The last views, with their seqnos. A joiner's database may be a few views behind, and needs its own view.

use std::collections::VecDeque;

use trireme_certification::Seqno;
use trireme_group::{Configuration, Incarnation};

/// Number of views that are remembered.
const RECENT: usize = 64;

/// Views and their seqnos, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Views(VecDeque<(Seqno, Configuration)>);

impl Views {
    pub fn push(&mut self, seqno: Seqno, view: Configuration) {
        self.0.push_back((seqno, view));
        if self.0.len() > RECENT {
            self.0.pop_front();
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &(Seqno, Configuration)> {
        self.0.iter()
    }

    pub fn last(&self) -> Option<&(Seqno, Configuration)> {
        self.0.back()
    }

    /// Returns the oldest remembered view.
    pub fn oldest(&self) -> Option<&(Seqno, Configuration)> {
        self.0.front()
    }

    /// Returns the first view of all, if it is remembered.
    pub fn first(&self) -> Option<&(Seqno, Configuration)> {
        let forgets = self.0.len() >= RECENT;
        self.oldest().filter(|_| !forgets)
    }

    /// Returns the last view at or below `seqno`, if it is remembered.
    pub fn at(&self, seqno: Seqno) -> Option<&(Seqno, Configuration)> {
        self.0.iter().rev().find(|(at, _)| *at <= seqno)
    }

    /// Returns the first view above `seqno`.
    pub fn after(&self, seqno: Seqno) -> Option<&Configuration> {
        let next = self.0.iter().find(|(at, _)| *at > seqno);
        next.map(|(_, view)| view)
    }

    /// Returns the first view that is not below the one after it, or above `seqno`.
    pub fn misplaced(&self, seqno: Seqno) -> Option<Seqno> {
        let seqnos = self.0.iter().map(|(at, _)| *at);
        let ends = seqnos.clone().skip(1).chain([seqno.saturating_add(1)]);
        let mut views = seqnos.zip(ends);
        views.find(|(at, end)| at >= end).map(|(at, _)| at)
    }

    /// Returns the number of entries that came while `member` was in no view, with the last view included. Some only if
    /// the last view is the first one with `member` again.
    pub fn missed_by(&self, member: Incarnation) -> Option<Seqno> {
        let mut views = self.0.iter().rev();
        let is_in = |view: &Configuration| view.index_of(member).is_some();
        let (last, _) = views.next().filter(|(_, view)| is_in(view))?;
        let without = views.take_while(|(_, view)| !is_in(view));
        without.last().map(|(first, _)| last - first + 1)
    }

    /// Returns the view with exactly this seqno, if it is remembered.
    pub fn with(&self, seqno: Seqno) -> Option<&Configuration> {
        let found = self.0.iter().find(|(at, _)| *at == seqno);
        found.map(|(_, view)| view)
    }
}

impl FromIterator<(Seqno, Configuration)> for Views {
    fn from_iter<T: IntoIterator<Item = (Seqno, Configuration)>>(views: T) -> Views {
        Views(views.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use trireme_group::Uuid;

    use super::*;

    fn id(number: u8) -> Incarnation {
        Incarnation(Uuid([number; 16]))
    }

    fn view(members: &[u8]) -> Configuration {
        let member = |number: &u8| trireme_group::Member {
            incarnation: id(*number),
            ..trireme_group::Member::default()
        };
        Configuration {
            members: members.iter().map(member).collect(),
            ..Configuration::default()
        }
    }

    #[test]
    fn a_member_that_is_back_has_missed_what_came_since_it_was_left_out() {
        let mut views = Views::default();
        let mut push = |seqno, members: &[u8]| {
            views.push(seqno, view(members));
            [1, 2].map(|number| views.missed_by(id(number)))
        };
        assert_eq!(push(2, &[1, 2]), [None, None]);
        assert_eq!(push(3, &[1]), [None, None]);
        assert_eq!(push(8, &[1]), [None, None]);
        assert_eq!(push(15, &[1, 2]), [None, Some(13)]);
        assert_eq!(push(20, &[1, 2]), [None, None], "told already");
    }
}
