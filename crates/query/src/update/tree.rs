//! The tree of an update: one node for each name on the paths of its operators.
//!
//! Invariant: no path ends where another passes through, so that the order of operators in the
//! update does not affect its result.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::modifier::{Context, Modifier};
use crate::meter::{self, Held};
use crate::path::array_index;
use crate::{Code, Error, Result};

/// Estimated bytes of a name on a path that no other path has, with the table of those below it.
const NODE: usize = 1024;

/// Estimated bytes of the last name on a path, without its operand.
const LEAF: usize = 192;

/// The changes at one position of a document.
#[derive(Debug, Clone)]
pub(super) enum Node {
    /// Changes of named fields or elements.
    Fields(Fields),
    /// Changes of the elements of an array that match a filter, by the filter's identifier.
    Elements(BTreeMap<Box<str>, Node>),
    /// An operator on the value.
    Leaf(Box<Modifier>),
}

/// Children by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields {
    /// The named children, in the order of application.
    pub(super) named: BTreeMap<Name, Node>,
    /// The child of `$`, which stands for the array element that the query matched.
    pub(super) positional: Option<Box<Node>>,
}

/// A name in the order in which fields are created: numbers first, by value, then other names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name(pub(super) Box<str>);

impl Name {
    /// The name as an index of an array, if it is one.
    pub(super) fn index(&self) -> Option<usize> {
        array_index(&self.0)
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Name) -> Ordering {
        match (self.index(), other.index()) {
            (Some(left), Some(right)) => left.cmp(&right),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => self.0.cmp(&other.0),
        }
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Name) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The identifier in `$[id]`, empty for `$[]`; `None` for other names.
pub(super) fn identifier(component: &str) -> Option<&str> {
    component.strip_prefix("$[")?.strip_suffix(']')
}

impl Node {
    /// Whether the changes create a value where none exists.
    pub(super) fn creates(&self, cx: &Context<'_>) -> bool {
        match self {
            Node::Leaf(modifier) => modifier.creates(cx),
            Node::Fields(fields) => fields.creates(cx),
            Node::Elements(_) => true,
        }
    }

    /// Whether it is an error if the path cannot be created; see [`Modifier::needs_path`].
    pub(super) fn needs_path(&self, cx: &Context<'_>) -> bool {
        match self {
            Node::Leaf(modifier) => modifier.needs_path(cx),
            Node::Fields(fields) => {
                let mut nodes = fields.named.values().chain(fields.positional.as_deref());
                nodes.any(|node| node.needs_path(cx))
            }
            Node::Elements(_) => true,
        }
    }
}

impl Fields {
    /// Whether one of the changes creates a value where none exists.
    pub(super) fn creates(&self, cx: &Context<'_>) -> bool {
        let mut nodes = self.named.values().chain(self.positional.as_deref());
        nodes.any(|node| node.creates(cx))
    }

