//! Definitions in the catalog that are kept as bytes: filters of partial indexes, validators, and
//! pipelines of views. They may name a field twice in one document, and both conditions apply; a
//! tree would keep one of them.

use bson::{Bson, Document, RawBsonRef, RawDocument, RawDocumentBuf};
use query::Result;
use query::repeated::{distinct, value_tree};

/// The options of a command as a tree. Only in those that `definitions` names, a field may be given
/// twice; of these the tree keeps the last.
///
/// # Errors
/// 40413 for another field that is given twice, at any depth.
pub(crate) fn options(place: &str, fields: &RawDocument, definitions: &[&str]) -> Result<Document> {
    distinct(place, fields)?;
    let mut tree = Document::new();
    for field in fields {
        let (name, value) = field?;
        let value = match definitions.contains(&name.as_str()) {
            true => Bson::try_from(value)?,
            false => value_tree(&format!("{place}.{name}"), value)?,
        };
        tree.insert(name.as_str(), value);
    }
    Ok(tree)
}

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
