//! A made-up run for tests: a target that falls off a cliff, one that stalls, one that is invalid.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hdrhistogram::Histogram;
use kv::{Codec, Durability};
use serde_json::json;
use stdx::ByteSize;

use crate::analysis::{METRICS, main_rates, summarize};
use crate::record::{
    Ended, EnvelopeLine, EnvelopeRecord, Integrity, IntervalRow, Latency, Limits, LoadKind,
    Manifest, Plan, Preset, RunRecord, SCHEMA, SeriesRow, Setting, Stall, StepPlan, StepRecord,
    StepState, StepStatus, StepSummary, TargetRecord, TargetSpec,
};

/// What kind of run is made.
pub(super) struct Shape {
    pub(super) repeats: u32,
    pub(super) seconds: u32,
    pub(super) steps: Vec<&'static str>,
    /// Whether the limits are in force.
    pub(super) enforced: bool,
    pub(super) names: [&'static str; 3],
    pub(super) floor: Option<f64>,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape {
            repeats: 2,
            seconds: 200,
            steps: vec!["load"],
            enforced: true,
            names: ["lmdb", "rocksdb", "wiredtiger"],
            floor: Some(0.03),
        }
    }
}

/// Numbers between 0 and 1 from a counter, the same on every machine.
fn noise(seed: u64) -> f64 {
    let mut x = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    f64::from(u32::try_from((x ^ (x >> 31)) >> 32).unwrap()) / f64::from(u32::MAX)
}

fn rate(target: usize, repeat: u32, t: u32, seconds: u32) -> f64 {
    let wobble = noise(u64::from(t) * 31 + u64::from(repeat) * 7 + target as u64);
    let share = f64::from(t) / f64::from(seconds);
    match target {
        0 if share < 0.35 => 21_000.0 + 2500.0 * wobble,
        0 => 1200.0 + 900.0 * wobble + 16_000.0 * (-(share - 0.35) * 14.0).exp(),
        1 if t % 61 > 56 => 90.0 * wobble,
        1 => 10_500.0 + 2600.0 * wobble + 900.0 * (f64::from(t) / 9.0).sin(),
        _ => 14_000.0 * (1.0 - 0.55 * share) + 1600.0 * wobble,
    }
}

fn whole(v: f64) -> u64 {
    format!("{v:.0}").parse().unwrap()
}

fn series(target: usize, repeat: u32, seconds: u32, enforced: bool) -> Vec<SeriesRow> {
    let mut rows = 0.0;
    let mut out = Vec::new();
    for t in 1..=seconds + 12 {
        let load = t <= seconds;
        let r = if load {
            rate(target, repeat, t, seconds)
        } else {
            0.0
        };
        rows += r;
        let n = noise(u64::from(t) + 977 * target as u64);
        let write = [9_000.0, 2_600.0, 5_200.0][target] * if load { r } else { 4000.0 };
        let read = [4_200.0, 300.0, 1_900.0][target] * r * f64::from(t) / f64::from(seconds);
        out.push(SeriesRow {
            t: f64::from(t) + 0.0007 * target as f64,
            phase: if load { "load" } else { "settle" }.into(),
            rows: whole(rows),
            rate: r,
            query_rate: if load { 18.0 + 4.0 * n } else { 0.0 },
            p50_ms: load.then_some(12.0 + 8.0 * n),
            p99_ms: load.then_some(45.0 + 60.0 * n + 4e5 / (r + 40.0)),
            max_ms: load.then_some(70.0 + 90.0 * n + 8e5 / (r + 40.0)),
            read_ios: Some(whole(read / 16_384.0)),
            write_ios: Some(whole(write / 65_536.0)),
            read_bytes: Some(whole(read)),
            write_bytes: Some(whole(write)),
            cpu: Some(0.4 + 0.7 * n + r / 30_000.0),
            cpu_client: Some(r / 70_000.0),
            switches: Some(whole(900.0 + 400.0 * n)),
            rss: Some(150_000_000 + whole(2e6 * n)),
            cgroup_memory: enforced.then(|| 402_653_184.min(90_000_000 + whole(rows * 700.0))),
            page_cache: enforced.then(|| 240_000_000.min(whole(rows * 500.0))),
            steal: None,
            cpu_others: None,
            others_bytes: None,
            psi_cpu: None,
            psi_io: Some(0.3 * n),
            psi_memory: None,
            file_bytes: Some(whole(rows * [460.0, 190.0, 310.0][target])),
            debt_bytes: Some(whole(4e7 + 5e7 * n)),
            errors: 0,
            activity: if target == 1 && r < 100.0 {
                "flush+compaction"
            } else {
                ""
            }
            .into(),
        });
    }
    out
}

