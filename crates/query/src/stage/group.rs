//! `$group`, and stages that are parsed into it.

use bson::{Bson, Document, doc};

use super::Stage;
use super::options::object;
use crate::accumulator::Accumulator;
use crate::expr::{Dependencies, Expr};
use crate::settings::Settings;
use crate::sort::Sort;
use crate::{Error, Result};

/// `$group`: returns one document for all documents with an equal key, with the results of
/// accumulators.
#[derive(Debug, Clone)]
pub struct Group {
    /// The key.
    pub id: Expr,
    /// The fields of the result other than `_id`, in order.
    pub fields: Vec<(String, Accumulator)>,
}

impl Group {
    /// Parses the specification.
    ///
    /// # Errors
    /// 15955 without `_id`, 40234 to 40238 for fields that are not accumulators, and the errors of
    /// accumulators and expressions.
    pub fn parse(spec: &Bson, settings: &Settings) -> Result<Group> {
        let Bson::Document(spec) = spec else {
            return Err(Error::location(
                15_947,
                "a group's fields must be specified in an object",
            ));
        };
        let Some(id) = spec.get("_id") else {
            return Err(Error::location(
                15_955,
                "a group specification must include an _id",
            ));
        };
        let id = Expr::parse(id, &settings.scope())?;
        let fields = spec.iter().filter(|(name, _)| *name != "_id");
        Ok(Group {
            id,
            fields: fields
                .map(|(name, value)| Ok((name.clone(), accumulator(name, value, settings)?)))
                .collect::<Result<_>>()?,
        })
    }

    /// Adds what the stage reads of its input documents.
    pub fn dependencies(&self, found: &mut Dependencies) {
        self.id.dependencies(found);
        for (_, accumulator) in &self.fields {
            accumulator.dependencies(found);
        }
    }
}

/// Parses the accumulator of one field of the result.
pub(super) fn accumulator(name: &str, value: &Bson, settings: &Settings) -> Result<Accumulator> {
    if name.contains('.') {
        return Err(Error::location(
            40_235,
            format!("The field name '{name}' cannot contain '.'"),
        ));
    }
    if name.starts_with('$') {
        return Err(Error::location(
            40_236,
            format!("The field name '{name}' cannot be an operator name"),
        ));
    }
    let Bson::Document(value) = value else {
        return Err(Error::location(
            40_234,
            format!("The field '{name}' must be an accumulator object"),
        ));
    };
    let mut entries = value.iter();
    let (Some((operator, operand)), None) = (entries.next(), entries.next()) else {
        return Err(Error::location(
            40_238,
            format!("The field '{name}' must specify one accumulator"),
        ));
    };
    Accumulator::parse(operator, operand, &settings.scope())
}

/// `$sortByCount` as `$group` and `$sort`.
pub(super) fn sort_by_count(spec: &Bson, settings: &Settings) -> Result<Vec<Stage>> {
    let valid = match spec {
        Bson::String(path) => path.starts_with('$'),
        Bson::Document(expr) => expr.keys().next().is_some_and(|name| name.starts_with('$')),
        _ => false,
    };
    if !valid {
        return Err(Error::location(
            40_148,
            "the sortByCount field must be defined as a $-prefixed path or an expression inside an \
             object",
        ));
    }
    let group = doc! { "_id": spec.clone(), "count": { "$sum": 1 } };
    Ok(vec![
        Stage::Group(Group::parse(&Bson::Document(group), settings)?),
        Stage::Sort(sort(&doc! { "count": -1 })?, None),
    ])
}

/// The sort for a specification made by this crate, not by a user.
pub(super) fn sort(spec: &Document) -> Result<Sort> {
    Sort::parse(&bson::RawDocumentBuf::try_from(spec)?)
}

/// The option `output` of `$bucket` and `$bucketAuto`: the fields of a bucket's document.
pub(super) fn output(stage: &str, spec: &Document) -> Result<Document> {
    match spec.get("output") {
        None => Ok(doc! { "count": { "$sum": 1 } }),
        Some(output) => {
            let message = format!("The {stage} 'output' field must be an object");
            object(output, 40_196, &message).cloned()
        }
    }
}
