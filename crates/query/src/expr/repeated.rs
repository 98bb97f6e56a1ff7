//! Names that an expression in bytes gives twice.
//!
//! Expressions are parsed from trees, which keep the last of two fields of one name. Their bytes
//! are checked before: MongoDB refuses an object literal with a name twice, and a call that is not
//! alone in its object. Of two named arguments of an operator, and of two variables of `$let`, the
//! last counts there and in a tree. The operand of `$literal` is a value: of two fields of one name
//! it keeps the last, where MongoDB keeps both.

use bson::{Bson, Document, RawBsonRef, RawDocument};

use super::function::{self, Shape};
use super::parse::not_alone;
use crate::{Error, Result, repeated, show};

/// Operators outside of the table of functions whose operand has named arguments.
const NAMED: &[&str] = &[
    "$accumulator",
    "$bottom",
    "$bottomN",
    "$derivative",
    "$expMovingAvg",
    "$integral",
    "$shift",
    "$top",
    "$topN",
];

/// Operators whose operand is not an expression.
const NO_EXPRESSION: &[&str] = &["$const", "$elemMatch", "$literal", "$slice"];

/// Functions with a form of their own whose operand has no named arguments.
const UNNAMED: &[&str] = &["$setEquals", "$type"];

/// Check an expression. Recursion is bounded by the depth of BSON.
///
/// # Errors
/// 16406 for an object literal with a name twice, 15983 for a call beside other fields.
pub(crate) fn check(spec: RawBsonRef<'_>) -> Result<()> {
    match spec {
        RawBsonRef::Document(object) => check_object(object),
        RawBsonRef::Array(items) => items.into_iter().try_for_each(|item| check(item?)),
        _ => Ok(()),
    }
}

/// Check the expressions that the fields of a document are: the variables of a command.
///
/// # Errors
/// 16406 for an object literal with a name twice, 15983 for a call beside other fields.
pub fn check_each(document: &RawDocument) -> Result<()> {
    document.iter().try_for_each(|field| check(field?.1))
}

/// Check the expressions in the specification of a stage.
///
/// # Errors
/// As [`check`].
pub(crate) fn check_stage(stage: &str, spec: RawBsonRef<'_>) -> Result<()> {
    let fields = match (stage, spec) {
        // Filters and pipelines are parsed from bytes.
        ("$match" | "$unionWith" | "$facet", _) => return Ok(()),
        ("$redact" | "$replaceWith" | "$sortByCount" | "$documents", spec) => return check(spec),
        (_, RawBsonRef::Document(fields)) => fields,
        _ => return Ok(()),
    };
    for field in fields {
        let (name, value) = field?;
        match (stage, name.as_str(), value) {
            ("$group", "_id", value)
            | ("$bucket" | "$bucketAuto", "groupBy", value)
            | ("$replaceRoot", "newRoot", value)
            | ("$setWindowFields", "partitionBy", value)
            | ("$graphLookup", "startWith", value)
            | ("$project" | "$addFields" | "$set", _, value @ RawBsonRef::Array(_)) => {
                check(value)?;
            }
            ("$graphLookup" | "$lookup", "restrictSearchWithMatch" | "pipeline", _) => {}
            ("$lookup" | "$merge", "let", RawBsonRef::Document(variables)) => {
                check_each(variables)?;
            }
            ("$merge", "whenMatched", RawBsonRef::Array(stages)) => {
                for stage in stages {
                    check_in_pipeline(stage?)?;
                }
            }
            _ => check_within(value)?,
        }
    }
    Ok(())
}

/// Check the expressions of a stage in its document.
///
/// # Errors
/// As [`check`].
pub(crate) fn check_in_pipeline(stage: RawBsonRef<'_>) -> Result<()> {
    match stage {
        RawBsonRef::Document(stage) => stage.iter().try_for_each(|field| {
            let (name, spec) = field?;
            check_stage(name.as_str(), spec)
        }),
        _ => Ok(()),
    }
}

