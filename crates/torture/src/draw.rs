//! Draws the engine's options for each start.
//!
//! Small caches, files and intervals, so that a store of a few megabytes behaves like a large one.
//! Options that only one engine has are drawn by name, if the engine has them.

use std::time::Duration;

use kv::{Codec, EngineOptions, Factory};
use stdx::{ByteSize, Rng};

/// Values for options that only one engine has, except options that fix the format of a store.
const OWN: &[(&str, &[&str])] = &[
    ("backup", &["plain", "compact"]),
    ("block", &["1K", "4K", "16K"]),
    ("bloom", &["0", "10"]),
    ("bucket", &["32K", "64K", "256K", "1M"]),
    ("buffers", &["0.1", "0.5", "0.9"]),
    ("checkpoint_bytes", &["16K", "256K", "4M"]),
    ("codec", &["none", "lz4", "zstd:1"]),
    ("delta_codec", &["none", "lz4", "zstd:1"]),
    ("filter", &["auto", "none", "all"]),
    ("filter_bits", &["4", "10"]),
    ("group_delay", &["0us", "200us"]),
    ("interval", &["metasync", "background", "nosync"]),
    ("kcap", &["1", "3", "16"]),
    ("l0_trigger", &["2", "4"]),
    ("log_max", &["256K", "1M", "8M"]),
    ("log_segment", &["64K", "128K", "1M"]),
    ("memtables", &["256K", "1M"]),
    ("page", &["256", "1K", "4K", "16K"]),
    ("pipelined", &["true", "false"]),
    ("preset", &["btree", "balanced", "ingest"]),
    ("readahead", &["on", "off"]),
    ("rho", &["0.2", "1", "2", "6"]),
    ("subcompactions", &["1", "2"]),
    ("write_buffer", &["64K", "256K", "1M"]),
];

/// Probability that one of the engine's own options is set.
const GIVEN: f64 = 0.6;

/// Number of draws before all options keep their defaults: a draw may combine incompatible values.
const ATTEMPTS: u32 = 20;

/// Size of LMDB's memory map: far more than a run writes.
const SIZE_MAX: ByteSize = ByteSize::gib(4);

/// Options `factory` accepts.
#[must_use]
pub fn options(factory: &dyn Factory, rng: &mut Rng) -> EngineOptions {
    for _ in 0..ATTEMPTS {
        let mut drawn = common(rng);
        for (name, values) in OWN {
            let known = factory.options().iter().any(|o| o.name == *name);
            if let Some(value) = values.get(rng.index(values.len()))
                && rng.chance(GIVEN)
                && known
            {
                drawn.own.insert((*name).to_owned(), (*value).to_owned());
            }
        }
        if factory.check(&drawn).is_ok() {
            return drawn;
        }
    }
    EngineOptions {
        size_max: SIZE_MAX,
        ..EngineOptions::default()
    }
}

fn common(rng: &mut Rng) -> EngineOptions {
    EngineOptions {
        cache: ByteSize::mib(pick(rng, &[1, 2, 8, 64])),
        interval: Duration::from_millis(pick(rng, &[1, 5, 20, 100])),
        checkpoint: Duration::from_millis(pick(rng, &[20, 100, 500, 5_000])),
        codec: if rng.chance(0.5) {
            Codec::Fast
        } else {
            Codec::None
        },
        threads: pick(rng, &[1, 1, 2, 4]),
        size_max: SIZE_MAX,
        ..EngineOptions::default()
    }
}

/// One of `choices`, of which there is at least one.
pub(crate) fn pick<T: Copy>(rng: &mut Rng, choices: &[T]) -> T {
    let choice = choices.get(rng.index(choices.len()));
    *choice.expect("an index below the length of a list that is not empty")
}

/// The options as text on one line.
#[must_use]
pub fn text(options: &EngineOptions) -> String {
    let EngineOptions {
        cache,
        interval,
        checkpoint,
        codec,
        threads,
        ..
    } = options;
    let (interval, checkpoint) = (interval.as_millis(), checkpoint.as_millis());
    let mut line = format!(
        "cache={cache} interval={interval}ms checkpoint={checkpoint}ms codec={codec} \
         threads={threads}"
    );
    for (name, value) in &options.own {
        line.push_str(&format!(" :{name}={value}"));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_is_accepted_and_varies() {
        for factory in lab::targets::factories() {
            let mut rng = Rng::new(1);
            let drawn: Vec<EngineOptions> = (0..50).map(|_| options(factory, &mut rng)).collect();
            for options in &drawn {
                factory.check(options).unwrap();
            }
            assert!(drawn.iter().any(|o| *o != drawn[0]));
            let has_own = OWN
                .iter()
                .any(|(n, _)| factory.options().iter().any(|o| o.name == *n));
            let given = drawn.iter().filter(|o| !o.own.is_empty()).count();
            assert!(!has_own || 10 < given, "{}: {given} of 50", factory.name());
        }
    }
}
