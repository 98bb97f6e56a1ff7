//! Answers that tools and tests of drivers compare with MongoDB's, field by field and word by word.

use bson::spec::BinarySubtype;
use bson::{Binary, Bson, Document, doc};

use crate::client::{Client, Site, all};

const IN_TRANSACTION: i32 = 263;

fn insert(client: &mut Client, collection: &str, documents: Vec<Document>) {
    let documents: Vec<Bson> = documents.into_iter().map(Bson::Document).collect();
    let reply = client.ok("test", doc! {"insert": collection, "documents": documents});
    assert!(!reply.contains_key("writeErrors"), "{reply}");
}

/// A command as the first, or not the first, of a transaction.
fn in_transaction(mut command: Document, number: i64, first: bool) -> Document {
    let session = Binary {
        subtype: BinarySubtype::Uuid,
        bytes: vec![7; 16],
    };
    command.insert("lsid", doc! {"id": session});
    command.insert("txnNumber", number);
    command.insert("autocommit", false);
    if first {
        command.insert("startTransaction", true);
    }
    command
}

#[test]
fn a_transaction_keeps_out_of_the_databases_of_the_server() {
    let site = Site::new();
    let mut client = site.client();
    insert(&mut client, "c", vec![doc! {"_id": 1}]);
    let commands = [
        doc! {"find": "c"},
        doc! {"aggregate": "c", "pipeline": [], "cursor": {}},
        doc! {"distinct": "c", "key": "a"},
        doc! {"insert": "c", "documents": [{}]},
        doc! {"update": "c", "updates": [{"q": {}, "u": {"$set": {"a": 1}}}]},
        doc! {"delete": "c", "deletes": [{"q": {}, "limit": 0}]},
        doc! {"findAndModify": "c", "remove": true},
        doc! {"create": "d"},
    ];
    let mut number = 0;
    for database in ["admin", "config", "local"] {
        let expected =
            format!("Cannot run command against the '{database}' database in a transaction.");
        for command in &commands {
            number += 1;
            let first = in_transaction(command.clone(), number, true);
            let (code, message) = client.fails(database, first);
            assert_eq!((code, &message), (IN_TRANSACTION, &expected), "{command}");
            // No transaction was begun.
            let abort = in_transaction(doc! {"abortTransaction": 1}, number, false);
            assert_eq!(client.fails("admin", abort).0, 251, "{command}");
        }
        number += 1;
        let ns = format!("{database}.c");
        let bulk = doc! {
            "bulkWrite": 1, "ops": [{"insert": 0, "document": {}}], "nsInfo": [{"ns": ns}],
        };
        let bulk = in_transaction(bulk, number, true);
        assert_eq!(client.fails("admin", bulk).0, IN_TRANSACTION);
    }
    // One that is open goes on after the refusal.
    number += 1;
    let insert = doc! {"insert": "c", "documents": [{"_id": 2}]};
    client.ok("test", in_transaction(insert, number, true));
    let (code, message) = client.fails("test", in_transaction(doc! {"count": "c"}, number, false));
    assert_eq!(code, IN_TRANSACTION);
    assert!(message.starts_with("Cannot run 'count' in a multi-document transaction. Please"));
    for command in [
        doc! {"find": "system.profile"},
        doc! {"find": "system.views"},
    ] {
        let (code, message) = client.fails("test", in_transaction(command, number, false));
        assert_eq!(code, IN_TRANSACTION);
        assert!(message.contains("namespace in a transaction"), "{message}");
    }
    let find = in_transaction(doc! {"find": "system.users"}, number, false);
    assert_eq!(client.fails("admin", find).0, IN_TRANSACTION);
    let commit = in_transaction(doc! {"commitTransaction": 1}, number, false);
    client.ok("admin", commit);
    assert_eq!(all(&mut client, "c", doc! {}).len(), 2);
}
