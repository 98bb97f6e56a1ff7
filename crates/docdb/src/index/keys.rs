//! Makes the index keys of documents: the one generator that insert, update, delete, builds and
//! validation share.
//!
//! - K1. The keys of a document depend on the document and the specification alone.
//! - K2. The keys of one document are distinct and in key order.
//! - K3. Every array that produced several keys is recorded in [`KeySet::multikey`], by field and
//!   by position within the field's path.
//!
//! Arrays: a field that ends in an array gives one key per element (an empty array gives
//! `undefined`); an array on the way is entered element by element, but a numeric part of a path
//! that names an element of it takes that element alone, and takes it whole where the path ends and
//! the element is an array itself. Fields that go through the same array go
//! through it together; two different arrays in one document are refused.

use std::sync::Arc;

use bson::{Bson, Document, RawArray, RawBsonRef, RawDocument};
use query::filter::Filter;
use query::meter::{self, Held};
use query::{Code, Error, Result};

use super::spec::{FieldKind, IndexSpec};
use super::wildcard::Wildcard;
use crate::key::{Collate, Encoder};
use crate::limits::INDEX_KEY_MAX;

/// Maximum number of keys of one document in one index: more would make one write larger than a
/// transaction should be.
const KEYS_MAX: usize = 100_000;

/// Maximum bytes of the keys of one document in one index, before long ones are truncated: the
/// maximum number of keys of the maximum length that is not truncated. Each key repeats the fields
/// beside an array, and in a wildcard index the path.
pub(super) const MADE_MAX: usize = KEYS_MAX * INDEX_KEY_MAX;
/// Keys of fewer bytes need no reservation.
const SMALL: usize = 64 << 10;
/// Memory that a set keeps for the next document.
const MEMORY_KEPT: usize = 1 << 20;

/// Maximum number of characters of an array in an error message.
const SHOWN: usize = 1000;

/// The keys of one document in one index. Reusable; it keeps its memory.
#[derive(Debug, Default)]
pub struct KeySet {
    bytes: Vec<u8>,
    items: Vec<Item>,
    /// Per field, a bit for each part of its path whose value was an array.
    multikey: Vec<u32>,
    scratch: Encoder,
    /// Whether a key was truncated.
    cut: bool,
    /// Whether keys must not be truncated.
    uncut: bool,
    /// Bytes of the keys as they were before they were truncated.
    made: usize,
    /// The memory of the keys.
    held: Held,
}

#[derive(Clone, Copy, Debug)]
struct Item {
    start: usize,
    key_end: usize,
    bits_end: usize,
}

/// A key with its type bits. The key ends in [`crate::key::END`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key<'a> {
    /// The components and the end byte, truncated if too long (then [`CUT`] begins the bits).
    pub bytes: &'a [u8],
    /// The type bits.
    pub type_bits: &'a [u8],
}

/// Type bits of a truncated key, which cannot be decoded.
pub const CUT: u8 = 0xFF;
/// Bit in the word after those of the fields, see [`KeySet::multikey`]: a key was truncated.
pub(super) const SOME_CUT: u32 = 1;

/// Whether the key with these type bits is truncated. Also works for the value of an entry, which
/// begins with them: no record after empty type bits begins with [`CUT`].
pub(crate) fn is_cut(type_bits: &[u8]) -> bool {
    type_bits.first() == Some(&CUT)
}

impl KeySet {
    /// An empty set.
    #[must_use]
    pub fn new() -> KeySet {
        KeySet::default()
    }

    /// An empty set whose keys are never truncated.
    pub(crate) fn uncut() -> KeySet {
        KeySet {
            uncut: true,
            ..KeySet::default()
        }
    }