fn histogram(target: usize, scale: f64) -> Histogram<u64> {
    let mut h = Histogram::new(3).unwrap();
    for i in 0..20_000_u64 {
        let u = noise(i * 17 + target as u64).max(1e-6);
        let tail = [0.55, 0.85, 0.62][target];
        h.record(whole(scale * (0.4 + u.powf(-tail))).max(1))
            .unwrap();
    }
    h
}

fn intervals(target: usize, series: &[SeriesRow]) -> Vec<IntervalRow> {
    let load: Vec<_> = series.iter().filter(|r| r.phase == "load").collect();
    let mut total = 0;
    let mut out = Vec::new();
    for (i, part) in load.chunks(load.len().div_ceil(12)).enumerate() {
        let written = part.iter().filter_map(|r| r.write_bytes).sum::<u64>();
        total += written;
        let last = part.last().unwrap();
        let rate = part.iter().map(|r| r.rate).sum::<f64>() / part.len() as f64;
        out.push(IntervalRow {
            interval: u32::try_from(i).unwrap() + 1,
            rows: last.rows,
            seconds: part.len() as f64,
            rate,
            exit_rate: last.rate,
            file_bytes: last.file_bytes.unwrap(),
            bytes_per_row: [460.0, 190.0, 310.0][target],
            device_write_bytes: written,
            device_write_bytes_total: total,
            device_read_bytes: part.iter().filter_map(|r| r.read_bytes).sum(),
            cpu_seconds: 9.0,
            max_stall_seconds: part.iter().filter_map(|r| r.max_ms).fold(0.0, f64::max) / 1e3,
            query_rate: 20.0,
            query_mean_ms: 3.2,
            query_p99_ms: 41.0,
        });
    }
    out
}

fn stalls(series: &[SeriesRow]) -> Vec<Stall> {
    let slow = series
        .iter()
        .filter(|r| r.phase == "load" && r.rate < 100.0);
    let mut out: Vec<Stall> = Vec::new();
    for row in slow {
        match out.last_mut() {
            Some(s) if s.start + s.seconds + 1.5 > row.t => {
                s.seconds += 1.0;
                s.rate_min = s.rate_min.min(row.rate);
            }
            _ => out.push(Stall {
                start: row.t - 1.0,
                seconds: 1.0,
                rate_min: row.rate,
                causes: vec![
                    "compaction: level 0 full".into(),
                    "I/O pressure 38 %".into(),
                ],
            }),
        }
    }
    out
}

fn tenth(series: &[SeriesRow], last: bool) -> f64 {
    let rates: Vec<f64> = series
        .iter()
        .filter(|r| r.phase == "load")
        .map(|r| r.rate)
        .collect();
    let n = rates.len() / 10;
    let part = if last {
        &rates[rates.len() - n..]
    } else {
        &rates[..n]
    };
    part.iter().sum::<f64>() / n as f64
}

fn summary(
    shape: &Shape,
    target: usize,
    repeat: u32,
    step: &str,
    rows: &[SeriesRow],
) -> StepSummary {
    let total = rows.last().unwrap().rows;
    let valid = target != 2 || repeat != 1;
    let base = StepSummary {
        schema: SCHEMA,
        target: shape.names[target].into(),
        repeat,
        step: step.into(),
        ended: if target == 0 {
            Ended::Time
        } else {
            Ended::Operations
        },
        latency_ms: latency(rows),
        device_source: if shape.enforced { "cgroup" } else { "device" }.into(),
        intervals: intervals(target, rows),
        integrity: Integrity {
            checked: true,
            rows_expected: total,
            rows_found: total,
            faults: vec![],
            seconds: 2.0,
        },
        valid,
        invalid_reason: (!valid).then(|| "17 of 1,000 sampled rows were missing".to_owned()),
        warnings: if target == 1 {
            vec!["settling was cut after 12 s".to_owned()]
        } else {
            vec![]
        },
        ..crate::fixture::step(shape.names[target], repeat, 1.0)
    };
    measured(rates(base, rows), rows)
}

