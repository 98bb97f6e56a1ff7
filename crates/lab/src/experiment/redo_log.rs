//! `redo-log`: the cost of durability. For each level of durability, the same inserts run on a
//! fresh store, one document per transaction: first by one client, then by many clients, to measure
//! group commit. Then the process is killed under load, and the store is checked for the
//! acknowledged rows. Finally the same is done with a power cut instead of the kill.

use kv::Durability;
use lab_report::record::{LoadKind, Preset, Setting, StepPlan, Work};

use super::{Experiment, Fixed, Params, Sizes};
use crate::workload::iibench::{Payload, Shape};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "redo-log",
    about: "insert one document a commit at each level of durability; kill, cut the power, count",
    source: "the redo log articles of 2014 (10 M rows, one client, one document an insert, a sync \
             in every commit or a lazy log)",
    params: Params {
        shape: Shape::Classic,
        payload: Payload::REDO_LOG,
        batch: 1,
        queries: 0.0,
        indexes: 1,
    },
    fixed: &[Fixed::Durability, Fixed::Clients, Fixed::Rate, Fixed::Batch],
    sizes,
    steps,
    program: None,
};

/// The levels of durability, the strongest first.
const LEVELS: [Durability; 4] = [
    Durability::Sync,
    Durability::Group,
    Durability::Interval,
    Durability::None,
];

/// Number of clients in the steps that measure group commit.
const MANY: u32 = 16;

/// Number of clients in the steps that end with a kill or a power cut.
const KILLED: u32 = 4;

/// Assumed ratio between the duration of a commit that waits for the disk and of one that does not.
/// Steps whose commits wait have fewer rows by this factor.
const FEWER: u64 = 20;

fn sizes(preset: Preset) -> Sizes {
    let of = Sizes::once;
    match preset {
        Preset::Smoke => of(20_000, 128, 32, 3.0, 1.0),
        Preset::Quick => of(200_000, 256, 128, 30.0, 3.0),
        Preset::Standard => of(2_000_000, 512, 256, 300.0, 10.0),
        Preset::Published => of(10_000_000, 4096, 2048, 86_400.0, 60.0),
    }
}

/// Whether a commit at this level waits for the disk.
fn waits(level: Durability) -> bool {
    matches!(level, Durability::Sync | Durability::Group)
}

fn steps(sizes: &Sizes, params: &Params) -> Vec<StepPlan> {
    let mut steps: Vec<StepPlan> = LEVELS
        .iter()
        .map(|level| insert(*level, 1, sizes, params))
        .collect();
    for level in LEVELS.into_iter().filter(|level| waits(*level)) {
        steps.push(insert(level, MANY, sizes, params));
    }
    for power in [false, true] {
        let kills = LEVELS
            .iter()
            .map(|level| kill(*level, power, sizes, params));
        steps.extend(kills);
    }
    steps
}

fn work(params: &Params, interval_rows: u64) -> serde_json::Value {
    let work = Work::Load {
        batch: params.batch,
        indexes: true,
        deletes: false,
        interval_rows,
        queries: None,
    };
    serde_json::to_value(work).expect("plain data")
}

fn insert(level: Durability, clients: u32, sizes: &Sizes, params: &Params) -> StepPlan {
    let (share, name) = if clients > 1 {
        (FEWER / 4, format!("{level}-{clients}"))
    } else {
        (FEWER, level.to_string())
    };
    let rows = if waits(level) {
        (sizes.rows / share).max(100)
    } else {
        sizes.rows
    };
    let by = if clients > 1 {
        format!(" by {clients} clients")
    } else {
        String::new()
    };
    StepPlan {
        name,
        about: format!("insert {rows} rows at durability {level}{by}"),
        work: work(params, (rows / 10).max(1)),
        operations: rows,
        seconds_max: sizes.load_seconds,
        load: LoadKind::Closed,
        settle: true,
        setting: Setting {
            fresh: true,
            durability: Some(level),
            clients: Some(clients),
            ..Setting::default()
        },
    }
}

fn kill(level: Durability, power: bool, sizes: &Sizes, params: &Params) -> StepPlan {
    let (name, end) = if power {
        ("power", "cut the power")
    } else {
        ("kill", "kill -9")
    };
    StepPlan {
        name: format!("{name}-{level}"),
        about: format!(
            "insert by {KILLED} clients at durability {level}, {end}, restart, and look for what \
             was acknowledged"
        ),
        work: work(params, 0),
        operations: 0,
        seconds_max: sizes.query_seconds,
        load: LoadKind::Closed,
        settle: false,
        setting: Setting {
            fresh: true,
            kill: true,
            power,
            durability: Some(level),
            clients: Some(KILLED),
            ..Setting::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_is_measured_alone_and_killed_on_a_fresh_store() {
        let steps = steps(&sizes(Preset::Quick), &EXPERIMENT.params);
        let names: Vec<&str> = steps.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "sync",
                "group",
                "interval",
                "none",
                "sync-16",
                "group-16",
                "kill-sync",
                "kill-group",
                "kill-interval",
                "kill-none",
                "power-sync",
                "power-group",
                "power-interval",
                "power-none"
            ]
        );
        assert!(steps.iter().all(|s| s.setting.fresh));
        assert_eq!(
            (steps[0].operations, steps[2].operations),
            (10_000, 200_000)
        );
        assert_eq!(steps[4].operations, 40_000);
        assert!(
            steps[6..]
                .iter()
                .all(|s| s.setting.kill && s.operations == 0)
        );
        let power = |s: &StepPlan| s.setting.power;
        assert!(!steps[..10].iter().any(power) && steps[10..].iter().all(power));
    }
}
