//! Strings with dollars: `$a.b` is a path of the document, `$$name.a` a path of a variable.

use super::field_path::FieldPath;
use super::node::{Base, Node};
use super::parse::path;
use super::{Expr, Scope};
use crate::{Code, Error, Result};

/// System variables that [`super::Variables`] may contain.
const SYSTEM: &[&str] = &[
    "NOW",
    "CLUSTER_TIME",
    "USER_ROLES",
    "SEARCH_META",
    "JS_SCOPE",
    "IS_MR",
];

/// Parses a string that begins with a dollar.
pub(super) fn parse(text: &str, scope: &Scope) -> Result<Expr> {
    if text == "$" {
        return Err(Error::location(
            16_872,
            "'$' by itself is not a valid FieldPath",
        ));
    }
    let Some(text) = text.strip_prefix("$$") else {
        let names = FieldPath::parse(text.trim_start_matches('$'))?;
        return Ok(path(current(scope), names));
    };
    let (name, rest) = match text.split_once('.') {
        Some((name, rest)) => (name, Some(rest)),
        None => (text, None),
    };
    check_name(name)?;
    let rest = match rest {
        Some(rest) => FieldPath::parse(rest)?,
        None => FieldPath::empty(),
    };
    base(name, scope).map(|base| match base {
        Some(base) => path(base, rest),
        None => Expr {
            node: Node::Missing,
        },
    })
}

/// The base of the path `$a`: the document, unless an enclosing expression defines `CURRENT`.
fn current(scope: &Scope) -> Base {
    match scope.level("CURRENT") {
        Some(level) => Base::Local("CURRENT".into(), level),
        None => Base::Root,
    }
}

/// Finds a variable by name; `None` for `REMOVE`.
fn base(name: &str, scope: &Scope) -> Result<Option<Base>> {
    if let Some(level) = scope.level(name) {
        return Ok(Some(Base::Local(name.into(), level)));
    }
    match name {
        "ROOT" | "CURRENT" => Ok(Some(Base::Root)),
        "REMOVE" => Ok(None),
        _ if scope.knows(name) => Ok(Some(Base::Outer(name.into()))),
        _ if SYSTEM.contains(&name) => Ok(Some(Base::Outer(name.into()))),
        _ => Err(Error::location(
            17_276,
            format!("Use of undefined variable: {name}"),
        )),
    }
}

/// Checks the name of a variable that is read: letters, digits, underscores and non-ASCII
/// characters.
fn check_name(name: &str) -> Result<()> {
    let starts = |first: char| first.is_ascii_alphabetic() || !first.is_ascii();
    check(name, starts)
}

/// Checks the name of a variable that a user defines: as for reading, but it must begin with a
/// lower-case letter. `CURRENT` is allowed, too.
pub(crate) fn check_user_name(name: &str) -> Result<()> {
    if name == "CURRENT" {
        return Ok(());
    }
    check(name, |first| {
        first.is_ascii_lowercase() || !first.is_ascii()
    })
}

fn check(name: &str, starts: impl Fn(char) -> bool) -> Result<()> {
    let refuse = |message: String| Err(Error::new(Code::FAILED_TO_PARSE, message));
    let Some(first) = name.chars().next() else {
        return refuse("empty variable names are not allowed".to_owned());
    };
    if !starts(first) {
        return refuse(format!(
            "'{name}' starts with an invalid character for a user variable name"
        ));
    }
    let inside =
        |letter: &char| letter.is_ascii_alphanumeric() || *letter == '_' || !letter.is_ascii();
    match name.chars().find(|letter| !inside(letter)) {
        Some(letter) => refuse(format!(
            "'{name}' contains an invalid character for a variable name: '{letter}'"
        )),
        None => Ok(()),
    }
}
