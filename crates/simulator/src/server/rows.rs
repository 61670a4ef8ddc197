//! The rows. Each is a list of the client transactions that wrote it, but only an image of the list is kept. As in
//! row-based replication, a write-set carries the images, so that a lost update really loses a write.

use crate::seen::{ClientTrx, roll};

/// The image of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// Number of writes.
    pub len: u32,
    /// [`roll`] over all writers.
    pub digest: u64,
    /// The last writer.
    pub last: Option<ClientTrx>,
}

impl Image {
    /// The image with one more writer.
    pub fn with(self, writer: ClientTrx) -> Image {
        Image {
            len: self.len + 1,
            digest: roll(self.digest, writer),
            last: Some(writer),
        }
    }
}

/// All rows, by key.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    rows: Vec<Image>,
    /// The digest of all rows, independent of their order.
    digest: u64,
}

impl Rows {
    /// The image of a row; empty if no transaction has written it.
    pub fn row(&self, key: u32) -> Image {
        self.rows.get(key as usize).copied().unwrap_or_default()
    }

    /// The digest of all rows.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Overwrites a row; returns its old image.
    pub fn put(&mut self, key: u32, image: Image) -> Image {
        let at = key as usize;
        if at >= self.rows.len() {
            self.rows.resize(at + 1, Image::default());
        }
        let before = std::mem::replace(&mut self.rows[at], image);
        let digest = self.digest.wrapping_sub(share(key, before));
        self.digest = digest.wrapping_add(share(key, image));
        before
    }
}

/// The part of a row in the digest of all rows.
fn share(key: u32, image: Image) -> u64 {
    if image.len == 0 {
        0
    } else {
        roll(roll(u64::from(key), u64::from(image.len)), image.digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(order: &[(u32, u64)]) -> Rows {
        let mut rows = Rows::default();
        for (key, writer) in order {
            rows.put(*key, rows.row(*key).with(*writer));
        }
        rows
    }

    #[test]
    fn the_digest_depends_on_the_order_within_a_row_only() {
        let digest = |order: &[(u32, u64)]| written(order).digest();
        assert_eq!(digest(&[(1, 7), (2, 8)]), digest(&[(2, 8), (1, 7)]));
        assert_ne!(digest(&[(1, 7), (1, 8)]), digest(&[(1, 8), (1, 7)]));
        assert_ne!(digest(&[(1, 7)]), digest(&[(2, 7)]));
        assert_ne!(digest(&[(1, 7), (1, 7)]), digest(&[(1, 7)]));
    }

    #[test]
    fn putting_back_what_was_is_as_if_nothing_had_been() {
        let mut rows = written(&[(3, 1)]);
        let digest = rows.digest();
        let before = rows.put(3, rows.row(3).with(2));
        assert_ne!(rows.digest(), digest);
        rows.put(3, before);
        assert_eq!((rows.row(3), rows.digest()), (before, digest));
        rows.put(3, Image::default());
        assert_eq!(rows.digest(), 0);
    }
}
