//! Buckets that are read often settle by themselves.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sim::{SimOptions, SimVfs};
use vfs::Vfs;

use crate::db::Core;
use crate::options::Options;
use crate::types::{Batch, Durability, Seq, TreeId, TreeOptions};

fn put(core: &Core, tree: TreeId, numbers: impl Iterator<Item = u32>) {
    let mut batch = Batch::new();
    for number in numbers {
        batch.put(
            tree,
            &number.wrapping_mul(0x9E37_79B1).to_be_bytes(),
            &[7; 60],
        );
    }
    core.write(&batch, Durability::Interval).unwrap();
}

fn deltas(core: &Core) -> usize {
    let all = core.buckets();
    all.iter()
        .map(|(_, bucket)| bucket.state().deltas.len())
        .sum()
}

#[test]
fn a_tree_that_is_mostly_read_settles_under_a_trickle_of_writes() {
    let disk = SimVfs::new(SimOptions::default());
    let vfs: Arc<dyn Vfs> = Arc::new(disk.clone());
    let options = Options::default()
        .with_memory(1 << 20)
        .with_bucket(64 << 10)
        .with_page(512)
        .with_rho(0.05)
        .with_k_cap(64)
        .with_threads(0);
    let core = Arc::new(
        crate::db::open(&vfs, Path::new("/store"), &options)
            .unwrap()
            .0,
    );
    let tree = core.create_tree("t", TreeOptions::default()).unwrap();
    for chunk in 0..20_u32 {
        put(&core, tree, chunk * 200..chunk * 200 + 200);
    }
    assert!(core.settle(Duration::from_secs(3600)).unwrap());
    for number in 0..3_u32 {
        put(&core, tree, (0..4000).skip(number as usize).step_by(40));
        core.freeze_older_than(Seq::MAX);
        core.flush_until_idle().unwrap();
    }
    let buckets = core.buckets().len();
    // The pace allows no merges for writes. There is always a commit, so the store is not idle.
    for _ in 0..100 {
        put(&core, tree, 0..1);
        core.step().unwrap();
        disk.sleep(Duration::from_millis(60));
    }
    assert!(buckets < deltas(&core), "the test needs deltas");
    let mut value = Vec::new();
    let mut rounds = 0;
    while 0 < deltas(&core) {
        let reader = crate::db::Reader::new(&core).unwrap();
        for number in (0..4000).step_by(4) {
            let number: u32 = number;
            let key = number.wrapping_mul(0x9E37_79B1).to_be_bytes();
            assert!(reader.get_into(tree, &key, &mut value).unwrap());
        }
        put(&core, tree, 0..1);
        core.step().unwrap();
        disk.sleep(Duration::from_millis(60));
        rounds += 1;
        assert!(rounds < 500, "{} deltas are left", deltas(&core));
    }
}
