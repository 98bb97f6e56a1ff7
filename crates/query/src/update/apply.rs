//! Applies a tree of operators to a document.
//!
//! Recursion is bounded by the length of paths, which parsing bounds.

use bson::{Bson, Document};

use super::Position;
use super::modifier::{Context, Modifier, Outcome};
use super::spec::Operators;
use super::tree::{Fields, Name, Node, conflict};
use super::{dollar, replacement};
use crate::meter::Held;
use crate::settings::Settings;
use crate::value::compare;
use crate::{Code, Error, Result, meter, show};

/// Maximum number of nulls that are appended to an array to reach an index.
const MAX_PADDING: usize = 1_500_000;

/// Applies operators to `current`; `None` if nothing changed.
pub(super) fn operators(
    operators: &Operators,
    current: &Document,
    at: &Position,
    settings: &Settings,
) -> Result<Option<Document>> {
    let _scope = meter::scope();
    // Both documents are stored ones, so they count in the common budget only.
    let mut held = Held::new();
    let bytes = meter::document_size(current);
    held.require("An update", bytes.saturating_mul(2))?;
    let mut next = meter::copy_stored(current, bytes)?;
    let mut apply = Apply {
        cx: Context {
            root: current,
            at,
            collator: settings.collator.as_deref(),
        },
        operators,
        path: String::new(),
        changed: false,
        dollars: Vec::new(),
    };
    apply.document(&operators.fields, &mut next)?;
    if !apply.changed {
        return Ok(None);
    }
    let written = apply.dollars;
    if !at.inserting {
        dollar::check(&next, |name| written.iter().any(|known| known == name))?;
    }
    check_id(current, &mut next)?;
    Ok(Some(next))
}

/// Checks that `_id` is unchanged; the insert of an upsert may add it.
fn check_id(current: &Document, next: &mut Document) -> Result<()> {
    let Some(before) = current.get("_id") else {
        return Ok(());
    };
    match next.get_mut("_id") {
        Some(after) if compare(before, after).is_eq() => {
            // 1 and 1.0 are the same `_id`: the stored form is kept.
            *after = before.clone();
            Ok(())
        }
        Some(Bson::Document(_)) | None => Err(immutable()),
        Some(after) if matches!(before, Bson::Document(_)) => Err(replacement::altered(after)),
        Some(_) => Err(immutable()),
    }
}

fn immutable() -> Error {
    Error::new(
        Code::IMMUTABLE_FIELD,
        "Performing an update on the path '_id' would modify the immutable field '_id'",
    )
}

struct Apply<'a> {
    cx: Context<'a>,
    operators: &'a Operators,
    /// The path from the root to the current position.
    path: String,
    changed: bool,
    /// Top-level fields written so far whose names begin with `$`.
    dollars: Vec<String>,
}

