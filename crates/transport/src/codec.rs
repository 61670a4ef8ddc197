//! Bounded reading and writing of little-endian fields.

use crate::FrameError;

/// Reads fields from a payload; every read checks the remaining length.
pub(crate) struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], FrameError> {
        let (taken, rest) = self
            .0
            .split_at_checked(len)
            .ok_or(FrameError::Malformed("a field runs past the end"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub fn u8(&mut self) -> Result<u8, FrameError> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u16(&mut self) -> Result<u16, FrameError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// Reads a u16 length, at most `limit`, and as many bytes.
    pub fn bytes(&mut self, limit: usize) -> Result<&'a [u8], FrameError> {
        let len = usize::from(self.u16()?);
        if len > limit {
            return Err(FrameError::Malformed("a field is too long"));
        }
        self.take(len)
    }

    /// As [`Fields::bytes`], but UTF-8.
    pub fn text(&mut self, limit: usize) -> Result<String, FrameError> {
        let text = std::str::from_utf8(self.bytes(limit)?);
        Ok(text
            .map_err(|_| FrameError::Malformed("a text is not UTF-8"))?
            .to_owned())
    }
}

/// Writes a u16 length and the bytes; cuts bytes off beyond `limit` (at most u16::MAX).
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8], limit: usize) {
    let bytes = &bytes[..bytes.len().min(limit)];
    out.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// As [`put_bytes`], but cuts at a character's border.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &str, limit: usize) {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    put_bytes(out, &text.as_bytes()[..end], limit);
}
