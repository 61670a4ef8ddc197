//! What a node has recorded of the order.

use std::collections::BTreeMap;

use trireme_group::{Delivery, NotNow, Position};

use crate::{History, Recorded, RecordedPart, Seqno, Unread};

/// What a node has recorded, as far as it serves it.
#[derive(Default, Clone)]
pub struct Records {
    pub by_seqno: BTreeMap<Seqno, Recorded>,
    pub first: Seqno,
    /// gcache.size has room for what follows; the rest is there for the node itself.
    pub sized_from: Seqno,
    /// What was delivered, from where it is pinned on.
    pub log: BTreeMap<Position, Delivery>,
    /// What is wrong with it.
    pub damage: Option<Unread>,
}

impl Records {
    /// A part of a long entry, as an engine gives it.
    pub fn read_part(
        &self,
        seqno: Seqno,
        offset: u32,
        part_bytes: u32,
    ) -> Result<Option<RecordedPart>, Unread> {
        if let Some(damage) = &self.damage {
            return Err(damage.clone());
        }
        let Some(mut record) = self.by_seqno.get(&seqno).cloned() else {
            return Ok(None);
        };
        let Delivery::Submission { payload, .. } = &mut record.delivery else {
            return Ok(None);
        };
        let payload = std::mem::take(payload);
        let len = payload.len() as u32;
        let until = offset.saturating_add(part_bytes).min(len);
        Ok((len > part_bytes).then(|| RecordedPart {
            record,
            len,
            digest: crc32c::crc32c(&payload),
            offset,
            bytes: payload.slice(offset.min(len) as usize..until as usize),
        }))
    }
}

impl History for Records {
    fn first_seqno(&self) -> Option<Seqno> {
        self.by_seqno
            .range(self.first.max(self.sized_from)..)
            .next()
            .map(|(seqno, _)| *seqno)
    }

    fn first_seqno_kept(&self) -> Option<Seqno> {
        self.by_seqno
            .range(self.first..)
            .next()
            .map(|(seqno, _)| *seqno)
    }

    fn last_seqno(&self) -> Option<Seqno> {
        self.by_seqno.keys().next_back().copied()
    }

    fn position_of(&self, seqno: Seqno) -> Option<Position> {
        let record = self.by_seqno.get(&seqno).filter(|_| seqno >= self.first);
        record.map(|record| record.position)
    }

    fn read(&self, from: Seqno, max_bytes: usize) -> Result<Vec<Recorded>, NotNow> {
        if self.damage == Some(Unread::NotNow) {
            return Err(NotNow);
        }
        if from < self.first || !self.by_seqno.contains_key(&from) {
            return Ok(Vec::new());
        }
        let (mut bytes, mut out) = (0, Vec::new());
        for record in self.by_seqno.range(from..).map(|(_, r)| r) {
            bytes += 100;
            if !out.is_empty() && bytes > max_bytes {
                break;
            }
            out.push(record.clone());
        }
        Ok(out)
    }

    fn read_back(
        &self,
        first: Position,
        last: Position,
        max_bytes: usize,
    ) -> Result<Vec<(Position, Delivery)>, Unread> {
        if let Some(damage) = &self.damage {
            return Err(damage.clone());
        }
        let (mut bytes, mut out) = (0, Vec::new());
        for (position, delivery) in self.log.range(first..=last) {
            if let Delivery::Submission { payload, .. } = delivery {
                bytes += payload.len();
            }
            if !out.is_empty() && bytes > max_bytes {
                break;
            }
            out.push((*position, delivery.clone()));
        }
        Ok(out)
    }
}
