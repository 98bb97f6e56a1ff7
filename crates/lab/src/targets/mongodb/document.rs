//! Rows as documents, and the three indexes over them.

use bson::raw::cstr;
use bson::{Bson, Document, RawDocumentBuf, doc};

use crate::workload::iibench::{Generator, Sale, Shape};

/// The fields of each index, for a shape of the run.
pub(in crate::targets) fn indexes(shape: Shape) -> [&'static [&'static str]; 3] {
    match shape {
        Shape::Classic => [
            &["price", "customerid"],
            &["cashregisterid", "price", "customerid"],
            &["price", "dateandtime", "customerid"],
        ],
        Shape::Current => [
            &["productid", "customerid", "price"],
            &["cashregisterid", "customerid", "price"],
            &["price", "dateandtime", "customerid"],
        ],
        Shape::Uniform | Shape::Hashed => [
            &["random1", "customerid"],
            &["random2", "cashregisterid", "customerid"],
            &["random3", "dateandtime", "customerid"],
        ],
    }
}

/// The keys of an index, ascending.
pub(super) fn keys(fields: &[&str]) -> Document {
    let each = fields
        .iter()
        .map(|name| ((*name).to_owned(), Bson::Int32(1)));
    each.collect()
}

/// A projection to the fields of an index, so that the index covers the query.
pub(super) fn covered(fields: &[&str]) -> Document {
    let mut projection = keys(fields);
    projection.insert("_id", 0);
    projection
}

/// The values of the fields of an index in a row, as a bound.
pub(super) fn bound(sale: &Sale, shape: Shape, fields: &[&str]) -> Document {
    let each = fields
        .iter()
        .map(|name| ((*name).to_owned(), field(sale, shape, name)));
    each.collect()
}

fn field(sale: &Sale, shape: Shape, name: &str) -> Bson {
    let [r1, r2, r3] = sale.random.map(|r| Bson::Int64(r.cast_signed()));
    match name {
        "price" if shape == Shape::Current => int(sale.price_int),
        "price" => Bson::Double(sale.price),
        "customerid" => int(sale.customer),
        "cashregisterid" => int(sale.register),
        "productid" => int(sale.product),
        "dateandtime" => Bson::Int64(sale.date.cast_signed()),
        "random1" => r1,
        "random2" => r2,
        _ => r3,
    }
}

fn int(n: u32) -> Bson {
    Bson::Int32(n.cast_signed())
}

/// Row `id` as a document. `text` is a buffer.
pub(super) fn row(generator: &Generator, id: u64, text: &mut String) -> RawDocumentBuf {
    let sale = generator.sale(id);
    let shape = generator.params().shape;
    generator.text(id, text);
    let mut row = RawDocumentBuf::new();
    row.append(cstr!("_id"), number(id));
    row.append(cstr!("dateandtime"), sale.date.cast_signed());
    row.append(cstr!("cashregisterid"), sale.register.cast_signed());
    row.append(cstr!("customerid"), sale.customer.cast_signed());
    row.append(cstr!("productid"), sale.product.cast_signed());
    match shape {
        Shape::Current => row.append(cstr!("price"), sale.price_int.cast_signed()),
        Shape::Classic | Shape::Uniform | Shape::Hashed => row.append(cstr!("price"), sale.price),
    }
    if shape == Shape::Uniform {
        let [r1, r2, r3] = sale.random.map(u64::cast_signed);
        row.append(cstr!("random1"), r1);
        row.append(cstr!("random2"), r2);
        row.append(cstr!("random3"), r3);
    }
    row.append(cstr!("cfield0"), text.as_str());
    row
}

/// The `_id` of row `id`.
pub(super) fn number(id: u64) -> i64 {
    id.cast_signed()
}

/// Filter for the rows from `from` (included) to `to` (excluded).
pub(super) fn between(from: u64, to: u64) -> Document {
    doc! { "_id": { "$gte": number(from), "$lt": number(to) } }
}

/// Average bytes of a document and, with `indexed`, of its index entries.
pub(super) fn mean_bytes(generator: &Generator, indexed: bool) -> f64 {
    let mut text = String::new();
    let first = row(generator, 0, &mut text);
    let fixed = first.as_bytes().len() - text.len();
    let index = if indexed { generator.entry_bytes() } else { 0 };
    (fixed + index) as f64 + generator.params().payload.mean_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::iibench::{Payload, RowParams};

    #[test]
    fn a_document_holds_the_fields_of_its_indexes() {
        for shape in Shape::ALL {
            let generator = Generator::new(RowParams {
                seed: 42,
                shape,
                payload: Payload::CLASSIC,
                indexes: 3,
            });
            let mut text = String::new();
            let stored = row(&generator, 7, &mut text);
            let stored = Document::try_from(stored).unwrap();
            assert_eq!(stored.get_i64("_id").unwrap(), 7);
            assert_eq!(stored.get_str("cfield0").unwrap().len(), 128);
            for fields in indexes(shape) {
                for (name, value) in bound(&generator.sale(7), shape, fields) {
                    assert_eq!(stored.get(&name), Some(&value), "{shape}: {name}");
                }
                assert!(covered(fields).contains_key("_id"));
            }
        }
    }

    #[test]
    fn bytes_are_counted_as_they_are() {
        let generator = Generator::new(RowParams {
            seed: 1,
            shape: Shape::Classic,
            payload: Payload::CLASSIC,
            indexes: 3,
        });
        let whole = row(&generator, 99, &mut String::new()).as_bytes().len();
        assert!((mean_bytes(&generator, false) - whole as f64).abs() < 1e-9);
        assert!((mean_bytes(&generator, true) - whole as f64 - 72.0).abs() < 1e-9);
    }
}
