//! Index keys as documents for `returnKey`: the field names are the full paths, with their dots.

use std::sync::Arc;

use bson::raw::CString;
use bson::{RawBson, RawBsonRef, RawDocument, RawDocumentBuf};
use query::Result;

use super::index::{IndexKind, IndexView};
use crate::index::{Index, KeySet, is_cut};

/// Makes documents of keys.
pub(crate) struct Keys {
    names: Vec<(String, bool)>,
    /// Whether keys hold the values of documents. Strings stored as sort keys of a collation, and
    /// the path of a wildcard index, are not such values.
    plain: bool,
    /// The index of the keys.
    index: Option<Arc<Index>>,
}

impl Keys {
    /// The key builder of an index.
    pub(crate) fn new(index: &IndexView) -> Keys {
        let field = |field: &super::index::IndexField| {
            let path = field.path.as_str().to_owned();
            (path, field.descending)
        };
        Keys {
            names: index.fields.iter().map(field).collect(),
            plain: index.kind != IndexKind::Wildcard && index.collator.is_none(),
            index: index.source().map(Arc::clone),
        }
    }

    /// The document of a key. Values that the key does not contain are taken from `found`, the
    /// document it belongs to.
    ///
    /// # Errors
    /// An invalid document.
    pub(crate) fn document(
        &self,
        key: &[u8],
        type_bits: &[u8],
        found: &RawDocument,
    ) -> Result<RawDocumentBuf> {
        let mut document = RawDocumentBuf::new();
        let mut values = self.values(key, type_bits, found)?.map(Vec::into_iter);
        for (path, _) in &self.names {
            let value = match &mut values {
                Some(values) => values.next(),
                None => at(found, path)?.map(RawBson::from),
            };
            if let (Some(value), Ok(name)) = (value, CString::try_from(path.as_str())) {
                document.append(name, value);
            }
        }
        Ok(document)
    }

    /// The values of a key. A truncated key is rebuilt from the document.
    fn values(
        &self,
        key: &[u8],
        type_bits: &[u8],
        found: &RawDocument,
    ) -> Result<Option<Vec<RawBson>>> {
        let mut keys = KeySet::uncut();
        let (key, type_bits) = match &self.index {
            _ if !self.plain => return Ok(None),
            Some(index) if is_cut(type_bits) => match index.whole_key(found, key, &mut keys)? {
                Some(whole) => (whole.bytes, whole.type_bits),
                None => return Ok(None),
            },
            _ => (key, type_bits),
        };
        let directions = self.names.iter().map(|(_, descending)| *descending);
        let decoded = crate::key::decode(key, type_bits, directions);
        Ok(decoded.ok().map(|(values, _)| values))
    }
}

/// The value at a path whose parts are all documents.
fn at<'d>(document: &'d RawDocument, path: &str) -> Result<Option<RawBsonRef<'d>>> {
    let (head, rest) = match path.split_once('.') {
        Some((head, rest)) => (head, Some(rest)),
        None => (path, None),
    };
    match (document.get(head)?, rest) {
        (value, None) => Ok(value),
        (Some(RawBsonRef::Document(inner)), Some(rest)) => at(inner, rest),
        _ => Ok(None),
    }
}
