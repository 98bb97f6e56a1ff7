//! The `updateDescription` of an event, made of the diff of an oplog entry.
//!
//! ```text
//! diff         {d: {a: false}, i: {n: 0}, sb: {u: {y: 5}}, sl: {a: true, l: 2, u1: 7}}
//! description  {updatedFields: {n: 0, "b.y": 5, "l.1": 7}, removedFields: ["a"],
//!               truncatedArrays: [{field: "l", newSize: 2}]}
//! ```
//!
//! Paths have their names and indexes joined by dots. With `showExpandedEvents`,
//! `disambiguatedPaths` has the components of each path that does not say them: where a name has a
//! dot, or is a number without leading zeros behind the first component. Indexes are integers there
//! and names are strings.

use std::fmt::Write;

use bson::raw::{CStr, cstr};
use bson::{RawArrayBuf, RawBsonRef, RawDocument, RawDocumentBuf};
use query::{Error, Result};

/// Maximum nesting of a diff: diffs follow documents, which are not nested deeper.
const DEPTH_MAX: usize = 200;

/// The description of a diff; `expanded` for `disambiguatedPaths`.
///
/// # Errors
/// `InvalidBSON`; `FailedToParse` for what is no diff.
pub(super) fn describe(diff: &RawDocument, expanded: bool) -> Result<RawDocumentBuf> {
    let mut walk = Walk {
        path: String::new(),
        parts: Vec::new(),
        updated: RawDocumentBuf::new(),
        removed: RawArrayBuf::new(),
        truncated: RawArrayBuf::new(),
        disambiguated: RawDocumentBuf::new(),
    };
    walk.document(diff)?;
    let mut out = RawDocumentBuf::new();
    out.append(cstr!("updatedFields"), walk.updated);
    out.append(cstr!("removedFields"), walk.removed);
    out.append(cstr!("truncatedArrays"), walk.truncated);
    if expanded {
        out.append(cstr!("disambiguatedPaths"), walk.disambiguated);
    }
    Ok(out)
}

/// A component of a path.
#[derive(Clone, Copy)]
enum Part<'d> {
    Name(&'d str),
    Index(i32),
}

/// A walk through a diff.
struct Walk<'d> {
    /// The path of the current diff, with dots.
    path: String,
    parts: Vec<Part<'d>>,
    updated: RawDocumentBuf,
    removed: RawArrayBuf,
    truncated: RawArrayBuf,
    disambiguated: RawDocumentBuf,
}

impl<'d> Walk<'d> {
    /// The diff of a document: fields set, then fields removed, then nested diffs.
    fn document(&mut self, diff: &'d RawDocument) -> Result<()> {
        for section in ["u", "i"] {
            if let Some(fields) = self.section(diff, section)? {
                for field in fields {
                    let (name, value) = field?;
                    self.set(Part::Name(name.as_str()), value)?;
                }
            }
        }
        if let Some(fields) = self.section(diff, "d")? {
            for field in fields {
                let (name, _) = field?;
                self.below(Part::Name(name.as_str()), |walk| {
                    walk.removed.push(walk.path.as_str());
                    walk.disambiguate()
                })?;
            }
        }
        for element in diff {
            let (name, value) = element?;
            match (name.as_str(), value) {
                ("u" | "i" | "d", RawBsonRef::Document(_)) => {}
                (name, RawBsonRef::Document(inner)) => {
                    let name = name.strip_prefix('s').ok_or_else(|| unknown(name))?;
                    self.below(Part::Name(name), |walk| walk.inner(inner))?;
                }
                (name, _) => return Err(unknown(name)),
            }
        }
        Ok(())
    }

