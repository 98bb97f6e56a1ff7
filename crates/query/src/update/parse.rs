//! Parses the document or array of an update.

use std::collections::HashMap;
use std::sync::Arc;

use bson::{Bson, Document, RawBsonRef, RawDocument, RawDocumentBuf};

use super::array_filter::ArrayFilters;
use super::modifier::{Modifier, unknown_operator};
use super::pull::Pull;
use super::rename;
use super::spec::Operators;
use super::tree::{Fields, conflict, identifier};
use crate::meter::Held;
use crate::repeated::{check_order, repeated};
use crate::settings::Settings;
use crate::transform::Transform;
use crate::value::type_name;
use crate::{Code, Error, Result, show};

/// Maximum number of names in a path: the maximum nesting of documents.
const MAX_NAMES: usize = 200;

/// The update as an owned document. The operands of an operator that occurs twice are merged,
/// because an owned document keeps only the last of two fields of one name.
///
/// # Errors
/// `ConflictingUpdateOperators` when an operator has the same path twice; `BadValue` for a clause
/// that is given twice.
pub(super) fn merged(update: &RawDocument) -> Result<Document> {
    let mut merged = Document::new();
    for element in update {
        let (name, value) = element?;
        let name = name.as_str();
        match value {
            RawBsonRef::Document(operand) if name.starts_with('$') => {
                let mut paths = match merged.remove(name) {
                    Some(Bson::Document(before)) => before,
                    _ => Document::new(),
                };
                for field in operand {
                    let (path, value) = field?;
                    let path = path.as_str();
                    check_clauses(name, value)?;
                    if paths.insert(path, Bson::try_from(value)?).is_some() {
                        return Err(conflict(path, path));
                    }
                }
                merged.insert(name, paths);
            }
            other => {
                merged.insert(name, Bson::try_from(other)?);
            }
        }
    }
    Ok(merged)
}

/// Checks that an operand with clauses, such as `{$each: [..], $slice: 3}`, has each of them once.
///
/// # Errors
/// `BadValue`; 7472500 for a path that a `$sort` has twice.
fn check_clauses(operator: &str, operand: RawBsonRef<'_>) -> Result<()> {
    let RawBsonRef::Document(clauses) = operand else {
        return Ok(());
    };
    let has_clauses = match operator {
        "$push" | "$addToSet" => clauses.get("$each")?.is_some(),
        "$bit" | "$currentDate" => true,
        _ => false,
    };
    if !has_clauses {
        return Ok(());
    }
    let mut names = Vec::new();
    for clause in clauses {
        let (name, value) = clause?;
        names.push(name.as_str());
        if let ("$sort", RawBsonRef::Document(order)) = (name.as_str(), value) {
            check_order(order)?;
        }
    }
    match repeated(names.into_iter()) {
        None => Ok(()),
        Some(name) => Err(Error::bad_value(format!("Only one {name} is supported."))),
    }
}

/// Parses `{$set: {..}, $inc: {..}}`. Conditions of `$pull` may name a field twice, so they are
/// parsed from `raw`, the bytes of `spec`, if given.
pub(super) fn operators(
    spec: &Document,
    raw: Option<&RawDocument>,
    array_filters: &[RawDocumentBuf],
    settings: &Settings,
) -> Result<Operators> {
    let filters = ArrayFilters::parse(array_filters, settings)?;
    let mut operators = Operators {
        fields: Fields::default(),
        held: Arc::new(Held::new()),
        filters,
        paths: Vec::new(),
        names: Vec::new(),
    };
    for (operator, operand) in spec {
        if !OPERATORS.contains(&operator.as_str()) {
            return Err(unknown_operator(operator));
        }
        let Bson::Document(operand) = operand else {
            return Err(Error::parse(format!(
                "Modifiers operate on fields but we found type {} instead. For example: {{$mod: \
                 {{<field>: ...}}}} not {{{}}}",
                type_name(operand),
                show::field(operator, operand)
            )));
        };
        let pulled = match raw.filter(|_| operator == "$pull") {
            Some(raw) => pulled(raw)?,
            None => HashMap::new(),
        };
        for (path, value) in operand {
            match pulled.get(path.as_str()) {
                Some(condition) => operators.pull(path, *condition, settings)?,
                None => operators.add(operator, path, value, settings)?,
            }
        }
    }
    operators.filters.check_used(spec, &operators.paths)?;
    operators.names = first_names(&operators.paths);
    Ok(operators)
}

