//! The names of the keys of a transaction in flight: the order contains only their hashes.

use trireme_certification::{KeyType, key_hash};

/// Maximum of bytes kept.
const BYTES_MAX: usize = 16 * 1024;
/// Maximum of bytes shown of a row's key.
const SHOWN_BYTES: usize = 64;

/// The names, one after the other: type, number of parts, and for each its length and bytes.
#[derive(Default)]
pub struct KeyLog {
    bytes: Vec<u8>,
}

/// A key for people.
#[derive(Debug, PartialEq, Eq)]
pub struct NamedKey {
    /// `database.table`; None: the whole server.
    pub table: Option<String>,
    /// The other parts, in hexadecimal; empty: the whole table.
    pub key: String,
}

impl KeyLog {
    /// Keeps a key, if there is room for it.
    pub fn add(&mut self, parts: &[&[u8]], key_type: KeyType) {
        let fits = |part: &&[u8]| part.len() <= usize::from(u16::MAX);
        let Ok(count) = u8::try_from(parts.len()) else {
            return; // no server has such keys
        };
        let size: usize = parts.iter().map(|part| 2 + part.len()).sum();
        if !parts.iter().all(fits) || self.bytes.len() + 2 + size > BYTES_MAX {
            return;
        }
        self.bytes.extend_from_slice(&[key_type as u8, count]);
        for part in parts {
            let len = part.len() as u16; // it fits
            self.bytes.extend_from_slice(&len.to_le_bytes());
            self.bytes.extend_from_slice(part);
        }
    }

    /// Returns the key that collided with these keys of another write-set (ascending by hash), or the table that did. A
    /// key for which certification fails is preferred, then the longest.
    pub fn collides(&self, others: &[(u64, KeyType)]) -> Option<NamedKey> {
        let mut best = (false, 0);
        let mut named = None;
        for (parts, key_type) in self.keys() {
            for len in (0..=parts.len()).rev() {
                let own = match len == parts.len() {
                    true => key_type,
                    false => KeyType::Reference, // a branch
                };
                let hash = key_hash(&parts[..len]);
                let Ok(at) = others.binary_search_by_key(&hash, |(hash, _)| *hash) else {
                    continue;
                };
                let rank = (own.fails_for(others[at].1), len);
                if named.is_none() || best < rank {
                    (best, named) = (rank, Some(NamedKey::of(&parts[..len])));
                }
            }
        }
        // Both touch the server, the database and most likely the table: that is no collision.
        named.filter(|_| best.0 || best.1 > 2)
    }

    fn keys(&self) -> impl Iterator<Item = (Vec<&[u8]>, KeyType)> {
        let mut rest = self.bytes.as_slice();
        std::iter::from_fn(move || {
            let (&[key_type, count], mut tail) = rest.split_first_chunk()?;
            let mut parts = Vec::with_capacity(usize::from(count));
            for _ in 0..count {
                let (len, behind) = tail.split_first_chunk()?;
                let (part, behind) = behind.split_at(usize::from(u16::from_le_bytes(*len)));
                parts.push(part);
                tail = behind;
            }
            rest = tail;
            Some((parts, KeyType::ALL[usize::from(key_type & 3)]))
        })
    }
}

impl NamedKey {
    fn of(parts: &[&[u8]]) -> NamedKey {
        let (names, row) = parts.split_at(parts.len().min(2));
        let names: Vec<_> = names
            .iter()
            .map(|part| String::from_utf8_lossy(part))
            .collect();
        let mut left = SHOWN_BYTES;
        let hex = |part: &&[u8]| {
            let shown = &part[..part.len().min(left)];
            left -= shown.len();
            shown
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        NamedKey {
            table: (!names.is_empty()).then(|| names.join(".")),
            key: row.iter().map(hex).collect::<Vec<_>>().join("/"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn others(keys: &[(&[&[u8]], KeyType)]) -> Vec<(u64, KeyType)> {
        let mut others: Vec<_> = keys
            .iter()
            .map(|(parts, ty)| (key_hash(parts), *ty))
            .collect();
        others.sort_unstable();
        others
    }

    fn log() -> KeyLog {
        let mut log = KeyLog::default();
        log.add(&[b"shop", b"orders", b"\x80\0\0\x01"], KeyType::Update);
        log.add(&[b"shop", b"customers", b"\x07"], KeyType::Reference);
        log
    }

    #[test]
    fn the_row_that_collides_is_named() {
        let table = [
            (&[][..], KeyType::Reference),
            (&[b"shop".as_slice()][..], KeyType::Reference),
            (&[b"shop".as_slice(), b"orders"], KeyType::Reference),
        ];
        assert_eq!(log().collides(&others(&table)), None, "another row");
        let customer: (&[&[u8]], _) = (&[b"shop", b"customers", b"\x07"], KeyType::Reference);
        let order: (&[&[u8]], _) = (&[b"shop", b"orders", b"\x80\0\0\x01"], KeyType::Exclusive);
        let named = log().collides(&others(&[customer, order]));
        let expected = NamedKey {
            table: Some("shop.orders".to_owned()),
            key: "80000001".to_owned(),
        };
        assert_eq!(named, Some(expected), "two references do not collide");
        let ddl: (&[&[u8]], _) = (&[b"shop", b"orders"], KeyType::Exclusive);
        let named = log().collides(&others(&[ddl])).expect("the whole table");
        assert_eq!(
            (named.table.as_deref(), named.key.as_str()),
            (Some("shop.orders"), "")
        );
    }

    #[test]
    fn what_is_kept_and_shown_is_bounded() {
        let mut log = KeyLog::default();
        let long = [7; 300];
        for row in 0..1_000_u32 {
            log.add(&[b"db", b"t", &row.to_le_bytes(), &long], KeyType::Update);
        }
        assert!(log.bytes.len() <= BYTES_MAX);
        log.add(&[&vec![0; 70_000]], KeyType::Update);
        let first: (&[&[u8]], _) = (&[b"db", b"t", &[0; 4], &long], KeyType::Update);
        let named = log.collides(&others(&[first])).expect("kept");
        assert_eq!(named.key, format!("00000000/{}", "07".repeat(60)));
    }
}