    /// The keys.
    pub fn keys(&self) -> impl Iterator<Item = Key<'_>> {
        self.items.iter().map(|item| self.key(item))
    }

    /// The number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether the document is not in the index.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Per field of the index, a bit for each part of its path whose value was an array (the lowest
    /// bit for the first part). Empty when there was no array. If a key was cut, one more word
    /// follows, whose lowest bit says so.
    #[must_use]
    pub fn multikey(&self) -> &[u32] {
        &self.multikey
    }

    /// Whether `key` is among the keys.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.keys().any(|k| k.bytes == key)
    }

    /// Remove all keys.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.items.clear();
        self.multikey.clear();
        self.cut = false;
        self.made = 0;
        if MEMORY_KEPT < self.bytes.capacity() {
            self.bytes = Vec::new();
        }
        self.held = Held::default();
    }

    fn key(&self, item: &Item) -> Key<'_> {
        Key {
            bytes: self.bytes.get(item.start..item.key_end).unwrap_or_default(),
            type_bits: self
                .bytes
                .get(item.key_end..item.bits_end)
                .unwrap_or_default(),
        }
    }

    pub(super) fn begin(&mut self) -> &mut Encoder {
        self.scratch.clear();
        &mut self.scratch
    }

    /// Add the key in the encoder.
    pub(super) fn finish(&mut self, limit: usize) -> Result<()> {
        let length = self.scratch.bytes().len();
        meter::read(length)?;
        self.made = self.made.saturating_add(length);
        if MADE_MAX < self.made {
            let message =
                format!("the keys of a document in an index have more than {MADE_MAX} bytes");
            return Err(Error::new(Code::CANNOT_CREATE_INDEX, message));
        }
        if KEYS_MAX <= self.items.len() {
            let message = format!("a document has more than {KEYS_MAX} keys in an index");
            return Err(Error::new(Code::CANNOT_CREATE_INDEX, message));
        }
        self.scratch.end();
        let start = self.bytes.len();
        let key = self.scratch.bytes();
        if self.uncut || key.len() <= limit {
            self.bytes.extend_from_slice(key);
            let key_end = self.bytes.len();
            self.bytes.extend_from_slice(self.scratch.type_bits());
            self.push(start, key_end);
        } else {
            self.bytes.extend_from_slice(&cut(key, limit));
            let key_end = self.bytes.len();
            self.bytes.push(CUT);
            self.cut = true;
            self.push(start, key_end);
        }
        self.hold()
    }

    /// Reserve the memory of the keys, unless they are small.
    fn hold(&mut self) -> Result<()> {
        let bytes = self.bytes.len() + self.items.len() * size_of::<Item>();
        if bytes <= self.held.bytes().max(SMALL) {
            return Ok(());
        }
        if self.held.bytes() == 0 {
            self.held = Held::new();
        }
        self.held.require("The keys of a document", bytes)
    }

    fn push(&mut self, start: usize, key_end: usize) {
        self.items.push(Item {
            start,
            key_end,
            bits_end: self.bytes.len(),
        });
    }

    pub(super) fn mark(&mut self, field: usize, part: usize, fields: usize) {
        self.multikey.resize(fields, 0);
        if let Some(bits) = self.multikey.get_mut(field) {
            *bits |= 1 << part.min(31);
        }
    }

    /// Record, after the words of an index's `fields`, whether a key was truncated.
    fn mark_cut(&mut self, fields: usize) {
        if self.cut {
            self.multikey.resize(fields, 0);
            self.multikey.push(SOME_CUT);
        }
    }

    pub(super) fn sort(&mut self) {
        if self.items.len() < 2 {
            return;
        }
        let mut items = std::mem::take(&mut self.items);
        items.sort_by(|a, b| self.key(a).cmp(&self.key(b)));
        // Of keys that differ only in the types of their values, keep the first.
        items.dedup_by(|a, b| self.key(a).bytes == self.key(b).bytes);
        self.items = items;
    }
}

/// Truncate a key that is too long for the engine: its beginning, followed by a 16-byte hash of the
/// whole key. Keys with the same beginning are in the order of their hashes.
pub(crate) fn cut(key: &[u8], limit: usize) -> Vec<u8> {
    let mut cut = key.get(..limit.saturating_sub(16)).unwrap_or(key).to_vec();
    let low = stdx::hash::hash64(key);
    cut.extend_from_slice(&low.to_be_bytes());
    cut.extend_from_slice(&stdx::hash::hash64_seeded(key, low).to_be_bytes());
    cut
}

/// Makes the keys of one index.
pub struct KeyMaker {
    fields: Vec<Field>,
    sparse: bool,
    collation: Option<Arc<dyn Collate>>,
    wildcard: Option<Wildcard>,
    partial: Option<Filter>,
    limit: usize,
}

struct Field {
    path: Box<[Box<str>]>,
    kind: FieldKind,
}

