//! `$bucketAuto`: sorts rows by a value and divides them into buckets of about the same size.
//!
//! The rows are sorted as by `$sort`, which may spill, with the value next to the document: `{k:
//! {v: value}, d: document}`. The value is in a document of its own because a sort enters arrays.

use bson::{Bson, Document};

use super::sort::SortRows;
use super::{Host, Rows, memory};
use crate::accumulator::State;
use crate::expr::{Env, Variables};
use crate::meter::Held;
use crate::number::Number;
use crate::path::Path;
use crate::settings::Settings;
use crate::sort::{Direction, Sort};
use crate::stage::{BucketAuto, Granularity};
use crate::value::{compare_with, type_name};
use crate::{Error, Result, Row, show};

const KEY: &str = "k";
const VALUE: &str = "v";
const DOCUMENT: &str = "d";

/// `$bucketAuto`.
pub(super) struct BucketAutoRows {
    input: Option<Box<dyn Rows>>,
    sorted: Option<SortRows>,
    bucket: BucketAuto,
    settings: Settings,
    /// The first row of the next bucket.
    ahead: Option<(Bson, Document)>,
    /// The upper bound of the previous bucket, when boundaries are rounded.
    boundary: Option<Bson>,
    made: u32,
    size: u64,
    /// Memory reserved in the budget of all operations.
    held: Held,
}

impl BucketAutoRows {
    pub(super) fn new(
        input: Box<dyn Rows>,
        bucket: BucketAuto,
        settings: &Settings,
    ) -> BucketAutoRows {
        BucketAutoRows {
            input: Some(input),
            sorted: None,
            bucket,
            settings: settings.clone(),
            ahead: None,
            boundary: None,
            made: 0,
            size: 1,
            held: Held::new(),
        }
    }

    fn begin(&mut self, input: Box<dyn Rows>, host: &mut dyn Host) -> Result<()> {
        let keyed = Keyed {
            input,
            bucket: self.bucket.clone(),
            variables: self.settings.variables.clone(),
        };
        let sort = Sort::by(vec![(Path::parse(KEY)?, Direction::Ascending)]);
        let collator = self.settings.collator.clone();
        self.sorted = Some(SortRows::new(Box::new(keyed), sort, None, collator));
        self.ahead = self.pull(host)?;
        let total = self.sorted.as_ref().map_or(0, SortRows::total);
        let buckets = u64::from(self.bucket.buckets);
        // Rounded to the nearest number of rows, and at least 1.
        self.size = ((total * 2 + buckets) / (buckets * 2)).max(1);
        Ok(())
    }

    fn pull(&mut self, host: &mut dyn Host) -> Result<Option<(Bson, Document)>> {
        let Some(sorted) = &mut self.sorted else {
            return Ok(None);
        };
        let Some(row) = sorted.next(host)? else {
            return Ok(None);
        };
        host.check()?;
        let mut document = row.into_document()?;
        let value = match document.get_mut(KEY) {
            Some(Bson::Document(key)) => key.remove(VALUE),
            _ => None,
        };
        match document.remove(DOCUMENT) {
            Some(Bson::Document(document)) => Ok(Some((value.unwrap_or(Bson::Null), document))),
            _ => Ok(None),
        }
    }

    /// Reads the rows of the next bucket, after `first`, and returns its result.
    fn bucket(&mut self, first: (Bson, Document), host: &mut dyn Host) -> Result<Row> {
        self.made += 1;
        let last = self.made == self.bucket.buckets;
        let (min, document) = first;
        let mut max = min.clone();
        let mut states = self.start()?;
        self.add(&mut states, &document, host)?;
        let mut count = 1;
        self.ahead = self.pull(host)?;
        while count < self.size || last {
            let Some((value, document)) = self.ahead.take() else {
                break;
            };
            self.add(&mut states, &document, host)?;
            max = value;
            count += 1;
            self.ahead = self.pull(host)?;
        }
        let id = match self.bucket.granularity {
            None => {
                self.absorb(&mut states, &max, false, host)?;
                if let Some((value, _)) = &self.ahead {
                    max = value.clone();
                }
                bounds(min, max)
            }
            Some(granularity) => {
                let low = match self.boundary.take() {
                    Some(boundary) => boundary,
                    None => rounded(&min, granularity, Granularity::down)?,
                };
                let high = rounded(&max, granularity, Granularity::up)?;
                self.absorb(&mut states, &high, true, host)?;
                self.boundary = Some(high.clone());
                bounds(low, high)
            }
        };
        Ok(self.finish(id, states))
    }

