//! `$setWindowFields`.

use bson::Bson;

use super::function::Function;
use super::partition::{Partition, Partitioning};
use super::place::place;
use super::series::Series;
use crate::expr::{FieldPath, Scope, Variables};
use crate::value::type_name;
use crate::{Error, Result};

/// A parsed `$setWindowFields`.
#[derive(Debug, Clone)]
pub struct SetWindowFields {
    pub(super) by: Partitioning,
    pub(super) outputs: Vec<(FieldPath, Function)>,
}

impl SetWindowFields {
    /// Parses `{partitionBy, sortBy, output}`.
    pub fn parse(spec: &Bson, scope: &Scope) -> Result<SetWindowFields> {
        let Bson::Document(spec) = spec else {
            return Err(Error::parse(format!(
                "the $setWindowFields stage specification must be an object, found {}",
                type_name(spec)
            )));
        };
        let known = ["partitionBy", "sortBy", "output"];
        if let Some(name) = spec.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(Error::location(
                40_415,
                format!("BSON field '$setWindowFields.{name}' is an unknown field."),
            ));
        }
        let Some(output) = spec.get("output") else {
            return Err(Error::location(
                40_414,
                "BSON field '$setWindowFields.output' is missing but a required field",
            ));
        };
        let Bson::Document(output) = output else {
            return Err(Error::type_mismatch(format!(
                "BSON field '$setWindowFields.output' is the wrong type '{}', expected type \
                 'object'",
                type_name(output)
            )));
        };
        let by = Partitioning::parse(
            spec.get("partitionBy"),
            spec.get("sortBy"),
            "$setWindowFields",
            scope,
        )?;
        let mut outputs = Vec::with_capacity(output.len());
        for (path, function) in output {
            let Bson::Document(function) = function else {
                return Err(Error::parse(format!(
                    "The field '{path}' must be an object"
                )));
            };
            let function = Function::parse(function, &by, scope)?;
            outputs.push((FieldPath::parse(path)?, function));
        }
        Ok(SetWindowFields { by, outputs })
    }

    /// Evaluates the outputs over a partition and sets them in its documents.
    ///
    /// Every function reads the input documents, not the outputs of other functions.
    pub(super) fn compute(&self, mut partition: Partition, vars: &Variables) -> Result<Partition> {
        let mut columns = Vec::with_capacity(self.outputs.len());
        let series = Series {
            documents: &partition.documents,
            by: &self.by,
            vars,
        };
        for (path, function) in &self.outputs {
            columns.push((path, series.values(function)?));
        }
        for (path, values) in columns {
            for (document, value) in partition.documents.iter_mut().zip(values) {
                place(document, path, value)?;
            }
        }
        Ok(partition)
    }
}
