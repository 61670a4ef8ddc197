//! What a stranger's connection carries: the preamble, frames, and in them the messages of the handshake.
//!
//! Random bytes do not get past checksums, so the target also frames the input's pieces itself: a byte with the kind,
//! two with the length, the payload.
#![no_main]

use trireme_transport::{FrameDecoder, FrameKind, Gossip, Hello, PREAMBLE, Refusal};

/// As before the connection stands.
const MAX_FRAME_BYTES: u32 = 8192;

fn frame(out: &mut Vec<u8>, kind: u8, payload: &[u8]) {
    let len = (payload.len() as u32).to_le_bytes();
    let crc = crc32c::crc32c_append(
        crc32c::crc32c_append(crc32c::crc32c(&len), &[kind]),
        payload,
    );
    out.extend_from_slice(&len);
    out.extend_from_slice(&crc.to_le_bytes());
    out.push(kind);
    out.extend_from_slice(payload);
}

fn framed(mut bytes: &[u8]) -> Vec<u8> {
    let mut out = PREAMBLE.to_vec();
    while let [kind, low, high, rest @ ..] = bytes {
        let len = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        frame(&mut out, *kind, &rest[..len]);
        bytes = &rest[len..];
    }
    out
}

/// Reads a stream that arrives in pieces of `piece_bytes`, as a link does; returns the frames.
fn read(stream: &[u8], piece_bytes: usize) -> Vec<(FrameKind, Vec<u8>)> {
    let mut decoder = FrameDecoder::new(MAX_FRAME_BYTES);
    let mut frames = Vec::new();
    for piece in stream.chunks(piece_bytes) {
        decoder.push(piece);
        loop {
            match decoder.next_frame() {
                Ok(Some((kind, payload))) => frames.push((kind, payload.to_vec())),
                Ok(None) => break,
                Err(_) => return frames,
            }
        }
    }
    frames
}

fn decode(kind: FrameKind, payload: &[u8]) {
    match kind {
        FrameKind::Hello => {
            if let Ok(hello) = Hello::decode(payload) {
                assert_eq!(Hello::decode(&hello.encode()).as_ref(), Ok(&hello));
            }
        }
        FrameKind::Refuse => {
            if let Ok(refusal) = Refusal::decode(payload) {
                let again = Refusal::decode(&refusal.encode());
                assert_eq!(again.as_ref(), Ok(&refusal));
            }
        }
        FrameKind::Gossip => {
            if let Ok(gossip) = Gossip::decode(payload) {
                let again = Gossip::decode(&gossip.encode());
                assert_eq!(again.as_ref(), Ok(&gossip));
            }
        }
        FrameKind::State | FrameKind::Up | FrameKind::Data => {}
    }
}

trireme_fuzz::fuzz!(|bytes| {
    let Some((&piece, bytes)) = bytes.split_first() else {
        return;
    };
    for stream in [bytes.to_vec(), framed(bytes)] {
        let frames = read(&stream, usize::from(piece).max(1));
        assert_eq!(frames, read(&stream, stream.len().max(1)));
        for (kind, payload) in frames {
            decode(kind, &payload);
        }
    }
});
