//! The server's own collections (users, roles, settings): few documents, read and written whole.
//!
//! - O1. A write that fails for any document fails as a whole: no error is dropped.

use bson::{Bson, Document, RawDocument, RawDocumentBuf, doc};
use docdb::{DeleteStatement, FindRequest, InsertOptions, Op, Store, UpdateStatement, WriteError};
use query::{Namespace, Result};

/// All documents that match; none if the collection does not exist.
///
/// # Errors
/// Those of storage.
pub(crate) fn find(
    store: &Store,
    op: &Op<'_>,
    ns: &Namespace,
    filter: &Document,
) -> Result<Vec<Document>> {
    let mut documents = Vec::new();
    visit(store, op, ns, filter, &mut |document| {
        documents.push(Document::try_from(document)?);
        Ok(())
    })?;
    Ok(documents)
}

/// Call `see` with each matching document in its stored form.
///
/// # Errors
/// Those of storage and of `see`.
pub(crate) fn visit(
    store: &Store,
    op: &Op<'_>,
    ns: &Namespace,
    filter: &Document,
    see: &mut dyn FnMut(&RawDocument) -> Result<()>,
) -> Result<()> {
    if store.collection(ns).is_none() {
        return Ok(());
    }
    let wanted = FindRequest {
        filter: RawDocumentBuf::try_from(filter)?,
        batch_size: Some(1 << 20),
        ..FindRequest::default()
    };
    let mut next = Some(store.find(op, ns, &wanted)?);
    while let Some(batch) = next {
        for document in &batch.documents {
            see(document)?;
        }
        next = store.following(op, &batch)?;
    }
    Ok(())
}

/// Insert a document.
///
/// # Errors
/// `DuplicateKey`; those of storage.
pub(crate) fn insert(
    store: &Store,
    op: &Op<'_>,
    ns: &Namespace,
    document: &Document,
) -> Result<()> {
    let raw = RawDocumentBuf::try_from(document)?;
    let done = store.insert(op, ns, &[&raw], InsertOptions::default())?;
    whole(done.errors)
}

/// Replace the documents with the same `_id`, or insert them.
///
/// # Errors
/// Those of storage.
pub(crate) fn put(
    store: &Store,
    op: &Op<'_>,
    ns: &Namespace,
    documents: &[Document],
) -> Result<()> {
    let statement = |document: &Document| -> Result<UpdateStatement> {
        let id = document.get("_id").cloned().unwrap_or(Bson::Null);
        let filter = RawDocumentBuf::try_from(&doc! {"_id": id})?;
        Ok(UpdateStatement {
            upsert: true,
            ..UpdateStatement::new(filter, RawDocumentBuf::try_from(document)?)
        })
    };
    let statements: Vec<UpdateStatement> =
        documents.iter().map(statement).collect::<Result<_>>()?;
    if statements.is_empty() {
        return Ok(());
    }
    let done = store.update(op, ns, &statements, true, false)?;
    whole(done.errors)
}

/// Update all documents that match by operators. Returns how many matched.
///
/// # Errors
/// Those of storage.
pub(crate) fn change(
    store: &Store,
    op: &Op<'_>,
    ns: &Namespace,
    filter: &Document,
    change: &Document,
) -> Result<i64> {
    let statement = UpdateStatement {
        multi: true,
        ..UpdateStatement::new(
            RawDocumentBuf::try_from(filter)?,
            RawDocumentBuf::try_from(change)?,
        )
    };
    let done = store.update(op, ns, &[statement], true, false)?;
    whole(done.errors).map(|()| done.n)
}

/// Delete all documents that match. Returns how many.
///
/// # Errors
/// Those of storage.
pub(crate) fn delete(store: &Store, op: &Op<'_>, ns: &Namespace, filter: &Document) -> Result<i64> {
    let statement = DeleteStatement {
        multi: true,
        ..DeleteStatement::new(RawDocumentBuf::try_from(filter)?)
    };
    let done = store.delete(op, ns, &[statement], true)?;
    whole(done.errors).map(|()| done.n)
}

fn whole(errors: Vec<WriteError>) -> Result<()> {
    match errors.into_iter().next() {
        Some(failed) => Err(failed.error),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use query::{Code, Error};

    use super::*;

    #[test]
    fn a_document_that_fails_is_an_error_of_the_whole() {
        assert!(whole(Vec::new()).is_ok());
        let error = Error::new(Code::DUPLICATE_KEY, "taken");
        let failed = whole(vec![WriteError { index: 3, error }]);
        assert_eq!(failed.unwrap_err().code, Code::DUPLICATE_KEY, "O1");
    }
}
