//! Stages that process one row at a time, and sources of rows in memory.

use bson::{Bson, Document};

use super::{Host, Rows};
use crate::expr::{Env, Expr, SORT_KEY, Variables};
use crate::filter::Filter;
use crate::meter::{self, Held};
use crate::settings::Settings;
use crate::stage::{Statistics, Transform};
use crate::value::type_name;
use crate::{Error, Result, Row};

/// `$match`.
pub(super) struct Match {
    pub(super) input: Box<dyn Rows>,
    pub(super) filter: Filter,
}

impl Rows for Match {
    fn next(&mut self, host: &mut dyn Host) -> Result<Option<Row>> {
        while let Some(row) = self.input.next(host)? {
            if self.filter.matches(row.raw()?)? {
                return Ok(Some(row));
            }
            host.check()?;
        }
        Ok(None)
    }
}

/// `$limit`.
pub(super) struct Limit {
    pub(super) input: Box<dyn Rows>,
    pub(super) left: u64,
}

impl Rows for Limit {
    fn next(&mut self, host: &mut dyn Host) -> Result<Option<Row>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.input.next(host)
    }
}

/// `$skip`.
pub(super) struct Skip {
    pub(super) input: Box<dyn Rows>,
    pub(super) left: u64,
}

impl Rows for Skip {
    fn next(&mut self, host: &mut dyn Host) -> Result<Option<Row>> {
        while self.left > 0 {
            self.left -= 1;
            if self.input.next(host)?.is_none() {
                self.left = 0;
                return Ok(None);
            }
            host.check()?;
        }
        self.input.next(host)
    }
}

/// `$project`, `$addFields` and other stages that map one document to one or none.
pub(super) struct Transformed {
    input: Box<dyn Rows>,
    transform: Transform,
    variables: Variables,
    /// Whether the stage reads the key by which rows were sorted.
    keyed: bool,
    /// Memory reserved in the budget of all operations for the current row.
    held: Held,
}

impl Transformed {
    pub(super) fn new(
        input: Box<dyn Rows>,
        transform: Transform,
        settings: &Settings,
    ) -> Transformed {
        Transformed {
            input,
            keyed: transform.reads_sort_key(),
            transform,
            variables: settings.variables.clone(),
            held: Held::new(),
        }
    }
}

impl Rows for Transformed {
    fn next(&mut self, host: &mut dyn Host) -> Result<Option<Row>> {
        while let Some(row) = self.input.next(host)? {
            let key = row.sort_key();
            if let Some(projection) = self.transform.projection()
                && projection.is_simple()
            {
                let raw = projection.apply(row.raw()?, None)?;
                return Ok(Some(Row::from_raw(raw).with_sort_key(key)));
            }
            let document = row.into_document()?;
            if self.keyed {
                let values = key.as_deref().map(|values| Bson::Array(values.to_vec()));
                self.variables.set(SORT_KEY, values);
            }
            if let Some(next) = self.transform.apply_or_drop(document, &self.variables)? {
                let bytes = meter::document_size(&next);
                self.held.require(self.transform.name(), bytes)?;
                return Ok(Some(Row::from_document(next).with_sort_key(key)));
            }
            host.check()?;
        }
        Ok(None)
    }
}

/// `$count`.
pub(super) struct Count {
    input: Option<Box<dyn Rows>>,
    field: String,
}

impl Count {
    pub(super) fn new(input: Box<dyn Rows>, field: String) -> Count {
        Count {
            input: Some(input),
            field,
        }
    }
}

impl Rows for Count {
    fn next(&mut self, host: &mut dyn Host) -> Result<Option<Row>> {
        let Some(mut input) = self.input.take() else {
            return Ok(None);
        };
        let mut count: i64 = 0;
        while input.next(host)?.is_some() {
            count += 1;
            host.check()?;
        }
        if count == 0 {
            return Ok(None);
        }
        let mut document = Document::new();
        document.insert(
            self.field.as_str(),
            i32::try_from(count).map_or(Bson::Int64(count), Bson::Int32),
        );
        Ok(Some(Row::from_document(document)))
    }
}

/// `$documents`.
pub(super) struct Documents {
    expr: Option<Expr>,
    variables: Variables,
    rows: std::vec::IntoIter<Bson>,
    /// Memory reserved in the budget of all operations.
    held: Held,
}

impl Documents {
    pub(super) fn new(expr: Expr, settings: &Settings) -> Documents {
        Documents {
            expr: Some(expr),
            variables: settings.variables.clone(),
            rows: Vec::new().into_iter(),
            held: Held::new(),
        }
    }
}

impl Rows for Documents {
    fn next(&mut self, _host: &mut dyn Host) -> Result<Option<Row>> {
        if let Some(expr) = self.expr.take() {
            let nothing = Document::new();
            let value = expr.evaluate(&Env::new(&nothing, &self.variables))?;
            match value {
                Some(Bson::Array(values)) => {
                    let bytes = values.iter().map(meter::size).sum();
                    self.held.require("$documents", bytes)?;
                    self.rows = values.into_iter();
                }
                other => {
                    return Err(Error::location(
                        5_858_203,
                        format!(
                            "an array is expected for $documents, found {}",
                            other.as_ref().map_or("missing", type_name)
                        ),
                    ));
                }
            }
        }
        match self.rows.next() {
            None => Ok(None),
            Some(Bson::Document(document)) => Ok(Some(Row::from_document(document))),
            Some(other) => Err(Error::location(
                40_228,
                format!(
                    "'newRoot' expression must evaluate to an object, but resulting value was of \
                     type {}",
                    type_name(&other)
                ),
            )),
        }
    }
}

/// Stages that report on the server.
pub(super) struct Report {
    statistics: Option<Statistics>,
    rows: std::vec::IntoIter<Document>,
}

impl Report {
    pub(super) fn new(statistics: Statistics) -> Report {
        Report {
            statistics: Some(statistics),
            rows: Vec::new().into_iter(),
        }
    }
}

impl Rows for Report {
    fn next(&mut self, host: &mut dyn Host) -> Result<Option<Row>> {
        if let Some(statistics) = self.statistics.take() {
            self.rows = host.statistics(&statistics)?.into_iter();
        }
        Ok(self.rows.next().map(Row::from_document))
    }
}

/// Rows that are in memory.
#[derive(Debug, Default)]
pub struct Listed(std::vec::IntoIter<Row>);

impl Listed {
    /// These rows, in this order.
    #[must_use]
    pub fn new(rows: Vec<Row>) -> Listed {
        Listed(rows.into_iter())
    }
}

impl Rows for Listed {
    fn next(&mut self, _host: &mut dyn Host) -> Result<Option<Row>> {
        Ok(self.0.next())
    }
}
