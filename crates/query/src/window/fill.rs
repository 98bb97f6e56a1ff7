//! `$fill`: values for fields that are null or missing.

use bson::{Bson, Document, doc};

use super::SetWindowFields;
use super::function::Function;
use super::partition::{Partition, Partitioning};
use super::place::place;
use crate::expr::{Env, Expr, FieldPath, Scope, Variables};
use crate::{Error, Result, Row};

/// A parsed `$fill`.
#[derive(Debug, Clone)]
pub struct Fill {
    /// Fields filled from neighbouring documents; `None` if no field is, in which case the input
    /// keeps its order.
    windows: Option<SetWindowFields>,
    /// Fields filled with an expression.
    values: Vec<(FieldPath, Expr)>,
}

impl Fill {
    /// Parses `{partitionBy | partitionByFields, sortBy, output}`.
    pub fn parse(spec: &Bson, scope: &Scope) -> Result<Fill> {
        let Bson::Document(spec) = spec else {
            return Err(Error::parse(
                "the $fill stage specification must be an object",
            ));
        };
        let known = ["partitionBy", "partitionByFields", "sortBy", "output"];
        if let Some(name) = spec.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(Error::location(
                40_415,
                format!("BSON field '$fill.{name}' is an unknown field."),
            ));
        }
        let Some(Bson::Document(output)) = spec.get("output") else {
            return Err(Error::location(
                40_414,
                "BSON field '$fill.output' is missing but a required field",
            ));
        };
        let by = partitioning(spec, scope)?;
        let (mut outputs, mut values) = (Vec::new(), Vec::new());
        for (name, rule) in output {
            let path = FieldPath::parse(name)?;
            match rule_of(name, rule)? {
                Rule::Value(value) => values.push((path, Expr::parse(value, scope)?)),
                Rule::Method(operator) => {
                    let function = doc! { operator: format!("${name}") };
                    outputs.push((path, Function::parse(&function, &by, scope)?));
                }
            }
        }
        if !outputs.is_empty() && by.sort.is_none() {
            return Err(Error::location(
                605_001,
                "$fill: a 'sortBy' is required when a 'method' is used",
            ));
        }
        let windows = (!outputs.is_empty()).then_some(SetWindowFields { by, outputs });
        Ok(Fill { windows, values })
    }

    /// How rows are partitioned and ordered; `None` when no field is filled from neighbouring
    /// documents.
    pub(super) fn partitioning(&self) -> Option<&Partitioning> {
        self.windows.as_ref().map(|windows| &windows.by)
    }

    /// The rows of a partition with null and missing values filled.
    pub(super) fn compute(&self, partition: Partition, vars: &Variables) -> Result<Vec<Row>> {
        let partition = match &self.windows {
            Some(windows) => windows.compute(partition, vars)?,
            None => partition,
        };
        let rows = partition.into_rows();
        rows.map(|row| self.fill(row, vars)).collect()
    }

    fn fill(&self, row: Row, vars: &Variables) -> Result<Row> {
        let sort_values = row.sort_key();
        let mut document = row.into_document()?;
        for (path, expr) in &self.values {
            let held = path.in_document(&document);
            if !matches!(held.as_deref(), None | Some(Bson::Null | Bson::Undefined)) {
                continue;
            }
            let value = expr.kept(&Env::new(&document, vars))?;
            if let Some(value) = value {
                place(&mut document, path, value)?;
            }
        }
        Ok(Row::from_document(document).with_sort_key(sort_values))
    }
}

enum Rule<'a> {
    Value(&'a Bson),
    Method(&'static str),
}

fn rule_of<'a>(name: &str, rule: &'a Bson) -> Result<Rule<'a>> {
    let Bson::Document(rule) = rule else {
        return Err(Error::parse(format!(
            "$fill: the output '{name}' must be an object"
        )));
    };
    match (rule.get("value"), rule.get("method"), rule.len()) {
        (Some(value), None, 1) => Ok(Rule::Value(value)),
        (None, Some(Bson::String(method)), 1) => match method.as_str() {
            "linear" => Ok(Rule::Method("$linearFill")),
            "locf" => Ok(Rule::Method("$locf")),
            _ => Err(Error::location(
                6_050_202,
                "Method must be either locf or linear",
            )),
        },
        _ => Err(Error::parse(format!(
            "$fill: the output '{name}' must have exactly one of 'value' and 'method'"
        ))),
    }
}

fn partitioning(spec: &Document, scope: &Scope) -> Result<Partitioning> {
    let fields = match spec.get("partitionByFields") {
        None => None,
        Some(_) if spec.contains_key("partitionBy") => {
            return Err(Error::location(
                6_050_204,
                "Maximum one of 'partitionBy' and 'partitionByFields can be specified in '$fill'",
            ));
        }
        Some(fields) => Some(fields_key(&field_names(fields, "$fill")?)),
    };
    let by = spec.get("partitionBy").or(fields.as_ref());
    Partitioning::parse(by, spec.get("sortBy"), "$fill", scope)
}

/// Checks `partitionByFields`.
pub(super) fn field_names(spec: &Bson, stage: &str) -> Result<Vec<FieldPath>> {
    let wrong = || {
        Error::type_mismatch(format!(
            "BSON field '{stage}.partitionByFields' must be an array of strings"
        ))
    };
    let Bson::Array(items) = spec else {
        return Err(wrong());
    };
    items
        .iter()
        .map(|item| FieldPath::parse(item.as_str().ok_or_else(wrong)?))
        .collect()
}

/// The partition key over `names`: a document of the values of these fields.
pub(super) fn fields_key(names: &[FieldPath]) -> Bson {
    let fields: Document = names
        .iter()
        .enumerate()
        .map(|(at, path)| (fields_name(at), Bson::String(format!("${path}"))))
        .collect();
    Bson::Document(fields)
}

/// The name of a field in [`fields_key`].
pub(super) fn fields_name(at: usize) -> String {
    format!("f{at}")
}
