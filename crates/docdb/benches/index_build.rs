//! What does an entry of an index cost when the index is built over existing documents, compared
//! with an index that inserts keep up to date? The documents and the three secondary indexes of
//! iibench.
//!
//! `cargo bench -p docdb --bench index_build -- [DOCUMENTS [CACHE_MIB [ENGINE...]]]` (default:
//! 500,000, 64 MiB, betree and lmdb). Both ways are measured in one run, each in a new temporary
//! directory; the cost of an index that is kept up to date is what inserting takes longer with the
//! three than without. Nothing else may run on the machine.

mod purchases;

use std::sync::Arc;
use std::time::Duration;

use bson::{RawDocument, RawDocumentBuf};
use docdb::{InsertOptions, Namespace, Op, Options, Store};
use kv::{Durability, EngineOptions, Factory};
use stdx::{ByteSize, Rng, time};

const BATCH: usize = 1000;

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let number = |at: usize, default: u64| {
        let given = arguments.get(at).and_then(|n| n.parse().ok());
        given.unwrap_or(default)
    };
    let batches = usize::try_from(number(0, 500_000))
        .expect("a count")
        .div_ceil(BATCH);
    let cache = ByteSize::mib(number(1, 64));
    let wanted = arguments.get(2..).unwrap_or_default();
    println!(
        "{} documents, cache {cache}, us for each document",
        batches * BATCH
    );
    println!(
        "{:8} {:>8} {:>8} {:>8} {:>8}",
        "engine", "insert", "with 3", "so kept", "built"
    );
    for factory in [kv_betree::factory(), kv_lmdb::factory()] {
        let name = factory.name();
        if !wanted.is_empty() && !wanted.iter().any(|w| w == name) {
            continue;
        }
        let [plain, built] = run(factory, batches, cache, false);
        let [with, _] = run(factory, batches, cache, true);
        let each = |time: Duration| time.as_secs_f64() * 1e6 / (batches * BATCH) as f64;
        let kept = with.saturating_sub(plain);
        println!(
            "{name:8} {:8.2} {:8.2} {:8.2} {:8.2}",
            each(plain),
            each(with),
            each(kept),
            each(built)
        );
    }
}

/// Insert and then create the indexes, or the other way round; gives the time of the inserts and
/// of the indexes, each up to the end of the engine's own work.
fn run(
    factory: &'static dyn Factory,
    batches: usize,
    cache: ByteSize,
    indexes_first: bool,
) -> [Duration; 2] {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let options = EngineOptions {
        cache,
        ..EngineOptions::default()
    };
    let engine = factory.open(&directory.path().join("store"), &options);
    let engine = Arc::from(engine.expect("open"));
    let store = Store::open(Arc::clone(&engine), Options::default()).expect("a store");
    let ns = Namespace::new("iibench", "purchases").expect("a name");
    let op = Op::new(Durability::Interval);
    let settle = || engine.checkpoint().expect("a checkpoint");
    let create = || {
        let start = time::now();
        store
            .create_indexes(&op, &ns, &purchases::indexes())
            .expect("indexes");
        settle();
        start.elapsed()
    };
    let before = indexes_first.then(&create);
    let inserting = insert(&store, &ns, &op, batches, &settle);
    [inserting, before.unwrap_or_else(create)]
}

fn insert(
    store: &Store,
    ns: &Namespace,
    op: &Op<'_>,
    batches: usize,
    settle: &dyn Fn(),
) -> Duration {
    let mut rng = Rng::new(1);
    let mut inserting = Duration::ZERO;
    for _ in 0..batches {
        let owned: Vec<RawDocumentBuf> =
            (0..BATCH).map(|_| purchases::document(&mut rng)).collect();
        let raw: Vec<&RawDocument> = owned.iter().map(AsRef::as_ref).collect();
        let start = time::now();
        let reply = store.insert(op, ns, &raw, InsertOptions::default());
        inserting += start.elapsed();
        assert_eq!(usize::try_from(reply.expect("insert").n), Ok(BATCH));
    }
    let start = time::now();
    settle();
    inserting + start.elapsed()
}
