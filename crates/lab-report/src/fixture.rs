//! Records for tests.

use std::collections::BTreeMap;
use std::path::PathBuf;

use kv::{Codec, Durability, Writes};
use stdx::{ByteSize, Rng};

use crate::record::{
    Cell, Ended, EnvelopeLine, EnvelopeRecord, Integrity, Latency, Limits, LoadKind, Main,
    Manifest, Others, Plan, Preset, RunRecord, Runs, SCHEMA, SeriesRow, Setting, StepPlan,
    StepRecord, StepState, StepStatus, StepSummary, Sweep, SweepAxis, SweepCell, SweepValue,
    TargetFacts, TargetRecord, TargetSpec,
};

/// A number of an approximately standard normal distribution: the sum of 12 uniform ones.
pub(crate) fn standard_normal(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0
}

/// A series of one row per second with these row rates.
pub(crate) fn series(rates: &[f64]) -> Vec<SeriesRow> {
    let row = |(place, rate): (usize, &f64)| SeriesRow {
        t: (place + 1) as f64,
        phase: "load".to_owned(),
        rate: *rate,
        ..SeriesRow::default()
    };
    rates.iter().enumerate().map(row).collect()
}

/// Step `load` of a target in a repeat, valid, 10 seconds at this rate.
pub(crate) fn step(target: &str, repeat: u32, rate: f64) -> StepSummary {
    StepSummary {
        schema: SCHEMA,
        target: target.to_owned(),
        repeat,
        step: "load".to_owned(),
        main: Main::Rows,
        ended: Ended::Operations,
        rows: 1000,
        rows_deleted: 0,
        seconds: 10.0,
        rate_mean: rate,
        rate_first_tenth: rate,
        rate_last_tenth: rate,
        worst_second: rate,
        median_second: rate,
        stall_seconds: 0,
        rate_target: None,
        rate_missed: None,
        latency_ms: Latency {
            count: 10,
            p50: 1.0,
            p99: 5.0,
            p999: 6.0,
            max: 7.0,
            ..Latency::default()
        },
        queries: None,
        device_write_bytes: Some(40_000),
        device_read_bytes: Some(0),
        device_write_ios: Some(10),
        device_read_ios: Some(0),
        device_source: "cgroup".to_owned(),
        process_write_bytes: None,
        written_by_reason: BTreeMap::new(),
        logical_bytes: 10_000,
        live_bytes: 10_000,
        file_bytes: 15_000,
        file_bytes_max: 15_000,
        cpu_seconds: Some(2.0),
        cpu_system_seconds: 0.5,
        client_cpu_seconds: 0.1,
        lab_cpu_seconds: 0.1,
        lab_rss_bytes: 1,
        switches: Some(100),
        rss_max: Some(1000),
        cgroup_memory_max: Some(2000),
        debt_bytes: Some(0),
        settle_seconds: 0.0,
        settle_cut: false,
        settle_unknown: false,
        settle_write_bytes: None,
        intervals: Vec::new(),
        integrity: Integrity::default(),
        valid: true,
        invalid_reason: None,
        ..StepSummary::default()
    }
}

/// The same, disturbed for this reason.
pub(crate) fn disturbed_step(target: &str, repeat: u32, rate: f64, why: &str) -> StepSummary {
    StepSummary {
        others: Some(Others {
            seconds: 10.0,
            disturbed: vec![why.to_owned()],
            ..Others::default()
        }),
        ..step(target, repeat, rate)
    }
}

/// Three repeats of 30 seconds of each step: enough for a published shape.
pub(crate) fn repeated(steps: &[StepSummary]) -> Vec<StepSummary> {
    let repeat = |repeat: u32| {
        steps.iter().map(move |step| StepSummary {
            repeat,
            seconds: 30.0,
            ..step.clone()
        })
    };
    (1..=3).flat_map(repeat).collect()
}

/// The manifest of a run of step `load` over these targets.
pub(crate) fn manifest(targets: &[&str], repeats: u32) -> Manifest {
    let spec = |name: &&str| TargetSpec {
        name: (*name).to_owned(),
        engine: (*name).to_owned(),
        options: BTreeMap::new(),
        facts: None,
    };
    let load = StepPlan {
        name: "load".to_owned(),
        about: "insert rows".to_owned(),
        work: serde_json::json!({ "insert": 1000 }),
        operations: 1000,
        seconds_max: 60.0,
        load: LoadKind::Closed,
        settle: true,
        setting: Setting::default(),
    };
    let cells = (1..=repeats)
        .flat_map(|repeat| (0..targets.len()).map(move |target| Cell { target, repeat }));
    Manifest {
        schema: SCHEMA,
        run: "2026-11-21T190500_test_ab12".to_owned(),
        created: "2026-11-21T19:05:00Z".to_owned(),
        lab_version: "0.1.0".to_owned(),
        commit: "abcdef".to_owned(),
        command: Vec::new(),
        plan: Plan {
            experiment: "test".to_owned(),
            preset: Preset::Smoke,
            targets: targets.iter().map(spec).collect(),
            steps: vec![load],
            cells: cells.collect(),
            seed: 42,
            repeats,
            clients: 1,
            limits: Limits::default(),
            cache: ByteSize::mib(64),
            durability: Durability::Sync,
            interval_ms: 100,
            codec: Codec::None,
            direct_io: false,
            threads: 1,
            settle_max: 60.0,
            p99_ms: 100.0,
            params: serde_json::Value::Null,
            data_bytes: 0,
            disk_bytes: 0,
            seconds_estimate: 0.0,
            data_dir: PathBuf::from("data"),
            keep_data: false,
            redo: 0,
            volume: None,
        },
        host: serde_json::Value::Null,
    }
}

