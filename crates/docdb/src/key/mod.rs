//! Key strings: BSON values as bytes whose byte order is the order of the values.
//!
//! A key is the encodings of its components, one after another, then [`END`]. What an index appends
//! after that (the record) is not the business of this module.
//!
//! - I1. For values `a` and `b`: `encode(a)` compares with `encode(b)` as bytes as MongoDB orders
//!   `a` and `b`; equal bytes mean equal values. Numbers compare by exact value across types.
//! - I2. No component begins with a byte outside of `0x05..=0xFD`, whether ascending or descending,
//!   so that [`BEFORE`] and [`AFTER`] appended to components stand before and after every key that
//!   begins with them, and no other key is between the two. The component of a string is also the
//!   beginning of that of a string which continues it with a NUL: there, `FF` follows, which is
//!   after [`AFTER`], and in a descending component `00`, which is before [`BEFORE`].
//! - I3. A descending component is its ascending bytes, each inverted.
//! - I4. Bytes and type bits together give the values back exactly (strings under a collation are
//!   the exception: sort keys are one-way). The type bits of int32, of int64 too large for int32,
//!   of doubles with a fraction and of strings are nothing.
//!
//! A component is a type byte and a body:
//!
//! | type byte | values | body |
//! |---|---|---|
//! | `0x0A` | MinKey | |
//! | `0x0F` | undefined (also: an empty array in an index) | |
//! | `0x14` | null, missing | |
//! | `0x24..=0x3B` | numbers: see `number` | |
//! | `0x40` | string, symbol | bytes, `00` as `00 FF`, then `00`; a sort key under a collation |
//! | `0x46` | object | per field its type byte, name, `00`, component; then `00` |
//! | `0x50` | array | components; then `00` |
//! | `0x5A` | binary | length (4 bytes), subtype, bytes |
//! | `0x64` | ObjectId | 12 bytes |
//! | `0x6E`, `0x6F` | false, true | |
//! | `0x78` | date | 8 bytes, sign bit flipped |
//! | `0x82` | timestamp | time, increment (4 bytes each) |
//! | `0x8C` | regular expression | pattern, `00`, options, `00` |
//! | `0x96` | DBPointer | length (4 bytes), namespace, `00`, ObjectId |
//! | `0xA0` | code | as a string |
//! | `0xAA` | code with scope | code as a string, scope as an object |
//! | `0xF0` | MaxKey | |

mod decode;
mod encode;
mod number;
mod skip;

pub use decode::{Malformed, decode};
pub use encode::Encoder;
pub(crate) use encode::escape;
pub use skip::component_length;

/// Ends the components of a key.
pub const END: u8 = 0x04;
/// Appended to components: before every key that begins with them (I2).
pub const BEFORE: u8 = 0x01;
/// Appended to components: after every key that begins with them (I2).
pub const AFTER: u8 = 0xFE;

/// The order of strings other than byte order.
pub trait Collate: Send + Sync {
    /// Bytes that compare as the strings do.
    ///
    /// # Errors
    /// The operation must end.
    fn sort_key(&self, text: &str) -> query::Result<Vec<u8>>;
}

/// The component of null and of missing.
pub(crate) fn null(descending: bool) -> u8 {
    directed(kind::NULL, descending)
}

/// A component of one byte (I3).
fn directed(ascending: u8, descending: bool) -> u8 {
    if descending { !ascending } else { ascending }
}

/// Whether any value whose component begins with a byte from `first` to `last` has a component of
/// unlimited length.
pub(crate) fn may_be_long(first: u8, last: u8) -> bool {
    let long = [
        kind::STRING,
        kind::OBJECT,
        kind::ARRAY,
        kind::BINARY,
        kind::REGEX,
        kind::DB_POINTER,
        kind::CODE,
        kind::CODE_WITH_SCOPE,
    ];
    long.iter().any(|kind| (first..=last).contains(kind))
}

mod kind {
    //! Type bytes.
    pub(super) const MIN_KEY: u8 = 0x0A;
    pub(super) const UNDEFINED: u8 = 0x0F;
    pub(super) const NULL: u8 = 0x14;
    /// The type byte of all numbers where a field's type is compared before its name.
    pub(super) const NUMBER: u8 = 0x30;
    pub(super) const STRING: u8 = 0x40;
    pub(super) const OBJECT: u8 = 0x46;
    pub(super) const ARRAY: u8 = 0x50;
    pub(super) const BINARY: u8 = 0x5A;
    pub(super) const OBJECT_ID: u8 = 0x64;
    pub(super) const FALSE: u8 = 0x6E;
    pub(super) const TRUE: u8 = 0x6F;
    pub(super) const DATE: u8 = 0x78;
    pub(super) const TIMESTAMP: u8 = 0x82;
    pub(super) const REGEX: u8 = 0x8C;
    pub(super) const DB_POINTER: u8 = 0x96;
    pub(super) const CODE: u8 = 0xA0;
    pub(super) const CODE_WITH_SCOPE: u8 = 0xAA;
    pub(super) const MAX_KEY: u8 = 0xF0;
}

mod tag {
    //! Type bits: one byte for each number and string of a key, in order; trailing zeros are cut.
    pub(super) const TRIVIAL: u8 = 0;
    pub(super) const SYMBOL: u8 = 1;
    pub(super) const INT64: u8 = 2;
    pub(super) const DOUBLE: u8 = 3;
    pub(super) const NEGATIVE_ZERO: u8 = 4;
    /// Followed by the decimal's 16 bytes.
    pub(super) const DECIMAL: u8 = 5;
}

#[cfg(test)]
mod tests;