/// State of the walk along one field's path.
#[derive(Clone, Copy)]
enum State<'d> {
    /// At a value, with this many path parts already walked.
    At(RawBsonRef<'d>, usize),
    /// At an array that is an element of an array and was selected by number.
    Element(&'d RawArray, usize),
    Done(Value<'d>),
}

#[derive(Clone, Copy)]
enum Value<'d> {
    Missing,
    /// Of an empty array.
    Undefined,
    Some(RawBsonRef<'d>),
}

impl<'d> State<'d> {
    /// The array that a field has come to, and the parts of the path behind it.
    fn array(self) -> Option<(&'d RawArray, usize)> {
        match self {
            State::At(RawBsonRef::Array(array), behind) | State::Element(array, behind) => {
                Some((array, behind))
            }
            _ => None,
        }
    }
}

impl KeyMaker {
    /// The generator of an index. Keys longer than `limit` are truncated.
    ///
    /// # Errors
    /// An invalid key pattern.
    pub fn new(
        spec: &IndexSpec,
        collation: Option<Arc<dyn Collate>>,
        limit: usize,
    ) -> Result<KeyMaker> {
        let wildcard = Wildcard::new(spec)?;
        let fields = spec.fields()?.into_iter().map(|(name, kind)| Field {
            path: name.split('.').map(Box::from).collect(),
            kind,
        });
        Ok(KeyMaker {
            fields: fields.collect(),
            sparse: spec.sparse,
            collation,
            wildcard,
            partial: None,
            limit,
        })
    }

    /// Restrict the generator to documents that match a filter.
    #[must_use]
    pub fn with_partial(mut self, partial: Option<Filter>) -> KeyMaker {
        self.partial = partial;
        self
    }

    /// The filter of a partial index; `None` if all documents are indexed.
    #[must_use]
    pub fn partial(&self) -> Option<&Filter> {
        self.partial.as_ref()
    }

    /// The first parts of the fields' paths, whose values [`KeyMaker::make`] needs.
    pub fn tops(&self) -> impl Iterator<Item = &str> {
        let fields = if self.wildcard.is_some() {
            &[]
        } else {
            self.fields.as_slice()
        };
        fields
            .iter()
            .filter_map(|f| f.path.first())
            .map(AsRef::as_ref)
    }

    /// The paths that a wildcard index holds.
    #[must_use]
    pub fn wildcard(&self) -> Option<&Wildcard> {
        self.wildcard.as_ref()
    }

    /// The collation of strings.
    #[must_use]
    pub fn collation(&self) -> Option<&dyn Collate> {
        self.collation.as_deref()
    }

    /// The longest key, in bytes.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Make the keys of a document; looks up the values of [`KeyMaker::tops`].
    ///
    /// # Errors
    /// `CannotIndexParallelArrays`, arrays in a hashed index, bytes that are not valid BSON.
    pub fn keys(&self, document: &RawDocument, out: &mut KeySet) -> Result<()> {
        let mut tops = vec![None; self.fields.len()];
        if self.wildcard.is_none() {
            for element in document.iter_elements() {
                let element = element?;
                for (top, field) in tops.iter_mut().zip(&self.fields) {
                    let wanted = field
                        .path
                        .first()
                        .is_some_and(|n| **n == *element.key().as_str());
                    if wanted && top.is_none() {
                        *top = Some(element.value()?);
                    }
                }
            }
        }
        self.make(document, |field| tops.get(field).copied().flatten(), out)
    }

    /// Make the keys of a document, where `top` returns the value of the first part of each field's
    /// path.
    ///
    /// # Errors
    /// As [`KeyMaker::keys`].
    pub fn make<'d>(
        &self,
        document: &'d RawDocument,
        top: impl Fn(usize) -> Option<RawBsonRef<'d>>,
        out: &mut KeySet,
    ) -> Result<()> {
        out.clear();
        self.fill(document, top, out)?;
        out.mark_cut(self.fields.len());
        Ok(())
    }

    fn fill<'d>(
        &self,
        document: &'d RawDocument,
        top: impl Fn(usize) -> Option<RawBsonRef<'d>>,
        out: &mut KeySet,
    ) -> Result<()> {
        if let Some(partial) = &self.partial
            && !partial.matches(document)?
        {
            return Ok(());
        }
        if let Some(wildcard) = &self.wildcard {
            wildcard.keys(document, self.collation(), self.limit, out)?;
            out.sort();
            return Ok(());
        }
        let plain = (0..self.fields.len()).all(|i| {
            let short = self.fields.get(i).is_some_and(|f| f.path.len() == 1);
            short && !matches!(top(i), Some(RawBsonRef::Array(_)))
        });
        if plain {
            return self.emit(
                self.fields
                    .iter()
                    .enumerate()
                    .map(|(i, f)| (f, top(i).map_or(Value::Missing, Value::Some))),
                out,
            );
        }
        let mut states: Vec<State<'d>> = (0..self.fields.len())
            .map(|i| top(i).map_or(State::Done(Value::Missing), |v| State::At(v, 1)))
            .collect();
        self.expand(&mut states, out)?;
        out.sort();
        Ok(())
    }

    /// Walk all fields up to their ends or to one array, and expand that array for all fields
    /// together.
    fn expand<'d>(&self, states: &mut [State<'d>], out: &mut KeySet) -> Result<()> {
        let Some(array) = self.common_array(states)? else {
            let values = self.fields.iter().zip(states.iter()).map(|(f, s)| match s {
                State::Done(value) => (f, *value),
                State::At(value, _) => (f, Value::Some(*value)),
                State::Element(array, _) => (f, Value::Some(RawBsonRef::Array(array))),
            });
            return self.emit(values, out);
        };
        if array.is_empty() {
            for (index, (state, field)) in states.iter_mut().zip(&self.fields).enumerate() {
                let Some((_, behind)) = state.array() else {
                    continue;
                };
                out.mark(index, behind - 1, self.fields.len());
                *state = State::Done(if behind == field.path.len() {
                    Value::Undefined
                } else {
                    Value::Missing
                });
            }
            return self.expand(states, out);
        }
        // If one field selects the array by number, all fields take it whole.
        let whole = states.iter().any(|s| matches!(s, State::Element(..)));
        let mut entered = Vec::with_capacity(states.len());
        for (index, (state, field)) in states.iter().zip(&self.fields).enumerate() {
            let next = Entered::new(*state, &field.path, whole)?;
            if let (Entered::Each, Some((_, behind))) = (&next, state.array()) {
                out.mark(index, behind - 1, self.fields.len());
            }
            entered.push(next);
        }
        let mut inner = states.to_vec();
        for element in array {
            let element = element?;
            let fields = states.iter().zip(&self.fields).zip(&entered);
            for (((state, field), entered), inner) in fields.zip(&mut inner) {
                *inner = match (entered, state.array()) {
                    (Entered::Same(state), _) => *state,
                    (Entered::Each, Some((_, behind))) => enter(element, behind, &field.path),
                    (Entered::Each, None) => *state,
                };
            }
            self.expand(&mut inner, out)?;
            if entered.iter().all(|e| matches!(e, Entered::Same(_))) {
                break;
            }
        }
        Ok(())
    }

    /// Walk all fields up to their ends or to one array, and return the array.
    fn common_array<'d>(&self, states: &mut [State<'d>]) -> Result<Option<&'d RawArray>> {
        let mut array: Option<&'d RawArray> = None;
        for (index, field) in self.fields.iter().enumerate() {
            let Some(state) = states.get_mut(index) else {
                break;
            };
            *state = walk(*state, &field.path)?;
            let Some((found, _)) = state.array() else {
                continue;
            };
            if field.kind == FieldKind::Hashed {
                return Err(Error::location(
                    16766,
                    "Error: hashed indexes do not currently support array values",
                ));
            }
            let same = |a: &RawArray| std::ptr::eq(a.as_bytes(), found.as_bytes());
            if array.is_some_and(|a| !same(a)) {
                return Err(self.parallel(states, array));
            }
            array = Some(found);
        }
        Ok(array)
    }

    fn emit<'f, 'd>(
        &self,
        values: impl Iterator<Item = (&'f Field, Value<'d>)>,
        out: &mut KeySet,
    ) -> Result<()> {
        let collation = self.collation();
        let encoder = out.begin();
        let mut found = false;
        for (field, value) in values {
            found |= !matches!(value, Value::Missing);
            let descending = field.kind == FieldKind::Descending;
            match value {
                Value::Missing if field.kind == FieldKind::Hashed => {
                    append_hash(RawBsonRef::Null, encoder)?;
                }
                Value::Some(value) if field.kind == FieldKind::Hashed => {
                    append_hash(value, encoder)?;
                }
                Value::Undefined => encoder.append_undefined(descending),
                Value::Missing => encoder.append_null(descending),
                Value::Some(value) => encoder.append(value, descending, collation)?,
            }
        }
        if self.sparse && !found {
            return Ok(());
        }
        out.finish(self.limit)
    }

    fn parallel(&self, states: &[State<'_>], first: Option<&RawArray>) -> Error {
        let mut names = Vec::new();
        for (state, field) in states.iter().zip(&self.fields) {
            if let Some((array, behind)) = state.array() {
                let same = first.is_some_and(|f| std::ptr::eq(f.as_bytes(), array.as_bytes()));
                if names.is_empty() || !same {
                    names.push(field.path.get(behind - 1).map_or("", AsRef::as_ref));
                }
            }
        }
        let (a, b) = (names.first().copied(), names.last().copied());
        let message = format!(
            "cannot index parallel arrays [{}] [{}]",
            b.unwrap_or_default(),
            a.unwrap_or_default()
        );
        Error::new(Code::CANNOT_INDEX_PARALLEL_ARRAYS, message)
    }
}

