//! `$trim`, `$ltrim`, `$rtrim`.

use std::collections::HashSet;

use bson::Bson;

use super::args::{Args, computed, fail, is_nullish, null, type_of};
use super::env::Value;
use super::function::Function;
use super::named::{Field, Signature};
use crate::{Result, meter};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::named(&TRIM, |args| trim(args, true, true)),
    Function::named(&LTRIM, |args| trim(args, true, false)),
    Function::named(&RTRIM, |args| trim(args, false, true)),
];

/// Bytes of a set entry for one character of `chars`.
const LETTER: usize = 16;

const FIELDS: &[Field] = &[
    Field::required("input", 50_695, "{op} requires an 'input' field"),
    Field::optional("chars"),
];

const fn signature(name: &'static str) -> Signature {
    Signature {
        name,
        not_object: (
            50_696,
            "{op} only supports an object as an argument, found {type}",
        ),
        unknown: (50_694, "{op} found an unknown argument: {field}"),
        fields: FIELDS,
    }
}

const TRIM: Signature = signature("$trim");
const LTRIM: Signature = signature("$ltrim");
const RTRIM: Signature = signature("$rtrim");

/// Whether a character is trimmed when `chars` is not given; the list is in the manual of `$trim`.
fn is_white(letter: char) -> bool {
    matches!(
        letter,
        '\0' | ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r' | '\u{a0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200a}'
    )
}

fn trim<'e>(args: &Args<'e>, left: bool, right: bool) -> Result<Value<'e>> {
    let input = args.value(0)?;
    if is_nullish(&input) {
        return null();
    }
    let Some(Bson::String(text)) = input.as_deref() else {
        return refuse(args, 50_699, "its input", &input);
    };
    meter::read(text.len())?;
    if !args.given(1) {
        return made(args, trimmed(text, left, right, is_white)?);
    }
    let chars = args.value(1)?;
    if is_nullish(&chars) {
        return null();
    }
    match chars.as_deref() {
        Some(Bson::String(chars)) => {
            meter::read(chars.len())?;
            meter::charge(args.name(), chars.len().saturating_mul(LETTER))?;
            let mut letters = HashSet::new();
            for letter in chars.chars() {
                meter::step()?;
                letters.insert(letter);
            }
            let is_one = |letter| letters.contains(&letter);
            made(args, trimmed(text, left, right, is_one)?)
        }
        _ => refuse(args, 50_700, "'chars'", &chars),
    }
}

fn made<'e>(args: &Args<'e>, text: &str) -> Result<Value<'e>> {
    meter::charge(args.name(), text.len())?;
    computed(text)
}

fn refuse<'e>(args: &Args<'e>, code: i32, what: &str, found: &Value<'_>) -> Result<Value<'e>> {
    fail(
        code,
        format!(
            "{} requires {what} to be a string, got {} (of type {}) instead.",
            args.name(),
            found.as_deref().unwrap_or(&Bson::Null),
            type_of(found)
        ),
    )
}

/// The text without the letters at its ends for which `is` holds; each letter is a step.
fn trimmed(text: &str, left: bool, right: bool, is: impl Fn(char) -> bool) -> Result<&str> {
    let mut rest = text.chars();
    let mut kept = rest.as_str();
    while left && rest.next().is_some_and(&is) {
        meter::step()?;
        kept = rest.as_str();
    }
    let mut rest = kept.chars();
    while right && rest.next_back().is_some_and(&is) {
        meter::step()?;
        kept = rest.as_str();
    }
    Ok(kept)
}
