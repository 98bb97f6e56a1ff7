//! Inserts.

use bson::{Bson, doc};
use docdb::InsertOptions;

use crate::lab::{ns, on_each};

#[test]
fn documents_are_stored_with_their_id_first() {
    on_each(|lab| {
        let reply = lab.insert(&ns("c"), &[doc! { "a": 1 }, doc! { "a": 2, "_id": 7 }]);
        assert_eq!((reply.n, reply.errors.len()), (2, 0));
        let all = lab.all(&ns("c"));
        assert!(matches!(all[0].get("_id"), Some(Bson::ObjectId(_))));
        assert_eq!(all[1], doc! { "_id": 7, "a": 2 });
        assert_eq!(all[1].keys().next().unwrap(), "_id");
        assert_eq!(lab.store.collection(&ns("c")).unwrap().count(), 2);
    });
}

/// `entries`: E2.
#[test]
fn duplicates_are_refused_and_the_rest_stays() {
    on_each(|lab| {
        let batch = [doc! { "_id": 1 }, doc! { "_id": 1.0 }, doc! { "_id": 2 }];
        let reply = lab.insert(&ns("ordered"), &batch);
        assert_eq!(reply.n, 1, "{}", lab.engine());
        assert_eq!(reply.errors[0].index, 1);
        let error = &reply.errors[0].error;
        assert_eq!(error.code.0, 11000);
        assert_eq!(
            error.message,
            "E11000 duplicate key error collection: test.ordered index: _id_ dup key: { _id: 1.0 }"
        );
        assert_eq!(
            error.details.as_deref(),
            Some(&doc! { "keyPattern": { "_id": 1 }, "keyValue": { "_id": 1.0 } })
        );
        let unordered = InsertOptions {
            ordered: false,
            ..InsertOptions::default()
        };
        let reply = lab.insert_with(&ns("unordered"), &batch, unordered);
        assert_eq!((reply.n, reply.errors.len()), (2, 1));
        assert_eq!(lab.all(&ns("unordered")).len(), 2);
    });
}

#[test]
fn counts_and_record_numbers_survive_reopening() {
    on_each(|lab| {
        for i in 0..600 {
            lab.insert(&ns("c"), &[doc! { "_id": i }]);
        }
        let size = lab.store.collection(&ns("c")).unwrap().data_size();
        if !lab.reopen() {
            return;
        }
        let collection = lab.store.collection(&ns("c")).unwrap();
        assert_eq!((collection.count(), collection.data_size()), (600, size));
        let reply = lab.insert(&ns("c"), &[doc! { "_id": 5 }, doc! { "_id": 601 }]);
        assert_eq!(reply.n, 0);
        assert_eq!(lab.insert(&ns("c"), &[doc! { "_id": 601 }]).n, 1);
        assert_eq!(lab.all(&ns("c")).len(), 601);
    });
}