/// Check the calls in a value whose other fields are paths, names or options.
fn check_within(value: RawBsonRef<'_>) -> Result<()> {
    let RawBsonRef::Document(object) = value else {
        return Ok(());
    };
    for field in object {
        let (name, value) = field?;
        match name.as_str().starts_with('$') {
            true => check_operand(name.as_str(), value)?,
            false => check_within(value)?,
        }
    }
    Ok(())
}

fn check_object(object: &RawDocument) -> Result<()> {
    let mut names = Vec::new();
    for field in object {
        names.push(field?.0.as_str());
    }
    let is_call = names.first().is_some_and(|first| first.starts_with('$'));
    if is_call && 1 < names.len() {
        return Err(not_alone(&Bson::Document(Document::try_from(object)?)));
    }
    if !is_call && repeated::repeated(names.iter().copied()).is_some() {
        return Err(twice(object)?);
    }
    for field in object {
        let (name, value) = field?;
        match is_call {
            true => check_operand(name.as_str(), value)?,
            false => check(value)?,
        }
    }
    Ok(())
}

fn twice(object: &RawDocument) -> Result<Error> {
    let mut shown = Vec::new();
    for field in object {
        let (name, value) = field?;
        shown.push(show::field(name.as_str(), &Bson::try_from(value)?));
    }
    let message = format!(
        "duplicate field name specified in object literal: {{ {} }}",
        shown.join(", ")
    );
    Ok(Error::location(16_406, message))
}

fn check_operand(operator: &str, operand: RawBsonRef<'_>) -> Result<()> {
    if NO_EXPRESSION.contains(&operator) {
        return Ok(());
    }
    let has_names = match function::find(operator).map(|function| &function.shape) {
        Some(Shape::Positional(..)) => false,
        Some(Shape::Named(_) | Shape::Own(_)) => !UNNAMED.contains(&operator),
        None => NAMED.contains(&operator),
    };
    match operand {
        RawBsonRef::Document(arguments) if has_names && !is_call(arguments)? => {
            for argument in arguments {
                let (name, value) = argument?;
                check_argument(operator, name.as_str(), value)?;
            }
            Ok(())
        }
        operand => check(operand),
    }
}

/// Check a named argument of an operator.
fn check_argument(operator: &str, name: &str, value: RawBsonRef<'_>) -> Result<()> {
    match (operator, name, value) {
        (_, "sortBy", RawBsonRef::Document(order)) => repeated::check_order(order),
        (_, "sortBy", _) => Ok(()),
        ("$let", "vars", RawBsonRef::Document(variables)) => check_each(variables),
        ("$switch", "branches", RawBsonRef::Array(branches)) => {
            for branch in branches {
                if let RawBsonRef::Document(branch) = branch? {
                    check_each(branch)?;
                }
            }
            Ok(())
        }
        (_, _, value) => check(value),
    }
}

fn is_call(object: &RawDocument) -> Result<bool> {
    let first = object.iter().next().transpose()?;
    Ok(first.is_some_and(|(name, _)| name.as_str().starts_with('$')))
}

#[cfg(test)]
mod tests {
    use bson::raw::CString;
    use bson::{RawArrayBuf, RawBson, RawDocumentBuf, rawdoc};

    use super::*;

    /// A document of fields that may repeat.
    fn fields(fields: &[(&str, RawBson)]) -> RawDocumentBuf {
        let mut document = RawDocumentBuf::new();
        for (name, value) in fields {
            document.append(CString::try_from(*name).unwrap(), value.clone());
        }
        document
    }

    fn one(name: &str, value: impl Into<RawBson>) -> RawDocumentBuf {
        fields(&[(name, value.into())])
    }

    /// `{x: 1, x: 2}`.
    fn literal() -> RawDocumentBuf {
        fields(&[("x", RawBson::Int32(1)), ("x", RawBson::Int32(2))])
    }

    fn code(expression: &RawDocument) -> Option<i32> {
        check(RawBsonRef::Document(expression))
            .err()
            .map(|error| error.code.0)
    }

    fn of_stage(name: &str, spec: RawDocumentBuf) -> Option<i32> {
        check_stage(name, RawBsonRef::Document(&spec))
            .err()
            .map(|error| error.code.0)
    }