/// Latencies without a maximum, which some engines do not report.
fn latency(rows: &[SeriesRow]) -> Latency {
    let rate = rows.iter().map(|r| r.rate).sum::<f64>() / rows.len() as f64;
    Latency {
        count: 20_000,
        mean: 3.0,
        p50: 2.0,
        p90: 9.0,
        p99: 44.0 * (1.0 + rate / 1e5),
        p999: 300.0,
        max: f64::NAN,
    }
}

fn rates(summary: StepSummary, rows: &[SeriesRow]) -> StepSummary {
    let load: Vec<f64> = rows
        .iter()
        .filter(|r| r.phase == "load")
        .map(|r| r.rate)
        .collect();
    let mut sorted = load.clone();
    sorted.sort_by(f64::total_cmp);
    StepSummary {
        rows: rows.last().unwrap().rows,
        seconds: load.len() as f64,
        rate_mean: load.iter().sum::<f64>() / load.len() as f64,
        rate_first_tenth: tenth(rows, false),
        rate_last_tenth: tenth(rows, true),
        worst_second: sorted[0],
        median_second: sorted[sorted.len() / 2],
        stall_seconds: load.iter().filter(|r| **r < 100.0).count() as u64,
        ..summary
    }
}

fn measured(summary: StepSummary, rows: &[SeriesRow]) -> StepSummary {
    let written: u64 = rows.iter().filter_map(|r| r.write_bytes).sum();
    let total = summary.rows;
    let files = rows.last().unwrap().file_bytes.unwrap();
    StepSummary {
        device_write_bytes: Some(written),
        device_read_bytes: Some(rows.iter().filter_map(|r| r.read_bytes).sum()),
        process_write_bytes: Some(written),
        written_by_reason: BTreeMap::from([
            ("log".to_owned(), written / 5),
            ("flush".to_owned(), written / 4),
            ("merge".to_owned(), written / 2),
        ]),
        logical_bytes: total * 320,
        live_bytes: total * 300,
        file_bytes: files,
        file_bytes_max: files + 1000,
        cpu_seconds: Some(rows.iter().filter_map(|r| r.cpu).sum()),
        client_cpu_seconds: rows.iter().filter_map(|r| r.cpu_client).sum(),
        lab_cpu_seconds: 1.3,
        lab_rss_bytes: 24_000_000,
        switches: Some(210_000),
        debt_bytes: Some(61_000_000),
        settle_seconds: 12.0,
        settle_write_bytes: Some(48_000_000),
        ..summary
    }
}

fn envelope(enforced: bool) -> EnvelopeRecord {
    let line = |limit: &str, requested: Option<u64>, covered: bool, note: &str| EnvelopeLine {
        limit: limit.to_owned(),
        requested,
        effective: requested.filter(|_| covered),
        note: note.to_owned(),
    };
    let why = if enforced {
        ""
    } else {
        "no permission to write the cgroup's limit"
    };
    EnvelopeRecord {
        mode: if enforced { "cgroup v1" } else { "none" }.to_owned(),
        enforced,
        lines: vec![
            line("memory", Some(384 << 20), enforced, why),
            line("read IOPS", Some(1000), enforced, why),
            line("write IOPS", None, true, ""),
            line("write B/s", None, true, ""),
        ],
        warnings: if enforced {
            vec![]
        } else {
            vec!["the memory cap is not in force: the page cache may hold all data".to_owned()]
        },
    }
}

fn manifest(shape: &Shape) -> Manifest {
    Manifest {
        schema: SCHEMA,
        run: "2026-11-21T190500_iibench-classic_ab12".to_owned(),
        created: "2026-11-21T19:05:00Z".to_owned(),
        lab_version: "0.1.0".to_owned(),
        commit: "511d2b2".to_owned(),
        command: [
            "romanesco",
            "lab",
            "run",
            "iibench-classic",
            "-t",
            "lmdb,rocksdb",
            "--label",
            "it's <b>",
        ]
        .map(str::to_owned)
        .to_vec(),
        plan: plan(shape),
        host: json!({
            "cpu": {"model": "Example CPU", "cores": 2},
            "kernel": "6.1.0",
            "memory_bytes": 8_000_000_000_u64,
            "mounts": [{"path": "/data", "fs": "ext4", "options": ["rw", "noatime"]}],
            "sysctl": {"vm.dirty_ratio": 20, "vm.swappiness": 60},
            "scheduler": "none",
            "psi": null
        }),
    }
}

