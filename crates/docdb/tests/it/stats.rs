//! Figures of collections and databases.

use bson::{Document, doc};
use query::stage::Statistics;

use crate::lab::{ns, of, on_each, op};

#[test]
fn all_sizes_are_scaled() {
    on_each(|lab| {
        let documents: Vec<Document> = (0..300).map(|i| doc! { "a": i }).collect();
        lab.insert(&ns("c"), &documents);
        lab.index("c", doc! { "key": { "a": 1 }, "name": "a" });
        let stage = |scale: bson::Bson| {
            let options = doc! { "storageStats": { "scale": scale } };
            lab.try_aggregate("c", &[doc! { "$collStats": options }])
        };
        let whole = stage(1.into()).unwrap();
        let whole = whole[0].get_document("storageStats").unwrap().clone();
        let scaled = stage(7.0.into()).unwrap();
        let scaled = scaled[0].get_document("storageStats").unwrap();
        assert_eq!(scaled.get_i32("scaleFactor").unwrap(), 7);
        for name in ["size", "storageSize", "totalIndexSize", "totalSize"] {
            let (whole, scaled) = (whole.get_i64(name), scaled.get_i64(name));
            assert_eq!(scaled.unwrap(), whole.unwrap() / 7, "{name}");
        }
        let sizes = whole.get_document("indexSizes").unwrap();
        for (name, size) in sizes {
            let scaled = scaled.get_document("indexSizes").unwrap();
            let wanted = size.as_i64().unwrap() / 7;
            assert_eq!(scaled.get_i64(name).unwrap(), wanted, "{name}");
        }
        assert_eq!(stage(0.into()).unwrap_err().code.0, 2);
    });
}

#[test]
fn sizes_of_single_indexes_are_scaled() {
    let mut figures = doc! {
        "size": 4096_i64, "count": 4096_i64, "indexSizes": { "_id_": 2049_i64, "a": 7 },
    };
    docdb::scale_sizes(&mut figures, 1024);
    let wanted = doc! {
        "size": 4_i64, "count": 4096_i64, "indexSizes": { "_id_": 2_i64, "a": 0 },
    };
    assert_eq!(figures, wanted);
}

#[test]
fn the_mean_size_of_a_database_is_exact() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 1 }, doc! { "_id": 2, "b": 1 }]);
        let stats = lab.store.db_stats("test", false);
        let size = stats.get_i64("dataSize").unwrap();
        assert_eq!(size % 2, 1, "the test wants a sum that is odd");
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        let mean = size as f64 / 2.0;
        assert_eq!(
            stats.get_f64("avgObjSize").unwrap().to_bits(),
            mean.to_bits()
        );
        assert!(!stats.contains_key("totalFreeStorageSize"));
        let stats = lab.store.db_stats("none", true);
        assert_eq!(stats.get_f64("avgObjSize").unwrap().to_bits(), 0);
        assert!(stats.contains_key("totalFreeStorageSize"));
    });
}

#[test]
fn who_runs_the_store_tells_its_host() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 1 }]);
        let report = |_: &query::Namespace, what: &Statistics| {
            assert_eq!(what, &Statistics::IndexStats);
            Ok(vec![doc! { "host": "here:1" }])
        };
        let request = of(&[doc! { "$indexStats": {} }]);
        let op = op();
        let rows = lab
            .store
            .aggregate_with(&op, &ns("c"), &request, Some(&report));
        let rows = crate::lab::documents(&rows.unwrap());
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].get_str("host").unwrap(), "here:1");
    });
}