    #[test]
    fn an_object_literal_names_a_field_once() {
        let error = check(RawBsonRef::Document(&literal())).unwrap_err();
        assert_eq!(error.code.0, 16_406);
        let message = "duplicate field name specified in object literal: { x: 1, x: 2 }";
        assert_eq!(error.message, message);
        let mut listed = RawArrayBuf::new();
        listed.push(RawBson::Int32(1));
        listed.push(literal());
        for within in [
            one("a", literal()),
            one("$eq", listed.clone()),
            one("$abs", literal()),
            one("$type", literal()),
            rawdoc! {"$map": {"input": "$a", "in": literal()}},
            rawdoc! {"$let": {"vars": {"v": literal()}, "in": 1}},
            rawdoc! {"$switch": {"branches": [{"case": true, "then": literal()}]}},
            rawdoc! {"$cond": {"if": 1, "then": listed, "else": 2}},
        ] {
            assert_eq!(code(&within), Some(16_406), "{within:?}");
        }
    }

    #[test]
    fn a_call_is_alone_in_its_object() {
        let twice = fields(&[("$not", "$a".into()), ("$not", "$b".into())]);
        assert_eq!(code(&twice), Some(15_983));
        assert_eq!(code(&one("$and", one("a", twice))), Some(15_983));
    }

    #[test]
    fn of_arguments_variables_and_values_the_last_counts() {
        let variables = fields(&[("v", RawBson::Int32(1)), ("v", RawBson::Int32(2))]);
        for accepted in [
            rawdoc! {"$let": {"vars": variables, "in": "$$v"}},
            one(
                "$cond",
                fields(&[
                    ("if", true.into()),
                    ("then", RawBson::Int32(1)),
                    ("then", RawBson::Int32(2)),
                    ("else", RawBson::Int32(3)),
                ]),
            ),
            one("$literal", literal()),
        ] {
            assert_eq!(code(&accepted), None, "{accepted:?}");
        }
        let sorted = rawdoc! {"$sortArray": {"input": "$a", "sortBy": literal()}};
        assert_eq!(code(&sorted), Some(7_472_500));
    }

    #[test]
    fn expressions_are_found_in_stages() {
        let pushed = one("$push", literal());
        for (stage, spec) in [
            ("$group", one("_id", literal())),
            ("$group", rawdoc! {"_id": 1, "a": pushed.clone()}),
            (
                "$group",
                rawdoc! {"_id": 1, "a": {"$top": {"output": literal(), "sortBy": {}}}},
            ),
            ("$bucket", one("groupBy", literal())),
            ("$bucketAuto", rawdoc! {"output": {"a": pushed.clone()}}),
            ("$replaceRoot", one("newRoot", literal())),
            ("$replaceWith", literal()),
            ("$redact", one("$cond", one("if", literal()))),
            ("$project", rawdoc! {"a": {"b": {"$abs": literal()}}}),
            ("$set", rawdoc! {"a": [literal()]}),
            (
                "$lookup",
                rawdoc! {"from": "c", "let": {"v": literal()}, "pipeline": []},
            ),
            (
                "$merge",
                rawdoc! {"whenMatched": [{"$replaceWith": literal()}]},
            ),
            ("$setWindowFields", one("partitionBy", literal())),
            ("$setWindowFields", rawdoc! {"output": {"a": pushed}}),
        ] {
            assert_eq!(
                of_stage(stage, spec.clone()),
                Some(16_406),
                "{stage}: {spec:?}"
            );
        }
        let window = rawdoc! {"output": {"a": {"$sum": 1, "window": {"documents": [0, 1]}}}};
        for (stage, spec) in [
            ("$match", literal()),
            ("$setWindowFields", window),
            ("$project", rawdoc! {"a": {"$elemMatch": literal()}}),
            ("$lookup", rawdoc! {"pipeline": [{"$match": literal()}]}),
            ("$graphLookup", one("restrictSearchWithMatch", literal())),
        ] {
            assert_eq!(of_stage(stage, spec.clone()), None, "{stage}: {spec:?}");
        }
    }
}
