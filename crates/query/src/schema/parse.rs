//! Parses a schema.

use std::collections::HashSet;

use bson::{Bson, Document};

use super::argument::{array, boolean, count, document, names, nonempty, number, text, wrong_type};
use super::rule::{Additional, Bound, Check, Rule, Schema};
use super::unordered::unordered;
use crate::regex::Regex;
use crate::types::Types;
use crate::value::equivalence_key;
use crate::{Error, Result, meter};

/// Maximum nesting of schemas: documents are not nested deeper.
const MAX_DEPTH: usize = 100;

/// The keywords that MongoDB recognizes and refuses.
const UNSUPPORTED: &[&str] = &["$ref", "$schema", "default", "definitions", "format", "id"];

/// The names of JSON's types, each with the BSON types it stands for.
const JSON_TYPES: &[(&str, &str)] = &[
    ("array", "array"),
    ("boolean", "bool"),
    ("null", "null"),
    ("number", "number"),
    ("object", "object"),
    ("string", "string"),
];

impl Schema {
    /// Reads a schema.
    ///
    /// # Errors
    /// `FailedToParse`, `TypeMismatch` or `BadValue`, as MongoDB.
    pub fn parse(spec: &Document) -> Result<Schema> {
        Schema::at_depth(spec, 0)
    }

    pub(super) fn at_depth(spec: &Document, depth: usize) -> Result<Schema> {
        if depth > MAX_DEPTH {
            return Err(Error::bad_value(format!(
                "$jsonSchema nests deeper than {MAX_DEPTH} levels"
            )));
        }
        // Each level keeps a copy of all below it, whole and by keyword.
        let bytes = 2 * meter::document_size(spec);
        meter::read(bytes)?;
        meter::charge_operation("$jsonSchema", bytes)?;
        let mut schema = Schema {
            rules: Vec::new(),
            notes: Document::new(),
            spec: spec.clone(),
        };
        if spec.contains_key("type") && spec.contains_key("bsonType") {
            return Err(Error::parse(
                "Cannot specify both $jsonSchema keywords 'type' and 'bsonType'",
            ));
        }
        for (name, value) in spec {
            schema.keyword(name, value, depth)?;
        }
        Ok(schema)
    }

    fn keyword(&mut self, name: &str, value: &Bson, depth: usize) -> Result<()> {
        if matches!(name, "title" | "description") {
            text(name, value)?;
            self.notes.insert(name, value.clone());
            return Ok(());
        }
        if let Some((name, check)) = self.check(name, value, depth)? {
            let mut spec = Document::new();
            spec.insert(name, value.clone());
            for beside in ["exclusiveMinimum", "exclusiveMaximum"] {
                let own = beside.ends_with("inimum") == (name == "minimum");
                if let (Some(value), true) = (
                    self.spec.get(beside),
                    own && matches!(name, "minimum" | "maximum"),
                ) {
                    spec.insert(beside, value.clone());
                }
            }
            self.rules.push(Rule { name, spec, check });
        }
        Ok(())
    }

    fn check(
        &self,
        name: &str,
        value: &Bson,
        depth: usize,
    ) -> Result<Option<(&'static str, Check)>> {
        Ok(Some(match name {
            "bsonType" => ("bsonType", Check::Types(bson_types(value)?)),
            "type" => ("type", Check::Types(json_types(value)?)),
            "enum" => ("enum", Check::Enum(enumeration(value)?)),
            "minimum" => {
                let exclusive = self.exclusive("exclusiveMinimum")?;
                let limit = number(name, value)?;
                ("minimum", Check::Minimum { limit, exclusive })
            }
            "maximum" => {
                let exclusive = self.exclusive("exclusiveMaximum")?;
                let limit = number(name, value)?;
                ("maximum", Check::Maximum { limit, exclusive })
            }
            "exclusiveMinimum" => return self.beside("minimum", name, value),
            "exclusiveMaximum" => return self.beside("maximum", name, value),
            "multipleOf" => ("multipleOf", multiple_of(value)?),
            "minLength" => (
                "minLength",
                Check::Length(Bound::Least(count(name, value)?)),
            ),
            "maxLength" => ("maxLength", Check::Length(Bound::Most(count(name, value)?))),
            "pattern" => (
                "pattern",
                Check::Pattern(Regex::new(text(name, value)?, "")?),
            ),
            "items" | "additionalItems" | "minItems" | "maxItems" | "uniqueItems" => {
                return self.array_check(name, value, depth);
            }
            "allOf" => (
                "allOf",
                Check::AllOf(schemas(name, nonempty(name, value)?, depth)?),
            ),
            "anyOf" => (
                "anyOf",
                Check::AnyOf(schemas(name, nonempty(name, value)?, depth)?),
            ),
            "oneOf" => (
                "oneOf",
                Check::OneOf(schemas(name, nonempty(name, value)?, depth)?),
            ),
            "not" => ("not", Check::Not(schema(name, value, depth)?)),
            _ => return self.object_check(name, value, depth).map(Some),
        }))
    }

