//! `$regexMatch`, `$regexFind`, `$regexFindAll`. A constant pattern is compiled when it is parsed.

use std::sync::Arc;

use bson::{Bson, Document, doc};

use super::args::{Args, computed, fail, is_nullish, null};
use super::call::Prepared;
use super::env::Value;
use super::function::Function;
use super::named::{Field, Signature};
use super::parse::{call, named};
use super::string::count_bson;
use super::{Expr, Scope};
use crate::regex::{Captures, Regex};
use crate::{Error, Result, meter};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::own("$regexMatch", parse_match, is_match),
    Function::own("$regexFind", parse_find, find),
    Function::own("$regexFindAll", parse_find_all, find_all),
];

const fn signature(name: &'static str) -> Signature {
    Signature {
        name,
        not_object: (
            51_103,
            "{op} expects an object of named arguments but found: {type}",
        ),
        unknown: (31_024, "{op} found an unknown argument: {field}"),
        fields: FIELDS,
    }
}

const FIELDS: &[Field] = &[
    Field::required("input", 31_022, "{op} requires 'input' parameter"),
    Field::required("regex", 31_023, "{op} requires 'regex' parameter"),
    Field::optional("options"),
];

const MATCH: Signature = signature("$regexMatch");
const FIND: Signature = signature("$regexFind");
const FIND_ALL: Signature = signature("$regexFindAll");

fn parse_match(function: &'static Function, operand: &Bson, scope: &Scope) -> Result<Expr> {
    finish(function, &MATCH, operand, scope)
}

fn parse_find(function: &'static Function, operand: &Bson, scope: &Scope) -> Result<Expr> {
    finish(function, &FIND, operand, scope)
}

fn parse_find_all(function: &'static Function, operand: &Bson, scope: &Scope) -> Result<Expr> {
    finish(function, &FIND_ALL, operand, scope)
}

fn finish(
    function: &'static Function,
    signature: &Signature,
    operand: &Bson,
    scope: &Scope,
) -> Result<Expr> {
    let arguments = named(signature, operand, scope)?;
    let constant = |at: usize| match arguments.get(at).and_then(Option::as_ref) {
        None => Some(None),
        Some(expr) => expr.as_constant().map(Some),
    };
    let prepared = match (constant(1), constant(2)) {
        (Some(pattern), Some(options)) => {
            let regex = compile(function.name, pattern, options)?;
            regex.map_or(Prepared::None, |regex| Prepared::Regex(Arc::new(regex)))
        }
        _ => Prepared::None,
    };
    Ok(call(function, arguments, prepared, scope))
}

/// The pattern; `None` when it is null.
fn compile(name: &str, pattern: Option<&Bson>, options: Option<&Bson>) -> Result<Option<Regex>> {
    let options = match options {
        None | Some(Bson::Null | Bson::Undefined) => None,
        Some(Bson::String(options)) => Some(options.as_str()),
        Some(_) => {
            return fail(
                51_106,
                format!("{name} needs 'options' to be of type string"),
            );
        }
    };
    let (pattern, own) = match pattern {
        None | Some(Bson::Null | Bson::Undefined) => return Ok(None),
        Some(Bson::String(pattern)) => (pattern.as_str(), ""),
        Some(Bson::RegularExpression(regex)) => (regex.pattern.as_str(), regex.options.as_str()),
        Some(_) => {
            return fail(
                51_105,
                format!("{name} needs 'regex' to be of type string or regex"),
            );
        }
    };
    if options.is_some() && !own.is_empty() {
        return fail(
            51_107,
            format!("{name}: found regex option(s) specified in both 'regex' and 'option' fields"),
        );
    }
    if pattern.contains('\0') {
        return fail(
            51_109,
            format!("{name}: regular expression cannot contain an embedded null byte"),
        );
    }
    match Regex::new(pattern, options.unwrap_or(own)) {
        Ok(regex) => Ok(Some(regex)),
        Err(error) if error.code.0 == 51_108 => {
            Err(Error::location(51_108, format!("{name} {}", error.message)))
        }
        Err(error) => fail(
            51_111,
            format!("Invalid Regex in {name}: {}", error.message),
        ),
    }
}

/// Calls `with` with the pattern and the text; returns `otherwise` if one of them is null.
fn search<'e>(
    args: &Args<'e>,
    otherwise: impl FnOnce() -> Result<Value<'e>>,
    with: impl FnOnce(&Regex, &str) -> Result<Value<'e>>,
) -> Result<Value<'e>> {
    let input = args.value(0)?;
    if !is_nullish(&input) && !matches!(input.as_deref(), Some(Bson::String(_))) {
        return fail(
            51_104,
            format!("{} needs 'input' to be of type string", args.name()),
        );
    }
    let made;
    let regex = match args.prepared() {
        Prepared::Regex(regex) => Some(&**regex),
        _ => {
            let (pattern, options) = (args.value(1)?, args.value(2)?);
            made = compile(args.name(), pattern.as_deref(), options.as_deref())?;
            made.as_ref()
        }
    };
    match (regex, input.as_deref()) {
        (Some(regex), Some(Bson::String(text))) => with(regex, text),
        _ => otherwise(),
    }
}

fn is_match<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    search(
        args,
        || computed(false),
        |regex, text| computed(regex.is_match(text)?),
    )
}

fn find<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    search(args, null, |regex, text| {
        match regex.captures_at(text, 0)? {
            Some(found) => {
                let described = describe(text, &found, &mut Position::default());
                meter::charge("$regexFind", meter::document_size(&described))?;
                computed(described)
            }
            None => null(),
        }
    })
}

fn find_all<'e>(args: &Args<'e>) -> Result<Value<'e>> {
    search(
        args,
        || computed(Vec::<Bson>::new()),
        |regex, text| {
            let (mut found, mut start) = (Vec::<Bson>::new(), 0);
            let mut position = Position::default();
            while let Some(captures) = regex.captures_at(text, start)? {
                let whole = &captures.whole;
                // After an empty match, continue at the next character, to avoid finding it again.
                start = if whole.is_empty() {
                    let next = text.get(whole.end..).and_then(|rest| rest.chars().next());
                    whole.end + next.map_or(1, char::len_utf8)
                } else {
                    whole.end
                };
                let described = Bson::Document(describe(text, &captures, &mut position));
                meter::charge("$regexFindAll", meter::size(&described))?;
                found.push(described);
                if start > text.len() {
                    break;
                }
            }
            computed(found)
        },
    )
}

/// Counts the code points before a byte position; positions must ascend.
#[derive(Default)]
struct Position {
    bytes: usize,
    points: usize,
}

impl Position {
    fn advance(&mut self, text: &str, to: usize) -> usize {
        let between = text.get(self.bytes..to).unwrap_or("");
        self.points += between.chars().count();
        self.bytes = to;
        self.points
    }
}

fn describe(text: &str, captures: &Captures, position: &mut Position) -> Document {
    let whole = captures.whole.clone();
    let groups: Vec<Bson> = captures
        .groups
        .iter()
        .map(|group| match group {
            Some(range) => Bson::from(text.get(range.clone()).unwrap_or("")),
            None => Bson::Null,
        })
        .collect();
    let at = position.advance(text, whole.start);
    doc! {
        "match": text.get(whole).unwrap_or(""),
        "idx": count_bson(at),
        "captures": groups,
    }
}
