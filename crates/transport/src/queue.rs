//! What waits to be sent to one peer.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use bytes::{Buf, Bytes};

use crate::frame::Frame;
use crate::stream::Stream;

/// Slices handed to one sendmsg (the system takes up to 1024).
const MAX_SLICES: usize = 64;

/// A bounded queue of outgoing bytes.
#[derive(Debug)]
pub(crate) struct SendQueue {
    chunks: VecDeque<Bytes>,
    queued_bytes: usize,
    limit_bytes: usize,
    /// Set by the first frame that found no room; frames are then refused until the queue is empty,
    /// so that the receiver sees one gap and not many.
    overflowed: bool,
}

impl SendQueue {
    pub fn new(limit_bytes: usize) -> Self {
        Self {
            chunks: VecDeque::new(),
            queued_bytes: 0,
            limit_bytes,
            overflowed: false,
        }
    }

    /// Appends a frame; false if the queue has overflowed. An empty queue takes a frame of any size.
    pub fn push(&mut self, frame: Frame) -> bool {
        let len = frame.wire_bytes();
        if self.overflowed
            || (self.queued_bytes > 0 && self.queued_bytes.saturating_add(len) > self.limit_bytes)
        {
            self.overflowed = true;
            return false;
        }
        self.push_unbounded(frame);
        true
    }

    /// Appends a frame of the mesh's own, which are few and small.
    pub fn push_unbounded(&mut self, frame: Frame) {
        self.push_raw(frame.head);
        self.push_raw(frame.body);
    }

    /// Appends bytes that are no frame (the preamble).
    pub fn push_raw(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.queued_bytes += bytes.len();
            self.chunks.push_back(bytes);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    pub fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    /// True once, when the queue has overflowed and is empty again.
    pub fn take_drained(&mut self) -> bool {
        self.is_empty() && std::mem::take(&mut self.overflowed)
    }

    /// Writes until the queue is empty or the stream is full (`WouldBlock`).
    pub fn write_to(&mut self, stream: &mut Stream) -> io::Result<()> {
        while !self.chunks.is_empty() {
            let mut slices = [IoSlice::new(&[]); MAX_SLICES];
            let mut count = 0;
            for (slice, chunk) in slices.iter_mut().zip(&self.chunks) {
                *slice = IoSlice::new(chunk);
                count += 1;
            }
            match stream.write_vectored(&slices[..count]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => self.advance(written),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn advance(&mut self, mut written: usize) {
        self.queued_bytes -= written;
        while let Some(front) = self.chunks.front_mut() {
            if written < front.len() {
                front.advance(written);
                return;
            }
            written -= front.len();
            self.chunks.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(len: usize) -> Frame {
        Frame::new(&[], Some(Bytes::from(vec![0; len]))).unwrap()
    }

    #[test]
    fn overflows_and_stays_so_until_empty() {
        let mut queue = SendQueue::new(1000);
        assert!(queue.push(frame(5000)), "an empty queue takes any frame");
        assert!(!queue.push(frame(1)));
        queue.advance(queue.queued_bytes() - 1);
        assert!(!queue.push(frame(1)), "no gap may follow a gap");
        assert!(!queue.take_drained());
        queue.advance(1);
        assert!(queue.is_empty() && queue.take_drained() && !queue.take_drained());
        assert!(queue.push(frame(1)) && queue.push(frame(900)) && !queue.push(frame(900)));
    }
}
