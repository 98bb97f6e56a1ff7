//! Wildcard indexes: every path of a document, with its values.
//!
//! A key is two components: the path as a string and the value. Arrays are entered without their
//! positions; arrays within arrays, empty documents and empty arrays are values.

use bson::{Bson, Document, RawArray, RawBsonRef, RawDocument};
use query::{Error, Result};

use super::keys::KeySet;
use super::spec::{FieldKind, IndexSpec, number};
use crate::key::Collate;
use crate::limits::DEPTH_MAX;

/// The paths of a document that are indexed.
#[derive(Debug)]
pub struct Wildcard {
    /// The paths below this one.
    prefix: Vec<String>,
    projection: Projection,
}

#[derive(Debug)]
enum Projection {
    /// All paths except `_id`.
    All,
    Include(Vec<Vec<String>>),
    Exclude(Vec<Vec<String>>),
}

impl Wildcard {
    /// The wildcard paths of an index; `None` if it is not a wildcard index.
    pub(super) fn new(spec: &IndexSpec) -> Result<Option<Wildcard>> {
        let fields = spec.fields()?;
        let Some((name, _)) = fields.iter().find(|(_, kind)| *kind == FieldKind::Wildcard) else {
            return Ok(None);
        };
        let prefix = name.trim_end_matches("$**").trim_end_matches('.');
        let prefix = if prefix.is_empty() {
            Vec::new()
        } else {
            split(prefix)
        };
        let projection = match &spec.wildcard_projection {
            None => Projection::All,
            Some(projection) => parse(projection)?,
        };
        Ok(Some(Wildcard { prefix, projection }))
    }

    /// Whether a path, given without array positions, is indexed with everything below it.
    #[must_use]
    pub fn covers(&self, path: &[&str]) -> bool {
        let below = |parent: &[String]| {
            parent.len() <= path.len() && parent.iter().zip(path).all(|(a, b)| a == b)
        };
        if !below(&self.prefix) {
            return false;
        }
        match &self.projection {
            Projection::All => !self.prefix.is_empty() || path.first() != Some(&"_id"),
            Projection::Include(paths) => paths.iter().any(|p| below(p)),
            Projection::Exclude(paths) => !paths.iter().any(|p| below(p)),
        }
    }

    /// Whether the path itself or any path below it may be indexed.
    fn may_cover_below(&self, path: &[&str]) -> bool {
        let related = |other: &[String]| other.iter().zip(path).all(|(a, b)| a == b);
        related(&self.prefix)
            && match &self.projection {
                Projection::Include(paths) => paths.iter().any(|p| related(p)),
                Projection::All | Projection::Exclude(_) => {
                    self.covers(path) || path.len() < self.prefix.len()
                }
            }
    }

    pub(super) fn keys(
        &self,
        document: &RawDocument,
        collation: Option<&dyn Collate>,
        limit: usize,
        out: &mut KeySet,
    ) -> Result<()> {
        let mut walk = Walk {
            wildcard: self,
            collation,
            limit,
            out,
        };
        walk.document(document, &mut Vec::new())
    }
}

struct Walk<'w> {
    wildcard: &'w Wildcard,
    collation: Option<&'w dyn Collate>,
    limit: usize,
    out: &'w mut KeySet,
}

impl Walk<'_> {
    fn document<'d>(&mut self, document: &'d RawDocument, path: &mut Vec<&'d str>) -> Result<()> {
        if DEPTH_MAX as usize <= path.len() {
            return Err(Error::bad_value("the document is nested too deeply"));
        }
        for element in document.iter_elements() {
            let element = element?;
            path.push(element.key().as_str());
            if self.wildcard.may_cover_below(path) {
                self.value(element.value()?, path)?;
            }
            path.pop();
        }
        Ok(())
    }

    fn value<'d>(&mut self, value: RawBsonRef<'d>, path: &mut Vec<&'d str>) -> Result<()> {
        match value {
            RawBsonRef::Document(document) if !document.is_empty() => self.document(document, path),
            RawBsonRef::Array(array) => self.array(array, path),
            other => self.leaf(Some(other), path),
        }
    }

    fn array<'d>(&mut self, array: &'d RawArray, path: &mut Vec<&'d str>) -> Result<()> {
        self.out.mark(0, 0, 1);
        if array.is_empty() {
            return self.leaf(None, path);
        }
        for element in array {
            match element? {
                RawBsonRef::Document(document) if !document.is_empty() => {
                    self.document(document, path)?;
                }
                other => self.leaf(Some(other), path)?,
            }
        }
        Ok(())
    }

    /// Add the value of a path; `None` is an empty array.
    fn leaf(&mut self, value: Option<RawBsonRef<'_>>, path: &[&str]) -> Result<()> {
        if !self.wildcard.covers(path) {
            return Ok(());
        }
        let path = path.join(".");
        let encoder = self.out.begin();
        encoder.append(RawBsonRef::String(&path), false, None)?;
        match value {
            None => encoder.append_undefined(false),
            Some(value) => encoder.append(value, false, self.collation)?,
        }
        self.out.finish(self.limit)
    }
}

fn split(path: &str) -> Vec<String> {
    path.split('.').map(str::to_owned).collect()
}

fn parse(projection: &Document) -> Result<Projection> {
    let mut include = Vec::new();
    let mut exclude = Vec::new();
    let mut id = None;
    flatten(projection, "", 0, &mut |path, on| {
        if path == "_id" {
            id = Some(on);
        } else if on {
            include.push(split(path));
        } else {
            exclude.push(split(path));
        }
    })?;
    let mixed = !include.is_empty() && !exclude.is_empty();
    if mixed {
        return Err(Error::location(
            31254,
            "Cannot do exclusion and inclusion in one wildcardProjection",
        ));
    }
    if include.is_empty() && id != Some(true) {
        // A projection that includes `_id` and excludes other paths equals one that only excludes
        // them.
        exclude.push(split("_id"));
        return Ok(Projection::Exclude(exclude));
    }
    if !exclude.is_empty() || (include.is_empty() && projection.len() > 1) {
        return Ok(Projection::Exclude(exclude));
    }
    if id == Some(true) {
        include.push(split("_id"));
    }
    Ok(Projection::Include(include))
}

fn flatten(
    projection: &Document,
    prefix: &str,
    depth: u32,
    visit: &mut dyn FnMut(&str, bool),
) -> Result<()> {
    if DEPTH_MAX < depth || projection.is_empty() {
        return Err(Error::parse(
            "The 'wildcardProjection' field can't be an empty object",
        ));
    }
    for (name, value) in projection {
        let path = if prefix.is_empty() {
            name.clone()
        } else {
            format!("{prefix}.{name}")
        };
        match value {
            Bson::Document(inner) => flatten(inner, &path, depth + 1, visit)?,
            Bson::Boolean(on) => visit(&path, *on),
            other => match number(other) {
                Some(n) => visit(&path, n != 0.0),
                None => {
                    return Err(Error::bad_value(
                        "wildcardProjection takes only inclusions and exclusions",
                    ));
                }
            },
        }
    }
    Ok(())
}
