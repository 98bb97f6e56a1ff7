//! Fields that occur twice in a document.
//!
//! Bytes of BSON may have two fields of one name; a tree keeps the last. What is read from a tree
//! is therefore checked here before, on its bytes: options of commands ([`tree`]) and stages, paths
//! of projections, and schemas; `expr::repeated` checks expressions. Filters and conditions of
//! `$pull` are parsed from bytes and may repeat a name.
//!
//! [`check_pipeline`] checks a pipeline and the pipelines in it; it runs where a pipeline is
//! parsed.

use std::collections::HashSet;

use bson::{Bson, Document, RawArray, RawBsonRef, RawDocument};

use crate::{Error, Result};

/// Stages that are not checked here: their argument has keys of the user or is an expression, or
/// their own parser finds repeated names.
const FREE: &[&str] = &[
    "$match",
    "$project",
    "$addFields",
    "$set",
    "$unset",
    "$replaceWith",
    "$redact",
    "$sortByCount",
    "$documents",
];

/// Up to this number of names, each is compared with every other; above it, they go into a set.
const FEW: usize = 24;

/// Depth to which projections are checked: documents from clients are not nested deeper.
const DEPTH_MAX: usize = 200;

/// Checks a pipeline, and the pipelines in its stages. Recursion is bounded by the depth of BSON.
///
/// # Errors
/// 40413 for an option of a stage that is given twice, 31250 for a path of a projection that is
/// given twice, 40323 for a stage of several fields, `TypeMismatch` for an element that is not a
/// stage.
pub fn check_pipeline(stages: &RawArray) -> Result<()> {
    for stage in stages {
        let RawBsonRef::Document(stage) = stage? else {
            return Err(Error::type_mismatch(
                "Each element of the 'pipeline' array must be an object",
            ));
        };
        let mut fields = stage.iter();
        let (Some(first), None) = (fields.next().transpose()?, fields.next()) else {
            return Err(Error::location(
                40_323,
                "A pipeline stage specification object must contain exactly one field.",
            ));
        };
        let (name, spec) = first;
        if let RawBsonRef::Document(spec) = spec {
            check_stage(name.as_str(), spec)?;
        }
    }
    Ok(())
}

