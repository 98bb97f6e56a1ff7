//! The documents and the secondary indexes of iibench.

use bson::{Document, RawDocumentBuf, doc, oid::ObjectId};
use stdx::{Rng, time};

/// The three secondary indexes.
pub(crate) fn indexes() -> [Document; 3] {
    [
        doc! { "key": { "price": 1, "customerid": 1 } },
        doc! { "key": { "cashregisterid": 1, "price": 1, "customerid": 1 } },
        doc! { "key": { "price": 1, "dateandtime": 1, "customerid": 1 } },
    ]
}

/// A random document of about 250 bytes.
pub(crate) fn document(rng: &mut Rng) -> RawDocumentBuf {
    let text = "0123456789abcdef".repeat(4);
    let millis = i64::try_from(time::wall().as_millis()).expect("before the year 292 million");
    let below = |rng: &mut Rng, n: u64| i32::try_from(rng.below(n)).expect("below an i32");
    let document = doc! {
        "_id": ObjectId::new(),
        "dateandtime": millis,
        "cashregisterid": below(rng, 1000),
        "customerid": below(rng, 100_000),
        "productid": below(rng, 10_000),
        "price": (rng.unit() * 500.0 * 100.0).round() / 100.0,
        "cf1": text.as_str(),
        "cf2": text.as_str(),
    };
    RawDocumentBuf::try_from(&document).expect("a document")
}
