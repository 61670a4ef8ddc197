//! Framing: `u32 length, u32 crc32c, u8 kind, payload`, after a preamble of 8 bytes. [`Frame`] encodes;
//! [`FrameDecoder`] cuts received bytes into frames, and allocates no more than has arrived.

use bytes::{Buf, Bytes, BytesMut};
use crc32c::{crc32c, crc32c_append};

/// The first bytes of each side: the magic and the version of the framing.
pub const PREAMBLE: [u8; 8] = *b"TRIREME\x01";

/// Length of a frame's header.
pub const HEADER_BYTES: usize = 9;

/// The longest frame that is copied out of the receive buffer. A slice would keep the whole buffer: a small write-set that
/// waits to be applied could keep a hundred times its size, which no bound of the layers above counts.
const COPIED_BYTES: usize = 16 << 10;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    /// The identity of the sender: [`crate::Hello`].
    Hello = 1,
    /// One byte: whether the sender already has a connection with the receiver.
    State = 2,
    /// The connection is established. Empty.
    Up = 3,
    /// The sender refuses the connection: [`crate::Refusal`].
    Refuse = 4,
    /// Addresses of members: [`crate::Gossip`].
    Gossip = 5,
    /// A frame of the upper layer.
    Data = 16,
}

impl FrameKind {
    fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Hello,
            2 => Self::State,
            3 => Self::Up,
            4 => Self::Refuse,
            5 => Self::Gossip,
            16 => Self::Data,
            _ => return None,
        })
    }
}

/// The reason why received bytes are no valid frames.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The first bytes are not the preamble.
    #[error("it does not speak Trireme's protocol (first bytes {0:02x?})")]
    ForeignProtocol(Vec<u8>),
    /// A preamble of another framing.
    #[error("framing version {0}, only 1 is known here")]
    FramingVersion(u8),
    /// A frame above the limit, received or to be sent.
    #[error("a frame of {len} bytes, at most {max} are allowed")]
    TooLong {
        /// Payload length in bytes.
        len: u64,
        /// The limit.
        max: u32,
    },
    /// The checksum does not match.
    #[error("checksum mismatch in a frame of {len} bytes: damaged in transit or by faulty memory")]
    Checksum {
        /// Payload length in bytes.
        len: u32,
    },
    /// An unknown kind of frame.
    #[error("unknown kind of frame {0}")]
    UnknownKind(u8),
    /// A known frame at the wrong time.
    #[error("unexpected frame of kind {0:?}")]
    Unexpected(FrameKind),
    /// A malformed payload.
    #[error("malformed message: {0}")]
    Malformed(&'static str),
}

/// A frame ready to be sent to any number of peers: the checksum is computed once, and a clone
/// copies no payload.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Header and head.
    pub(crate) head: Bytes,
    pub(crate) body: Bytes,
}

impl Frame {
    /// Returns a frame of the upper layer: `head` is copied, `body` (the payload, if any) is not. The receiver gets
    /// both in one piece. Fails if together they exceed 4 GiB.
    pub fn new(head: &[u8], body: Option<Bytes>) -> Result<Self, FrameError> {
        Self::of_kind(FrameKind::Data, head, body.unwrap_or_default())
    }

    /// Returns a control frame of the mesh; their payloads have small limits.
    pub(crate) fn control(kind: FrameKind, payload: &[u8]) -> Self {
        debug_assert!(payload.len() < 1 << 20);
        let head = encode(kind, payload.len() as u32, payload, &[]);
        Self {
            head,
            body: Bytes::new(),
        }
    }

    fn of_kind(kind: FrameKind, head: &[u8], body: Bytes) -> Result<Self, FrameError> {
        let len = head.len() as u64 + body.len() as u64;
        let len = u32::try_from(len).map_err(|_| FrameError::TooLong { len, max: u32::MAX })?;
        Ok(Self {
            head: encode(kind, len, head, &body),
            body,
        })
    }

    /// Returns the number of bytes on the wire.
    pub fn wire_bytes(&self) -> usize {
        self.head.len() + self.body.len()
    }

    /// Returns the number of bytes of payload, head and body.
    pub fn payload_bytes(&self) -> usize {
        self.wire_bytes() - HEADER_BYTES
    }
}

/// Returns header and head in one buffer.
fn encode(kind: FrameKind, len: u32, head: &[u8], body: &[u8]) -> Bytes {
    let mut wire = BytesMut::with_capacity(HEADER_BYTES + head.len());
    wire.extend_from_slice(&len.to_le_bytes());
    wire.extend_from_slice(&[0; 4]);
    wire.extend_from_slice(&[kind as u8]);
    wire.extend_from_slice(head);
    let crc = crc32c_append(checksum(&len.to_le_bytes(), &wire[8..]), body);
    wire[4..8].copy_from_slice(&crc.to_le_bytes());
    wire.freeze()
}