    fn section(&self, diff: &'d RawDocument, name: &str) -> Result<Option<&'d RawDocument>> {
        match diff.get(name)? {
            None => Ok(None),
            Some(RawBsonRef::Document(fields)) => Ok(Some(fields)),
            Some(_) => Err(unknown(name)),
        }
    }

    /// A diff below another one.
    fn inner(&mut self, diff: &'d RawDocument) -> Result<()> {
        if DEPTH_MAX < self.parts.len() {
            return Err(Error::parse(
                "a diff of an oplog entry is nested too deeply",
            ));
        }
        match diff.get("a")? {
            Some(RawBsonRef::Boolean(true)) => self.array(diff),
            _ => self.document(diff),
        }
    }

    /// The diff of an array: its new length, then its elements.
    fn array(&mut self, diff: &'d RawDocument) -> Result<()> {
        for element in diff {
            let (name, value) = element?;
            let name = name.as_str();
            if name == "a" {
                continue;
            }
            if name == "l" {
                self.truncate(length(value)?)?;
                continue;
            }
            let (kind, index) = name.split_at_checked(1).ok_or_else(|| unknown(name))?;
            let index = index.parse().ok().filter(|index| 0 <= *index);
            let index = Part::Index(index.ok_or_else(|| unknown(name))?);
            match (kind, value) {
                ("u", value) => self.set(index, value)?,
                ("s", RawBsonRef::Document(inner)) => {
                    self.below(index, |walk| walk.inner(inner))?;
                }
                _ => return Err(unknown(name)),
            }
        }
        Ok(())
    }

    fn truncate(&mut self, length: i32) -> Result<()> {
        let mut one = RawDocumentBuf::new();
        one.append(cstr!("field"), self.path.as_str());
        one.append(cstr!("newSize"), length);
        self.truncated.push(one);
        self.disambiguate()
    }

    fn set(&mut self, part: Part<'d>, value: RawBsonRef<'d>) -> Result<()> {
        self.below(part, |walk| {
            walk.updated.append(c_string(&walk.path)?, value);
            walk.disambiguate()
        })
    }

    /// Does something at the path with another component.
    fn below(
        &mut self,
        part: Part<'d>,
        visit: impl FnOnce(&mut Walk<'d>) -> Result<()>,
    ) -> Result<()> {
        let before = self.path.len();
        if !self.parts.is_empty() {
            self.path.push('.');
        }
        match part {
            Part::Name(name) => self.path.push_str(name),
            Part::Index(index) => {
                write!(self.path, "{index}").expect("writing to a string cannot fail");
            }
        }
        self.parts.push(part);
        let visited = visit(self);
        self.parts.pop();
        self.path.truncate(before);
        visited
    }

    /// Add the components of the path, if it does not say them.
    fn disambiguate(&mut self) -> Result<()> {
        let unclear = |(at, part): (usize, &Part<'_>)| match part {
            Part::Name(name) => name.contains('.') || 0 < at && is_number(name),
            Part::Index(_) => false,
        };
        if !self.parts.iter().enumerate().any(unclear) {
            return Ok(());
        }
        let mut parts = RawArrayBuf::new();
        for part in &self.parts {
            match part {
                Part::Name(name) => parts.push(*name),
                Part::Index(index) => parts.push(*index),
            }
        }
        self.disambiguated.append(c_string(&self.path)?, parts);
        Ok(())
    }
}

/// Whether a name looks like an index: digits without leading zeros.
fn is_number(name: &str) -> bool {
    let digits = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    digits && (name == "0" || !name.starts_with('0'))
}

fn length(value: RawBsonRef<'_>) -> Result<i32> {
    let length = match value {
        RawBsonRef::Int32(length) => Some(length),
        RawBsonRef::Int64(length) => i32::try_from(length).ok(),
        _ => None,
    };
    length
        .filter(|length| 0 <= *length)
        .ok_or_else(|| Error::parse("a diff of an oplog entry has a wrong length of an array"))
}

/// The path as a name. Names have no zero bytes, as they were read from BSON.
fn c_string(path: &str) -> Result<&CStr> {
    <&CStr>::try_from(path)
        .map_err(|_| Error::parse("a diff of an oplog entry has a name with a zero byte"))
}

fn unknown(name: &str) -> Error {
    Error::parse(format!(
        "a diff of an oplog entry has the unknown field '{name}'"
    ))
}
