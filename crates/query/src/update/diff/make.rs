//! Makes a diff of two documents.
//!
//! Fields are compared in one pass over both documents. Where the names differ, the field of the
//! first is set aside: it was removed, or it moved towards the end. What is left of the second
//! document at the end of the pass was appended. Arrays are compared element by element.

use std::collections::BTreeSet;

use bson::spec::ElementType;
use bson::{RawDocument, RawDocumentBuf};

use super::DEPTH_MAX;
use crate::update::field::{Field, Fields};
use crate::update::writer::Writer;
use crate::{Error, Result};

/// Bytes of `{$v: 2, diff: ..}` without the diff: the length and the end of the document, the field
/// `$v` with its number, the type and name of `diff`.
const ENVELOPE: usize = 5 + 8 + 6;
/// Bytes of an empty document.
const EMPTY: usize = 5;
/// Bytes by which the diff of a nested value may exceed the value in the form
/// [`Form::Operators`]: enough for a few short paths. Beyond that, as after `$pull` from the front
/// of a long array, the value is written whole.
const SLACK: usize = 256;

/// When a diff is preferred to the whole value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For an update by operators: a diff at any size, so that change streams report an update
    /// with the paths that changed.
    Operators,
    /// For an update by a pipeline: the smaller of diff and document, as in MongoDB.
    Smallest,
}

/// The difference of two documents.
#[derive(Debug, Clone, PartialEq)]
pub enum Difference {
    /// The documents have the same bytes.
    Nothing,
    /// `{$v: 2, diff: ..}`.
    Delta(RawDocumentBuf),
    /// The second document itself: no diff exists (D4), or none that is smaller (D3).
    Whole,
}

/// The difference between the stored document `before` and the one that replaces it.
///
/// # Errors
/// `InvalidBSON`.
pub fn diff(before: &RawDocument, after: &RawDocument, form: Form) -> Result<Difference> {
    if before.as_bytes() == after.as_bytes() {
        return Ok(Difference::Nothing);
    }
    let limit = match form {
        Form::Operators => usize::MAX,
        Form::Smallest => after.as_bytes().len().saturating_sub(ENVELOPE),
    };
    let Some(made) = document(before, after, form, Bound { limit, depth: 0 })? else {
        return Ok(Difference::Whole);
    };
    let (mut writer, outer) = Writer::new(usize::MAX);
    writer.value(ElementType::Int32, ["$v", ""], &2_i32.to_le_bytes())?;
    writer.value(ElementType::EmbeddedDocument, ["diff", ""], &made)?;
    Ok(Difference::Delta(writer.into_document(outer)?))
}

/// Limits of a nested diff.
#[derive(Clone, Copy)]
struct Bound {
    /// The diff must have fewer bytes.
    limit: usize,
    depth: usize,
}

/// The diff of two documents; `None` if none is within the bound, or if a changed name is repeated.
fn document(
    before: &RawDocument,
    after: &RawDocument,
    form: Form,
    bound: Bound,
) -> Result<Option<Vec<u8>>> {
    let mut parts = Parts::default();
    let (mut old, mut new) = (Fields::of(before), Fields::of(after));
    let (mut was, mut is) = (old.advance()?, new.advance()?);
    while let (Some(left), Some(right)) = (was, is) {
        if left.name == right.name {
            if !left.same_value(&right) {
                parts.change(right, changed(&left, &right, form, bound)?);
            }
            is = new.advance()?;
        } else {
            parts.remove(left.name);
        }
        was = old.advance()?;
        if bound.limit <= parts.size {
            return Ok(None);
        }
    }
    while let Some(left) = was {
        parts.remove(left.name);
        was = old.advance()?;
    }
    while let Some(right) = is {
        parts.append(right);
        is = new.advance()?;
    }
    if bound.limit <= parts.size || parts.repeats(before)? || parts.repeats(after)? {
        return Ok(None);
    }
    parts.write().map(Some)
}

/// The diff of two values of a field, if both are documents or both are arrays.
fn changed(
    left: &Field<'_>,
    right: &Field<'_>,
    form: Form,
    outer: Bound,
) -> Result<Option<Vec<u8>>> {
    let bound = Bound {
        limit: match form {
            Form::Operators => right.value.len().saturating_add(SLACK),
            Form::Smallest => right.value.len(),
        },
        depth: outer.depth + 1,
    };
    if DEPTH_MAX < bound.depth {
        return Ok(None);
    }
    if let (Some(before), Some(after)) = (left.document()?, right.document()?) {
        return document(before, after, form, bound);
    }
    if let (Some(before), Some(after)) = (left.array()?, right.array()?) {
        return array(before, after, form, bound);
    }
    Ok(None)
}