/// Returns the checksum, which covers the length, the kind and the payload.
fn checksum(len: &[u8], kind_and_payload: &[u8]) -> u32 {
    crc32c_append(crc32c(len), kind_and_payload)
}

/// Cuts a stream of bytes into frames. Holds no more than has arrived: a length alone allocates nothing.
#[derive(Debug)]
pub struct FrameDecoder {
    buffer: BytesMut,
    greeted: bool,
    max_frame_bytes: u32,
}

impl FrameDecoder {
    /// Returns the decoder of a fresh connection: the preamble comes first.
    pub fn new(max_frame_bytes: u32) -> Self {
        Self {
            buffer: BytesMut::new(),
            greeted: false,
            max_frame_bytes,
        }
    }

    /// Returns the decoder of a connection whose preamble has come in already.
    pub(crate) fn greeted(max_frame_bytes: u32) -> Self {
        Self {
            greeted: true,
            ..Self::new(max_frame_bytes)
        }
    }

    /// Changes the limit, for frames that were not taken out yet.
    pub fn set_max_frame_bytes(&mut self, max_frame_bytes: u32) {
        self.max_frame_bytes = max_frame_bytes;
    }

    /// Adds received bytes.
    pub fn push(&mut self, received: &[u8]) {
        self.buffer.extend_from_slice(received);
    }

    /// Returns true if no byte has arrived.
    pub fn is_untouched(&self) -> bool {
        !self.greeted && self.buffer.is_empty()
    }

    /// Returns the next whole frame's kind and payload; a long payload is not copied. After an error the caller must
    /// give up the stream.
    pub fn next_frame(&mut self) -> Result<Option<(FrameKind, Bytes)>, FrameError> {
        if !self.greeted && !self.take_preamble()? {
            return Ok(None);
        }
        let Some((&[l0, l1, l2, l3, c0, c1, c2, c3, kind], rest)) =
            self.buffer.split_first_chunk::<HEADER_BYTES>()
        else {
            return Ok(None);
        };
        let len = u32::from_le_bytes([l0, l1, l2, l3]);
        if len > self.max_frame_bytes {
            return Err(FrameError::TooLong {
                len: len.into(),
                max: self.max_frame_bytes,
            });
        }
        if rest.len() < len as usize {
            return Ok(None);
        }
        let wire_len = HEADER_BYTES + len as usize;
        if checksum(&self.buffer[..4], &self.buffer[8..wire_len])
            != u32::from_le_bytes([c0, c1, c2, c3])
        {
            return Err(FrameError::Checksum { len });
        }
        let kind = FrameKind::from_byte(kind).ok_or(FrameError::UnknownKind(kind))?;
        if wire_len <= COPIED_BYTES {
            let payload = Bytes::copy_from_slice(&self.buffer[HEADER_BYTES..wire_len]);
            self.buffer.advance(wire_len);
            return Ok(Some((kind, payload)));
        }
        let mut frame = self.buffer.split_to(wire_len).freeze();
        frame.advance(HEADER_BYTES);
        Ok(Some((kind, frame)))
    }

