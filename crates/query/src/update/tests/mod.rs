//! Tests of updates, by tables.

mod arrays;
mod fields;
mod whole;

use bson::{Bson, DateTime, Document, RawDocumentBuf, Timestamp, bson, doc};

use super::{Position, Update, identical, upsert_base};
use crate::filter::Filter;
use crate::settings::Settings;
use crate::{Code, Error, Result};

fn at() -> Position {
    Position::at(DateTime::from_millis(1_700_000_000_000))
}

fn parse(update: &Bson, filters: &[Document]) -> Result<Update> {
    let filters: Vec<RawDocumentBuf> = filters
        .iter()
        .map(|filter| RawDocumentBuf::try_from(filter).unwrap())
        .collect();
    let holder = RawDocumentBuf::try_from(&doc! { "u": update.clone() }).unwrap();
    let spec = holder.get("u").unwrap().unwrap();
    Update::parse(spec, &filters, &Settings::default())
}

fn apply(update: Bson, document: Document) -> Result<Option<Document>> {
    parse(&update, &[])?.apply(&document, &at())
}

/// As text, documents with other types or another order of fields differ; with `==` they may be
/// equal.
fn text(document: &Document) -> String {
    document.to_string()
}

fn check(update: Bson, document: Document, expected: Document) {
    let result = apply(update.clone(), document.clone());
    let shown = result.map(|found| found.map(|found| text(&found)));
    assert_eq!(shown, Ok(Some(text(&expected))), "{update} on {document}");
}

fn unchanged(update: Bson, document: Document) {
    let result = apply(update.clone(), document.clone());
    assert_eq!(result, Ok(None), "{update} on {document}");
}

fn fails(update: Bson, document: Document, code: i32, message: &str) {
    match apply(update.clone(), document.clone()) {
        Err(error) => {
            assert_eq!(error.code, Code(code), "{update} on {document}: {error}");
            assert!(error.message.contains(message), "{update}: {error}");
        }
        Ok(found) => panic!("{update} on {document} gave {found:?}"),
    }
}
