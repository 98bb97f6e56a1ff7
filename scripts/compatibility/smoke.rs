//! What applications do with the Rust driver; see `run`. Prints `ok NAME` or `FAIL NAME message`.

use std::error::Error;

use mongodb::IndexModel;
use mongodb::bson::{Document, doc};
use mongodb::sync::Client;

type Outcome = Result<(), Box<dyn Error>>;

fn check(name: &str, act: impl FnOnce() -> Outcome) {
    match act() {
        Ok(()) => println!("ok {name}"),
        Err(error) => println!("FAIL {name} {error}"),
    }
}

fn equal(found: u64, wanted: u64) -> Outcome {
    if found != wanted {
        return Err(format!("{found} is not {wanted}").into());
    }
    Ok(())
}

fn main() -> Outcome {
    let address = std::env::args().nth(1).ok_or("the address is missing")?;
    let client = Client::with_uri_str(address)?;
    let db = client.database("smoke_rust");
    db.drop().run()?;
    let a = db.collection::<Document>("a");
    check("insert", || {
        let documents = (0..500).map(|i| doc! {"_id": i, "n": i, "g": i % 5});
        equal(a.insert_many(documents).run()?.inserted_ids.len() as u64, 500)
    });
    check("find", || equal(a.find(doc! {}).batch_size(7).run()?.count() as u64, 500));
    check("update", || {
        let update = doc! {"$inc": {"n": 1000}};
        equal(a.update_many(doc! {"g": 1}, update).run()?.modified_count, 100)
    });
    check("delete", || {
        equal(a.delete_one(doc! {"_id": 2}).run()?.deleted_count, 1)?;
        equal(a.delete_many(doc! {"g": 4}).run()?.deleted_count, 100)
    });
    check("aggregate", || {
        let found = a.aggregate([doc! {"$group": {"_id": "$g"}}]).run()?;
        equal(found.count() as u64, 4)
    });
    check("index", || {
        let index = IndexModel::builder().keys(doc! {"n": 1}).build();
        a.create_index(index).run()?;
        equal(a.list_index_names().run()?.len() as u64, 2)?;
        equal(u64::from(a.insert_one(doc! {"_id": 1}).run().is_err()), 1)
    });
    check("transaction", || {
        let mut session = client.start_session().run()?;
        session.start_transaction().run()?;
        a.insert_one(doc! {"_id": "t"}).session(&mut session).run()?;
        let new = db.collection::<Document>("new");
        new.insert_one(doc! {}).session(&mut session).run()?;
        session.commit_transaction().run()?;
        equal(new.count_documents(doc! {}).run()?, 1)
    });
    check("drop", || Ok(db.drop().run()?));
    Ok(())
}