fn check_stage(name: &str, spec: &RawDocument) -> Result<()> {
    check_paths_of(name, spec)?;
    if FREE.contains(&name) {
        return Ok(());
    }
    if name == "$sort" {
        return check_order(spec);
    }
    distinct(name, spec)?;
    for option in spec.iter() {
        let (option, value) = option?;
        match (name, option.as_str(), value) {
            ("$lookup" | "$merge", "from" | "into" | "let", RawBsonRef::Document(inner)) => {
                distinct(&format!("{name}.{}", option.as_str()), inner)?;
            }
            ("$lookup" | "$unionWith", "pipeline", RawBsonRef::Array(inner))
            | ("$merge", "whenMatched", RawBsonRef::Array(inner))
            | ("$facet", _, RawBsonRef::Array(inner)) => check_pipeline(inner)?,
            ("$listSessions" | "$listLocalSessions", "users", RawBsonRef::Array(users)) => {
                for user in users {
                    if let RawBsonRef::Document(user) = user? {
                        distinct(&format!("{name}.users"), user)?;
                    }
                }
            }
            ("$setWindowFields" | "$fill", "sortBy", RawBsonRef::Document(order)) => {
                check_order(order)?;
            }
            ("$bucket" | "$bucketAuto" | "$setWindowFields" | "$fill", "output", value) => {
                check_output(name, value)?;
            }
            ("$group", field, RawBsonRef::Document(accumulator)) if field != "_id" => {
                distinct(&format!("$group.{field}"), accumulator)?;
            }
            ("$densify" | "$collStats", option, RawBsonRef::Document(inner)) => {
                distinct_within(&format!("{name}.{option}"), inner)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Checks `output`: fields of the user, each with an accumulator or a function, and its window.
fn check_output(stage: &str, output: RawBsonRef<'_>) -> Result<()> {
    let RawBsonRef::Document(output) = output else {
        return Ok(());
    };
    let place = format!("{stage}.output");
    distinct(&place, output)?;
    for field in output.iter() {
        let (name, RawBsonRef::Document(function)) = field? else {
            continue;
        };
        let place = format!("{place}.{name}");
        distinct(&place, function)?;
        if let Some(RawBsonRef::Document(window)) = function.get("window")? {
            distinct(&format!("{place}.window"), window)?;
        }
    }
    Ok(())
}

/// Checks that a sort order has each path once.
///
/// # Errors
/// 7472500.
pub(crate) fn check_order(order: &RawDocument) -> Result<()> {
    let mut paths = Vec::new();
    for field in order.iter() {
        paths.push(field?.0.as_str());
    }
    match repeated(paths.into_iter()) {
        None => Ok(()),
        Some(path) => Err(Error::location(
            7_472_500,
            format!("$sort key must not contain duplicate keys (duplicate: '{path}')"),
        )),
    }
}

/// Checks the paths that the stage `name` projects.
///
/// # Errors
/// 31250, as MongoDB for paths that collide.
pub(crate) fn check_paths_of(name: &str, spec: &RawDocument) -> Result<()> {
    let stage = match name {
        "$project" => "$project",
        "$addFields" | "$set" => "$addFields",
        _ => return Ok(()),
    };
    check_paths(spec).map_err(|error| {
        let message = format!("Invalid {stage} :: caused by :: {}", error.message);
        Error { message, ..error }
    })
}

/// Checks that the specification of a projection does not contain the same path twice.
///
/// # Errors
/// 31250, as MongoDB for paths that collide.
pub fn check_paths(spec: &RawDocument) -> Result<()> {
    check_paths_below(spec, "", 0)
}

/// Recursion is bounded by [`DEPTH_MAX`].
fn check_paths_below(spec: &RawDocument, prefix: &str, depth: usize) -> Result<()> {
    let mut seen = HashSet::new();
    for (at, element) in spec.iter_elements().enumerate() {
        let element = element?;
        let name = element.key().as_str();
        if at == 0 && name.starts_with('$') {
            // An expression: its fields are not paths.
            return Ok(());
        }
        let path = match prefix {
            "" => name.to_owned(),
            _ => format!("{prefix}.{name}"),
        };
        if !seen.insert(name) {
            return Err(Error::location(31_250, format!("Path collision at {path}")));
        }
        if let RawBsonRef::Document(inner) = element.value()?
            && depth < DEPTH_MAX
        {
            check_paths_below(inner, &path, depth + 1)?;
        }
    }
    Ok(())
}

/// Refuses a document that has a field twice, as MongoDB's commands do. `place` names the document
/// in the error.
///
/// # Errors
/// 40413 `BSON field 'place.field' is a duplicate field`.
pub fn distinct(place: &str, document: &RawDocument) -> Result<()> {
    let mut names: Vec<&str> = Vec::new();
    for element in document.iter_elements() {
        names.push(element?.key().as_str());
    }
    match repeated(names.iter().copied()) {
        None => Ok(()),
        Some(name) => Err(duplicate(place, name)),
    }
}

/// The first name that occurs earlier in `names`, too.
#[must_use]
pub fn repeated<'a>(mut names: impl ExactSizeIterator<Item = &'a str> + Clone) -> Option<&'a str> {
    if names.len() <= FEW {
        let all = names.clone();
        let mut places = names.enumerate();
        let found = places.find(|(at, name)| all.clone().take(*at).any(|known| known == *name));
        return found.map(|(_, name)| name);
    }
    let mut seen = HashSet::with_capacity(names.len());
    names.find(|name| !seen.insert(*name))
}

/// The error for a field that is given twice.
#[must_use]
pub fn duplicate(place: &str, name: &str) -> Error {
    let message = format!("BSON field '{place}.{name}' is a duplicate field");
    Error::location(40_413, message)
}

/// As [`distinct`], for the documents in the document, too.
///
/// # Errors
/// As [`distinct`].
pub fn distinct_within(place: &str, document: &RawDocument) -> Result<()> {
    anywhere(document)?.map_or(Ok(()), |path| Err(duplicate(place, &path)))
}

/// A document from a client as a tree, which would keep the last of two fields of one name.
/// `place` names the document in the error.
///
/// # Errors
/// 40413 for a field that the document, or a document in it, has twice.
pub fn tree(place: &str, document: &RawDocument) -> Result<Document> {
    distinct_within(place, document)?;
    Ok(Document::try_from(document)?)
}

/// A value from a client as a tree.
///
/// # Errors
/// As [`tree`].
pub fn value_tree(place: &str, value: RawBsonRef<'_>) -> Result<Bson> {
    anywhere_in(value)?.map_or(Ok(()), |path| Err(duplicate(place, &path)))?;
    Ok(Bson::try_from(value)?)
}

/// The path of the first field name that occurs twice in `document` or in one document nested in
/// it; elements of arrays have no names in it. Recursion is bounded by the depth of documents on
/// the wire.
///
/// # Errors
/// `InvalidBSON` for invalid bytes.
pub(crate) fn anywhere(document: &RawDocument) -> Result<Option<String>> {
    let mut names = Vec::new();
    for element in document {
        let (name, value) = element?;
        names.push(name.as_str());
        if let Some(path) = anywhere_in(value)? {
            return Ok(Some(format!("{name}.{path}")));
        }
    }
    Ok(repeated(names.into_iter()).map(str::to_owned))
}

fn anywhere_in(value: RawBsonRef<'_>) -> Result<Option<String>> {
    match value {
        RawBsonRef::Document(inner) => anywhere(inner),
        RawBsonRef::Array(items) => anywhere_in_items(items),
        RawBsonRef::JavaScriptCodeWithScope(code) => anywhere(code.scope),
        _ => Ok(None),
    }
}

fn anywhere_in_items(items: &RawArray) -> Result<Option<String>> {
    for item in items {
        if let Some(path) = anywhere_in(item?)? {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Checks a schema, which is parsed from a tree.
///
/// # Errors
/// `FailedToParse`, as in MongoDB for a keyword, when a document in it has a name twice.
pub(crate) fn check_schema(schema: &RawDocument) -> Result<()> {
    match anywhere(schema)? {
        None => Ok(()),
        Some(path) => Err(Error::parse(format!(
            "$jsonSchema has the field '{path}' twice in one document"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use bson::{RawArrayBuf, RawBson, RawDocumentBuf, rawdoc};

    use super::*;

    /// A document of these fields, whose names may repeat.
    fn fields(fields: &[(&str, RawBson)]) -> RawDocumentBuf {
        let mut document = RawDocumentBuf::new();
        for (name, value) in fields {
            let name = bson::raw::CString::try_from(*name).unwrap();
            document.append(name, value.clone());
        }
        document
    }

    fn code(stage: RawDocumentBuf) -> Option<i32> {
        let mut stages = RawArrayBuf::new();
        stages.push(stage);
        check_pipeline(&stages).err().map(|error| error.code.0)
    }

    fn one(name: &str, spec: RawDocumentBuf) -> RawDocumentBuf {
        fields(&[(name, spec.into())])
    }

    #[test]
    fn options_of_stages_are_given_once() {
        let text = |text: &str| RawBson::String(text.to_owned());
        let twice = |name: &str| fields(&[(name, text("a")), (name, text("b"))]);
        for (stage, option) in [
            ("$lookup", "from"),
            ("$graphLookup", "from"),
            ("$unionWith", "coll"),
            ("$merge", "into"),
            ("$out", "db"),
            ("$facet", "f"),
            ("$currentOp", "allUsers"),
            ("$sample", "size"),
            ("$group", "n"),
        ] {
            assert_eq!(code(one(stage, twice(option))), Some(40_413), "{stage}");
        }
        for (stage, option) in [
            ("$bucket", "output"),
            ("$bucketAuto", "output"),
            ("$setWindowFields", "output"),
            ("$fill", "output"),
            ("$group", "n"),
            ("$densify", "range"),
            ("$collStats", "storageStats"),
        ] {
            let inner = fields(&[(option, twice("x").into())]);
            assert_eq!(code(one(stage, inner)), Some(40_413), "{stage}.{option}");
        }
        for stage in ["$setWindowFields", "$fill"] {
            let function = fields(&[("n", twice("window").into())]);
            let inner = fields(&[("output", function.into())]);
            assert_eq!(code(one(stage, inner)), Some(40_413), "{stage}");
        }
        let window = fields(&[("window", twice("documents").into())]);
        let window = one("output", one("n", window));
        assert_eq!(code(one("$setWindowFields", window)), Some(40_413));
        let into = fields(&[("into", twice("db").into())]);
        assert_eq!(code(one("$merge", into)), Some(40_413));
        let from = fields(&[("from", twice("coll").into())]);
        assert_eq!(code(one("$lookup", from)), Some(40_413));
        let two = fields(&[("$out", text("a")), ("$out", text("b"))]);
        assert_eq!(code(two.clone()), Some(40_323));
        let mut inner = RawArrayBuf::new();
        inner.push(one("$unionWith", twice("coll")));
        let outer = rawdoc! {"from": "a", "as": "b", "pipeline": inner.clone()};
        assert_eq!(code(one("$lookup", outer)), Some(40_413));
        assert_eq!(code(one("$facet", rawdoc! {"f": inner})), Some(40_413));
    }

    #[test]
    fn what_users_name_may_repeat() {
        let one_and_two = fields(&[("a", RawBson::Int32(1)), ("a", RawBson::Int32(2))]);
        assert_eq!(code(one("$match", one_and_two.clone())), None);
        assert_eq!(code(rawdoc! {"$documents": [one_and_two]}), None);
        assert_eq!(code(rawdoc! {"$limit": 1}), None);
    }

    #[test]
    fn a_sort_order_has_each_path_once() {
        let order = fields(&[("a", RawBson::Int32(1)), ("a", RawBson::Int32(-1))]);
        let error = check_order(&order).unwrap_err();
        assert_eq!(error.code.0, 7_472_500);
        assert_eq!(
            error.message,
            "$sort key must not contain duplicate keys (duplicate: 'a')"
        );
        assert_eq!(code(one("$sort", order.clone())), Some(7_472_500));
        for stage in ["$setWindowFields", "$fill"] {
            let by = one("sortBy", order.clone());
            assert_eq!(code(one(stage, by)), Some(7_472_500), "{stage}");
        }
        assert_eq!(code(rawdoc! {"$sort": {"a": 1, "a.b": 1}}), None);
    }

    #[test]
    fn repetitions_are_found_among_few_and_many() {
        for count in [2, FEW, FEW + 1, 1_000] {
            let names: Vec<String> = (0..count).map(|n| n.to_string()).collect();
            let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
            assert_eq!(repeated(names.iter().copied()), None);
            names.push("1");
            assert_eq!(repeated(names.iter().copied()), Some("1"));
        }
    }

    #[test]
    fn paths_are_projected_once() {
        let twice = fields(&[("a", RawBson::Int32(1)), ("a", RawBson::Int32(1))]);
        let check = |stage: RawDocumentBuf| {
            let mut stages = RawArrayBuf::new();
            stages.push(stage);
            check_pipeline(&stages)
        };
        for stage in ["$project", "$set", "$addFields"] {
            let error = check(one(stage, twice.clone())).unwrap_err();
            assert_eq!(error.code.0, 31_250, "{stage}: {error}");
            assert!(error.message.ends_with("Path collision at a"), "{error}");
            let nested = one(stage, one("b", twice.clone()));
            for outer in [
                rawdoc! {"$lookup": {"pipeline": [nested.clone()]}},
                rawdoc! {"$unionWith": {"pipeline": [nested.clone()]}},
                rawdoc! {"$facet": {"f": [nested.clone()]}},
                rawdoc! {"$merge": {"into": "c", "whenMatched": [nested.clone()]}},
            ] {
                let error = check(outer).unwrap_err();
                assert!(error.message.ends_with("Path collision at b.a"), "{error}");
            }
        }
        // Arguments of expressions are not paths, and `$match` has no paths of projections.
        let argument = one("$literal", twice.clone());
        check(one("$set", one("a", argument))).unwrap();
        check(one("$match", twice)).unwrap();
    }

    #[test]
    fn a_name_that_is_repeated_is_found_at_any_depth() {
        let mut twice = rawdoc! { "x": 1, "y": { "x": 2 } };
        assert_eq!(anywhere(&twice), Ok(None));
        twice.append(bson::raw::cstr!("x"), 3);
        let found = |path: &str| Ok(Some(path.to_owned()));
        assert_eq!(anywhere(&twice), found("x"));
        let within: RawDocumentBuf = rawdoc! { "a": { "b": twice.clone() } };
        assert_eq!(anywhere(&within), found("a.b.x"));
        let error = tree("place", &within).unwrap_err();
        assert_eq!(error.code.0, 40_413);
        assert_eq!(
            error.message,
            "BSON field 'place.a.b.x' is a duplicate field"
        );
        assert!(value_tree("place", RawBsonRef::Document(&within)).is_err());
        let mut listed = RawArrayBuf::new();
        listed.push(rawdoc! { "x": 1 });
        listed.push(rawdoc! { "x": 1 });
        assert_eq!(anywhere(&rawdoc! { "a": listed.clone() }), Ok(None));
        listed.push(twice);
        let listed = rawdoc! { "a": listed };
        assert_eq!(anywhere(&listed), found("a.x"));
        assert!(value_tree("place", listed.get("a").unwrap().unwrap()).is_err());
        assert_eq!(
            value_tree("place", RawBsonRef::Int32(1)),
            Ok(Bson::Int32(1))
        );
    }
}
