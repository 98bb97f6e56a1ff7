//! Statistics of collections and databases.

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
            let (whole, scaled) = (whole.get_i32(name), scaled.get_i32(name));
            assert_eq!(scaled.unwrap(), whole.unwrap() / 7, "{name}");
        }
        let sizes = whole.get_document("indexSizes").unwrap();
        for (name, size) in sizes {
            let scaled = scaled.get_document("indexSizes").unwrap();
            let wanted = size.as_i32().unwrap() / 7;
            assert_eq!(scaled.get_i32(name).unwrap(), wanted, "{name}");
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
        "size": 4, "count": 4096_i64, "indexSizes": { "_id_": 2, "a": 0 },
    };
    assert_eq!(figures, wanted);
}

#[test]
fn the_mean_size_of_a_database_is_exact() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 1 }, doc! { "_id": 2, "b": 1 }]);
        let stats = lab.store.db_stats("test", false);
        let size = stats.get_f64("dataSize").unwrap();
        assert!(
            (size % 2.0 - 1.0).abs() < 0.5,
            "the test wants a sum that is odd"
        );
        let mean = size / 2.0;
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

/// The BSON type number of a field's value; 0 if it is missing.
fn kind(stats: &Document, name: &str) -> u8 {
    stats
        .get(name)
        .map_or(0, |value| value.element_type() as u8)
}

#[test]
fn sizes_have_the_types_that_clients_expect() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "a": 1 }]);
        let stats = lab.store.coll_stats(&ns("c")).unwrap();
        for name in [
            "size",
            "count",
            "avgObjSize",
            "storageSize",
            "totalIndexSize",
            "totalSize",
        ] {
            assert_eq!(kind(&stats, name), 0x10, "{name}: {stats}");
        }
        let stats = lab.store.db_stats("test", true);
        for name in [
            "dataSize",
            "storageSize",
            "indexSize",
            "totalSize",
            "totalFreeStorageSize",
        ] {
            assert_eq!(kind(&stats, name), 0x01, "{name}: {stats}");
        }
        for name in ["collections", "views", "objects", "indexes"] {
            assert_eq!(kind(&stats, name), 0x12, "{name}: {stats}");
        }
    });
    // A size beyond an int32 is an int64.
    let mut figures = doc! { "size": i64::from(i32::MAX) + 1 };
    docdb::scale_sizes(&mut figures, 1);
    assert_eq!(figures, doc! { "size": i64::from(i32::MAX) + 1 });
}

#[test]
fn a_fresh_collection_has_a_size() {
    on_each(|lab| {
        lab.index("empty", doc! { "key": { "a": 1 }, "name": "a" });
        let documents: Vec<Document> = (0..50).map(|i| doc! { "a": i }).collect();
        lab.insert(&ns("full"), &documents);
        for name in ["empty", "full"] {
            let stats = lab.store.coll_stats(&ns(name)).unwrap();
            for size in ["storageSize", "totalIndexSize", "totalSize"] {
                assert!(0 < stats.get_i32(size).unwrap(), "{name} {size}: {stats}");
            }
            for (index, size) in stats.get_document("indexSizes").unwrap() {
                assert!(0 < size.as_i32().unwrap(), "{name} {index}: {stats}");
            }
        }
        assert!(
            0.0 < lab
                .store
                .db_stats("test", false)
                .get_f64("storageSize")
                .unwrap()
        );
        assert!(0 < lab.store.database_size("test"));
    });
}

#[test]
fn stages_report_nothing_of_a_missing_collection() {
    on_each(|lab| {
        let rows = lab.try_aggregate("none", &[doc! { "$indexStats": {} }]);
        assert_eq!(rows, Ok(Vec::new()));
        for what in ["count", "storageStats"] {
            let options = doc! { what: {} };
            let error = lab
                .try_aggregate("none", &[doc! { "$collStats": options }])
                .unwrap_err();
            assert_eq!(error.code.0, 26);
            assert_eq!(
                error.message,
                format!(
                    "Executor error during aggregate command on namespace: test.none :: caused by \
                     :: Unable to retrieve {what} in $collStats stage :: caused by :: Collection \
                     [test.none] not found."
                )
            );
        }
        let error = lab.store.validate(&op(), &ns("none")).unwrap_err();
        assert_eq!(
            error.message,
            "Collection 'test.none' does not exist to validate."
        );
    });
}