impl Apply<'_> {
    /// Applies children to the fields of a document.
    fn document(&mut self, fields: &Fields, document: &mut Document) -> Result<()> {
        let positional = self.positional(fields)?;
        for (name, node) in fields.named.iter().map(|(name, node)| (&*name.0, node)) {
            self.at(name, |apply| apply.field(node, document, name))?;
        }
        if let Some((name, node)) = positional {
            self.at(&name.0, |apply| apply.field(node, document, &name.0))?;
        }
        Ok(())
    }

    /// Runs `body` with `name` appended to the current path.
    fn at(&mut self, name: &str, body: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let len = self.path.len();
        if len > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        let result = body(self);
        self.path.truncate(len);
        result
    }

    /// The child of `$`, with the index of the matched array element as its name.
    fn positional<'n>(&self, fields: &'n Fields) -> Result<Option<(Name, &'n Node)>> {
        let Some(node) = &fields.positional else {
            return Ok(None);
        };
        let Some(index) = self.cx.at.array_index else {
            return Err(Error::bad_value(
                "The positional operator did not find the match needed from the query.",
            ));
        };
        let name = Name(index.to_string().into());
        if let Some(other) = fields.named.get(&name) {
            let both = (&**node, other);
            if !matches!(both, (Node::Fields(_), Node::Fields(_))) {
                let path = format!("{}.{index}", self.path);
                return Err(conflict(&path, &path));
            }
        }
        Ok(Some((name, node)))
    }

    fn field(&mut self, node: &Node, document: &mut Document, name: &str) -> Result<()> {
        match node {
            Node::Leaf(modifier) => {
                let current = document.get_mut(name);
                let before = current.as_deref().map_or(0, meter::size);
                match modifier.apply(&self.path, current, &self.cx)? {
                    Outcome::Keep => {}
                    Outcome::Set(value) => {
                        charge(&value, before)?;
                        self.changed = true;
                        self.note_dollar(name);
                        document.insert(name, value);
                    }
                    Outcome::Remove => {
                        self.changed = true;
                        document.remove(name);
                    }
                }
                Ok(())
            }
            _ => match document.get_mut(name) {
                Some(value) => self.value(node, value, name),
                None => {
                    if let Some(value) = self.create(node)? {
                        self.note_dollar(name);
                        document.insert(name, value);
                    }
                    Ok(())
                }
            },
        }
    }

    /// Records that the field at the current path is written, if its name must be checked for `$`.
    fn note_dollar(&mut self, name: &str) {
        if name.starts_with('$') && self.path == name {
            self.dollars.push(name.to_owned());
        }
    }

    /// Applies a node that is not a leaf to an existing value.
    fn value(&mut self, node: &Node, value: &mut Bson, name: &str) -> Result<()> {
        match (node, value) {
            (Node::Fields(fields), Bson::Document(document)) => self.document(fields, document),
            (Node::Fields(fields), Bson::Array(array)) => self.array(fields, array, name),
            (Node::Fields(fields), other) => {
                // Fails for the positional `$`, since the matched element must be in an array.
                self.positional(fields)?;
                let mut named = fields.named.iter();
                match named.find(|(_, node)| node.needs_path(&self.cx)) {
                    Some((child, node)) => Err(self.no_path(child, node, name, other)),
                    None => Ok(()),
                }
            }
            (Node::Elements(filters), Bson::Array(array)) => self.elements(filters, array),
            (Node::Elements(_), other) => Err(Error::bad_value(format!(
                "Cannot apply array updates to non-array element {}",
                show::field(name, other)
            ))),
            (Node::Leaf(_), _) => Ok(()),
        }
    }

    /// Applies a node at a path without a value; returns the new value, if any.
    fn create(&mut self, node: &Node) -> Result<Option<Bson>> {
        match node {
            Node::Leaf(modifier) => self.create_leaf(modifier),
            Node::Fields(fields) => {
                meter::charge("An update", meter::NEW_DOCUMENT)?;
                let mut document = Document::new();
                let before = self.changed;
                self.changed = false;
                self.document(fields, &mut document)?;
                let made = self.changed;
                self.changed |= before;
                Ok(made.then_some(Bson::Document(document)))
            }
            Node::Elements(_) => Err(Error::bad_value(format!(
                "The path '{}' must exist in the document in order to apply array updates.",
                self.path
            ))),
        }
    }

    fn create_leaf(&mut self, modifier: &Modifier) -> Result<Option<Bson>> {
        match modifier.apply(&self.path, None, &self.cx)? {
            Outcome::Set(value) => {
                charge(&value, 0)?;
                self.changed = true;
                Ok(Some(value))
            }
            Outcome::Keep | Outcome::Remove => Ok(None),
        }
    }

    /// Applies children to the elements of an array, named by their indexes.
    fn array(&mut self, fields: &Fields, array: &mut Vec<Bson>, name: &str) -> Result<()> {
        let positional = self.positional(fields)?;
        let named = fields.named.iter();
        for (child, node) in named.chain(positional.as_ref().map(|(name, node)| (name, *node))) {
            let Some(index) = child.index() else {
                if node.needs_path(&self.cx) {
                    return Err(self.no_path(child, node, name, &Bson::Array(array.clone())));
                }
                continue;
            };
            self.at(&child.0, |apply| apply.element(node, array, index))?;
        }
        Ok(())
    }

    /// The error of an operator that cannot create `child`, because `value`, the value of the field
    /// `name`, cannot have it.
    fn no_path(&self, child: &Name, node: &Node, name: &str, value: &Bson) -> Error {
        let path = format!("{}.{}", self.path, child.0);
        if !node.creates(&self.cx) {
            return Error::new(
                Code::PATH_NOT_VIABLE,
                format!(
                    "Cannot use the part ({}) of ({path}) to traverse the element ({{{}}})",
                    child.0,
                    show::field(name, value)
                ),
            );
        }
        let renamed = rename_error(node, path, &self.cx);
        renamed.unwrap_or_else(|| not_viable(&child.0, name, value))
    }

    fn element(&mut self, node: &Node, array: &mut Vec<Bson>, index: usize) -> Result<()> {
        let len = array.len();
        let Some(element) = array.get_mut(index) else {
            if !node.creates(&self.cx) {
                return Ok(());
            }
            if index - len > MAX_PADDING {
                return Err(Error::new(
                    Code::CANNOT_BACKFILL_ARRAY,
                    format!("can't backfill more than {MAX_PADDING} elements"),
                ));
            }
            if let Some(value) = self.create(node)? {
                meter::charge("An update", (index - len) * size_of::<Bson>())?;
                array.resize(index, Bson::Null);
                array.push(value);
            }
            return Ok(());
        };
        match node {
            Node::Leaf(modifier) => {
                let before = meter::size(element);
                match modifier.apply(&self.path, Some(&mut *element), &self.cx)? {
                    Outcome::Keep => {}
                    Outcome::Set(value) => {
                        charge(&value, before)?;
                        self.changed = true;
                        *element = value;
                    }
                    Outcome::Remove => {
                        self.changed = true;
                        *element = Bson::Null;
                    }
                }
                Ok(())
            }
            _ => self.value(node, element, &index.to_string()),
        }
    }

    /// Applies to each element of an array the changes of the filters that the element matches.
    fn elements(
        &mut self,
        filters: &std::collections::BTreeMap<Box<str>, Node>,
        array: &mut Vec<Bson>,
    ) -> Result<()> {
        for index in 0..array.len() {
            meter::step()?;
            let Some(element) = array.get(index) else {
                break;
            };
            let mut nodes = Vec::new();
            for (id, node) in filters {
                if self.operators.filters.matches(id, element)? {
                    nodes.push(node);
                }
            }
            let name = index.to_string();
            if nodes.len() > 1 && !nodes.iter().all(|node| matches!(node, Node::Fields(_))) {
                let path = format!("{}.{name}", self.path);
                return Err(conflict(&path, &path));
            }
            for node in nodes {
                self.at(&name, |apply| apply.element(node, array, index))?;
            }
        }
        Ok(())
    }
}

/// Charges the memory meter for a value that an operator put into the document in place of one of
/// `before` bytes, until the update has been applied.
fn charge(value: &Bson, before: usize) -> Result<()> {
    let bytes = meter::size(value);
    meter::read(bytes)?;
    meter::charge("An update", bytes.saturating_sub(before))
}

/// The error for the first `$rename` below `node` whose source or destination is in an array, if
/// this `$rename` would create something.
fn rename_error(node: &Node, mut path: String, cx: &Context<'_>) -> Option<Error> {
    let mut node = node;
    while let Node::Fields(fields) = node {
        let (name, next) = fields.named.iter().find(|(_, node)| node.needs_path(cx))?;
        path = format!("{path}.{}", name.0);
        node = next;
    }
    match node {
        Node::Leaf(modifier) => match &**modifier {
            Modifier::Rename(source) => super::rename::apply(source, &path, None, cx).err(),
            _ => None,
        },
        _ => None,
    }
}

fn not_viable(child: &str, name: &str, value: &Bson) -> Error {
    Error::new(
        Code::PATH_NOT_VIABLE,
        format!(
            "Cannot create field '{child}' in element {{{}}}",
            show::field(name, value)
        ),
    )
}
