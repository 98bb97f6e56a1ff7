//! Rows as documents, and ranges as filters.

use bson::raw::CStr;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, Document, RawBsonRef, RawDocument, RawDocumentBuf, doc};
use lab_report::error::{Error, Result};

use super::Made;
use crate::workload::table::{Row, Table, Value, at};
use crate::workload::tables::{By, Range};

fn name(table: &Table, column: usize) -> &'static str {
    table.columns.get(column).map_or("", |c| c.name)
}

/// A value as BSON: an integer gets the shortest type, since numbers compare by value.
pub(super) fn bson(value: &Value) -> Bson {
    match value {
        Value::Null => Bson::Null,
        Value::Int(n) => i32::try_from(*n).map_or(Bson::Int64(*n), Bson::Int32),
        Value::Float(x) => Bson::Double(*x),
        Value::Text(text) => Bson::String(text.clone()),
        Value::Bytes(bytes) => Bson::Binary(Binary {
            subtype: BinarySubtype::Generic,
            bytes: bytes.clone(),
        }),
    }
}

/// The `_id` of a row whose key columns have these values.
pub(super) fn id(table: &Table, key: &[Value]) -> Bson {
    match (table.key.as_slice(), key) {
        ([_], [one]) => bson(one),
        _ => {
            let parts = table.key.iter().zip(key);
            let parts = parts.map(|(column, value)| (name(table, *column).to_owned(), bson(value)));
            Bson::Document(parts.collect())
        }
    }
}

/// The `_id` of a row.
pub(super) fn id_of(table: &Table, row: &[Value]) -> Bson {
    let key: Row = table.key.iter().map(|&c| at(row, c).clone()).collect();
    id(table, &key)
}

fn append(to: &mut RawDocumentBuf, name: &str, value: &Value) -> Result<()> {
    let name: &CStr = name
        .try_into()
        .map_err(|e| Error::target(format!("column {name}: {e}")))?;
    match value {
        Value::Null => to.append(name, RawBsonRef::Null),
        Value::Int(n) => match i32::try_from(*n) {
            Ok(short) => to.append(name, short),
            Err(_) => to.append(name, *n),
        },
        Value::Float(x) => to.append(name, *x),
        Value::Text(text) => to.append(name, text.as_str()),
        Value::Bytes(bytes) => to.append(
            name,
            Binary {
                subtype: BinarySubtype::Generic,
                bytes: bytes.clone(),
            },
        ),
    }
    Ok(())
}

/// A row as a document.
pub(super) fn document(made: &Made, row: &[Value]) -> Result<RawDocumentBuf> {
    let table = &made.table;
    let mut document = RawDocumentBuf::new();
    match table.key.as_slice() {
        [one] => append(&mut document, "_id", at(row, *one))?,
        several => {
            let mut id = RawDocumentBuf::new();
            for &column in several {
                append(&mut id, name(table, column), at(row, column))?;
            }
            document.append(bson::raw::cstr!("_id"), id);
        }
    }
    for column in 0..table.columns.len() {
        if !table.key.contains(&column) || made.twice.contains(&column) {
            append(&mut document, name(table, column), at(row, column))?;
        }
    }
    Ok(document)
}

fn value(of: RawBsonRef<'_>) -> Option<Value> {
    Some(match of {
        RawBsonRef::Null => Value::Null,
        RawBsonRef::Int32(n) => Value::Int(i64::from(n)),
        RawBsonRef::Int64(n) => Value::Int(n),
        RawBsonRef::Double(x) => Value::Float(x),
        RawBsonRef::String(text) => Value::Text(text.to_owned()),
        RawBsonRef::Binary(binary) => Value::Bytes(binary.bytes.to_vec()),
        _ => return None,
    })
}

/// Decode a document, or a projection of one, into `row`; false if it is not a row.
pub(super) fn read(table: &Table, document: &RawDocument, row: &mut Row) -> bool {
    row.clear();
    row.resize(table.columns.len(), Value::Null);
    for element in document {
        let Ok((key, of)) = element else { return false };
        if key.as_str() != "_id" {
            if !place(table, key.as_str(), of, row) {
                return false;
            }
            continue;
        }
        match (table.key.as_slice(), of) {
            ([one], of) => match (row.get_mut(*one), value(of)) {
                (Some(place), Some(value)) => *place = value,
                _ => return false,
            },
            (_, RawBsonRef::Document(id)) => {
                for part in id {
                    let Ok((key, of)) = part else { return false };
                    if !place(table, key.as_str(), of, row) {
                        return false;
                    }
                }
            }
            _ => return false,
        }
    }
    true
}

fn place(table: &Table, key: &str, of: RawBsonRef<'_>, row: &mut Row) -> bool {
    let column = table.columns.iter().position(|c| c.name == key);
    match (column.and_then(|c| row.get_mut(c)), value(of)) {
        (Some(place), Some(value)) => {
            *place = value;
            true
        }
        _ => false,
    }
}

