//! Tests of the optimizer and of what is pushed to storage.

use bson::{Bson, Document, bson, doc};
use stdx::rng::Rng;

use crate::execute::harness::{Memory, parse};
use crate::stage::Stage;

fn names(stages: Bson) -> Vec<&'static str> {
    let optimized = parse(&stages).unwrap().optimize();
    optimized.stages().iter().map(Stage::name).collect()
}

#[test]
fn filters_go_first_where_they_may() {
    assert_eq!(
        names(bson!([{"$sort": {"a": 1}}, {"$match": {"a": 1}}])),
        ["$match", "$sort"]
    );
    assert_eq!(
        names(bson!([{"$match": {"a": 1}}, {"$match": {"b": 1}}])),
        ["$match"]
    );
    assert_eq!(
        names(bson!([{"$project": {"a": 1}}, {"$match": {"a": 1}}])),
        ["$match", "$project"]
    );
    assert_eq!(
        names(bson!([{"$project": {"a": 1}}, {"$match": {"b": 1}}])),
        ["$project", "$match"]
    );
    assert_eq!(
        names(bson!([{"$set": {"a": 1}}, {"$match": {"a": 1}}])),
        ["$addFields", "$match"]
    );
    assert_eq!(
        names(bson!([{"$set": {"a": 1}}, {"$match": {"a": 1, "b": 1}}])),
        ["$match", "$addFields", "$match"]
    );
    assert_eq!(
        names(bson!([{"$unwind": "$a"}, {"$match": {"a": 1}}])),
        ["$unwind", "$match"]
    );
    assert_eq!(
        names(bson!([{"$unwind": "$a"}, {"$match": {"b": 1}}])),
        ["$match", "$unwind"]
    );
    assert_eq!(
        names(bson!([{"$limit": 1}, {"$match": {"b": 1}}])),
        ["$limit", "$match"]
    );
    assert_eq!(
        names(bson!([{"$group": {"_id": "$a"}}, {"$match": {"b": 1}}])),
        ["$group", "$match"]
    );
    let lookup =
        bson!({"$lookup": {"from": "x", "localField": "a", "foreignField": "b", "as": "c"}});
    assert_eq!(
        names(bson!([lookup.clone(), {"$match": {"b": 1}}])),
        ["$match", "$lookup"]
    );
    assert_eq!(
        names(bson!([lookup.clone(), {"$match": {"c.b": 1}}])),
        ["$lookup", "$match"]
    );
    assert_eq!(
        names(bson!([lookup, {"$unwind": "$c"}, {"$match": {"b": 1}}])),
        ["$match", "$lookup"]
    );
}

#[test]
fn counts_join_and_bound_sorts() {
    assert_eq!(names(bson!([{"$limit": 5}, {"$limit": 3}])), ["$limit"]);
    assert_eq!(names(bson!([{"$skip": 5}, {"$skip": 3}])), ["$skip"]);
    assert_eq!(
        names(bson!([{"$project": {"a": 1}}, {"$limit": 3}])),
        ["$limit", "$project"]
    );
    let limit = |stages: Bson| match parse(&stages).unwrap().optimize().stages().first() {
        Some(Stage::Sort(_, limit)) => *limit,
        other => panic!("{other:?}"),
    };
    assert_eq!(limit(bson!([{"$sort": {"a": 1}}, {"$limit": 3}])), Some(3));
    assert_eq!(
        limit(bson!([{"$sort": {"a": 1}}, {"$skip": 2}, {"$limit": 3}])),
        Some(5)
    );
    assert_eq!(
        limit(bson!([{"$sort": {"a": 1}}, {"$project": {"a": 1}}, {"$limit": 3}])),
        Some(3)
    );
    assert_eq!(
        limit(bson!([{"$sort": {"a": 1}}, {"$unwind": "$a"}, {"$limit": 3}])),
        None
    );
}

#[test]
fn storage_gets_the_beginning() {
    let stages = bson!([
        {"$match": {"a": 1}}, {"$sort": {"b": 1}}, {"$skip": 2}, {"$limit": 3},
        {"$project": {"c.d": 1, "_id": 0}},
    ]);
    let (pushdown, rest) = parse(&stages).unwrap().optimize().split_pushdown();
    assert!(pushdown.filter.is_some());
    assert!(pushdown.sort.is_some());
    assert_eq!((pushdown.skip, pushdown.limit), (2, Some(3)));
    let fields: Vec<String> = pushdown.fields.unwrap().into_iter().collect();
    assert_eq!(fields, ["c.d"]);
    assert_eq!(rest.stages().len(), 1);
    let (pushdown, _) = parse(&bson!([{"$limit": 5}, {"$skip": 2}]))
        .unwrap()
        .split_pushdown();
    assert_eq!((pushdown.skip, pushdown.limit), (2, Some(3)));
    let (pushdown, _) = parse(&bson!([{"$skip": 2}, {"$limit": 5}]))
        .unwrap()
        .split_pushdown();
    assert_eq!((pushdown.skip, pushdown.limit), (2, Some(5)));
    let count = bson!([{"$match": {"a": 1}}, {"$group": {"_id": 1, "n": {"$sum": 1}}}]);
    let (pushdown, _) = parse(&count).unwrap().split_pushdown();
    assert_eq!(pushdown.fields, Some(std::collections::BTreeSet::new()));
    let (pushdown, _) = parse(&bson!([{"$unwind": "$a"}])).unwrap().split_pushdown();
    assert_eq!(pushdown.fields, None);
    let (pushdown, _) = parse(&bson!([{"$count": "n"}])).unwrap().split_pushdown();
    assert!(pushdown.counts);
}