/// The first names of the paths and `_id`, sorted, each once.
fn first_names(paths: &[String]) -> Vec<Box<str>> {
    let first = |path: &String| path.split('.').next().map(Box::from);
    let mut names: Vec<Box<str>> = paths.iter().filter_map(first).collect();
    names.push("_id".into());
    names.sort_unstable();
    names.dedup();
    names
}

/// The conditions of each `$pull` of `update`, by their paths.
fn pulled(update: &RawDocument) -> Result<HashMap<&str, RawBsonRef<'_>>> {
    let mut pulled = HashMap::new();
    for element in update {
        if let (name, RawBsonRef::Document(conditions)) = element?
            && name.as_str() == "$pull"
        {
            for field in conditions {
                let (path, condition) = field?;
                pulled.insert(path.as_str(), condition);
            }
        }
    }
    Ok(pulled)
}

const OPERATORS: &[&str] = &[
    "$addToSet",
    "$bit",
    "$currentDate",
    "$inc",
    "$max",
    "$min",
    "$mul",
    "$pop",
    "$pull",
    "$pullAll",
    "$push",
    "$rename",
    "$set",
    "$setOnInsert",
    "$unset",
];

/// The names of all update operators.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    OPERATORS.iter().copied()
}

impl Operators {
    fn add(&mut self, operator: &str, path: &str, value: &Bson, settings: &Settings) -> Result<()> {
        check_path(path, &self.filters)?;
        if operator == "$rename" {
            let target = rename::parse(path, value)?;
            check_path(&target, &self.filters)?;
            self.put(path, Modifier::Unset)?;
            return self.put(&target, Modifier::Rename(path.to_owned()));
        }
        let modifier = Modifier::parse(operator, path, value, settings)?;
        self.put(path, modifier)
    }

    fn pull(&mut self, path: &str, condition: RawBsonRef<'_>, settings: &Settings) -> Result<()> {
        check_path(path, &self.filters)?;
        self.put(path, Modifier::Pull(Pull::parse(condition, settings)?))
    }

    fn put(&mut self, path: &str, modifier: Modifier) -> Result<()> {
        let held = Arc::get_mut(&mut self.held).expect("it is shared once it is parsed");
        self.fields.insert(path, modifier, held)?;
        self.paths.push(path.to_owned());
        Ok(())
    }
}

/// Checks that `path` is a valid path of an update.
fn check_path(path: &str, filters: &ArrayFilters) -> Result<()> {
    if path.is_empty() {
        return Err(Error::new(
            Code::EMPTY_FIELD_NAME,
            "An empty update path is not valid.",
        ));
    }
    let mut positional = 0;
    for (at, name) in path.split('.').enumerate() {
        if name.is_empty() {
            return Err(Error::new(
                Code::EMPTY_FIELD_NAME,
                format!(
                    "The update path '{path}' contains an empty field name, which is not allowed."
                ),
            ));
        }
        if at >= MAX_NAMES {
            return Err(Error::new(
                Code::OVERFLOW,
                format!("The update path has more than {MAX_NAMES} names"),
            ));
        }
        if name == "$" {
            positional += 1;
        }
        if name.starts_with('$') {
            check_dollar(path, at, name, filters)?;
        }
    }
    if positional > 1 {
        return Err(Error::bad_value(format!(
            "Too many positional (i.e. '$') elements found in path '{path}'"
        )));
    }
    Ok(())
}

fn check_dollar(path: &str, at: usize, name: &str, filters: &ArrayFilters) -> Result<()> {
    if name == "$" && at == 0 {
        return Err(Error::bad_value(format!(
            "Cannot have positional (i.e. '$') element in the first position in path '{path}'"
        )));
    }
    if name == "$" {
        return Ok(());
    }
    // Any other name is a field name. For top-level names, `dollar` checks a leading `$` when they
    // are written.
    let Some(id) = identifier(name) else {
        return Ok(());
    };
    if at == 0 {
        return Err(Error::bad_value(format!(
            "Cannot have array filter identifier (i.e. '$[<id>]') element in the first position in \
             path '{path}'"
        )));
    }
    if !filters.knows(id) {
        return Err(Error::bad_value(format!(
            "No array filter found for identifier '{id}' in path '{path}'"
        )));
    }
    Ok(())
}

/// Parses the stages of a pipeline-style update.
pub(super) fn pipeline(stages: &[Bson], settings: &Settings) -> Result<Vec<Transform>> {
    stages
        .iter()
        .map(|stage| {
            let spec = stage.as_document().ok_or_else(|| {
                Error::type_mismatch("Each element of the 'pipeline' array must be an object")
            })?;
            Transform::parse_for_update(spec, settings)
        })
        .collect()
}
