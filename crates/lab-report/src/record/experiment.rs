//! Facts about each experiment that readers of results need: what its mix counts, whether it sets
//! its own rates, and the steps that are compared with published articles.

use super::manifest::Plan;
use super::operation::Operation;
use super::work::Work;

/// Facts of an experiment that its records do not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The experiment.
    pub name: &'static str,
    /// The operation that its mix counts; `None` for experiments on rows of the insert benchmark.
    pub mix: Option<Operation>,
    /// Whether its steps have rates of their own, so that `--rate` cannot be set.
    pub own_rates: bool,
}

impl Known {
    /// The experiment with this name; `None` if another version wrote it.
    #[must_use]
    pub fn named(name: &str) -> Option<Known> {
        Known::all().find(|known| known.name == name)
    }

    /// Every experiment.
    pub fn all() -> impl Iterator<Item = Known> {
        EXPERIMENTS.into_iter()
    }
}

const fn rows(name: &'static str, own_rates: bool) -> Known {
    Known {
        name,
        mix: None,
        own_rates,
    }
}

const fn mix(name: &'static str, mix: Operation) -> Known {
    Known {
        name,
        mix: Some(mix),
        own_rates: false,
    }
}

/// Every experiment.
const EXPERIMENTS: [Known; 12] = [
    rows("iibench-classic", false),
    rows("iibench-steps", false),
    rows("iibench-reads", false),
    rows("redo-log", true),
    rows("insert-vs-threads", true),
    Known {
        own_rates: true,
        ..mix("many-tables", Operation::QUERY)
    },
    mix("tpcc", Operation::TRANSACTION),
    mix("linkbench", Operation::REQUEST),
    mix("oltp-read-only", Operation::TRANSACTION),
    mix("ycsb", Operation::REQUEST),
    rows("fill-factor", true),
    rows("compression", true),
];

/// Whether `--rate auto` can repeat any step of a plan.
#[must_use]
pub fn repeatable(plan: &Plan) -> bool {
    let paced = Known::named(&plan.experiment).is_some_and(|known| !known.own_rates);
    let repeated = |work: Option<Work>| match work {
        Some(Work::Program(task)) => task.is_mix(),
        work => matches!(work, Some(Work::Load { .. })),
    };
    paced && plan.steps.iter().any(|step| repeated(Work::of(step)))
}

/// Steps of `compression`: `load-CONSTANT-COMPRESSOR`.
pub mod compression {
    /// Per cent of a payload that is identical in all rows.
    pub const CONSTANT: [u8; 3] = [50, 75, 90];

    /// Codecs by the names that engines give them.
    pub const COMPRESSORS: [&str; 5] = ["none", "snappy", "lz4", "zlib", "zstd"];

    /// Codecs that are tried on pages of the engines' files, by name and level.
    pub const CODECS: [&str; 7] = [
        "none", "snappy", "lz4", "zlib-6", "zstd-1", "zstd-3", "zstd-9",
    ];

    /// Sizes of the blocks they are tried on, in bytes.
    pub const BLOCKS: [u32; 4] = [4 << 10, 16 << 10, 64 << 10, 128 << 10];
}

/// Steps of `fill-factor`.
pub mod fill_factor {
    /// The fill factors of the article, in per cent.
    pub const FILLS: [u8; 6] = [75, 80, 82, 83, 85, 100];

    /// Rounds in which rows are exchanged.
    pub const ROUNDS: u32 = 3;

    /// The name of a step at a fill factor.
    #[must_use]
    pub fn name(step: &str, fill: Option<u8>) -> String {
        fill.map_or(step.to_owned(), |fill| format!("{step}-{fill}"))
    }
}

/// Steps of `insert-vs-threads`.
pub mod insert_threads {
    /// Inserts while the data fit in memory.
    pub const FIRST: &str = "memory";

    /// Inserts once the data have outgrown memory.
    pub const BEYOND: &str = "beyond";
}

/// Steps of `many-tables`.
pub mod many_tables {
    /// Reads, and writes, per second of a seeking disk: what one of 2008 could do. Its bandwidth is
    /// not limited: sequential reads are few and large.
    pub const SEEKS: u64 = 200;
}
