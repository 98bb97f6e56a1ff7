//! Documents go in and come out.

use bson::{Bson, Document, doc};

use crate::client::{Site, batch};

#[test]
fn documents_are_inserted_and_listed() {
    let site = Site::new();
    let mut client = site.client();
    let insert = doc! {"insert": "c", "documents": [{"_id": 1}, {"_id": 2}]};
    let reply = client.ok("test", insert);
    assert_eq!(reply.get("n"), Some(&Bson::Int32(2)));
    let names: Vec<String> = reply.keys().cloned().collect();
    assert_eq!(names, ["n", "ok", "$clusterTime", "operationTime"]);

    let databases = client.ok("admin", doc! {"listDatabases": 1, "nameOnly": true});
    assert_eq!(
        databases.get_array("databases").unwrap(),
        &[Bson::Document(doc! {"name": "test"})]
    );
    let listed = batch(&client.ok("test", doc! {"listCollections": 1}));
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].get_str("name").unwrap(), "c");
    assert_eq!(listed[0].get_str("type").unwrap(), "collection");
    let info = listed[0].get_document("info").unwrap();
    assert!(matches!(info.get("uuid"), Some(Bson::Binary(_))), "{info}");
    let filter = doc! {"listCollections": 1, "filter": {"name": "other"}};
    assert!(batch(&client.ok("test", filter)).is_empty());
    let indexes = batch(&client.ok("test", doc! {"listIndexes": "c"}));
    let id = doc! {"v": 2, "key": {"_id": 1}, "name": "_id_"};
    assert_eq!(indexes, [id]);
    assert_eq!(client.fails("test", doc! {"listIndexes": "missing"}).0, 26);
}

#[test]
fn refused_documents_are_told_by_their_place() {
    let site = Site::new();
    let mut client = site.client();
    client.ok("test", doc! {"insert": "c", "documents": [{"_id": 2}]});
    let documents = vec![doc! {"_id": 1}, doc! {"_id": 2}, doc! {"_id": 3}];
    let insert = |ordered: bool, documents: &[Document]| {
        let documents: Vec<Bson> = documents.iter().cloned().map(Bson::from).collect();
        doc! {"insert": "c", "documents": documents, "ordered": ordered}
    };
    let reply = client.ok("test", insert(true, &documents));
    assert_eq!(reply.get_i32("n").unwrap(), 1);
    let errors = reply.get_array("writeErrors").unwrap();
    let error = errors[0].as_document().unwrap();
    assert_eq!(errors.len(), 1);
    assert_eq!(
        (
            error.get_i32("index").unwrap(),
            error.get_i32("code").unwrap()
        ),
        (1, 11_000)
    );
    assert_eq!(error.get_document("keyValue").unwrap(), &doc! {"_id": 2});
    let message = error.get_str("errmsg").unwrap();
    let expected = "E11000 duplicate key error collection: test.c index: _id_ dup key: { _id: 2 }";
    assert_eq!(message, expected);
    let reply = client.ok("test", insert(false, &documents));
    assert_eq!(reply.get_i32("n").unwrap(), 1);
    assert_eq!(reply.get_array("writeErrors").unwrap().len(), 2);
    assert_eq!(client.fails("test", insert(true, &[])).0, 16);
}

#[test]
fn a_write_concern_that_one_member_cannot_satisfy_is_told_and_the_write_done() {
    let site = Site::new();
    let mut client = site.client();
    let insert = |w: Bson| {
        doc! {"insert": "c", "documents": [{}], "writeConcern": {"w": w, "wtimeout": 100}}
    };
    let many = client.ok("test", insert(Bson::Int32(3)));
    assert_eq!(many.get_i32("n").unwrap(), 1);
    let error = many.get_document("writeConcernError").unwrap();
    assert_eq!(error.get_i32("code").unwrap(), 100);
    let mode = client.ok("test", insert("west".into()));
    let error = mode.get_document("writeConcernError").unwrap();
    assert_eq!(error.get_i32("code").unwrap(), 79);
    let fine = client.ok("test", insert("majority".into()));
    assert!(!fine.contains_key("writeConcernError"));
    let standalone = Site::with(|config| config.replica_set = None);
    let refused = standalone.client().fails("test", insert(Bson::Int32(3)));
    assert_eq!(refused.0, 2);
}