    /// Puts `modifier` at `path`.
    ///
    /// # Errors
    /// `ConflictingUpdateOperators` when another operator has this path, a part of it, or a path
    /// below it.
    pub(super) fn insert(&mut self, path: &str, modifier: Modifier, held: &mut Held) -> Result<()> {
        let components: Vec<&str> = path.split('.').collect();
        let mut fields = self;
        let mut at = 0;
        loop {
            let Some(&component) = components.get(at) else {
                return Err(conflict(path, path));
            };
            let rest = components.get(at + 1..).unwrap_or_default();
            let here = || components.get(..=at).unwrap_or_default().join(".");
            meter::step()?;
            let place = fields.place(component);
            if let Place::Vacant(_) = &place {
                let bytes = if rest.is_empty() { LEAF } else { NODE };
                held.require("An update", held.bytes() + bytes)?;
            }
            let Some(next) = rest.first() else {
                return match place {
                    Place::Vacant(slot) => {
                        slot.fill(Node::Leaf(Box::new(modifier)));
                        Ok(())
                    }
                    Place::Taken(_) => Err(conflict(path, &here())),
                };
            };
            let wants_elements = identifier(next).is_some();
            let node = match place {
                Place::Vacant(slot) if wants_elements => slot.fill(Node::Elements(BTreeMap::new())),
                Place::Vacant(slot) => slot.fill(Node::Fields(Fields::default())),
                Place::Taken(node) => node,
            };
            match node {
                Node::Fields(inner) if !wants_elements => {
                    fields = inner;
                    at += 1;
                }
                Node::Elements(inner) if wants_elements => {
                    let id = identifier(next).unwrap_or_default();
                    let last = rest.len() == 1;
                    if last {
                        if inner.contains_key(id) {
                            return Err(conflict(path, path));
                        }
                        inner.insert(id.into(), Node::Leaf(Box::new(modifier)));
                        return Ok(());
                    }
                    let below = inner.entry(id.into()).or_insert_with(|| {
                        match rest.get(1).and_then(|name| identifier(name)) {
                            Some(_) => Node::Elements(BTreeMap::new()),
                            None => Node::Fields(Fields::default()),
                        }
                    });
                    let below_path = rest.get(1..).unwrap_or_default();
                    return insert_below(below, path, below_path, (modifier, held));
                }
                _ => return Err(conflict(path, &here())),
            }
        }
    }

    fn place(&mut self, component: &str) -> Place<'_> {
        if component == "$" {
            return match &mut self.positional {
                Some(node) => Place::Taken(node),
                vacant => Place::Vacant(Slot::Positional(vacant)),
            };
        }
        match self.named.entry(Name(component.into())) {
            std::collections::btree_map::Entry::Occupied(entry) => Place::Taken(entry.into_mut()),
            std::collections::btree_map::Entry::Vacant(entry) => Place::Vacant(Slot::Named(entry)),
        }
    }
}

/// Puts `modifier` at `rest`, the names of `path` below an element of an array.
fn insert_below(
    node: &mut Node,
    path: &str,
    rest: &[&str],
    (modifier, held): (Modifier, &mut Held),
) -> Result<()> {
    meter::step()?;
    held.require("An update", held.bytes() + NODE)?;
    match node {
        Node::Fields(fields) if rest.first().is_some_and(|n| identifier(n).is_none()) => fields
            .insert(&rest.join("."), modifier, held)
            .map_err(|error| match error.code {
                Code::CONFLICTING_UPDATE_OPERATORS => conflict(path, path),
                _ => error,
            }),
        Node::Elements(elements) => {
            let Some((id, below)) = rest
                .split_first()
                .and_then(|(name, below)| Some((identifier(name)?, below)))
            else {
                return Err(conflict(path, path));
            };
            if below.is_empty() {
                if elements.contains_key(id) {
                    return Err(conflict(path, path));
                }
                elements.insert(id.into(), Node::Leaf(Box::new(modifier)));
                return Ok(());
            }
            let nested = below.first().is_some_and(|n| identifier(n).is_some());
            let child = elements.entry(id.into()).or_insert_with(|| match nested {
                true => Node::Elements(BTreeMap::new()),
                false => Node::Fields(Fields::default()),
            });
            insert_below(child, path, below, (modifier, held))
        }
        _ => Err(conflict(path, path)),
    }
}

enum Place<'a> {
    Vacant(Slot<'a>),
    Taken(&'a mut Node),
}

enum Slot<'a> {
    Positional(&'a mut Option<Box<Node>>),
    Named(std::collections::btree_map::VacantEntry<'a, Name, Node>),
}

impl<'a> Slot<'a> {
    fn fill(self, node: Node) -> &'a mut Node {
        match self {
            Slot::Positional(slot) => slot.insert(Box::new(node)),
            Slot::Named(entry) => entry.insert(node),
        }
    }
}

pub(super) fn conflict(path: &str, at: &str) -> Error {
    Error::new(
        Code::CONFLICTING_UPDATE_OPERATORS,
        format!("Updating the path '{path}' would create a conflict at '{at}'"),
    )
}
