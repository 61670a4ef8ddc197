//! Values on the wire: the basic types, and the macros that make compound types of them.

use std::collections::BTreeMap;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::DecodeError;
use crate::ids::{Incarnation, ReplicaId, SubmissionId, Term, Uuid};

/// Longest text.
pub(super) const MAX_TEXT_BYTES: usize = 4096;

/// Longest list.
pub(crate) const MAX_LIST: usize = 65535;

/// A value with one encoding.
pub(super) trait Wire: Sized {
    /// Length of the shortest encoding in bytes, which bounds the count of a list.
    const MIN_BYTES: usize;

    /// Appends the value.
    fn put(&self, out: &mut BytesMut);

    /// Takes the value from the front of `input`.
    fn get(input: &mut Bytes) -> Result<Self, DecodeError>;
}

/// Fails if fewer than `needed` bytes are left.
fn need(input: &Bytes, needed: usize) -> Result<(), DecodeError> {
    if input.len() < needed {
        return Err(DecodeError::Truncated {
            needed,
            left: input.len(),
        });
    }
    Ok(())
}

macro_rules! wire_integer {
    ($type:ty, $put:ident, $get:ident) => {
        impl Wire for $type {
            const MIN_BYTES: usize = size_of::<$type>();

            fn put(&self, out: &mut BytesMut) {
                out.$put(*self);
            }

            fn get(input: &mut Bytes) -> Result<Self, DecodeError> {
                need(input, Self::MIN_BYTES)?;
                Ok(input.$get())
            }
        }
    };
}

wire_integer!(u8, put_u8, get_u8);
wire_integer!(u32, put_u32_le, get_u32_le);
wire_integer!(u64, put_u64_le, get_u64_le);
wire_integer!(i32, put_i32_le, get_i32_le);

/// Encodes a struct as its fields, in the order given here (not that of the declaration).
macro_rules! wire_struct {
    ($type:ident { $($field:ident: $field_type:ty),* $(,)? }) => {
        impl Wire for $type {
            const MIN_BYTES: usize = 0 $(+ <$field_type as Wire>::MIN_BYTES)*;

            fn put(&self, out: &mut BytesMut) {
                $(self.$field.put(out);)*
            }

            fn get(input: &mut Bytes) -> Result<Self, DecodeError> {
                Ok($type { $($field: <$field_type as Wire>::get(input)?),* })
            }
        }
    };
}
pub(super) use wire_struct;

/// Encodes an enum as one byte for the variant, then the variant's fields, in the order given here.
macro_rules! wire_enum {
    ($type:ident, $what:literal {
        $($kind:literal => $variant:ident $(($inner:ident))? $({ $($field:ident),* $(,)? })?),* $(,)?
    }) => {
        impl Wire for $type {
            const MIN_BYTES: usize = 1;

            fn put(&self, out: &mut BytesMut) {
                match self {
                    $($type::$variant $(($inner))? $({ $($field),* })? => {
                        out.put_u8($kind);
                        $($inner.put(out);)?
                        $($($field.put(out);)*)?
                    })*
                }
            }

            fn get(input: &mut Bytes) -> Result<Self, DecodeError> {
                Ok(match u8::get(input)? {
                    $($kind => $type::$variant
                        $(({ let $inner = Wire::get(input)?; $inner }))?
                        $({ $($field: Wire::get(input)?),* })?,)*
                    value => return Err(DecodeError::Unknown { what: $what, value }),
                })
            }
        }
    };
}
pub(super) use wire_enum;

wire_struct!(Term {
    number: u64,
    replica: ReplicaId
});
wire_struct!(SubmissionId {
    incarnation: Incarnation,
    number: u64
});

macro_rules! wire_uuid {
    ($type:ident, $make:expr, $bytes:expr) => {
        impl Wire for $type {
            const MIN_BYTES: usize = 16;

            fn put(&self, out: &mut BytesMut) {
                out.put_slice(&$bytes(self));
            }

            fn get(input: &mut Bytes) -> Result<Self, DecodeError> {
                need(input, 16)?;
                let mut bytes = [0; 16];
                input.copy_to_slice(&mut bytes);
                Ok($make(Uuid(bytes)))
            }
        }
    };
}

wire_uuid!(Uuid, |uuid| uuid, |uuid: &Uuid| uuid.0);
wire_uuid!(ReplicaId, ReplicaId, |replica: &ReplicaId| replica.0.0);
wire_uuid!(Incarnation, Incarnation, |incarnation: &Incarnation| {
    incarnation.0.0
});

impl Wire for bool {
    const MIN_BYTES: usize = 1;

    fn put(&self, out: &mut BytesMut) {
        out.put_u8(u8::from(*self));
    }

