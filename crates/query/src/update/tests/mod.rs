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
    let parsed = parse(&update, &[])?;
    let whole = parsed.apply(&document, &at());
    same_encoded(&parsed, &document, &whole);
    whole
}

/// N1 of `encoded`: the same result as for the whole document, also among fields that the update
/// does not name.
fn same_encoded(update: &Update, document: &Document, whole: &Result<Option<Document>>) {
    let raw = |document: &Document| RawDocumentBuf::try_from(document).unwrap();
    let shown = |found: Result<Option<RawDocumentBuf>>| found.map_err(|e| (e.code, e.message));
    let found = update.apply_encoded(&raw(document), &at());
    let expected = whole.clone().map(|next| next.as_ref().map(raw));
    assert_eq!(shown(found), shown(expected), "{update:?} on {document}");
    let mut amid = doc! {"between 0": {"x": [1, "y"]}};
    for (name, value) in document {
        amid.insert(name, value.clone());
        amid.insert(format!("between {}", amid.len()), Bson::Null);
    }
    let found = update.apply_encoded(&raw(&amid), &at());
    let expected = update.apply(&amid, &at());
    let expected = expected.map(|next| next.as_ref().map(raw));
    assert_eq!(shown(found), shown(expected), "{update:?} on {amid}");
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