    /// Checks the bytes that are there, so that the first byte is enough to recognise a foreign peer.
    fn take_preamble(&mut self) -> Result<bool, FrameError> {
        let seen = &self.buffer[..self.buffer.len().min(PREAMBLE.len())];
        let magic = PREAMBLE.len() - 1;
        if !PREAMBLE[..magic].starts_with(&seen[..seen.len().min(magic)]) {
            return Err(FrameError::ForeignProtocol(seen.to_vec()));
        }
        match seen.get(magic) {
            None => Ok(false),
            Some(version) if *version == PREAMBLE[magic] => {
                self.buffer.advance(PREAMBLE.len());
                self.greeted = true;
                Ok(true)
            }
            Some(version) => Err(FrameError::FramingVersion(*version)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wire(frame: &Frame) -> Vec<u8> {
        [&frame.head[..], &frame.body[..]].concat()
    }

    fn all(decoder: &mut FrameDecoder) -> Result<Vec<Bytes>, FrameError> {
        let mut frames = Vec::new();
        while let Some((_, bytes)) = decoder.next_frame()? {
            frames.push(bytes);
        }
        Ok(frames)
    }

    #[test]
    fn golden_frame() {
        let frame = Frame::new(b"head", Some(Bytes::from_static(b"body"))).unwrap();
        let golden = [
            8, 0, 0, 0, 0xec, 0x81, 0x3d, 0x53, 16, b'h', b'e', b'a', b'd', b'b', b'o', b'd', b'y',
        ];
        assert_eq!(
            wire(&frame),
            golden,
            "the wire format changed: raise the framing version"
        );
        assert_eq!(&PREAMBLE, b"TRIREME\x01");
        assert_eq!(frame.payload_bytes(), 8);
    }

    #[test]
    fn a_body_is_not_copied() {
        let body = Bytes::from(vec![7; 1000]);
        let frame = Frame::new(b"h", Some(body.clone())).unwrap();
        assert_eq!(frame.clone().body.as_ptr(), body.as_ptr());
    }

    /// A short payload that is kept must not keep what came with it.
    #[test]
    fn a_short_payload_does_not_keep_the_buffer() {
        let short = Frame::new(b"", Some(Bytes::from(vec![1; 100]))).unwrap();
        let long = Frame::new(b"", Some(Bytes::from(vec![2; COPIED_BYTES]))).unwrap();
        let mut decoder = FrameDecoder::greeted(u32::MAX);
        let arrived = [wire(&long), wire(&short), wire(&long)].concat();
        decoder.push(&arrived);
        let room = decoder.buffer.capacity();
        let kept = all(&mut decoder).unwrap().swap_remove(1);
        assert_eq!(kept, vec![1; 100]);
        assert!(kept.is_unique());
        decoder.push(&arrived);
        assert!(
            decoder.buffer.capacity() <= room,
            "the buffer is used again"
        );
    }

    #[test]
    fn a_huge_length_allocates_nothing() {
        let mut decoder = FrameDecoder::new(u32::MAX);
        decoder.push(&PREAMBLE);
        decoder.push(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 16]);
        assert_eq!(decoder.next_frame(), Ok(None));
        assert!(decoder.buffer.capacity() < 4096);
        decoder.set_max_frame_bytes(1000);
        assert!(matches!(
            decoder.next_frame(),
            Err(FrameError::TooLong { max: 1000, .. })
        ));
    }

    #[test]
    fn foreign_preambles() {
        for (bytes, foreign) in [
            (&b"\x16\x03\x01"[..], true),
            (b"T", false),
            (b"TRIREM", false),
            (b"TX", true),
        ] {
            let mut decoder = FrameDecoder::new(100);
            decoder.push(bytes);
            assert_eq!(
                matches!(decoder.next_frame(), Err(FrameError::ForeignProtocol(_))),
                foreign
            );
        }
        let mut decoder = FrameDecoder::new(100);
        decoder.push(b"TRIREME\x02");
        assert_eq!(decoder.next_frame(), Err(FrameError::FramingVersion(2)));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20), greet: bool) {
            let mut decoder = FrameDecoder::new(100);
            if greet { decoder.push(&PREAMBLE); }
            for chunk in &chunks {
                decoder.push(chunk);
                if all(&mut decoder).is_err() { break; }
            }
        }

        #[test]
        fn frames_survive_any_cutting(
            payloads in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..50), prop::collection::vec(any::<u8>(), 0..200)), 0..8),
            step in 1usize..64,
        ) {
            let mut stream = PREAMBLE.to_vec();
            for (head, body) in &payloads {
                stream.extend(wire(&Frame::new(head, Some(Bytes::copy_from_slice(body))).unwrap()));
            }
            let mut decoder = FrameDecoder::new(1000);
            let mut got = Vec::new();
            for chunk in stream.chunks(step) {
                decoder.push(chunk);
                got.extend(all(&mut decoder).unwrap());
            }
            let sent: Vec<_> = payloads.iter().map(|(h, b)| [&h[..], b].concat()).collect();
            prop_assert_eq!(got, sent);
        }

        #[test]
        fn a_flipped_bit_is_noticed(payload in prop::collection::vec(any::<u8>(), 0..100), at: prop::sample::Index, bit in 0u8..8) {
            let mut stream = wire(&Frame::new(&payload, None).unwrap());
            let at = at.index(stream.len());
            stream[at] ^= 1 << bit;
            let mut decoder = FrameDecoder::new(1000);
            decoder.push(&PREAMBLE);
            decoder.push(&stream);
            // Either an error, or (a longer length) the frame is still awaited; never a frame.
            prop_assert!(all(&mut decoder).map_or(true, |frames| frames.is_empty()));
        }
    }
}
