//! Applies a diff to a document.

use std::collections::BTreeMap;

use bson::spec::ElementType;
use bson::{RawDocument, RawDocumentBuf};

use super::DEPTH_MAX;
use crate::path::array_index;
use crate::update::field::{Field, Fields};
use crate::update::writer::Writer;
use crate::{Code, Error, Result};

/// Maximum length to which a diff may extend an array.
const LENGTH_MAX: usize = 1 << 22;
/// The largest document that a diff may lead to, in bytes: MongoDB's limit for internal documents,
/// 16 KiB more than a user may store. A few bytes of a diff can ask for an array of millions of
/// elements.
pub const DELTA_MAX: usize = 16 * 1024 * 1024 + 16 * 1024;

/// The document that results from applying `diff`, the content of `{$v: 2, diff: ..}`.
///
/// # Errors
/// An invalid diff, with MongoDB's codes; `InvalidBSON`; `BSONObjectTooLarge` for a result of more
/// than [`DELTA_MAX`] bytes.
pub fn delta(document: &RawDocument, diff: &RawDocument) -> Result<RawDocumentBuf> {
    let (mut writer, outer) = Writer::new(DELTA_MAX);
    fields(&mut writer, document, diff, 0)?;
    writer.into_document(outer)
}

/// The change of a field or an element.
enum Change<'d> {
    Remove,
    Set(Field<'d>),
    /// Removed from its position and appended.
    Append,
    Inner(&'d RawDocument),
    /// Set already.
    Done,
}

/// A diff of a document.
struct Sections<'d> {
    changes: BTreeMap<&'d str, Change<'d>>,
    /// The fields of `u`, which are appended when they are missing, and then those of `i`.
    set: Vec<Field<'d>>,
    appended: Vec<Field<'d>>,
}

impl<'d> Sections<'d> {
    fn parse(diff: &'d RawDocument) -> Result<Sections<'d>> {
        let mut sections = Sections {
            changes: BTreeMap::new(),
            set: Vec::new(),
            appended: Vec::new(),
        };
        for field in Fields::of(diff) {
            let field = field?;
            let Some(inner) = field.document()? else {
                return Err(unknown(field.name));
            };
            match field.name {
                "d" => {
                    for removed in Fields::of(inner) {
                        sections.add(removed?.name, Change::Remove)?;
                    }
                }
                "u" => {
                    for set in Fields::of(inner) {
                        let set = set?;
                        sections.add(set.name, Change::Set(set))?;
                        sections.set.push(set);
                    }
                }
                "i" => {
                    for appended in Fields::of(inner) {
                        let appended = appended?;
                        sections.add(appended.name, Change::Append)?;
                        sections.appended.push(appended);
                    }
                }
                name => {
                    let name = name.strip_prefix('s').ok_or_else(|| unknown(name))?;
                    sections.add(name, Change::Inner(inner))?;
                }
            }
        }
        if sections.changes.is_empty() {
            return Err(Error::location(4_770_500, "Expected diff to be non-empty"));
        }
        Ok(sections)
    }

    fn add(&mut self, name: &'d str, change: Change<'d>) -> Result<()> {
        match self.changes.insert(name, change) {
            None => Ok(()),
            Some(_) => Err(repeated(name)),
        }
    }
}

/// Writes the fields of `document` after `diff`. Recursion is bounded by `depth`.
fn fields(
    writer: &mut Writer,
    document: &RawDocument,
    diff: &RawDocument,
    depth: usize,
) -> Result<()> {
    check_depth(depth)?;
    let mut sections = Sections::parse(diff)?;
    for field in Fields::of(document) {
        let field = field?;
        let Some(change) = sections.changes.get_mut(field.name) else {
            writer.element(field.element)?;
            continue;
        };
        match change {
            Change::Remove | Change::Append | Change::Done => {}
            Change::Set(next) => {
                writer.element(next.element)?;
                *change = Change::Done;
            }
            Change::Inner(inner) => value(writer, &field, field.name, inner, depth)?,
        }
    }
    for field in &sections.set {
        if !matches!(sections.changes.get(field.name), Some(Change::Done)) {
            writer.element(field.element)?;
        }
    }
    for field in &sections.appended {
        writer.element(field.element)?;
    }
    Ok(())
}

/// Writes the value of a field after a diff of it, as it is if the diff is for another type (D1).
fn value(
    writer: &mut Writer,
    field: &Field<'_>,
    name: &str,
    diff: &RawDocument,
    depth: usize,
) -> Result<()> {
    let of_array = is_of_array(diff)?;
    let inside = if of_array {
        field.array()?
    } else {
        field.document()?
    };
    let Some(inside) = inside else {
        return writer.value(field.kind, [name, ""], field.value);
    };
    let open = writer.open(field.kind, [name, ""])?;
    if of_array {
        elements(writer, inside, diff, depth + 1)?;
    } else {
        fields(writer, inside, diff, depth + 1)?;
    }
    writer.close(open)
}

fn is_of_array(diff: &RawDocument) -> Result<bool> {
    let first = Fields::of(diff).next().transpose()?;
    Ok(first.is_some_and(|field| {
        field.name == "a" && field.kind == ElementType::Boolean && field.value == [1]
    }))
}

/// A diff of an array.
struct Elements<'d> {
    /// The length to which the array is cut or extended first.
    length: Option<usize>,
    changes: BTreeMap<usize, Change<'d>>,
}

