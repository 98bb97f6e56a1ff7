//! Stages that take more memory than they have.

use bson::{Document, bson, doc};

use crate::Code;
use crate::execute::harness::{Memory, parse};

/// Documents with long texts, `count` of them, in `groups` groups.
fn many(count: i32, groups: i32) -> Vec<Document> {
    let text = "x".repeat(100);
    let document = |n: i32| doc! {"_id": n, "g": (n * 7919) % groups, "t": text.as_str()};
    (0..count).map(document).collect()
}

#[test]
fn large_sorts_spill_and_stay_stable() {
    let over = many(2000, 50);
    for stages in [
        bson!([{"$sort": {"g": 1}}]),
        bson!([{"$sort": {"g": -1, "_id": -1}}]),
        bson!([{"$sort": {"g": 1}}, {"$limit": 700}]),
        bson!([{"$bucketAuto": {
            "groupBy": "$g", "buckets": 7, "output": {"ids": {"$push": "$_id"}},
        }}]),
    ] {
        let pipeline = || parse(&stages).unwrap().optimize();
        let expected = Memory::default().run(pipeline(), &over).unwrap();
        let mut small = Memory {
            limit: Some(50_000),
            ..Memory::default()
        };
        let found = small.run(pipeline(), &over).unwrap();
        assert!(small.spills > 3, "{stages} spilled {} times", small.spills);
        assert_eq!(found, expected, "O2: stable: {stages}");
    }
    let stages = parse(&bson!([{"$sort": {"g": 1}}])).unwrap();
    let mut small = Memory {
        limit: Some(20_000),
        no_disk: true,
        ..Memory::default()
    };
    assert_eq!(small.run(stages, &over).unwrap_err().code, Code(292));
    // A sort with a small limit does not spill.
    let stages = parse(&bson!([{"$sort": {"g": 1}}, {"$limit": 5}]))
        .unwrap()
        .optimize();
    let mut small = Memory {
        limit: Some(20_000),
        no_disk: true,
        ..Memory::default()
    };
    assert_eq!(small.run(stages, &over).map(|found| found.len()), Ok(5));
    assert_eq!(small.spills, 0);
}

#[test]
fn large_groups_spill() {
    let over = many(5000, 3000);
    let stages = bson!([
        {"$group": {
            "_id": "$g", "n": {"$sum": 1}, "first": {"$first": "$_id"}, "last": {"$last": "$_id"},
        }},
        {"$sort": {"_id": 1}},
    ]);
    let expected = Memory::default()
        .run(parse(&stages).unwrap(), &over)
        .unwrap();
    assert_eq!(expected.len(), 3000);
    for limit in [600_000, 60_000, 20_000] {
        let mut small = Memory {
            limit: Some(limit),
            ..Memory::default()
        };
        let found = small.run(parse(&stages).unwrap(), &over).unwrap();
        assert!(small.spills > 10, "{limit}: {}", small.spills);
        assert_eq!(found, expected, "{limit}");
    }
    let mut small = Memory {
        limit: Some(60_000),
        no_disk: true,
        ..Memory::default()
    };
    assert_eq!(
        small.run(parse(&stages).unwrap(), &over).unwrap_err().code,
        Code(292)
    );
    // A single group that grows too large cannot be divided.
    let stages = parse(&bson!([{"$group": {"_id": null, "t": {"$push": "$t"}}}])).unwrap();
    let mut small = Memory {
        limit: Some(60_000),
        ..Memory::default()
    };
    assert_eq!(small.run(stages, &over).unwrap_err().code, Code(146));
}

#[test]
fn large_facets_spill() {
    let over = many(500, 5);
    let stages = bson!([{"$facet": {
        "a": [{"$count": "n"}],
        "b": [{"$group": {"_id": "$g"}}, {"$sort": {"_id": 1}}],
    }}]);
    let expected = Memory::default()
        .run(parse(&stages).unwrap(), &over)
        .unwrap();
    let mut small = Memory {
        limit: Some(20_000),
        ..Memory::default()
    };
    let found = small.run(parse(&stages).unwrap(), &over).unwrap();
    assert_eq!(small.spills, 2);
    assert_eq!(found, expected);
}