/// The keys of an index: as declared, or all descending if `backward`, for a sort.
pub(super) fn keys(table: &Table, index: usize, backward: bool) -> Document {
    let direction = if backward { -1 } else { 1 };
    let mut keys = Document::new();
    let Some(index) = table.indexes.get(index) else {
        return keys;
    };
    for &column in &index.columns {
        keys.insert(name(table, column), direction);
    }
    keys.insert("_id", direction);
    for &column in &index.stored {
        keys.insert(name(table, column), direction);
    }
    keys
}

/// A projection to the fields of an index.
pub(super) fn covered(table: &Table, index: usize) -> Document {
    keys(table, index, false)
}

/// A range as a filter.
pub(super) fn filter(table: &Table, range: &Range<'_>) -> Document {
    match range.by {
        By::Key => by_key(table, range),
        By::Index(index) => by_index(table, index, range),
    }
}

fn by_index(table: &Table, index: usize, range: &Range<'_>) -> Document {
    let columns = table.indexes.get(index).map_or(&[][..], |i| &i.columns);
    let mut filter = Document::new();
    for (column, equal) in columns.iter().zip(range.equal) {
        filter.insert(name(table, *column), bson(equal));
    }
    let mut bounds = Document::new();
    if let Some(from) = range.from {
        bounds.insert("$gte", bson(from));
    }
    if let Some(to) = range.to {
        bounds.insert("$lte", bson(to));
    }
    if let (Some(column), false) = (columns.get(range.equal.len()), bounds.is_empty()) {
        filter.insert(name(table, *column), bounds);
    }
    filter
}

fn by_key(table: &Table, range: &Range<'_>) -> Document {
    if let [_] = table.key.as_slice() {
        if let [one] = range.equal {
            return doc! { "_id": bson(one) };
        }
        let mut bounds = Document::new();
        if let Some(from) = range.from {
            bounds.insert("$gte", bson(from));
        }
        if let Some(to) = range.to {
            bounds.insert("$lte", bson(to));
        }
        return if bounds.is_empty() {
            bounds
        } else {
            doc! { "_id": bounds }
        };
    }
    if range.equal.is_empty() && range.from.is_none() && range.to.is_none() {
        return Document::new();
    }
    let mut low = Document::new();
    for (column, equal) in table.key.iter().zip(range.equal) {
        low.insert(name(table, *column), bson(equal));
    }
    let mut high = low.clone();
    let mut rest = table.key.iter().skip(range.equal.len()).peekable();
    if (range.from.is_some() || range.to.is_some())
        && let Some(column) = rest.peek()
    {
        let column = name(table, **column);
        if let Some(from) = range.from {
            low.insert(column, bson(from));
        }
        if let Some(to) = range.to {
            high.insert(column, bson(to));
            rest.next();
        }
    }
    // A document sorts before those of which it is a prefix; a document with the largest value in
    // the next field sorts after all of these.
    if let Some(column) = rest.next() {
        high.insert(name(table, *column), Bson::MaxKey);
    }
    doc! { "_id": { "$gte": low, "$lte": high } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::table::Column;

    fn table() -> Table {
        let columns = [Column::int("w"), Column::int("d"), Column::text("name", 9)];
        Table::new("t", &columns, 2).index("by_name", &[0, 2], &[])
    }

    #[test]
    fn ranges_are_bounds_of_the_embedded_key() {
        let table = table();
        let one = [Value::Int(1)];
        let two = [Value::Int(1), Value::Int(2)];
        let of = |range: &Range<'_>| filter(&table, range);
        assert_eq!(of(&Range::by_key(0, &[])), doc! {});
        assert_eq!(
            of(&Range::by_key(0, &one)),
            doc! { "_id": { "$gte": { "w": 1 }, "$lte": { "w": 1, "d": Bson::MaxKey } } }
        );
        assert_eq!(
            of(&Range::by_key(0, &two)),
            doc! { "_id": { "$gte": { "w": 1, "d": 2 }, "$lte": { "w": 1, "d": 2 } } }
        );
        let (from, to) = (Value::Int(3), Value::Int(5));
        assert_eq!(
            of(&Range::by_key(0, &one).between(&from, &to)),
            doc! { "_id": { "$gte": { "w": 1, "d": 3 }, "$lte": { "w": 1, "d": 5 } } }
        );
        assert_eq!(
            of(&Range::by_key(0, &[]).between(&from, &to)),
            doc! { "_id": { "$gte": { "w": 3 }, "$lte": { "w": 5, "d": Bson::MaxKey } } }
        );
        assert_eq!(of(&Range::by_index(0, 0, &one)), doc! { "w": 1 });
        assert_eq!(keys(&table, 0, false), doc! { "w": 1, "name": 1, "_id": 1 });
    }
}
