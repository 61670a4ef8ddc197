//! Certification as docs/server-contract.md words it, with no thought of cost: the whole history, whole keys, every
//! pair tested. Shares nothing with the crate but the words for input and output.

use trireme_certification::{KeyType, Seqno, Verdict};

/// The parts of a key: none (server), schema, table, row.
pub type Parts = Vec<&'static str>;

/// A write-set before it is encoded.
#[derive(Clone, Debug)]
pub struct WriteSet {
    pub seqno: Seqno,
    pub last_seen: Seqno,
    pub origin: u8,
    pub epoch: u64,
    pub isolation: bool,
    pub pa_unsafe: bool,
    pub rollback: bool,
    pub keys: Vec<(Parts, KeyType)>,
}

/// server-contract.md#conflict-matrix, cell by cell: rows = found, columns = new; `.` nothing, `d` dependency, `X`
/// conflict.
const MATRIX: [&str; 4] = ["..dd", "..dX", "ddXX", "XXXX"];

fn cell(found: KeyType, new: KeyType) -> u8 {
    let index = |ty| match ty {
        KeyType::Shared => 0,
        KeyType::Reference => 1,
        KeyType::Update => 2,
        KeyType::Exclusive => 3,
    };
    MATRIX[index(found)].as_bytes()[index(new)]
}

/// All keys of a write-set, branches included; duplicates are left in, as they cannot weaken anything.
fn expand(keys: &[(Parts, KeyType)]) -> Vec<(Parts, KeyType)> {
    let mut all = Vec::new();
    for (parts, ty) in keys {
        for level in 0..parts.len() {
            all.push((parts[..level].to_vec(), KeyType::Reference));
        }
        all.push((parts.clone(), *ty));
    }
    // The strongest type of a name replaces the others (server-contract-traps.md#strongest-key-wins).
    all.iter()
        .filter(|(parts, ty)| {
            !all.iter()
                .any(|(other, stronger)| other == parts && stronger > ty)
        })
        .cloned()
        .collect()
}

pub struct Model {
    position: Seqno,
    max_length: Seqno,
    /// Write-sets that passed.
    history: Vec<WriteSet>,
    /// Cuts, as they were when ordered, and resets.
    floors: Vec<Seqno>,
    /// Views, PA-unsafe write-sets, isolated actions.
    barriers: Vec<Seqno>,
}

impl Model {
    pub fn new(position: Seqno, max_length: Seqno) -> Self {
        Model {
            position,
            max_length,
            history: vec![],
            floors: vec![position],
            barriers: vec![],
        }
    }

    pub fn position(&self) -> Seqno {
        self.position
    }

    pub fn floor(&self) -> Seqno {
        let ordered = self.floors.iter().copied().max().expect("a start");
        ordered.max(self.position - self.max_length)
    }

    /// Distinct keys of the write-sets above the floor.
    pub fn live_keys(&self) -> usize {
        let mut names: Vec<Parts> = vec![];
        for past in self.history.iter().filter(|past| past.seqno > self.floor()) {
            names.extend(expand(&past.keys).into_iter().map(|(parts, _)| parts));
        }
        names.sort();
        names.dedup();
        names.len()
    }

    pub fn view(&mut self) {
        self.position += 1;
        self.barriers.push(self.position);
    }

    pub fn skip(&mut self) {
        self.position += 1;
    }

    pub fn cut(&mut self, cut: Seqno) {
        self.floors.push(cut.min(self.position));
    }

    pub fn reset(&mut self, seqno: Seqno) {
        // The history stays: what lies below the floor must make no difference.
        self.position = seqno;
        self.floors.push(seqno);
    }

    pub fn certify(&mut self, new: &WriteSet) -> (Verdict, Seqno) {
        self.position += 1;
        assert_eq!(new.seqno, self.position);
        let keys = expand(&new.keys);
        let mut depends_on = self.floor();
        depends_on = depends_on.max(self.barriers.iter().copied().max().unwrap_or(Seqno::MIN));
        let mut with = None;
        for past in &self.history {
            for (found_parts, found) in expand(&past.keys) {
                for (new_parts, ty) in &keys {
                    if found_parts != *new_parts || cell(found, *ty) == b'.' {
                        continue;
                    }
                    depends_on = depends_on.max(past.seqno);
                    let other_source = (past.origin, past.epoch) != (new.origin, new.epoch);
                    if cell(found, *ty) == b'X'
                        && past.seqno > new.last_seen
                        && (past.isolation || other_source)
                    {
                        with = with.max(Some(past.seqno));
                    }
                }
            }
        }
        let verdict = if new.rollback {
            Verdict::Pass
        } else if new.seqno - new.last_seen > self.max_length {
            Verdict::TooWide
        } else if new.last_seen < self.floor() {
            Verdict::TooOld
        } else if let (Some(with), false) = (with, new.isolation) {
            Verdict::Conflict { with }
        } else {
            Verdict::Pass
        };
        if new.isolation || new.pa_unsafe || new.rollback {
            depends_on = new.seqno - 1;
        }
        if new.isolation || new.pa_unsafe {
            self.barriers.push(new.seqno);
        }
        if verdict == Verdict::Pass && !new.rollback {
            self.history.push(new.clone());
        }
        (verdict, depends_on)
    }
}
