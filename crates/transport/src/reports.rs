//! Events for the layer above, until a call hands them out. Repeated rejections of one address are reported once a
//! minute.

use crate::rejections::Rejections;
use crate::{MeshEvent, RejectReason};

#[derive(Debug, Default)]
pub(crate) struct Reports {
    events: Vec<MeshEvent>,
    rejections: Rejections,
}

impl Reports {
    pub(crate) fn push(&mut self, event: MeshEvent) {
        self.events.push(event);
    }

    /// Reports a rejection, unless it was reported lately.
    pub(crate) fn reject(
        &mut self,
        address: &str,
        reason: RejectReason,
        text: String,
        now_ms: u64,
    ) {
        if self.rejections.is_news(address, reason, now_ms) {
            self.push(MeshEvent::Rejected {
                address: address.to_owned(),
                reason,
                text,
            });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.events.clear();
    }

    pub(crate) fn drain_into(&mut self, events: &mut Vec<MeshEvent>) {
        events.append(&mut self.events);
    }
}