/// The diff of two arrays; `None` if none is within the bound, or if the names of the second one
/// are not those of an array, which is how a client may send it.
fn array(
    before: &RawDocument,
    after: &RawDocument,
    form: Form,
    bound: Bound,
) -> Result<Option<Vec<u8>>> {
    let (mut writer, outer) = Writer::new(usize::MAX);
    writer.value(ElementType::Boolean, ["a", ""], &[1])?;
    let (old, new) = (count(before)?, count(after)?);
    if new < old {
        let length = i32::try_from(new).map_err(|_| Error::bad_value("an array is too long"))?;
        writer.value(ElementType::Int32, ["l", ""], &length.to_le_bytes())?;
    }
    let mut lefts = Fields::of(before);
    for (index, right) in Fields::of(after).enumerate() {
        let (left, right) = (lefts.advance()?, right?);
        if !right.is_element(index) {
            return Ok(None);
        }
        if left.is_some_and(|left| left.same_value(&right)) {
            continue;
        }
        let inner = match left {
            Some(left) => changed(&left, &right, form, bound)?,
            None => None,
        };
        match inner {
            Some(inner) => {
                writer.value(ElementType::EmbeddedDocument, ["s", right.name], &inner)?;
            }
            None => writer.value(right.kind, ["u", right.name], right.value)?,
        }
        if bound.limit <= writer.size() {
            return Ok(None);
        }
    }
    let made = writer.finish(outer)?;
    Ok((made.len() < bound.limit).then_some(made))
}

fn count(array: &RawDocument) -> Result<usize> {
    let mut count = 0;
    for element in Fields::of(array) {
        element?;
        count += 1;
    }
    Ok(count)
}

/// The sections of a document's diff.
struct Parts<'a> {
    removed: BTreeSet<&'a str>,
    set: Vec<Field<'a>>,
    appended: Vec<Field<'a>>,
    inner: Vec<(&'a str, Vec<u8>)>,
    /// Bytes of the diff.
    size: usize,
}

impl Default for Parts<'_> {
    fn default() -> Self {
        Parts {
            removed: BTreeSet::new(),
            set: Vec::new(),
            appended: Vec::new(),
            inner: Vec::new(),
            size: EMPTY,
        }
    }
}

/// Bytes of a section's type and one-letter name, and of its document without fields.
const SECTION: usize = 3 + EMPTY;

/// Bytes of the field of a removed field: type, name, `false`.
fn removal(name: &str) -> usize {
    name.len() + 3
}

impl<'a> Parts<'a> {
    fn remove(&mut self, name: &'a str) {
        self.size += if self.removed.is_empty() { SECTION } else { 0 };
        if self.removed.insert(name) {
            self.size += removal(name);
        }
    }

    fn change(&mut self, right: Field<'a>, inner: Option<Vec<u8>>) {
        match inner {
            Some(inner) => {
                // The type, the letter `s`, the name and its end.
                self.size += right.name.len() + 3 + inner.len();
                self.inner.push((right.name, inner));
            }
            None => {
                self.size += if self.set.is_empty() { SECTION } else { 0 };
                self.size += right.element.len();
                self.set.push(right);
            }
        }
    }

    fn append(&mut self, right: Field<'a>) {
        if self.removed.remove(right.name) {
            self.size -= removal(right.name);
            self.size -= if self.removed.is_empty() { SECTION } else { 0 };
        }
        self.size += if self.appended.is_empty() { SECTION } else { 0 };
        self.size += right.element.len();
        self.appended.push(right);
    }

    /// Whether a document has a name of the diff twice (D4).
    fn repeats(&self, document: &RawDocument) -> Result<bool> {
        let fields = self.set.iter().chain(&self.appended);
        let names = fields.map(|field| field.name);
        let names = names.chain(self.inner.iter().map(|(name, _)| *name));
        let mut names: Vec<&str> = names.chain(self.removed.iter().copied()).collect();
        names.sort_unstable();
        if names.is_sorted_by(|a, b| a < b) {
            let mut seen = vec![false; names.len()];
            for field in Fields::of(document) {
                let place = names.binary_search(&field?.name);
                let seen = place.ok().and_then(|place| seen.get_mut(place));
                if seen.is_some_and(|seen| std::mem::replace(seen, true)) {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        Ok(true)
    }

    fn write(self) -> Result<Vec<u8>> {
        let (mut writer, outer) = Writer::new(usize::MAX);
        let nested = ElementType::EmbeddedDocument;
        if !self.removed.is_empty() {
            let section = writer.open(nested, ["d", ""])?;
            for name in &self.removed {
                writer.value(ElementType::Boolean, [name, ""], &[0])?;
            }
            writer.close(section)?;
        }
        for (letter, fields) in [("u", &self.set), ("i", &self.appended)] {
            if fields.is_empty() {
                continue;
            }
            let section = writer.open(nested, [letter, ""])?;
            for field in fields {
                writer.element(field.element)?;
            }
            writer.close(section)?;
        }
        for (name, inner) in &self.inner {
            writer.value(nested, ["s", name], inner)?;
        }
        let made = writer.finish(outer)?;
        assert!(made.len() == self.size, "D3: the size of a diff is known");
        Ok(made)
    }
}
