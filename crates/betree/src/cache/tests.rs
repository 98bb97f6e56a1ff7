//! The cache against its capacity, and what it counts.

use stdx::Rng;

use super::*;
use crate::page::{Codec, PageBuilder, PageIdent};
use crate::types::{Entry, Op, Seq, TreeId};

fn page(bytes: usize) -> Arc<Page> {
    let mut builder = PageBuilder::new(Codec::None);
    let value = vec![1; bytes];
    builder.push(Entry {
        key: b"k",
        seq: Seq(0),
        op: Op::Put,
        value: &value,
    });
    let ident = PageIdent {
        tree: TreeId(1),
        run: RunId(1),
        index: 0,
    };
    let mut stored = Vec::new();
    builder.finish(ident, &mut stored);
    Arc::new(Page::decode(&stored, ident).unwrap())
}

#[test]
fn what_is_put_in_is_found_and_counted() {
    let cache = Cache::new(1 << 20);
    assert!(cache.page(RunId(1), 0).is_none());
    cache.insert_page(RunId(1), 0, page(100));
    assert!(cache.page(RunId(1), 0).is_some());
    assert!(cache.holds_page(RunId(1), 0));
    assert!(cache.page(RunId(1), 1).is_none());
    assert!(cache.fence(RunId(1)).is_none());
    assert_eq!((cache.hits(), cache.misses()), (1, 3));
    cache.forget_run(RunId(1), 9);
    assert!(!cache.holds_page(RunId(1), 0));
    assert_eq!(cache.used(), 0);
}

#[test]
fn the_capacity_is_kept_and_can_be_changed() {
    // I2.
    for capacity in [1 << 20, 64 << 20] {
        let cache = Cache::new(capacity);
        assert!(cache.capacity() < capacity + 16);
        let mut rng = Rng::new(1);
        let pages = [page(100), page(4000), page(16 << 10), page(200 << 10)];
        let fill = |rng: &mut Rng| {
            for _ in 0..20_000 {
                let index = u32::try_from(rng.below(1 << 16)).unwrap();
                let page = Arc::clone(&pages[rng.index(4)]);
                cache.insert_page(RunId(1), index, page);
                assert!(cache.used() <= cache.capacity());
            }
        };
        fill(&mut rng);
        assert!(capacity / 2 < cache.used(), "{}", cache.used());
        cache.set_capacity(capacity / 4);
        assert!(cache.used() <= capacity / 4 + 16, "{}", cache.used());
        fill(&mut rng);
        cache.set_capacity(capacity * 2);
        fill(&mut rng);
        assert!(capacity < cache.used(), "{}", cache.used());
        cache.set_capacity(0);
        assert!(cache.used() <= CAPACITY_MIN + 16);
    }
}

#[test]
fn what_is_larger_than_the_cache_is_not_kept() {
    // I2.
    let cache = Cache::new(64 << 10);
    cache.insert_page(RunId(1), 0, page(1 << 20));
    assert!(!cache.holds_page(RunId(1), 0));
    assert_eq!(cache.used(), 0);
}
