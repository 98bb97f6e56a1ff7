//! `$toHashedIndexKey`, compared with hashes from MongoDB.

use bson::oid::ObjectId;
use bson::{Bson, DateTime, bson, doc};

use super::{check, evaluate};

#[test]
fn hashes_are_those_of_mongodb() {
    let hash = |value: Bson| match evaluate(bson!({"$toHashedIndexKey": "$v"}), &doc! {"v": value})
    {
        Ok(Some(Bson::Int64(hash))) => hash,
        other => panic!("{other:?}"),
    };
    assert_eq!(hash("hello".into()), 5_347_277_839_332_858_538);
    assert_eq!(hash(42.into()), -944_302_157_085_130_861);
    // Numbers hash as integers; a string with digits has another hash; names and order of fields
    // matter.
    assert_eq!(hash(42.75.into()), hash(42_i64.into()));
    assert_ne!(hash("42".into()), hash(42.into()));
    assert_eq!(hash(f64::NAN.into()), hash(0.into()));
    assert_ne!(hash(bson!({"a": 1})), hash(bson!({"b": 1})));
    assert_ne!(hash(bson!({"a": 1, "b": 1})), hash(bson!({"b": 1, "a": 1})));
    assert_ne!(hash(bson!([1])), hash(bson!({"0": 1})));
    let missing = bson!({"$toHashedIndexKey": "$x"});
    check(missing, doc! {}, Bson::Int64(hash(Bson::Null)));
    // Values of different types have different hashes.
    let values = vec![
        Bson::MinKey,
        Bson::MaxKey,
        Bson::Null,
        bson!(false),
        bson!({}),
        bson!([]),
        bson!(""),
        Bson::DateTime(DateTime::from_millis(0)),
        Bson::ObjectId(ObjectId::from_bytes([0; 12])),
        Bson::JavaScriptCode(String::new()),
    ];
    let mut hashes: Vec<i64> = values.into_iter().map(hash).collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), 10);
}