    fn get(input: &mut Bytes) -> Result<Self, DecodeError> {
        match u8::get(input)? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(DecodeError::Unknown {
                what: "flag",
                value,
            }),
        }
    }
}

impl Wire for String {
    const MIN_BYTES: usize = 4;

    fn put(&self, out: &mut BytesMut) {
        // Names and addresses come from the user's configuration: a long one is cut, not refused.
        let mut end = self.len().min(MAX_TEXT_BYTES);
        while !self.is_char_boundary(end) {
            end -= 1;
        }
        out.put_u32_le(end as u32);
        out.put_slice(&self.as_bytes()[..end]);
    }

    fn get(input: &mut Bytes) -> Result<Self, DecodeError> {
        let length = u32::get(input)? as usize;
        if length > MAX_TEXT_BYTES {
            return Err(DecodeError::TooLong {
                what: "text",
                length,
                limit: MAX_TEXT_BYTES,
            });
        }
        need(input, length)?;
        let text = std::str::from_utf8(&input[..length])
            .map_err(|_| DecodeError::NotUtf8)?
            .to_owned();
        input.advance(length);
        Ok(text)
    }
}

impl Wire for Bytes {
    const MIN_BYTES: usize = 4;

    fn put(&self, out: &mut BytesMut) {
        let length = u32::try_from(self.len()).expect("wsrep bounds a write-set at 2 GiB");
        out.put_u32_le(length);
        out.put_slice(self);
    }

    fn get(input: &mut Bytes) -> Result<Self, DecodeError> {
        let length = u32::get(input)? as usize;
        need(input, length)?;
        Ok(input.split_to(length))
    }
}

impl<T: Wire> Wire for Option<T> {
    const MIN_BYTES: usize = 1;

    fn put(&self, out: &mut BytesMut) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn get(input: &mut Bytes) -> Result<Self, DecodeError> {
        bool::get(input)?.then(|| T::get(input)).transpose()
    }
}

/// Writes a list's count.
fn put_count(count: usize, out: &mut BytesMut) {
    assert!(
        count <= MAX_LIST,
        "the core builds no list of more than {MAX_LIST} items, got {count}"
    );
    out.put_u32_le(count as u32);
}

/// Reads a list's count, and fails if the input is too short for so many items.
fn get_count<T: Wire>(input: &mut Bytes) -> Result<usize, DecodeError> {
    let count = u32::get(input)? as usize;
    if count > MAX_LIST {
        return Err(DecodeError::TooLong {
            what: "list",
            length: count,
            limit: MAX_LIST,
        });
    }
    need(input, count * T::MIN_BYTES)?;
    Ok(count)
}

impl<T: Wire> Wire for Vec<T> {
    const MIN_BYTES: usize = 4;

    fn put(&self, out: &mut BytesMut) {
        put_count(self.len(), out);
        for item in self {
            item.put(out);
        }
    }

    fn get(input: &mut Bytes) -> Result<Self, DecodeError> {
        let count = get_count::<T>(input)?;
        (0..count).map(|_| T::get(input)).collect()
    }
}

impl<K: Wire + Ord, V: Wire> Wire for BTreeMap<K, V> {
    const MIN_BYTES: usize = 4;

    fn put(&self, out: &mut BytesMut) {
        put_count(self.len(), out);
        for (key, value) in self {
            key.put(out);
            value.put(out);
        }
    }

    fn get(input: &mut Bytes) -> Result<Self, DecodeError> {
        let mut map = BTreeMap::new();
        for _ in 0..get_count::<(K, V)>(input)? {
            let (key, value) = <(K, V)>::get(input)?;
            if map.last_key_value().is_some_and(|(last, _)| *last >= key) {
                return Err(DecodeError::NotAscending);
            }
            map.insert(key, value);
        }
        Ok(map)
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    const MIN_BYTES: usize = A::MIN_BYTES + B::MIN_BYTES;

    fn put(&self, out: &mut BytesMut) {
        self.0.put(out);
        self.1.put(out);
    }

    fn get(input: &mut Bytes) -> Result<Self, DecodeError> {
        Ok((A::get(input)?, B::get(input)?))
    }
}

impl<A: Wire, B: Wire, C: Wire> Wire for (A, B, C) {
    const MIN_BYTES: usize = A::MIN_BYTES + B::MIN_BYTES + C::MIN_BYTES;

    fn put(&self, out: &mut BytesMut) {
        self.0.put(out);
        self.1.put(out);
        self.2.put(out);
    }

    fn get(input: &mut Bytes) -> Result<Self, DecodeError> {
        Ok((A::get(input)?, B::get(input)?, C::get(input)?))
    }
}
