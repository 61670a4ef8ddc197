//! The last log lines that an operator may want to see.

use std::collections::VecDeque;

use super::{Event, TEXT_BYTES_MAX};
use crate::text::one_line;

/// Maximum of lines.
const EVENTS_MAX: usize = 64;

/// A ring of lines, the oldest first.
#[derive(Debug, Default)]
pub struct Events(VecDeque<Event>);

impl Events {
    /// Adds a line. A line equal to the last one replaces it.
    pub fn add(&mut self, at_unix_ms: u64, level: &str, text: &str) {
        let text = one_line(text, TEXT_BYTES_MAX);
        if let Some(last) = self.0.back_mut().filter(|last| last.text == text) {
            last.at_unix_ms = at_unix_ms;
            return;
        }
        if self.0.len() == EVENTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Event {
            at_unix_ms,
            level: level.to_owned(),
            text,
        });
    }

    /// Returns all lines.
    pub fn all(&self) -> Vec<Event> {
        self.0.iter().cloned().collect()
    }
}
