//! Random specifications for every parser and evaluator: errors are correct results, panics are
//! failures.
//!
//! `ROMANESCO_SEEDS=n` runs `n` seeds of each test instead of a few hundred, and a failure prints
//! its seed, which `ROMANESCO_SEED=n` replays.

use std::env;

use bson::{Bson, Document, RawDocumentBuf, doc};
use query::collation::Collation;
use query::execute::{Host, Listed, Rows, Spill, build};
use query::expr::{Env, Expr, Scope};
use query::filter::{Details, Filter};
use query::pipeline::Pipeline;
use query::projection::Projection;
use query::schema::Schema;
use query::settings::Settings;
use query::sort::Sort;
use query::stage::{Merge, Statistics};
use query::update::{Difference, Form, Position, Update, delta, diff};
use query::{Code, Error, Namespace, Result, Row};
use stdx::Tape;

use super::generate::{Kind, fields, operators, stored, value};

/// Default number of runs of each test, which take a second or two in total.
const SEEDS: u64 = 400;
/// Number of random choices of one run.
const TAPE: usize = 600;
const DEPTH: usize = 4;

/// Prints the seed if the test panics.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("replay with ROMANESCO_SEED={}", self.0);
        }
    }
}

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().expect("a number"))
}

/// Runs `one` for every seed. `salt` makes the runs of different tests differ. Checks that some
/// specifications were valid.
fn each(salt: u64, one: impl Fn(&mut Tape) -> Result<()>) {
    let seeds = match number("ROMANESCO_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("ROMANESCO_SEEDS").unwrap_or(SEEDS),
    };
    let many = seeds.end - seeds.start > 100;
    let mut sound = 0;
    for seed in seeds {
        let shown = Seed(seed);
        let mut tape = Tape::from_seed(seed.wrapping_mul(16) + salt, TAPE);
        sound += u64::from(one(&mut tape).is_ok());
        drop(shown);
    }
    // If none is valid, the generator makes nothing that the parser accepts.
    assert!(!many || sound > 0, "every specification was refused");
}

fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).unwrap()
}

#[test]
fn filters() {
    each(1, |tape| {
        let spec = if tape.chance(128) {
            operators(tape, Kind::Filter, DEPTH)
        } else {
            fields(tape, Kind::Filter, DEPTH)
        };
        let filter = Filter::parse(&raw(&spec), &Settings::default())?;
        // The filter can always be shown as BSON.
        let _ = raw(&filter.to_document());
        for _ in 0..4 {
            let document = raw(&stored(tape));
            if !filter.matches_at(&document, &mut Details::default())? {
                filter.explain_failure(&document)?;
            }
        }
        Ok(())
    });
}

#[test]
fn schemas_sorts_and_collations() {
    each(2, |tape| {
        let spec = fields(tape, Kind::Plain, DEPTH);
        let sort = Sort::parse(&raw(&spec));
        let collation = Collation::parse(&raw(&spec));
        let schema = Schema::parse(&spec)?;
        let document = raw(&stored(tape));
        if !schema.validates(&document)? {
            schema.explain(&document)?;
        }
        collation?;
        sort?.key(&document, None)?;
        Ok(())
    });
    each(3, |tape| {
        let mut spec = Document::new();
        for name in ["a", "a.b", "b.0"] {
            if tape.chance(128) {
                spec.insert(name, if tape.chance(128) { 1 } else { -1 });
            }
        }
        let sort = Sort::parse(&raw(&spec))?;
        let one = sort.key(&raw(&stored(tape)), None)?;
        let two = sort.key(&raw(&stored(tape)), None)?;
        assert_eq!(one.cmp(&two), two.cmp(&one).reverse());
        Ok(())
    });
}

#[test]
fn expressions() {
    each(4, |tape| {
        let spec = Bson::Document(operators(tape, Kind::Expression, DEPTH));
        let settings = Settings::default();
        let expr = Expr::parse(&spec, &Scope::new().with_variables(&settings.variables))?;
        for _ in 0..4 {
            let document = stored(tape);
            expr.evaluate(&Env::new(&document, &settings.variables))?;
        }
        Ok(())
    });
}

