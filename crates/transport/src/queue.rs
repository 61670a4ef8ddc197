//! The bytes that wait to be sent to one peer, within a bound.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use bytes::{Buf, Bytes};

use crate::frame::Frame;
use crate::stream::Stream;

/// Maximum of slices in one sendmsg (the system takes up to 1024).
const MAX_SLICES: usize = 64;

/// A bounded queue of outgoing bytes, with a lane for bulk frames. A bulk frame begins only when nothing else waits.
#[derive(Debug)]
pub(crate) struct SendQueue {
    chunks: VecDeque<Bytes>,
    queued_bytes: usize,
    bulk: VecDeque<Frame>,
    bulk_bytes: usize,
    limit_bytes: usize,
    /// Set by the first frame that found no room. From then on all frames are refused until the queue is empty, so that
    /// the receiver sees one gap and not many.
    overflowed: bool,
    /// True if it was empty after an overflow, and nobody knows yet.
    has_drained: bool,
}

impl SendQueue {
    pub fn new(limit_bytes: usize) -> Self {
        Self {
            chunks: VecDeque::new(),
            queued_bytes: 0,
            bulk: VecDeque::new(),
            bulk_bytes: 0,
            limit_bytes,
            overflowed: false,
            has_drained: false,
        }
    }

    /// Appends a frame. Returns false if the queue has overflowed. An empty queue takes a frame of any size.
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

    /// Appends a frame to the bulk lane. Returns false if the lane is full; other frames are not affected.
    pub fn push_bulk(&mut self, frame: Frame) -> bool {
        let bytes = self.bulk_bytes.saturating_add(frame.wire_bytes());
        if self.bulk_bytes > 0 && bytes > self.limit_bytes {
            return false;
        }
        self.bulk_bytes = bytes;
        self.bulk.push_back(frame);
        true
    }

    /// Appends a control frame of the mesh, without a bound: they are few and small. Gossip, which others cause, is left
    /// out beyond a bound.
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
        self.chunks.is_empty() && self.bulk.is_empty()
    }

    pub fn queued_bytes(&self) -> usize {
        self.queued_bytes + self.bulk_bytes
    }

    /// Returns the bytes ahead of a further ordinary frame; `usize::MAX`: the queue has overflowed and takes none.
    pub fn ordinary_bytes(&self) -> usize {
        match self.overflowed {
            true => usize::MAX,
            false => self.queued_bytes,
        }
    }

    /// Returns true once when the queue had overflowed and is empty again.
    pub fn take_drained(&mut self) -> bool {
        self.note_drained();
        std::mem::take(&mut self.has_drained)
    }

    /// If no ordinary frame waits, an overflow is over; a bulk frame is no reason to refuse others.
    fn note_drained(&mut self) {
        if self.chunks.is_empty() {
            self.has_drained |= std::mem::take(&mut self.overflowed);
        }
    }

    /// Writes until the queue is empty, the stream is full (`WouldBlock`), or `limit_bytes` have been encrypted.
    /// Returns false only in the last case.
    pub fn write_to(&mut self, stream: &mut Stream, limit_bytes: usize) -> io::Result<bool> {
        let mut left_bytes = limit_bytes;
        loop {
            self.note_drained();
            if self.chunks.is_empty() {
                let Some(frame) = self.bulk.pop_front() else {
                    return Ok(true);
                };
                self.bulk_bytes -= frame.wire_bytes();
                self.push_unbounded(frame);
            }
            let mut slices = [IoSlice::new(&[]); MAX_SLICES];
            let mut count = 0;
            for (slice, chunk) in slices.iter_mut().zip(&self.chunks) {
                *slice = IoSlice::new(chunk);
                count += 1;
            }
            match stream.write_vectored(&slices[..count], left_bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    self.advance(written);
                    left_bytes = left_bytes.saturating_sub(written);
                    if left_bytes == 0 && !self.is_empty() {
                        return Ok(false);
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
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

    #[test]
    fn bulk_frames_are_overtaken_and_refuse_nobody_else() {
        let mut queue = SendQueue::new(1000);
        assert!(
            queue.push_bulk(frame(5000)),
            "an empty lane takes any frame"
        );
        assert!(!queue.push_bulk(frame(1)));
        assert!(queue.push(frame(900)));
        let frame_bytes = |len| len + crate::HEADER_BYTES;
        assert_eq!(queue.queued_bytes(), frame_bytes(5000) + frame_bytes(900));
        // A full socket that takes a little at a time.
        let (mut stream, mut peer) = pair();
        queue.push(frame(7));
        while !queue.is_empty() {
            let _ = queue.write_to(&mut stream, usize::MAX);
        }
        let mut decoder = crate::FrameDecoder::new(10_000);
        decoder.push(&crate::PREAMBLE);
        let mut bytes = vec![0; 10_000];
        let mut lengths = Vec::new();
        while lengths.len() < 3 {
            let read = std::io::Read::read(&mut peer, &mut bytes).unwrap();
            decoder.push(&bytes[..read]);
            while let Some((_, payload)) = decoder.next_frame().unwrap() {
                lengths.push(payload.len());
            }
        }
        assert_eq!(lengths, [900, 7, 5000]);
    }

    #[test]
    fn a_bulk_frame_under_way_keeps_no_overflow() {
        let mut queue = SendQueue::new(1000);
        assert!(queue.push(frame(900)) && !queue.push(frame(900)));
        assert!(queue.push_bulk(frame(32 << 20)));
        let (mut stream, _peer) = pair();
        let full = queue.write_to(&mut stream, usize::MAX);
        assert!(full.is_err() && !queue.is_empty(), "the socket is full");
        assert!(queue.take_drained() && !queue.take_drained());
        assert!(queue.ordinary_bytes() < usize::MAX);
    }

    fn pair() -> (Stream, std::net::TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let near = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        near.set_nonblocking(true).unwrap();
        let (far, _) = listener.accept().unwrap();
        (Stream::Plain(mio::net::TcpStream::from_std(near)), far)
    }
}
