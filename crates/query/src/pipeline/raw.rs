//! Stages as bytes: keys that are given twice are refused before one of the two is lost.

use bson::{RawArray, RawBsonRef, RawDocument};

use crate::{Error, Result};

/// Stages that read their argument as BSON with keys of the user, or see every repetition
/// themselves.
const FREE: &[&str] = &[
    "$match",
    "$project",
    "$addFields",
    "$set",
    "$unset",
    "$group",
    "$sort",
];

/// Checks stages that come as bytes. Recursion is bounded by the depth of BSON.
///
/// # Errors
/// 40413 for an option of a stage that is given twice, 40323 for a stage of several fields,
/// `TypeMismatch` for what is no stage.
pub fn check_options(stages: &RawArray) -> Result<()> {
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
        if let RawBsonRef::Document(spec) = spec
            && !FREE.contains(&name.as_str())
        {
            of_stage(name.as_str(), spec)?;
        }
    }
    Ok(())
}

fn of_stage(name: &str, spec: &RawDocument) -> Result<()> {
    distinct(name, spec)?;
    for option in spec.iter() {
        let (option, value) = option?;
        match (name, option.as_str(), value) {
            ("$lookup" | "$merge", "from" | "into" | "let", RawBsonRef::Document(inner)) => {
                distinct(&format!("{name}.{}", option.as_str()), inner)?;
            }
            ("$lookup" | "$unionWith", "pipeline", RawBsonRef::Array(inner))
            | ("$merge", "whenMatched", RawBsonRef::Array(inner))
            | ("$facet", _, RawBsonRef::Array(inner)) => check_options(inner)?,
            _ => {}
        }
    }
    Ok(())
}

/// How many fields are compared each with each; with more a set is made of them.
const FEW: usize = 24;

/// Refuse a document that has a field twice, as MongoDB's commands do. `place` is where it stands.
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

/// The first name that is not the first of its kind.
#[must_use]
pub fn repeated<'a>(mut names: impl ExactSizeIterator<Item = &'a str> + Clone) -> Option<&'a str> {
    if names.len() <= FEW {
        let all = names.clone();
        let mut places = names.enumerate();
        let found = places.find(|(at, name)| all.clone().take(*at).any(|known| known == *name));
        return found.map(|(_, name)| name);
    }
    let mut seen = std::collections::HashSet::with_capacity(names.len());
    names.find(|name| !seen.insert(*name))
}

/// The error of a field that is given twice.
#[must_use]
pub fn duplicate(place: &str, name: &str) -> Error {
    let message = format!("BSON field '{place}.{name}' is a duplicate field");
    Error::location(40_413, message)
}

#[cfg(test)]
mod tests {
    use bson::{RawArrayBuf, RawBson, RawDocumentBuf, rawdoc};

    use super::*;

    /// A document of fields that may repeat.
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
        check_options(&stages).err().map(|error| error.code.0)
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
        ] {
            assert_eq!(code(one(stage, twice(option))), Some(40_413), "{stage}");
        }
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
    fn repetitions_are_found_among_few_and_many() {
        for count in [2, FEW, FEW + 1, 1_000] {
            let names: Vec<String> = (0..count).map(|n| n.to_string()).collect();
            let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
            assert_eq!(repeated(names.iter().copied()), None);
            names.push("1");
            assert_eq!(repeated(names.iter().copied()), Some("1"));
        }
    }
}
