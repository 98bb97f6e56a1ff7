//! Collations: the bridge from `query`'s collators to key strings.

use std::sync::Arc;

use bson::{Document, RawDocumentBuf};
use query::Result;
use query::collation::{Collation, Collator};

use crate::key::Collate;

impl Collate for Collator {
    fn sort_key(&self, text: &str) -> Result<Vec<u8>> {
        Collator::sort_key(self, text)
    }
}

/// The collator of a specification; `None` for byte order.
///
/// # Errors
/// As [`Collation::parse`].
pub(crate) fn collator(spec: &Document) -> Result<Option<Arc<Collator>>> {
    let raw = RawDocumentBuf::try_from(spec)?;
    match Collation::parse(&raw)? {
        None => Ok(None),
        Some(collation) => Ok(Some(Arc::new(Collator::new(collation)?))),
    }
}

/// A specification with all its fields; `None` for byte order.
///
/// # Errors
/// As [`Collation::parse`].
pub(crate) fn in_full(spec: &Document) -> Result<Option<Document>> {
    let raw = RawDocumentBuf::try_from(spec)?;
    Ok(Collation::parse(&raw)?.map(|collation| collation.to_document()))
}
