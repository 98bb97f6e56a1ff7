//! Keys of an index as documents, for `returnKey`: the names are the paths, dots and all.

use bson::raw::CString;
use bson::{RawBson, RawBsonRef, RawDocument, RawDocumentBuf};
use query::Result;

use super::index::{IndexKind, IndexView};

/// Makes documents of keys.
pub(crate) struct Keys {
    names: Vec<(String, bool)>,
    /// Whether keys hold what documents do: strings in a collation's order, and the path of a
    /// wildcard index, are something else.
    plain: bool,
}

impl Keys {
    /// Those of an index.
    pub(crate) fn new(index: &IndexView) -> Keys {
        let field = |field: &super::index::IndexField| {
            let path = field.path.as_str().to_owned();
            (path, field.descending)
        };
        Keys {
            names: index.fields.iter().map(field).collect(),
            plain: index.kind != IndexKind::Wildcard && index.collator.is_none(),
        }
    }

    /// The document of a key; where the key does not tell them, with the values that `found`, the
    /// document it leads to, has.
    ///
    /// # Errors
    /// A document that is none.
    pub(crate) fn document(
        &self,
        key: &[u8],
        type_bits: &[u8],
        found: &RawDocument,
    ) -> Result<RawDocumentBuf> {
        let directions = self.names.iter().map(|(_, descending)| *descending);
        let decoded = match self.plain {
            true => crate::key::decode(key, type_bits, directions).ok(),
            false => None,
        };
        let mut document = RawDocumentBuf::new();
        let mut values = decoded.map(|(values, _)| values.into_iter());
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
}

/// The value at a path that leads through documents only.
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