#[test]
fn updates() {
    each(5, |tape| {
        let mut spec = Document::new();
        for _ in 0..1 + tape.byte() % 2 {
            let operator = operators(tape, Kind::Update, 0);
            let name = operator.keys().next().unwrap().clone();
            spec.insert(name, fields(tape, Kind::Update, DEPTH - 1));
        }
        let filters = [raw(&doc! {"x": {"$gt": 1}})];
        let used = spec.to_string().contains("$[x]");
        let filters = if used { filters.as_slice() } else { &[] };
        let spec = raw(&spec);
        let spec = bson::RawBsonRef::Document(&spec);
        let update = Update::parse(spec, filters, &Settings::default())?;
        for _ in 0..4 {
            let at = Position {
                array_index: tape.chance(128).then_some(0),
                ..Position::default()
            };
            let document = stored(tape);
            if let Some(changed) = update.apply(&document, &at)? {
                assert_eq!(changed.get("_id"), document.get("_id"));
            }
        }
        Ok(())
    });
}

/// A diff, or almost one.
fn random_diff(tape: &mut Tape, depth: usize) -> Document {
    let names = [
        "d", "u", "i", "sa", "sb", "sc", "s0", "s1", "a", "l", "u0", "u2", "q", "s",
    ];
    let mut made = Document::new();
    if tape.chance(64) {
        made.insert("a", true);
    }
    for _ in 0..1 + tape.byte() % 3 {
        let name = names[tape.index(names.len())];
        let value = match tape.byte() % 4 {
            0 if depth > 0 => Bson::Document(random_diff(tape, depth - 1)),
            1 => Bson::Int32(i32::from(tape.byte() % 5)),
            2 => value(tape, Kind::Plain, 1),
            _ => Bson::Document(fields(tape, Kind::Plain, 1)),
        };
        made.insert(name, value);
    }
    made
}

/// Applying invalid diffs and diffs of other documents; making diffs of damaged documents.
#[test]
fn diffs() {
    each(9, |tape| {
        let before = raw(&stored(tape));
        let made = delta(&before, &raw(&random_diff(tape, DEPTH)))?;
        Document::try_from(&*made).unwrap();
        Ok(())
    });
    each(10, |tape| {
        let (before, after) = (raw(&stored(tape)), raw(&stored(tape)));
        let mut bytes = [before.into_bytes(), after.into_bytes()];
        for document in &mut bytes {
            for _ in 0..tape.byte() % 3 {
                let at = 4 + tape.index(document.len() - 5);
                document[at] = tape.byte();
            }
        }
        let [before, after] = bytes.map(RawDocumentBuf::from_bytes);
        let (before, after) = (before?, after?);
        for form in [Form::Operators, Form::Smallest] {
            if let Difference::Delta(made) = diff(&before, &after, form)? {
                let made = made.get_document("diff").unwrap();
                assert_eq!(delta(&before, made)?, after);
            }
        }
        Ok(())
    });
}

#[test]
fn projections() {
    each(6, |tape| {
        let spec = raw(&fields(tape, Kind::Expression, DEPTH));
        let filter = Filter::everything();
        let projection = Projection::parse(&spec, &Settings::default(), Some(&filter))?;
        let details = Details {
            array_index: Some(0),
        };
        projection.apply(&raw(&stored(tape)), Some(&details))?;
        Ok(())
    });
}