/// A persistent embedded engine with this way of writing.
pub(crate) fn engine(name: &str, writes: Writes) -> TargetSpec {
    TargetSpec {
        name: name.to_owned(),
        engine: name.to_owned(),
        options: BTreeMap::new(),
        facts: Some(TargetFacts {
            runs: Runs::InWorker,
            persistent: true,
            writes: Some(writes),
        }),
    }
}

/// A server that the laboratory starts, from its specification, such as `mariadb:encrypt=1`.
pub(crate) fn server(words: &str) -> TargetSpec {
    let (engine, options) = words.split_once(':').unwrap_or((words, ""));
    let options = options
        .split(',')
        .filter_map(|option| option.split_once('='));
    TargetSpec {
        name: words.to_owned(),
        engine: engine.to_owned(),
        options: options.map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
        facts: Some(TargetFacts {
            runs: Runs::Started,
            persistent: true,
            writes: None,
        }),
    }
}

/// A complete run with these steps, without series.
pub(crate) fn run(
    name: &str,
    targets: &[&str],
    repeats: u32,
    steps: Vec<StepSummary>,
) -> RunRecord {
    let mut manifest = manifest(targets, repeats);
    name.clone_into(&mut manifest.run);
    let with_rates: Vec<(StepSummary, Vec<f64>)> =
        steps.iter().map(|s| (s.clone(), Vec::new())).collect();
    let record = |(place, summary): (usize, StepSummary)| StepRecord {
        directory: format!(
            "{:03}_{}_r{}_{}",
            place + 1,
            summary.target,
            summary.repeat,
            summary.step
        ),
        status: status(StepState::Done, None),
        summary: Some(summary),
        ..failed_step("", "")
    };
    RunRecord {
        summary: crate::analysis::summarize(&manifest, &with_rates, true),
        manifest,
        targets: Vec::new(),
        steps: steps.into_iter().enumerate().map(record).collect(),
        discarded: Vec::new(),
        noise: Vec::new(),
        prices: None,
        host_warnings: Vec::new(),
    }
}

/// A sweep of the cache over these sizes in MiB, of step `load` of one target.
pub(crate) fn sweep(sizes: &[f64]) -> Sweep {
    let value = |size: &f64| SweepValue {
        text: format!("{size}M"),
        number: Some(size * f64::from(1 << 20)),
        volume: None,
    };
    let cell = |(at, size): (usize, &f64)| SweepCell {
        directory: format!("cache-{size}M"),
        values: vec![at],
        plan: manifest(&["lmdb"], 3).plan,
    };
    Sweep {
        schema: SCHEMA,
        created: "2026-11-21T19:05:00Z".to_owned(),
        lab_version: "0.1.0".to_owned(),
        commit: "abcdef".to_owned(),
        command: Vec::new(),
        experiment: "test".to_owned(),
        targets: vec!["lmdb".to_owned()],
        axes: vec![SweepAxis {
            name: "cache".to_owned(),
            unit: "B".to_owned(),
            values: sizes.iter().map(value).collect(),
        }],
        cells: sizes.iter().enumerate().map(cell).collect(),
        prices: None,
    }
}

/// A limit of 500 that is in force.
pub(crate) fn envelope(mode: &str, limit: &str) -> EnvelopeRecord {
    EnvelopeRecord {
        mode: mode.to_owned(),
        enforced: true,
        lines: vec![EnvelopeLine {
            limit: limit.to_owned(),
            requested: Some(500),
            effective: Some(500),
            note: String::new(),
        }],
        warnings: Vec::new(),
    }
}

/// The record of a target.
pub(crate) fn target_record(name: &str, direct_io: bool) -> TargetRecord {
    TargetRecord {
        name: name.to_owned(),
        engine: name.to_owned(),
        version: String::new(),
        license: String::new(),
        ours: false,
        options: Vec::new(),
        changed: Vec::new(),
        cache_bytes: 0,
        durability: String::new(),
        compression: String::new(),
        direct_io,
        torn_pages: "not needed: files are written once".to_owned(),
        notes: Vec::new(),
    }
}

/// A step that failed.
pub(crate) fn failed_step(directory: &str, message: &str) -> StepRecord {
    StepRecord {
        directory: directory.to_owned(),
        status: status(StepState::Failed, Some(message.to_owned())),
        summary: None,
        series: Vec::new(),
        stalls: Vec::new(),
        histogram: None,
        query_histogram: None,
        envelope: EnvelopeRecord::default(),
        map: None,
        counters: Vec::new(),
    }
}

fn status(state: StepState, message: Option<String>) -> StepStatus {
    StepStatus {
        schema: SCHEMA,
        state,
        at: "2026-11-21T19:06:00Z".to_owned(),
        message,
    }
}
