//! The initial document of an upsert: the fields for which the query requires equality.

use bson::{Bson, Document};

use crate::filter::{Filter, Node, Test};
use crate::{Code, Error, Result};

/// The fields that `filter` requires to equal one value: by equality, by `$in` or `$or` with one
/// member, and by `$and` of these.
///
/// # Errors
/// `NotSingleValueField` when two conditions are for the same path, or for paths of which one
/// contains the other.
pub fn upsert_base(filter: &Filter) -> Result<Document> {
    let mut found: Vec<(String, Bson)> = Vec::new();
    gather(filter.root(), &mut found)?;
    let mut document = Document::new();
    if let Some(at) = found.iter().position(|(path, _)| path == "_id") {
        let (_, id) = found.remove(at);
        document.insert("_id", id);
    }
    for (path, value) in found {
        put(&mut document, &path, &path, value)?;
    }
    Ok(document)
}

/// Recursion is bounded by the depth of filters, which parsing bounds.
fn gather(node: &Node, found: &mut Vec<(String, Bson)>) -> Result<()> {
    match node {
        Node::And(nodes) => nodes.iter().try_for_each(|node| gather(node, found)),
        Node::Or(nodes) => match nodes.as_slice() {
            [only] => gather(only, found),
            _ => Ok(()),
        },
        Node::Field { path, test } => match test {
            Test::Eq(value) => add(path.as_str(), value, found),
            Test::In(set) => match set.values.as_slice() {
                [only] if set.regexes.is_empty() => add(path.as_str(), only, found),
                _ => Ok(()),
            },
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

fn add(path: &str, value: &Bson, found: &mut Vec<(String, Bson)>) -> Result<()> {
    for (known, _) in found.iter() {
        if known == path {
            return Err(twice(path));
        }
        let below = |long: &str, short: &str| {
            long.strip_prefix(short)
                .is_some_and(|rest| rest.starts_with('.'))
        };
        if below(path, known) || below(known, path) {
            return Err(Error::new(
                Code::NOT_SINGLE_VALUE_FIELD,
                format!(
                    "cannot infer query fields to set, both paths '{path}' and '{known}' are \
                     matched"
                ),
            ));
        }
    }
    found.push((path.to_owned(), value.clone()));
    Ok(())
}

fn twice(path: &str) -> Error {
    Error::new(
        Code::NOT_SINGLE_VALUE_FIELD,
        format!("cannot infer query fields to set, path '{path}' is matched twice"),
    )
}

/// Recursion is bounded by the length of paths.
fn put(document: &mut Document, whole: &str, path: &str, value: Bson) -> Result<()> {
    let Some((head, rest)) = path.split_once('.') else {
        document.insert(path, value);
        return Ok(());
    };
    let inner = document
        .entry(head)
        .or_insert_with(|| Bson::Document(Document::new()));
    match inner {
        Bson::Document(inner) => put(inner, whole, rest, value),
        _ => Err(twice(whole)),
    }
}