    /// Adds to the current bucket the following rows whose value is below `boundary` or, if `below`
    /// is false, equal to it.
    fn absorb(
        &mut self,
        states: &mut [State],
        boundary: &Bson,
        below: bool,
        host: &mut dyn Host,
    ) -> Result<()> {
        loop {
            let Some((value, document)) = self.ahead.take() else {
                return Ok(());
            };
            let order = compare_with(&value, boundary, self.settings.collator.as_deref());
            let inside = if below { order.is_lt() } else { order.is_eq() };
            if !inside {
                self.ahead = Some((value, document));
                return Ok(());
            }
            self.add(states, &document, host)?;
            self.ahead = self.pull(host)?;
        }
    }

    fn start(&self) -> Result<Vec<State>> {
        let nothing = Document::new();
        let env = Env::new(&nothing, &self.settings.variables);
        let output = self.bucket.output.iter();
        output
            .map(|(_, accumulator)| accumulator.start(&env))
            .collect()
    }

    fn add(&mut self, states: &mut [State], document: &Document, host: &dyn Host) -> Result<()> {
        let env = Env::new(document, &self.settings.variables);
        let mut bytes = 0;
        for ((_, accumulator), state) in self.bucket.output.iter().zip(states) {
            accumulator.add(state, &env)?;
            bytes += state.memory();
        }
        if host.memory_limit() < bytes {
            return Err(memory::exceeded("$bucketAuto"));
        }
        self.held.require("$bucketAuto", bytes)
    }

    fn finish(&self, id: Document, states: Vec<State>) -> Row {
        let mut document = Document::new();
        document.insert("_id", id);
        for ((name, accumulator), state) in self.bucket.output.iter().zip(states) {
            document.insert(name.as_str(), accumulator.finish(state));
        }
        Row::from_document(document)
    }
}

impl Rows for BucketAutoRows {
    fn next(&mut self, host: &mut dyn Host) -> Result<Option<Row>> {
        if let Some(input) = self.input.take() {
            self.begin(input, host)?;
        }
        match self.ahead.take() {
            Some(first) => self.bucket(first, host).map(Some),
            None => Ok(None),
        }
    }
}

fn bounds(min: Bson, max: Bson) -> Document {
    let mut id = Document::new();
    id.insert("min", min);
    id.insert("max", max);
    id
}

/// `value` rounded to a preferred number; an error for other values than non-negative numbers.
fn rounded(
    value: &Bson,
    granularity: Granularity,
    round: fn(Granularity, f64) -> f64,
) -> Result<Bson> {
    let Some(number) = Number::from_bson(value) else {
        return Err(Error::location(
            40_258,
            format!(
                "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a \
                 value with type: {}",
                type_name(value)
            ),
        ));
    };
    if number.is_nan() {
        return Err(Error::location(
            40_259,
            "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a NaN",
        ));
    }
    if number.is_negative() {
        return Err(Error::location(
            40_260,
            format!(
                "$bucketAuto can specify a 'granularity' with non-negative numbers only, but found \
                 a negative number: {}",
                show::value(value)
            ),
        ));
    }
    Ok(Bson::Double(round(granularity, number.to_f64())))
}

/// Wraps the rows of the input for the sort: `{k: {v: value}, d: document}`.
struct Keyed {
    input: Box<dyn Rows>,
    bucket: BucketAuto,
    variables: Variables,
}

impl Rows for Keyed {
    fn next(&mut self, host: &mut dyn Host) -> Result<Option<Row>> {
        let Some(row) = self.input.next(host)? else {
            return Ok(None);
        };
        let document = row.into_document()?;
        let env = Env::new(&document, &self.variables);
        let value = self.bucket.group_by.evaluate_or_null(&env)?;
        let mut key = Document::new();
        key.insert(VALUE, value);
        let mut keyed = Document::new();
        keyed.insert(KEY, key);
        keyed.insert(DOCUMENT, document);
        Ok(Some(Row::from_document(keyed)))
    }
}