/// Append the hash of a value as a component: equal values of different types have the same hash.
///
/// # Errors
/// Bytes that are not valid BSON.
pub fn append_hash(value: RawBsonRef<'_>, out: &mut Encoder) -> Result<()> {
    let mut encoder = Encoder::new();
    encoder.append(value, false, None)?;
    let hash = stdx::hash::hash64(encoder.bytes());
    let hash = i64::from_ne_bytes(hash.to_ne_bytes());
    out.append(RawBsonRef::Int64(hash), false, None)?;
    Ok(())
}

/// Follow a path through documents, to its end, to an array or to a missing field.
fn walk<'d>(state: State<'d>, path: &[Box<str>]) -> Result<State<'d>> {
    let State::At(mut value, mut behind) = state else {
        return Ok(state);
    };
    loop {
        let Some(part) = path.get(behind) else {
            return Ok(match value {
                RawBsonRef::Array(_) => State::At(value, behind),
                other => State::Done(Value::Some(other)),
            });
        };
        match value {
            RawBsonRef::Document(document) => match document.get(part)? {
                None => return Ok(State::Done(Value::Missing)),
                Some(next) => value = next,
            },
            RawBsonRef::Array(_) => return Ok(State::At(value, behind)),
            _ => return Ok(State::Done(Value::Missing)),
        }
        behind += 1;
    }
}