impl<'d> Elements<'d> {
    fn parse(diff: &'d RawDocument) -> Result<Elements<'d>> {
        let mut elements = Elements {
            length: None,
            changes: BTreeMap::new(),
        };
        for field in Fields::of(diff).skip(1) {
            let field = field?;
            if field.name == "l" {
                let length = length_of(&field).ok_or_else(|| unknown("l"))?;
                if elements.length.replace(length).is_some() {
                    return Err(repeated("l"));
                }
                check_length(length)?;
                continue;
            }
            let (letter, place) = field
                .name
                .split_at_checked(1)
                .ok_or_else(|| unknown(field.name))?;
            let place = array_index(place).ok_or_else(|| unknown(field.name))?;
            check_length(place.saturating_add(1))?;
            let change = match (letter, field.document()?) {
                ("u", _) => Change::Set(field),
                ("s", Some(inner)) => Change::Inner(inner),
                _ => return Err(unknown(field.name)),
            };
            if elements.changes.insert(place, change).is_some() {
                return Err(repeated(field.name));
            }
        }
        Ok(elements)
    }
}

/// Writes the elements of `array` after `diff`: missing ones before a changed one are null.
fn elements(
    writer: &mut Writer,
    array: &RawDocument,
    diff: &RawDocument,
    depth: usize,
) -> Result<()> {
    check_depth(depth)?;
    let parsed = Elements::parse(diff)?;
    let kept = parsed.length.unwrap_or(usize::MAX);
    let changed = parsed.changes.keys().next_back().map_or(0, |last| last + 1);
    let least = parsed.length.unwrap_or(0).max(changed);
    let mut old = Fields::of(array).take(kept);
    let mut index = 0;
    loop {
        let current = old.next().transpose()?;
        if current.is_none() && least <= index {
            return Ok(());
        }
        let name = index.to_string();
        match (parsed.changes.get(&index), current) {
            (Some(Change::Set(next)), _) => writer.value(next.kind, [&name, ""], next.value)?,
            (Some(Change::Inner(inner)), Some(field)) => {
                value(writer, &field, &name, inner, depth)?;
            }
            (_, Some(field)) => writer.value(field.kind, [&name, ""], field.value)?,
            (_, None) => writer.value(ElementType::Null, [&name, ""], &[])?,
        }
        index += 1;
    }
}

fn length_of(field: &Field<'_>) -> Option<usize> {
    if field.kind != ElementType::Int32 {
        return None;
    }
    let length = i32::from_le_bytes(field.value.try_into().ok()?);
    usize::try_from(length).ok()
}

fn check_length(length: usize) -> Result<()> {
    if length <= LENGTH_MAX {
        return Ok(());
    }
    let message = format!("A diff makes an array of {length} elements");
    Err(Error::location(4_770_513, message))
}

fn check_depth(depth: usize) -> Result<()> {
    if depth <= DEPTH_MAX {
        return Ok(());
    }
    let message = format!("a diff exceeds {DEPTH_MAX} levels of nesting");
    Err(Error::new(Code::OVERFLOW, message))
}

fn unknown(name: &str) -> Error {
    let message = format!("Unexpected field in the diff of an update: '{name}'");
    Error::location(4_770_503, message)
}

fn repeated(name: &str) -> Error {
    let message = format!("duplicate field name in diff: {name}");
    Error::location(4_728_000, message)
}
