//! Converts the worker's ticks and the kernel's counters into rows of the series and of the
//! interval table, step by step.

use lab_host::envelope::{EnvelopeStatus, Outcome};
use lab_host::sample::{DataSize, DeviceSource, OsDelta, OsSample, Sampler};
use lab_report::record::{EnvelopeLine, EnvelopeRecord, IntervalRow, Main, SeriesRow};

use crate::protocol::{Interval, Tick};

/// Records one step from its start to the end of its settling.
pub(super) struct Observer<'a> {
    sampler: &'a mut Sampler,
    main: Main,
    pub(super) first: OsSample,
    last: OsSample,
    last_interval: OsSample,
    last_tick: Tick,
    /// The statistics that the engine last reported before the step.
    pub(super) stats_before: kv::EngineStats,
    /// Duration of the load before settling started, in seconds.
    offset: f64,
    settling: bool,
    pub(super) series: Vec<SeriesRow>,
    pub(super) intervals: Vec<IntervalRow>,
    pub(super) rss_max: Option<u64>,
    pub(super) cgroup_max: Option<u64>,
    pub(super) file_max: u64,
    pub(super) debt: Option<u64>,
    reported_bytes: Option<u64>,
}

impl<'a> Observer<'a> {
    pub(super) fn new(
        sampler: &'a mut Sampler,
        main: Main,
        stats_before: kv::EngineStats,
    ) -> Observer<'a> {
        let first = sampler.sample();
        Observer {
            sampler,
            main,
            last: first.clone(),
            last_interval: first.clone(),
            first,
            last_tick: Tick::default(),
            stats_before,
            offset: 0.0,
            settling: false,
            series: Vec::new(),
            intervals: Vec::new(),
            rss_max: None,
            cgroup_max: None,
            file_max: 0,
            debt: None,
            reported_bytes: None,
        }
    }

    /// Record that the load ended after `seconds` and settling starts.
    pub(super) fn settle(&mut self, seconds: f64) {
        self.offset = seconds;
        self.settling = true;
        self.debt = self.last_tick.stats.debt_bytes;
        self.last_tick = Tick {
            stats: self.last_tick.stats.clone(),
            ..Tick::default()
        };
    }

    /// Take a sample now, and store it as the latest.
    pub(super) fn sample(&mut self) -> OsSample {
        let mut sample = self.sampler.sample();
        // If the files of a server are not visible, use the size that it reports.
        let unseen = sample.data.is_none_or(|data| data.files == 0);
        if let Some(bytes) = self.reported_bytes.filter(|_| unseen) {
            sample.data = Some(DataSize {
                files: 0,
                length_bytes: bytes,
                allocated_bytes: bytes,
            });
        }
        let rss = sample.process.as_ref().map(|p| p.rss_bytes);
        self.rss_max = self.rss_max.max(rss);
        let memory = sample.memory.as_ref();
        let peak = memory.and_then(|m| m.peak_bytes.or(m.usage_bytes));
        self.cgroup_max = self.cgroup_max.max(peak);
        self.file_max = self
            .file_max
            .max(sample.data.map_or(0, |d| d.allocated_bytes));
        sample
    }

    /// Record the worker's report of one second.
    pub(super) fn tick(&mut self, tick: Tick) -> SeriesRow {
        self.reported_bytes = tick.file_bytes;
        let sample = self.sample();
        let row = self.row(&tick, &sample, &sample.since(&self.last));
        self.last = sample;
        self.last_tick = tick;
        self.series.push(row.clone());
        row
    }

    fn row(&self, tick: &Tick, sample: &OsSample, delta: &OsDelta) -> SeriesRow {
        let worker_seconds = (tick.t - self.last_tick.t).max(1e-3);
        let seconds = delta.elapsed.as_secs_f64().max(1e-3);
        let per_second = |now: u64, then: u64| now.saturating_sub(then) as f64 / worker_seconds;
        let rate = |n: u64| scaled(n, 1.0 / seconds);
        let cpu = delta
            .cpu_user_s
            .zip(delta.cpu_system_s)
            .map(|(u, s)| (u + s) / seconds);
        let client = tick.client_cpu_seconds - self.last_tick.client_cpu_seconds;
        let share = |us: Option<u64>| us.map(|us| us as f64 / 1e6 / seconds);
        let pressure = &delta.pressure;
        let memory = sample.memory.as_ref();
        let machine = delta.machine.as_ref();
        SeriesRow {
            t: self.offset + tick.t,
            phase: if self.settling { "settle" } else { "load" }.to_owned(),
            rows: tick.rows,
            rate: per_second(tick.rows, self.last_tick.rows),
            query_rate: per_second(tick.queries, self.last_tick.queries),
            errors: 0,
            p50_ms: tick.p50_ms,
            p99_ms: tick.p99_ms,
            max_ms: tick.max_ms,
            read_ios: delta.device.map(|d| rate(d.reads)),
            write_ios: delta.device.map(|d| rate(d.writes)),
            read_bytes: delta.device.map(|d| rate(d.read_bytes)),
            write_bytes: delta.device.map(|d| rate(d.write_bytes)),
            cpu,
            cpu_client: (!self.settling).then_some(client / worker_seconds),
            switches: delta.switches.map(|s| rate(s.voluntary + s.involuntary)),
            rss: sample.process.as_ref().map(|p| p.rss_bytes),
            cgroup_memory: memory.and_then(|m| m.usage_bytes),
            page_cache: memory.and_then(|m| m.page_cache_bytes),
            steal: machine.and_then(|m| m.steal),
            cpu_others: machine.and_then(|m| m.cpu),
            others_bytes: machine.and_then(|m| m.bytes).map(rate),
            psi_cpu: share(pressure.cpu.map(|p| p.some_us)),
            psi_io: share(pressure.io.map(|p| p.some_us)),
            psi_memory: share(pressure.memory.map(|p| p.some_us)),
            file_bytes: sample.data.map(|d| d.allocated_bytes),
            debt_bytes: tick.stats.debt_bytes,
            activity: tick.stats.activity.join("+"),
        }
    }

    /// Record an interval of the load.
    pub(super) fn interval(&mut self, interval: &Interval) {
        let sample = self.sample();
        let delta = sample.since(&self.last_interval);
        let total = sample.since(&self.first);
        let file_bytes = sample.data.map_or(0, |d| d.allocated_bytes);
        let queries = interval.queries as f64;
        let row = IntervalRow {
            interval: interval.interval,
            rows: interval.rows,
            seconds: interval.seconds,
            rate: interval.rows_written as f64 / interval.seconds.max(1e-9),
            exit_rate: interval.exit_rate,
            file_bytes,
            bytes_per_row: file_bytes as f64 / interval.rows.max(1) as f64,
            device_write_bytes: delta.device.map_or(0, |d| d.write_bytes),
            device_write_bytes_total: total.device.map_or(0, |d| d.write_bytes),
            device_read_bytes: delta.device.map_or(0, |d| d.read_bytes),
            cpu_seconds: delta.cpu_user_s.unwrap_or(0.0) + delta.cpu_system_s.unwrap_or(0.0),
            max_stall_seconds: interval.max_stall_seconds,
            query_rate: queries / interval.seconds.max(1e-9),
            query_mean_ms: interval.query_mean_ms,
            query_p99_ms: interval.query_p99_ms,
        };
        self.last_interval = sample;
        self.intervals.push(row);
    }

    /// The engine's last reported statistics.
    pub(super) fn stats(&self) -> &kv::EngineStats {
        &self.last_tick.stats
    }

    pub(super) fn main(&self) -> Main {
        self.main
    }
}

fn scaled(n: u64, factor: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive"
    )]
    let scaled = (n as f64 * factor).round() as u64;
    scaled
}

/// The name of a source of device counters in records.
pub(super) fn source_name(source: DeviceSource) -> String {
    match source {
        DeviceSource::WholeDisk => "device",
        DeviceSource::Group => "cgroup",
        _ => "none",
    }
    .to_owned()
}

/// The limits in force, as a record.
pub(super) fn envelope_record(status: &EnvelopeStatus) -> EnvelopeRecord {
    let lines = status.limits.iter().map(|limit| {
        let (effective, note) = match &limit.outcome {
            Outcome::Verified { effective } => (Some(*effective), String::new()),
            Outcome::NotCapped { reason } => (None, reason.clone()),
            Outcome::NotRequested => (None, "not asked for".to_owned()),
        };
        EnvelopeLine {
            limit: limit.limit.to_string(),
            requested: limit.requested,
            effective,
            note,
        }
    });
    EnvelopeRecord {
        mode: status.mode.to_string(),
        enforced: status.fully_enforced(),
        lines: lines.collect(),
        warnings: status.warnings.clone(),
    }
}
