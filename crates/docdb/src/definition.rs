//! Definitions in the catalog that are kept as bytes: filters of partial indexes, validators, and
//! pipelines of views. They may name a field twice in one document, and both conditions apply; a
//! tree would keep one of them.

use bson::{Document, RawBsonRef, RawDocumentBuf};
use query::Result;

/// A tree as bytes, in which the fields that `definitions` names have the values given there.
pub(crate) fn with_definitions(
    tree: &Document,
    definitions: &[(&str, RawBsonRef<'_>)],
) -> Result<RawDocumentBuf> {
    let whole = RawDocumentBuf::try_from(tree)?;
    let mut out = RawDocumentBuf::new();
    for element in &whole {
        let (name, value) = element?;
        let definition = definitions.iter().find(|(of, _)| *of == name.as_str());
        out.append(
            name,
            definition.map_or(value, |(_, definition)| *definition),
        );
    }
    Ok(out)
}
