//! Queries of collections or views; those of views run as pipelines appended to the view's.

use bson::raw::{BindRawBsonRef, CStr, cstr};
use bson::{Bson, Document, RawArrayBuf, RawDocumentBuf, doc};
use query::{Error, Namespace, Result};

use super::AggregateRequest;
use crate::cursor::{Batch, FIRST_BATCH};
use crate::explain::Verbosity;
use crate::find::{CountRequest, DistinctRequest, FindRequest};
use crate::store::Store;
use crate::txn::Op;

/// A stage of one argument.
fn stage(name: &CStr, argument: impl BindRawBsonRef) -> RawDocumentBuf {
    let mut stage = RawDocumentBuf::new();
    stage.append(name, argument);
    stage
}

fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// `find` as a pipeline.
///
/// # Errors
/// `InvalidPipelineOperator` for options that pipelines do not support.
fn of_find(request: &FindRequest) -> Result<AggregateRequest> {
    let unsupported = request.tailable
        || request.return_key
        || request.show_record_id
        || request.min.is_some()
        || request.max.is_some();
    if unsupported {
        return Err(Error::new(
            query::Code::INVALID_PIPELINE_OPERATOR,
            "Option min, max, returnKey, showRecordId or tailable not supported in aggregation.",
        ));
    }
    let mut pipeline = RawArrayBuf::new();
    if !request.filter.is_empty() {
        pipeline.push(stage(cstr!("$match"), &*request.filter));
    }
    let mut hint = request.hint.clone();
    if let Some(sort) = request.sort.as_deref().filter(|sort| !sort.is_empty()) {
        if sort.get("$natural")?.is_some() {
            // In a pipeline a hint selects the natural order of the underlying collection.
            hint = Some(Bson::Document(Document::try_from(sort)?));
        } else {
            pipeline.push(stage(cstr!("$sort"), sort));
        }
    }
    if request.skip != 0 {
        pipeline.push(stage(cstr!("$skip"), number(request.skip)));
    }
    if let Some(limit) = request.limit.filter(|&limit| limit != 0) {
        pipeline.push(stage(cstr!("$limit"), number(limit)));
    }
    if let Some(projection) = request.projection.as_deref().filter(|p| !p.is_empty()) {
        pipeline.push(stage(cstr!("$project"), projection));
    }
    Ok(AggregateRequest {
        pipeline,
        batch_size: request.batch_size,
        allow_disk_use: request.allow_disk_use,
        hint,
        collation: request.collation.clone(),
        variables: request.variables.clone(),
        ..AggregateRequest::default()
    })
}

/// `count` as a pipeline.
fn of_count(request: &CountRequest) -> Result<AggregateRequest> {
    let mut aggregate = of_find(&FindRequest {
        filter: request.filter.clone(),
        skip: request.skip,
        limit: request.limit,
        hint: request.hint.clone(),
        collation: request.collation.clone(),
        variables: request.variables.clone(),
        ..FindRequest::default()
    })?;
    aggregate.pipeline.push(stage(cstr!("$count"), "n"));
    Ok(aggregate)
}

impl Store {
    /// `find`: the first batch, and a cursor for the rest.
    ///
    /// # Errors
    /// Errors of the request; errors of execution.
    pub fn find(&self, op: &Op<'_>, ns: &Namespace, request: &FindRequest) -> Result<Batch> {
        if let Some(batch) = self.find_in_collection(op, ns, request)? {
            return Ok(batch);
        }
        let mut batch = self.aggregate(op, ns, &of_find(request)?)?;
        if request.single_batch && batch.id != 0 {
            self.end_cursor(batch.id);
            batch.id = 0;
        }
        Ok(batch)
    }

    /// `count`: the number of documents that match.
    ///
    /// # Errors
    /// Errors of the request; errors of execution.
    pub fn count(&self, op: &Op<'_>, ns: &Namespace, request: &CountRequest) -> Result<u64> {
        if let Some(count) = self.count_in_collection(op, ns, request)? {
            return Ok(count);
        }
        let batch = self.aggregate(op, ns, &of_count(request)?)?;
        let Some(first) = batch.documents.first() else {
            return Ok(0);
        };
        Ok(match first.get("n")? {
            Some(bson::RawBsonRef::Int32(n)) => u64::try_from(n).unwrap_or(0),
            Some(bson::RawBsonRef::Int64(n)) => u64::try_from(n).unwrap_or(0),
            _ => 0,
        })
    }

    /// `distinct`: the values of a path among the documents that match, in ascending order.
    ///
    /// # Errors
    /// Errors of the request; errors of execution; 17217 beyond 16 MiB of values.
    pub fn distinct(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        request: &DistinctRequest,
    ) -> Result<Vec<Bson>> {
        if let Some(values) = self.distinct_in_collection(op, ns, request)? {
            return Ok(values);
        }
        let mut aggregate = of_find(&request.as_find())?;
        // Read whole documents: the values of a path are found in the same way as by filters.
        aggregate.batch_size = Some(FIRST_BATCH);
        let mut distinct = self.distinct_of(op, ns, request)?;
        let mut next = Some(self.aggregate(op, ns, &aggregate)?);
        while let Some(batch) = next {
            for document in &batch.documents {
                distinct.add(document)?;
            }
            next = self.following(op, &batch)?;
        }
        Ok(distinct.into_values())
    }

    /// `explain` of `find`.
    ///
    /// # Errors
    /// As [`Store::find`].
    pub fn explain_find(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        request: &FindRequest,
        verbosity: Verbosity,
    ) -> Result<Document> {
        match self.explain_find_in_collection(op, ns, (request, None), verbosity)? {
            Some(explained) => Ok(explained),
            None => self.explain_aggregate(op, ns, &of_find(request)?, verbosity),
        }
    }

    /// `explain` of `count`.
    ///
    /// # Errors
    /// As [`Store::count`].
    pub fn explain_count(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        request: &CountRequest,
        verbosity: Verbosity,
    ) -> Result<Document> {
        match self.explain_count_in_collection(op, ns, request, verbosity)? {
            Some(explained) => Ok(explained),
            None => self.explain_aggregate(op, ns, &of_count(request)?, verbosity),
        }
    }

    /// `explain` of `distinct`.
    ///
    /// # Errors
    /// As [`Store::distinct`].
    pub fn explain_distinct(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        request: &DistinctRequest,
        verbosity: Verbosity,
    ) -> Result<Document> {
        match self.explain_distinct_in_collection(op, ns, request, verbosity)? {
            Some(explained) => Ok(explained),
            None => {
                let request = of_find(&request.as_find())?;
                self.explain_aggregate(op, ns, &request, verbosity)
            }
        }
    }

    /// The collector of the values that `distinct` requests from a view.
    fn distinct_of(
        &self,
        op: &Op<'_>,
        ns: &Namespace,
        request: &DistinctRequest,
    ) -> Result<crate::find::Distinct> {
        let own = self
            .named(op, ns)?
            .and_then(|named| named.options().collation.clone());
        let own = own
            .as_ref()
            .map(bson::RawDocumentBuf::try_from)
            .transpose()?;
        let asked = request.collation.as_deref();
        let asked = asked.filter(|asked| !asked.is_empty());
        let asked = asked.or(own.as_deref());
        let collated = crate::find::Collated::of(asked, None)?;
        let path = query::path::Path::parse(&request.key)?;
        Ok(crate::find::Distinct::new(path, collated.collator))
    }
}

/// `explain` shows the stages that storage does not execute by their names.
pub(super) fn named(name: &str) -> Bson {
    Bson::Document(doc! { name: {} })
}