/// The state of a field in an element of an array it goes through.
fn enter<'d>(element: RawBsonRef<'d>, behind: usize, path: &[Box<str>]) -> State<'d> {
    match element {
        element if path.len() == behind => State::Done(Value::Some(element)),
        RawBsonRef::Document(_) => State::At(element, behind),
        _ => State::Done(Value::Missing),
    }
}

/// The value a field takes for each element of an array.
enum Entered<'d> {
    /// The same value for each: the element that the path selects by number, the whole array, or
    /// the value found outside of the array.
    Same(State<'d>),
    /// The value within each element.
    Each,
}

impl<'d> Entered<'d> {
    fn new(state: State<'d>, path: &[Box<str>], whole: bool) -> Result<Entered<'d>> {
        let Some((array, behind)) = state.array() else {
            return Ok(Entered::Same(state));
        };
        let Some(part) = path.get(behind) else {
            let value = State::Done(Value::Some(RawBsonRef::Array(array)));
            return Ok(if whole {
                Entered::Same(value)
            } else {
                Entered::Each
            });
        };
        let Some(value) = element(array, part)? else {
            return Ok(Entered::Each);
        };
        unambiguous(array, part)?;
        Ok(Entered::Same(match value {
            RawBsonRef::Array(inner) => State::Element(inner, behind + 1),
            other => State::At(other, behind + 1),
        }))
    }
}

/// Reject a path part that is both the number of an array element and a field name of a document in
/// the array.
///
/// # Errors
/// 16746.
fn unambiguous(array: &RawArray, part: &str) -> Result<()> {
    for item in array {
        if let RawBsonRef::Document(document) = item?
            && document.get(part)?.is_some()
        {
            let items = Vec::<Bson>::try_from(array)?.into_iter().enumerate();
            let shown: Document = items.map(|(at, item)| (at.to_string(), item)).collect();
            let shown: String = crate::document::shell(&shown).chars().take(SHOWN).collect();
            return Err(Error::location(
                16_746,
                format!(
                    "Ambiguous field name found in array (do not use numeric field names in \
                     embedded elements in an array), field: '{part}' for array: {shown}"
                ),
            ));
        }
    }
    Ok(())
}

/// The array element that a path part selects by number.
fn element<'d>(array: &'d RawArray, part: &str) -> Result<Option<RawBsonRef<'d>>> {
    let number =
        part.bytes().all(|b| b.is_ascii_digit()) && (part == "0" || !part.starts_with('0'));
    if !number {
        return Ok(None);
    }
    let Ok(index) = part.parse::<usize>() else {
        return Ok(None);
    };
    match array.into_iter().nth(index) {
        None => Ok(None),
        Some(value) => Ok(Some(value?)),
    }
}
