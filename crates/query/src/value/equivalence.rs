//! Keys of values: the bytes of two keys are equal exactly when the values compare as equal.
//!
//! They are keys of hash tables in `$group`, `$in`, `distinct` and sets. Their byte order has no
//! meaning.

use bson::{Bson, RawBsonRef};

use super::view::{Fields, MAX_DEPTH, View};
use crate::collation::Collator;
use crate::meter;
use crate::number::{Canonical, Number, canonical};

/// The key of `value` under `collator`.
#[must_use]
pub fn equivalence_key(value: &Bson, collator: Option<&Collator>) -> Vec<u8> {
    let mut key = Vec::with_capacity(16);
    Writer {
        key: &mut key,
        collator,
    }
    .view(View::owned(value), 0);
    key
}

/// As [`equivalence_key`], but appends to `key`.
pub fn equivalence_key_raw(value: RawBsonRef<'_>, collator: Option<&Collator>, key: &mut Vec<u8>) {
    Writer { key, collator }.view(View::raw(value), 0);
}

struct Writer<'k, 'c> {
    key: &'k mut Vec<u8>,
    collator: Option<&'c Collator>,
}

impl Writer<'_, '_> {
    /// Writes the rank of the type, then the value. Values of variable size are written with their
    /// length, or with [`END`] after them.
    fn view(&mut self, value: View<'_>, depth: usize) {
        meter::count(1);
        self.key.push(value.rank());
        match value {
            View::MinKey | View::Undefined | View::Null | View::MaxKey => {}
            View::Number(number) => self.number(number),
            View::Text(text) => match self.collator {
                None => self.bytes(text.as_bytes()),
                Some(collator) => self.bytes(&collator.counted_sort_key(text)),
            },
            View::Object(fields) => self.fields(fields, depth + 1),
            View::Array(items) => {
                if depth < MAX_DEPTH {
                    for item in items {
                        self.view(item, depth + 1);
                    }
                }
                self.key.push(END);
            }
            View::Binary(subtype, bytes) => {
                self.key.push(subtype);
                self.bytes(bytes);
            }
            View::ObjectId(id) => self.key.extend_from_slice(&id),
            View::Boolean(value) => self.key.push(u8::from(value)),
            View::Date(millis) => self.key.extend_from_slice(&millis.to_le_bytes()),
            View::Timestamp(time, increment) => {
                self.key.extend_from_slice(&time.to_le_bytes());
                self.key.extend_from_slice(&increment.to_le_bytes());
            }
            View::Regex(pattern, options) => {
                self.bytes(pattern.as_bytes());
                self.bytes(options.as_bytes());
            }
            View::DbPointer(bytes) => self.bytes(&bytes),
            View::Code(code) => self.bytes(code.as_bytes()),
            View::CodeWithScope(code, scope) => {
                self.bytes(code.as_bytes());
                self.fields(scope, depth + 1);
            }
        }
    }

    fn number(&mut self, number: Number) {
        match canonical(number) {
            Canonical::Nan => self.key.push(0),
            Canonical::Infinity { negative } => self.key.extend([1, u8::from(negative)]),
            Canonical::Integer(number) => {
                self.key.push(2);
                self.key.extend_from_slice(&number.to_le_bytes());
            }
            Canonical::Double(bits) => {
                self.key.push(3);
                self.key.extend_from_slice(&bits.to_le_bytes());
            }
            Canonical::Decimal {
                negative,
                coefficient,
                exponent,
            } => {
                self.key.extend([4, u8::from(negative)]);
                self.key.extend_from_slice(&coefficient.to_le_bytes());
                self.key.extend_from_slice(&exponent.to_le_bytes());
            }
        }
    }

    fn fields(&mut self, fields: Fields<'_>, depth: usize) {
        if depth <= MAX_DEPTH {
            for (name, value) in fields {
                // Written as type, name, value. The type is part of the value that follows, so the
                // name needs only a mark that it is not the end.
                self.key.push(1);
                self.bytes(name.as_bytes());
                self.view(value, depth);
            }
        }
        self.key.push(END);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.key.extend_from_slice(&bytes.len().to_le_bytes());
        self.key.extend_from_slice(bytes);
    }
}

/// Written after the last field or element; differs from every rank.
const END: u8 = 0xFF;