fn plan(shape: &Shape) -> Plan {
    let steps = shape.steps.iter().map(|name| StepPlan {
        name: (*name).to_owned(),
        about: "Insert rows in key order of arrival with three secondary indexes.".to_owned(),
        work: json!({}),
        operations: 1_200_000,
        seconds_max: 200.0,
        load: LoadKind::Closed,
        settle: true,
        setting: Setting::default(),
    });
    Plan {
        experiment: "iibench-classic".to_owned(),
        preset: Preset::Quick,
        targets: shape
            .names
            .iter()
            .map(|n| TargetSpec {
                name: (*n).to_owned(),
                engine: (*n).to_owned(),
                options: BTreeMap::new(),
                facts: None,
            })
            .collect(),
        steps: steps.collect(),
        cells: vec![],
        seed: 42,
        repeats: shape.repeats,
        clients: 1,
        limits: Limits {
            memory: Some(ByteSize(384 << 20)),
            read_iops: Some(1000),
            ..Limits::default()
        },
        cache: ByteSize(128 << 20),
        durability: Durability::Interval,
        interval_ms: 100,
        codec: Codec::Fast,
        direct_io: true,
        threads: 2,
        settle_max: 60.0,
        p99_ms: 100.0,
        params: json!({"rows": 1_200_000, "indexes": 3, "payload": {"bytes": 1000}}),
        data_bytes: 1_300_000_000,
        disk_bytes: 4_000_000_000,
        seconds_estimate: 1300.0,
        data_dir: PathBuf::from("/data/lab"),
        keep_data: false,
        redo: 0,
        volume: None,
    }
}

fn target(shape: &Shape, i: usize) -> TargetRecord {
    TargetRecord {
        name: shape.names[i].to_owned(),
        engine: ["lmdb", "rocksdb", "betree"][i].to_owned(),
        version: ["0.9.33", "10.4.2", "0.1.0"][i].to_owned(),
        license: [
            "OpenLDAP Public License 2.8",
            "Apache-2.0 or GPL-2.0",
            "MIT or Apache-2.0",
        ][i]
            .to_owned(),
        ours: i == 2,
        options: vec![
            ("map_size".to_owned(), "64G".to_owned()),
            ("write_buffer".to_owned(), "32M".to_owned()),
            ("compaction".to_owned(), "universal".to_owned()),
        ],
        changed: if i == 1 {
            vec!["compaction".to_owned()]
        } else {
            vec![]
        },
        cache_bytes: 128 << 20,
        durability: "log written at commit, synced every 100 ms".to_owned(),
        compression: if i == 0 { "none" } else { "fast" }.to_owned(),
        direct_io: i != 0,
        torn_pages: "not needed: files are written once".to_owned(),
        notes: if i == 0 {
            vec!["reads through the page cache: its cache is the memory cap itself".to_owned()]
        } else {
            vec![]
        },
    }
}

/// The run.
pub(super) fn run(shape: &Shape) -> RunRecord {
    let mut steps = Vec::new();
    for repeat in 1..=shape.repeats {
        for i in 0..3 {
            for name in &shape.steps {
                let rows = series(i, repeat, shape.seconds, shape.enforced);
                steps.push(StepRecord {
                    directory: format!("{:03}_{}_r{repeat}_{name}", steps.len(), shape.names[i]),
                    status: StepStatus {
                        schema: SCHEMA,
                        state: StepState::Done,
                        at: "2026-11-21T19:10:00Z".to_owned(),
                        message: None,
                    },
                    summary: Some(summary(shape, i, repeat, name, &rows)),
                    stalls: stalls(&rows),
                    series: rows,
                    histogram: Some(histogram(i, 900.0)),
                    query_histogram: Some(histogram(i, 150.0)),
                    envelope: envelope(shape.enforced),
                    map: None,
                    counters: Vec::new(),
                });
            }
        }
    }
    let done: Vec<_> = steps
        .iter()
        .map(|s| {
            let summary = s.summary.clone().unwrap();
            let rates = main_rates(&s.series, summary.main);
            (summary, rates)
        })
        .collect();
    let manifest = manifest(shape);
    RunRecord {
        targets: (0..3).map(|i| target(shape, i)).collect(),
        summary: summarize(&manifest, &done, true),
        manifest,
        steps,
        discarded: vec![(
            "004_lmdb_r2_load".to_owned(),
            "the machine was restarted".to_owned(),
        )],
        noise: shape
            .floor
            .map(|f| METRICS.map(|m| (m.name.to_owned(), f)).to_vec())
            .unwrap_or_default(),
        prices: None,
        host_warnings: vec!["the CPU governor is powersave: rates may drift".to_owned()],
    }
}
