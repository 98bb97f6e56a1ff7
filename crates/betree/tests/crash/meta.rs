//! The same tape of operations on many configurations must give the same answers.

use betree::{Codec, Filter, MasterKey, Options};
use sim::checker::State;
use sim::{SimOptions, SimVfs};
use stdx::Rng;
use stdx::hash::hash64_seeded;

use crate::draw::Load;
use crate::rig::World;
use crate::scripts::small;
use crate::{Repeat, setting};

/// Minimum number of tapes that run on every configuration.
const TAPES: u64 = 8;

fn configurations() -> Vec<Options> {
    let mut all = vec![small()];
    for page in [256, 1 << 10, 4 << 10, 64 << 10] {
        all.push(
            small()
                .with_page(page)
                .with_bucket((u64::from(page) * 4).max(4 << 10)),
        );
    }
    for (memory, share) in [(1 << 20, 0.5), (2 << 20, 0.95), (16 << 20, 0.5)] {
        all.push(small().with_memory(memory).with_buffer_share(share));
    }
    for codec in [
        Codec::None,
        Codec::Lz4,
        Codec::Snappy,
        Codec::Zlib(6),
        Codec::Zstd(3),
    ] {
        all.push(
            small()
                .with_codec(codec)
                .with_delta_codec(codec)
                .with_filter(Filter::All),
        );
    }
    for (rho, k_cap) in [(0.05, 64), (64.0, 1)] {
        all.push(small().with_rho(rho).with_k_cap(k_cap));
    }
    for segment in [64 << 10, 1 << 20] {
        all.push(small().with_log_segment(segment).with_log_max(4 * segment));
    }
    all.push(small().with_log(false));
    for log in [true, false] {
        let key = Some(MasterKey::new([7; 32]));
        all.push(small().with_log(log).with_encryption(key));
    }
    all.push(small().with_checkpoint_bytes(4 << 10).with_direct_io(true));
    all
}

/// Run the tape of `seed`; returns a hash of all answers, and the final state.
fn play(seed: u64, options: Options) -> (u64, State) {
    let vfs = SimVfs::new(SimOptions {
        seed: 1,
        capacity: None,
    });
    let mut rng = Rng::new(seed);
    let mut world = World::new(vfs, options);
    world.open().expect("a healthy disk");
    let mut load = Load::draw(&mut rng);
    let mut hash = 0;
    for step in 0..250 {
        load.act(&mut world, &mut rng).expect("a healthy disk");
        if step % 25 == 24 {
            let state = world.found().expect("a healthy disk");
            assert_eq!(state, world.model, "seed {seed}, step {step}");
            hash = hash64_seeded(format!("{state:?}").as_bytes(), hash);
        }
    }
    (hash, world.found().expect("a healthy disk"))
}

#[test]
fn one_tape_gives_the_same_answers_on_every_configuration() {
    let tapes = setting("BETREE_SIM_RUNS").unwrap_or(TAPES);
    let first = setting("BETREE_SIM_SEED").unwrap_or(1);
    let all = configurations();
    for seed in first..first + tapes {
        let mut expected = None;
        for options in &all {
            let _repeat = Repeat(format!(
                "BETREE_SIM_SEED={seed} BETREE_SIM_RUNS=1 cargo test -p betree --test crash \
                 one_tape ({options:?})"
            ));
            let answers = play(seed, options.clone());
            let expected = expected.get_or_insert_with(|| answers.clone());
            assert_eq!(expected.0, answers.0, "the answers differ");
            assert_eq!(expected.1, answers.1, "the state differs");
        }
    }
    println!(
        "{tapes} tapes on {} configurations gave the same answers",
        all.len()
    );
}
