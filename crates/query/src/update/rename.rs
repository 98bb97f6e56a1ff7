//! `$rename`: moves the value of one path to another. It is applied at the destination; the tree
//! has a separate `$unset` for the source. Neither path may lead through an array.

use bson::{Bson, Document};

use super::modifier::{Context, Outcome, set};
use super::tree::identifier;
use crate::{Code, Error, Result, show};

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
    let placeholder = |name: &str| name == "$" || identifier(name).is_some();
    let dynamic = |path: &str| path.split('.').any(placeholder);
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

/// What `$rename` does to the value at its destination.
pub(super) fn apply(
    source: &str,
    target: &str,
    current: Option<&mut Bson>,
    cx: &Context<'_>,
) -> Result<Outcome> {
    let source_found = find(cx.root, source);
    if let Some((part, value)) = source_found.blocked {
        return Err(Error::new(
            Code::PATH_NOT_VIABLE,
            format!(
                "cannot use the part ({part} of {source}) to traverse the element ({{{}}})",
                show::field(part, value)
            ),
        ));
    }
    let Some(value) = source_found.value else {
        return Ok(Outcome::Keep);
    };
    if let Some(name) = source_found.array {
        return Err(through_array("source", source, name, cx));
    }
    if let Some(name) = find(cx.root, target).array {
        return Err(through_array("destination", target, name, cx));
    }
    Ok(set(current, value))
}

/// Whether the source has a value, or `$rename` fails because its path is blocked.
pub(super) fn moves(source: &str, cx: &Context<'_>) -> bool {
    let found = find(cx.root, source);
    found.value.is_some() || found.blocked.is_some()
}

/// The value at a path, and what was found on the way to it.
#[derive(Default)]
struct Found<'a> {
    value: Option<&'a Bson>,
    /// The name of the last array on the path.
    array: Option<&'a str>,
    /// Where the path is blocked: the name of a scalar, or of an array that the next name does not
    /// index, and its value.
    blocked: Option<(&'a str, &'a Bson)>,
}

fn find<'a>(root: &'a Document, path: &'a str) -> Found<'a> {
    let mut found = Found::default();
    let mut names = path.split('.');
    let mut part = names.next().unwrap_or_default();
    let mut value = root.get(part);
    for name in names {
        value = match value {
            None => None,
            Some(Bson::Document(document)) => document.get(name),
            Some(above @ Bson::Array(array)) => {
                found.array = Some(part);
                let Some(at) = crate::path::array_index(name) else {
                    found.blocked = Some((part, above));
                    return found;
                };
                array.get(at)
            }
            Some(above) => {
                found.blocked = Some((part, above));
                return found;
            }
        };
        part = name;
    }
    found.value = value;
    found
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