    /// Parses the keywords for arrays.
    fn array_check(
        &self,
        name: &str,
        value: &Bson,
        depth: usize,
    ) -> Result<Option<(&'static str, Check)>> {
        Ok(Some(match name {
            "items" => match value {
                Bson::Array(list) => ("items", Check::ItemList(schemas(name, list, depth)?)),
                value => ("items", Check::Items(schema(name, value, depth)?)),
            },
            "additionalItems" => match self.spec.get("items") {
                Some(Bson::Array(list)) => {
                    let additional = additional(name, value, depth)?;
                    let from = list.len();
                    (
                        "additionalItems",
                        Check::AdditionalItems { from, additional },
                    )
                }
                _ => {
                    additional(name, value, depth)?;
                    return Ok(None);
                }
            },
            "minItems" => (
                "minItems",
                Check::ItemCount(Bound::Least(count(name, value)?)),
            ),
            "maxItems" => (
                "maxItems",
                Check::ItemCount(Bound::Most(count(name, value)?)),
            ),
            "uniqueItems" => match boolean(name, value)? {
                true => ("uniqueItems", Check::UniqueItems),
                false => return Ok(None),
            },
            other => return Err(unknown(other)),
        }))
    }

    fn exclusive(&self, name: &str) -> Result<bool> {
        self.spec
            .get(name)
            .map_or(Ok(false), |value| boolean(name, value))
    }

    /// A keyword that modifies the keyword `main`, without which it is refused; it adds no check.
    fn beside(
        &self,
        main: &str,
        name: &str,
        value: &Bson,
    ) -> Result<Option<(&'static str, Check)>> {
        boolean(name, value)?;
        if !self.spec.contains_key(main) {
            return Err(Error::parse(format!(
                "$jsonSchema keyword '{main}' must be a present if {name} is present"
            )));
        }
        Ok(None)
    }
}

/// The error for an unknown keyword.
pub(super) fn unknown(name: &str) -> Error {
    if UNSUPPORTED.contains(&name) {
        return Error::parse(format!(
            "$jsonSchema keyword '{name}' is not currently supported"
        ));
    }
    Error::parse(format!("Unknown $jsonSchema keyword: {name}"))
}

pub(super) fn schema(name: &str, value: &Bson, depth: usize) -> Result<Schema> {
    Schema::at_depth(document(name, value)?, depth + 1)
}

fn schemas(name: &str, list: &[Bson], depth: usize) -> Result<Vec<Schema>> {
    let one = |value: &Bson| match value {
        Bson::Document(spec) => Schema::at_depth(spec, depth + 1),
        _ => Err(wrong_type(name, "an array of objects")),
    };
    list.iter().map(one).collect()
}

pub(super) fn additional(name: &str, value: &Bson, depth: usize) -> Result<Additional> {
    Ok(match value {
        Bson::Boolean(true) => Additional::Allowed,
        Bson::Boolean(false) => Additional::Forbidden,
        Bson::Document(spec) => Additional::Like(Schema::at_depth(spec, depth + 1)?),
        _ => return Err(wrong_type(name, "either an object or a boolean")),
    })
}

/// A type name, or an array of different type names.
fn type_names(name: &str, value: &Bson) -> Result<Vec<String>> {
    match value {
        Bson::String(name) => Ok(vec![name.clone()]),
        Bson::Array(_) => names(name, value),
        _ => Err(wrong_type(name, "either a string or an array of strings")),
    }
}

fn bson_types(value: &Bson) -> Result<Types> {
    let mut types = Types::default();
    for name in type_names("bsonType", value)? {
        types.add_name(&name)?;
    }
    Ok(types)
}

fn json_types(value: &Bson) -> Result<Types> {
    let mut types = Types::default();
    for name in type_names("type", value)? {
        if name == "integer" {
            return Err(Error::bad_value(
                "$jsonSchema type 'integer' is not currently supported.",
            ));
        }
        let known = JSON_TYPES.iter().find(|(json, _)| *json == name);
        let (_, bson) =
            known.ok_or_else(|| Error::bad_value(format!("Unknown type name alias: {name}")))?;
        types.add_name(bson)?;
    }
    Ok(types)
}

fn enumeration(value: &Bson) -> Result<Vec<Bson>> {
    let items = array("enum", value)?;
    if items.is_empty() {
        return Err(Error::parse(
            "$jsonSchema keyword 'enum' cannot be an empty array",
        ));
    }
    let items: Vec<Bson> = items.iter().cloned().map(unordered).collect();
    let mut seen = HashSet::new();
    for item in &items {
        meter::read(meter::size(item))?;
        if !seen.insert(equivalence_key(item, None)) {
            return Err(Error::parse(
                "$jsonSchema keyword 'enum' array cannot contain duplicate values.",
            ));
        }
    }
    Ok(items)
}

fn multiple_of(value: &Bson) -> Result<Check> {
    let divisor = number("multipleOf", value)?;
    if divisor.is_negative() || divisor.is_zero() || divisor.is_nan() || divisor.is_infinite() {
        return Err(Error::parse(
            "$jsonSchema keyword 'multipleOf' must have a positive value",
        ));
    }
    Ok(Check::MultipleOf(divisor))
}
