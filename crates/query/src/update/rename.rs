//! `$rename`: the value of one path to another. The source is removed by an `$unset` of its own in
//! the tree; neither path may lead through an array.

use bson::{Bson, Document};

use super::modifier::{Context, Outcome, set};
use crate::{Error, Result, show};

/// Checks the two paths of one rename.
pub(super) fn parse(source: &str, target: &Bson) -> Result<String> {
    let Bson::String(target) = target else {
        return Err(Error::bad_value(format!(
            "The 'to' field for $rename must be a string: {}",
            show::field(source, target)
        )));
    };
    if target.contains('\0') {
        return Err(Error::bad_value(
            "The 'to' field for $rename cannot contain an embedded null byte",
        ));
    }
    let shown = format!("{source}: \"{target}\"");
    if source == target {
        return Err(Error::bad_value(format!(
            "The source and target field for $rename must differ: {shown}"
        )));
    }
    if leads_to(source, target) || leads_to(target, source) {
        return Err(Error::bad_value(format!(
            "The source and target field for $rename must not be on the same path: {shown}"
        )));
    }
    let dynamic = |path: &str| path.split('.').any(|name| name.starts_with('$'));
    if dynamic(source) {
        return Err(Error::bad_value(format!(
            "The source field for $rename may not be dynamic: {source}"
        )));
    }
    if dynamic(target) {
        return Err(Error::bad_value(format!(
            "The destination field for $rename may not be dynamic: {target}"
        )));
    }
    Ok(target.clone())
}

fn leads_to(short: &str, long: &str) -> bool {
    long.strip_prefix(short)
        .is_some_and(|rest| rest.starts_with('.'))
}

/// What the destination becomes.
pub(super) fn apply(
    source: &str,
    target: &str,
    current: Option<&mut Bson>,
    cx: &Context<'_>,
) -> Result<Outcome> {
    let value = match find(cx.root, source) {
        Found::Value(value) => value,
        Found::Nothing => return Ok(Outcome::Keep),
        Found::Array(name) => return Err(through_array("source", source, name, cx)),
    };
    if let Found::Array(name) = find(cx.root, target) {
        return Err(through_array("destination", target, name, cx));
    }
    Ok(set(current, value))
}

enum Found<'a> {
    Value(&'a Bson),
    Nothing,
    /// The way leads through the array of this name.
    Array(&'a str),
}

fn find<'a>(root: &'a Document, path: &'a str) -> Found<'a> {
    let mut names = path.split('.');
    let mut value = names.next().and_then(|name| root.get(name));
    let mut above = path.split('.');
    for name in names {
        let parent = above.next().unwrap_or_default();
        value = match value {
            Some(Bson::Document(document)) => document.get(name),
            Some(Bson::Array(array)) => {
                let element = super::tree::index(name).and_then(|at| array.get(at));
                return element.map_or(Found::Nothing, |_| Found::Array(parent));
            }
            _ => None,
        };
    }
    value.map_or(Found::Nothing, Found::Value)
}

fn through_array(which: &str, path: &str, array: &str, cx: &Context<'_>) -> Error {
    let id = cx
        .root
        .get("_id")
        .map_or_else(|| String::from("no id"), |id| show::field("_id", id));
    Error::bad_value(format!(
        "The {which} field cannot be an array element, '{path}' in doc with {id} has an array \
         field called '{array}'"
    ))
}