/// Random pipelines and documents with few names and values, so that stages often read the same
/// fields.
struct Random(Rng);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    fn choose<'a>(&mut self, from: &[&'a str]) -> &'a str {
        let at = usize::try_from(self.below(from.len() as u64)).unwrap();
        from[at]
    }

    fn name(&mut self) -> &'static str {
        self.choose(&["a", "b", "c", "a.x", "b.x", "a.0", "b.0.x", "c.y"])
    }

    fn field(&mut self) -> &'static str {
        self.choose(&["a", "b", "c", "a.x", "b.x", "c.y"])
    }

    fn value(&mut self, depth: u32) -> Bson {
        let kinds = if depth == 0 { 3 } else { 6 };
        match self.below(kinds) {
            0 => Bson::Null,
            1 => Bson::Int32(i32::try_from(self.below(4)).unwrap()),
            2 => Bson::String(String::from(self.choose(&["p", "q"]))),
            3 => Bson::Array((0..self.below(3)).map(|_| self.value(depth - 1)).collect()),
            _ => {
                let mut document = Document::new();
                for name in ["x", "y"] {
                    if self.below(2) == 0 {
                        document.insert(name, self.value(depth - 1));
                    }
                }
                Bson::Document(document)
            }
        }
    }

    fn document(&mut self, id: i32) -> Document {
        let mut document = doc! {"_id": id};
        for name in ["a", "b", "c"] {
            if self.below(4) > 0 {
                document.insert(name, self.value(2));
            }
        }
        document
    }

    fn filter(&mut self) -> Document {
        let mut filter = Document::new();
        for _ in 0..=self.below(2) {
            let test = match self.below(5) {
                0 => Bson::Document(doc! {"$exists": self.below(2) == 0}),
                1 => Bson::Document(doc! {"$gt": self.value(0)}),
                2 => Bson::Document(doc! {"$ne": self.value(0)}),
                3 => Bson::Document(doc! {"$in": [self.value(0), self.value(0)]}),
                _ => self.value(1),
            };
            filter.insert(self.name(), test);
        }
        if self.below(4) == 0 {
            let path = format!("${}", self.field());
            filter.insert("$expr", doc! {"$ne": [path, 1]});
        }
        filter
    }

    fn stage(&mut self) -> Bson {
        match self.below(10) {
            0..=2 => bson!({"$match": self.filter()}),
            3 => bson!({"$project": { self.field(): 1 }}),
            4 => bson!({"$project": { self.field(): 0 }}),
            5 => bson!({"$set": { self.field(): "$b", "d": "$a.x" }}),
            6 => bson!({"$unwind": {
                "path": (format!("${}", self.field())),
                "preserveNullAndEmptyArrays": (self.below(2) == 0),
            }}),
            7 => bson!({"$sort": { self.field(): 1, "_id": 1 }}),
            8 => bson!({"$limit": (1 + i32::try_from(self.below(8)).unwrap())}),
            _ => bson!({"$skip": (i32::try_from(self.below(3)).unwrap())}),
        }
    }
}

#[test]
fn optimized_pipelines_give_the_same() {
    for seed in 0..3000 {
        let mut random = Random(Rng::new(seed));
        let documents: Vec<Document> = (0..8).map(|id| random.document(id)).collect();
        let stages: Vec<Bson> = (0..=random.below(5)).map(|_| random.stage()).collect();
        let stages = Bson::Array(stages);
        let plain = parse(&stages).unwrap();
        let optimized = plain.clone().optimize();
        let expected = Memory::default().run(plain, &documents);
        let found = Memory::default().run(optimized, &documents);
        let text = |found: crate::Result<Vec<Document>>| {
            found.map(|found| found.iter().map(Document::to_string).collect::<Vec<_>>())
        };
        assert_eq!(
            text(found),
            text(expected),
            "seed {seed}: {stages} over {documents:?}"
        );
    }
}