#[test]
fn pipelines() {
    each(7, |tape| {
        let length = 1 + tape.byte() % 3;
        let stages: Vec<Bson> = (0..length)
            .map(|_| {
                let mut stage = operators(tape, Kind::Stage, DEPTH);
                while stage.len() > 1 {
                    let name = stage.keys().next().unwrap().clone();
                    stage.remove(name);
                }
                Bson::Document(stage)
            })
            .collect();
        let pipeline = Pipeline::parse(&stages, &Settings::default())?;
        let documents: Vec<Document> = (0..5).map(|_| stored(tape)).collect();
        run(pipeline, documents)
    });
    // A single stage with the kind of operand that it needs: the parser accepts more of these.
    each(8, |tape| {
        let spec = match tape.index(5) {
            0 => doc! {"$group": {"_id": value(tape, Kind::Expression, 1),
            "x": operators(tape, Kind::Expression, 1)}},
            1 => doc! {"$project": {"a": operators(tape, Kind::Expression, 2)}},
            2 => doc! {"$setWindowFields": {"sortBy": {"a": 1},
            "output": {"x": operators(tape, Kind::Expression, 1)}}},
            3 => doc! {"$lookup": {"from": "c", "as": "x", "localField": "a", "foreignField": "b"}},
            _ => doc! {"$match": operators(tape, Kind::Filter, 2)},
        };
        let pipeline = Pipeline::parse(&[Bson::Document(spec)], &Settings::default())?;
        let documents: Vec<Document> = (0..5).map(|_| stored(tape)).collect();
        run(pipeline, documents)
    });
}

/// Runs a pipeline over documents in memory, and reads at most a thousand rows of its result.
pub(crate) fn run(pipeline: Pipeline, documents: Vec<Document>) -> Result<()> {
    let mut host = Memory {
        left: 3_000,
        random: 1,
        documents,
    };
    let input = host.rows();
    let mut rows = build(pipeline.optimize(), input)?;
    let mut seen = 0;
    while let Some(row) = rows.next(&mut host)? {
        row.document()?;
        seen += 1;
        if seen > 1_000 {
            break;
        }
    }
    Ok(())
}

/// A host in memory: every collection has the same documents, and the number of steps is limited.
struct Memory {
    left: u32,
    random: u64,
    documents: Vec<Document>,
}

impl Memory {
    fn rows(&self) -> Box<dyn Rows> {
        let rows: Vec<Row> = self
            .documents
            .iter()
            .map(|document| Row::from_document(document.clone()))
            .collect();
        Box::new(Listed::new(rows))
    }
}

impl Host for Memory {
    fn check(&mut self) -> Result<()> {
        self.left = self
            .left
            .checked_sub(1)
            .ok_or_else(|| Error::new(Code::INTERRUPTED, "operation was interrupted"))?;
        Ok(())
    }

    fn database(&self) -> &str {
        "test"
    }

    fn aggregate(&mut self, _ns: &Namespace, pipeline: Pipeline) -> Result<Box<dyn Rows>> {
        self.check()?;
        build(pipeline.optimize(), self.rows())
    }

    fn spill(&mut self) -> Result<Box<dyn Spill>> {
        Ok(Box::new(Held(std::collections::VecDeque::new())))
    }

    fn memory_limit(&self) -> usize {
        1 << 16
    }

    fn allow_disk_use(&self) -> bool {
        true
    }

    fn write_out(&mut self, _ns: &Namespace, input: &mut dyn Rows) -> Result<()> {
        while input.next(self)?.is_some() {}
        Ok(())
    }

    fn merge(&mut self, _ns: &Namespace, _merge: &Merge, input: &mut dyn Rows) -> Result<()> {
        while input.next(self)?.is_some() {}
        Ok(())
    }

    fn statistics(&mut self, _statistics: &Statistics) -> Result<Vec<Document>> {
        Ok(self.documents.clone())
    }

    fn random(&mut self) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        self.random
    }
}

struct Held(std::collections::VecDeque<Vec<u8>>);

impl Spill for Held {
    fn append(&mut self, record: &[u8]) -> Result<()> {
        self.0.push_back(record.to_vec());
        Ok(())
    }

    fn read(&mut self, record: &mut Vec<u8>) -> Result<bool> {
        let next = self.0.pop_front();
        let found = next.is_some();
        *record = next.unwrap_or_default();
        Ok(found)
    }
}
