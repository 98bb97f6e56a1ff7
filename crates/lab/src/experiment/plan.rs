//! Turns settings into a plan, in which every number that determines the run is resolved and
//! checked.

use std::path::{Path, PathBuf};

use kv::{Codec, Durability};
use lab_report::error::{Error, Result};
use lab_report::record::{
    Cell, Limits, LoadKind, NamedVolume, P99_LIMIT_MS, Plan, Preset, Prices, StepPlan, TargetSpec,
    file_name,
};
use stdx::ByteSize;

use super::rate::{self, Rate, open_loops};
use super::settings::Settings;
use super::{Experiment, Fixed, Params, Programmed, Sizes, programmed};
use crate::targets;
use crate::workload::iibench::{Generator, RowParams};

/// Default seed of all data.
const SEED: u64 = 42;

/// Maximum times a repeat is done again: a machine that disturbs more is not fit to measure.
const REDO_MAX: u32 = 10;

/// Disk space that a store may need for each logical byte: random inserts leave B-trees about 69 %
/// full, and an LSM holds old and new runs while it merges.
const DISK_PER_BYTE: f64 = 2.5;

/// Rates assumed for the estimate of a run's duration, in rows per second.
const RATE_ASSUMED: f64 = 40_000.0;
const RATE_ASSUMED_NULL: f64 = 2_000_000.0;

/// Maximum seconds of a settle phase: 60 s plus one second per million rows, up to 1200 s.
fn settle_seconds(rows: u64) -> f64 {
    (60.0 + rows as f64 / 1e6).min(1200.0)
}

/// Resolve a run.
///
/// # Errors
/// A message for each invalid value and each target that is not available.
pub fn plan(experiment: &Experiment, settings: &Settings, out: &Path) -> Result<Plan> {
    check_fixed(experiment, settings)?;
    let volume = volume(settings)?;
    let settings = &with_caps(experiment, settings, volume.as_ref());
    let preset = settings.preset.unwrap_or(Preset::Quick);
    let mut sizes = (experiment.sizes)(preset);
    apply(&mut sizes, experiment, settings)?;
    let params = params(experiment, settings)?;
    let targets = targets(settings)?;
    let limits = limits(experiment, &sizes, settings)?;
    limits.check().map_err(|e| Error::usage(e.to_string()))?;
    let cache = cache(&sizes, settings);
    check_cache(cache, &limits)?;
    let variant = programmed::variant(experiment.name, experiment.program.as_ref(), settings)?;
    let mut steps = steps(experiment, (preset, &sizes), (&params, variant), settings)?;
    cap_bytes(
        &mut steps,
        volume.as_ref().filter(|_| is_capped(experiment)),
    );
    let repeats = settings.repeats.unwrap_or(sizes.repeats);
    let seed = settings.seed.unwrap_or(SEED);
    let rows = RowParams {
        seed,
        shape: params.shape,
        payload: params.payload,
        indexes: params.indexes,
    };
    let (described, data_bytes) = described(experiment, &sizes, variant, rows);
    let program = experiment.program.as_ref();
    let mut plan = Plan {
        experiment: experiment.name.to_owned(),
        preset,
        cells: cells(targets.len(), repeats),
        steps,
        targets,
        seed,
        repeats,
        clients: clients(experiment, settings)?,
        limits,
        volume,
        cache,
        durability: settings.durability.unwrap_or(Durability::Interval),
        interval_ms: settings.interval_ms.unwrap_or(100),
        codec: settings.codec.unwrap_or(Codec::Fast),
        direct_io: settings.direct.unwrap_or(program.is_some_and(|p| p.direct)),
        threads: settings.threads.unwrap_or(2),
        settle_max: settle_max(settings, sizes.rows),
        p99_ms: settings.p99_ms.unwrap_or(P99_LIMIT_MS),
        params: described,
        data_bytes,
        disk_bytes: whole(data_bytes as f64 * DISK_PER_BYTE) + (256 << 20),
        seconds_estimate: 0.0,
        data_dir: data_dir(settings, out)?,
        keep_data: settings.keep_data.unwrap_or(false),
        redo: settings.redo.unwrap_or(u32::from(preset != Preset::Smoke)),
    };
    check_numbers(&plan)?;
    plan.seconds_estimate = estimate(&plan);
    Ok(plan)
}

fn settle_max(settings: &Settings, rows: u64) -> f64 {
    let asked = settings.settle.filter(|s| *s != f64::INFINITY);
    asked.unwrap_or_else(|| settle_seconds(rows))
}

/// Where steps have caps of their own, those on bytes are of the same steps.
fn cap_bytes(steps: &mut [StepPlan], volume: Option<&NamedVolume>) {
    for step in steps.iter_mut().filter(|step| step.setting.iops.is_some()) {
        step.setting.bandwidth = volume.map(|volume| volume.bytes_per_second);
    }
}

/// The parameters of the workload as the plan stores them, and its logical bytes.
fn described(
    experiment: &Experiment,
    sizes: &Sizes,
    variant: &str,
    rows: RowParams,
) -> (serde_json::Value, u64) {
    match &experiment.program {
        Some(program) => {
            let spec = (program.spec)(sizes, variant, rows.seed);
            let described = serde_json::to_value(&spec).expect("plain data");
            (described, spec.data_bytes())
        }
        None => {
            let row_bytes = Generator::new(rows).logical_bytes(true);
            // Steps after the first load insert the same number of rows as they delete.
            let described = serde_json::to_value(rows).expect("plain data");
            (described, whole(row_bytes * sizes.rows as f64))
        }
    }
}

fn steps(
    experiment: &Experiment,
    (preset, sizes): (Preset, &Sizes),
    (params, variant): (&Params, &str),
    settings: &Settings,
) -> Result<Vec<StepPlan>> {
    let mut steps = match &experiment.program {
        Some(program) => asked(experiment.name, program, (sizes, variant), settings)?,
        None => (experiment.steps)(sizes, params),
    };
    let measured = rate::mixes(&steps);
    let measured: Vec<String> = measured.iter().map(|s| s.name.clone()).collect();
    for step in &mut steps {
        let mix = measured.contains(&step.name);
        pace(step, mix, settings);
        // The experiment sets the form of the step's rows, the run sets their seed.
        if let Some(rows) = step.setting.params.as_mut().and_then(|p| p.as_object_mut()) {
            let seed = settings.seed.unwrap_or(SEED);
            rows.insert("seed".to_owned(), seed.into());
        }
    }
    if settings.rate == Some(Rate::Auto) {
        let poisson = settings.poisson.unwrap_or(true);
        let open = open_loops(&steps, preset, settings.time, poisson);
        steps.extend(open);
    }
    Ok(steps)
}

/// The steps of a workload that declares its own tables, for the caps or the numbers of clients
/// that the user requested if the steps differ in them.
fn asked(
    name: &str,
    program: &Programmed,
    (sizes, variant): (&Sizes, &str),
    settings: &Settings,
) -> Result<Vec<StepPlan>> {
    Ok(match (program, &settings.iops, &settings.clients) {
        (
            Programmed {
                capped: Some(within),
                ..
            },
            Some(caps),
            _,
        ) => within(sizes, variant, &programmed::caps(name, caps)?),
        (
            Programmed {
                crowded: Some(by), ..
            },
            _,
            Some(clients),
        ) => by(sizes, variant, &programmed::crowds(clients)?),
        _ => (program.steps)(sizes, variant),
    })
}

/// The number of clients for all steps, or the experiment's default if its steps differ in it.
fn clients(experiment: &Experiment, settings: &Settings) -> Result<u32> {
    let program = experiment.program.as_ref();
    let usual = program.map_or(1, |p| p.clients);
    if program.is_some_and(|p| p.crowded.is_some()) {
        return Ok(usual);
    }
    match settings.clients.as_deref().unwrap_or(&[usual]) {
        [one] => Ok(*one),
        several => Err(Error::usage(format!(
            "--clients: {} takes one number, and {} are there: a list is for the steps of \
             oltp-read-only",
            experiment.name,
            several.len()
        ))),
    }
}

/// Reject settings that the experiment sets itself, because the run would not follow them.
fn check_fixed(experiment: &Experiment, settings: &Settings) -> Result<()> {
    if experiment.program.is_some() {
        programmed::check(experiment.name, settings)?;
    }
    for fixed in experiment.fixed {
        let (flag, set) = match fixed {
            Fixed::Durability => ("--durability", settings.durability.is_some()),
            Fixed::Clients => ("--clients", settings.clients.is_some()),
            Fixed::Rate => ("--rate", settings.rate.is_some()),
            Fixed::Codec => ("--codec", settings.codec.is_some()),
            Fixed::Payload => ("--payload", settings.payload.is_some()),
            Fixed::Batch => ("--batch", settings.batch.is_some()),
        };
        if set {
            return Err(Error::usage(format!(
                "{} sets {flag} itself, step by step: leave it out, here and in lab.toml",
                experiment.name
            )));
        }
    }
    Ok(())
}

fn apply(sizes: &mut Sizes, experiment: &Experiment, settings: &Settings) -> Result<()> {
    if let Some(scale) = settings.scale {
        if !(scale > 0.0 && scale <= 1e6) {
            return Err(Error::usage(format!(
                "--scale {scale}: must be above 0, such as 0.5"
            )));
        }
        sizes.rows = whole(sizes.rows as f64 * scale).max(1);
    }
    sizes.rows = settings.rows.unwrap_or(sizes.rows);
    if let Some(time) = settings.time {
        if !(time > 0.0 && time < 1e9) {
            return Err(Error::usage(format!(
                "--time {time}: must be above 0 seconds"
            )));
        }
        if experiment.program.is_none_or(|p| p.cut) {
            sizes.load_seconds = time;
        }
        sizes.query_seconds = time;
    }
    if sizes.rows < 1000 {
        return Err(Error::usage(format!(
            "{} rows are too few: at least 1000",
            sizes.rows
        )));
    }
    Ok(())
}

fn params(experiment: &Experiment, settings: &Settings) -> Result<Params> {
    let defaults = experiment.params;
    let params = Params {
        shape: settings.shape.unwrap_or(defaults.shape),
        payload: settings.payload.unwrap_or(defaults.payload),
        batch: settings.batch.unwrap_or(defaults.batch),
        queries: settings.queries.unwrap_or(defaults.queries),
        indexes: defaults.indexes,
    };
    if !(1..=1_000_000).contains(&params.batch) {
        return Err(Error::usage(format!(
            "--batch {}: use 1 to 1000000 rows",
            params.batch
        )));
    }
    if !(0.0..1e6).contains(&params.queries) {
        return Err(Error::usage(format!(
            "--queries {}: use 0 or more a second",
            params.queries
        )));
    }
    Ok(params)
}

fn targets(settings: &Settings) -> Result<Vec<TargetSpec>> {
    if let Some(targets) = &settings.targets {
        check_names(targets)?;
        return Ok(targets.clone());
    }
    let names = targets::defaults();
    if names.is_empty() {
        return Err(Error::usage(
            "no persistent engine is compiled in; name a target with -t",
        ));
    }
    targets::parse_targets(&names.join(","))
}

/// Check that the names of targets also differ in the names of their files.
fn check_names(targets: &[TargetSpec]) -> Result<()> {
    for (index, target) in targets.iter().enumerate() {
        let file = file_name(&target.name);
        let mut before = targets.iter().take(index);
        if before.any(|t| file_name(&t.name) == file) {
            return Err(Error::usage(format!(
                "two targets are called {:?}: give one another name",
                target.name
            )));
        }
    }
    Ok(())
}

fn data_dir(settings: &Settings, out: &Path) -> Result<PathBuf> {
    let dir = settings.data_dir.clone();
    let dir = dir.unwrap_or_else(|| out.join("data"));
    // The path is made absolute, because `lab resume` may be called from another directory.
    std::path::absolute(&dir)
        .map_err(|e| Error::usage(format!("--data-dir {:?}: {e}", dir.display().to_string())))
}

fn limits(experiment: &Experiment, sizes: &Sizes, settings: &Settings) -> Result<Limits> {
    let memory = settings.mem.unwrap_or(ByteSize::mib(sizes.memory_mib));
    let (read_iops, write_iops) = cap(experiment, settings)?.unzip();
    let (read_bps, write_bps) = settings.bandwidth.unzip();
    Ok(Limits {
        memory: (memory.bytes() > 0).then_some(memory),
        read_iops,
        write_iops,
        read_bps: read_bps.map(ByteSize::bytes),
        write_bps: write_bps.map(ByteSize::bytes),
    })
}

/// Whether the steps of an experiment have caps of their own.
fn is_capped(experiment: &Experiment) -> bool {
    let of_steps = |program: &Programmed| program.capped.is_some();
    experiment.program.as_ref().is_some_and(of_steps)
}

/// The volumes that the settings name, with the limits of the price file of the run.
fn volume(settings: &Settings) -> Result<Option<NamedVolume>> {
    let Some(named) = &settings.volume else {
        return Ok(None);
    };
    let caps = [
        ("--iops", settings.iops.is_some()),
        ("--bw", settings.bandwidth.is_some()),
    ];
    if let Some((flag, _)) = caps.into_iter().find(|(_, set)| *set) {
        return Err(Error::usage(format!(
            "--volume {named} sets {flag} as well: leave one of them out, here and in lab.toml"
        )));
    }
    let prices = match &settings.prices {
        Some(prices) => Prices::parse(&Prices::text(prices)?)?,
        None => Prices::default_prices(),
    };
    let found = NamedVolume::parse(named, &prices).map_err(Error::usage)?;
    Ok(Some(found))
}

/// The settings with the caps of the volumes. Where steps have caps of their own, these are those
/// of one step, and the others have none.
fn with_caps(
    experiment: &Experiment,
    settings: &Settings,
    volume: Option<&NamedVolume>,
) -> Settings {
    let mut settings = settings.clone();
    if let Some(volume) = volume {
        settings.iops = Some(vec![(volume.iops, volume.iops)]);
        let bytes = ByteSize(volume.bytes_per_second);
        settings.bandwidth = (!is_capped(experiment)).then_some((bytes, bytes));
    }
    settings
}

/// The cap on operations for all steps; `None` if the steps have caps of their own.
fn cap(experiment: &Experiment, settings: &Settings) -> Result<Option<(u64, u64)>> {
    if is_capped(experiment) {
        return Ok(None);
    }
    match settings.iops.as_deref().unwrap_or_default() {
        [] => Ok(None),
        [one] => Ok(Some(*one)),
        several => Err(Error::usage(format!(
            "--iops: {} takes one cap, and {} are there: a list is for the steps of tpcc",
            experiment.name,
            several.len()
        ))),
    }
}

/// The preset's cache size or, with a different memory cap, the same share of that cap.
fn cache(sizes: &Sizes, settings: &Settings) -> ByteSize {
    let preset = ByteSize::mib(sizes.cache_mib);
    settings.cache.unwrap_or(match settings.mem {
        Some(memory) if memory.bytes() > 0 => {
            let share = sizes.cache_mib as f64 / sizes.memory_mib as f64;
            ByteSize(whole(memory.bytes() as f64 * share))
        }
        _ => preset,
    })
}

fn check_cache(cache: ByteSize, limits: &Limits) -> Result<()> {
    if cache < ByteSize::mib(8) {
        return Err(Error::usage(format!("--cache {cache}: at least 8M")));
    }
    match limits.memory {
        Some(memory) if cache.bytes() > memory.bytes() / 4 * 3 => Err(Error::usage(format!(
            "--cache {cache} leaves too little of --mem {memory} for everything else: at most \
             three quarters of it"
        ))),
        _ => Ok(()),
    }
}

fn check_numbers(plan: &Plan) -> Result<()> {
    let fault = |text: String| Err(Error::usage(text));
    if REDO_MAX < plan.redo {
        return fault(format!("--redo {}: use 0 to {REDO_MAX}", plan.redo));
    }
    if !(1..=1000).contains(&plan.repeats) {
        return fault(format!("--repeats {}: use 1 to 1000", plan.repeats));
    }
    if !(1..=256).contains(&plan.clients) {
        return fault(format!("--clients {}: use 1 to 256", plan.clients));
    }
    if !(1..=256).contains(&plan.threads) {
        return fault(format!("--threads {}: use 1 to 256", plan.threads));
    }
    if !(1..=3_600_000).contains(&plan.interval_ms) {
        return fault(format!(
            "--interval-ms {}: use 1 to 3600000",
            plan.interval_ms
        ));
    }
    if !(0.0..1e9).contains(&plan.settle_max) {
        return fault(format!(
            "--settle {}: use 0 or more seconds",
            plan.settle_max
        ));
    }
    if !(plan.p99_ms > 0.0 && plan.p99_ms < 1e9) {
        return fault(format!("--p99 {}: milliseconds, above 0", plan.p99_ms));
    }
    for step in &plan.steps {
        if let LoadKind::Open { rate, .. } = step.load
            && step.setting.share.is_none()
            && !(rate > 0.0 && rate < 1e9)
        {
            return fault(format!(
                "--rate {rate}: rows or operations per second, above 0"
            ));
        }
    }
    Ok(())
}

/// `--rate` applies to measured load steps and mixes; query steps are closed-loop by definition.
fn pace(step: &mut StepPlan, mix: bool, settings: &Settings) {
    let loads = step.work.get("work").and_then(|w| w.as_str()) == Some("load");
    if let Some(Rate::PerSecond(rate)) = settings.rate.filter(|_| loads || mix) {
        step.load = LoadKind::Open {
            rate,
            poisson: settings.poisson.unwrap_or(true),
        };
    }
    if settings.settle == Some(0.0) {
        step.settle = false;
    }
}

/// The order of the cells, interleaved: A B C, C B A, A B C, so that drift of the machine affects
/// all targets alike.
fn cells(targets: usize, repeats: u32) -> Vec<Cell> {
    let mut cells = Vec::new();
    for repeat in 1..=repeats {
        let mut round: Vec<Cell> = (0..targets).map(|target| Cell { target, repeat }).collect();
        if repeat % 2 == 0 {
            round.reverse();
        }
        cells.extend(round);
    }
    cells
}

fn estimate(plan: &Plan) -> f64 {
    let mut sum = 0.0;
    for cell in &plan.cells {
        let null = plan
            .targets
            .get(cell.target)
            .is_some_and(|t| t.engine == "null");
        let rate = if null {
            RATE_ASSUMED_NULL
        } else {
            RATE_ASSUMED
        };
        for step in &plan.steps {
            let work = match step.operations {
                0 => step.seconds_max,
                n => (n as f64 / rate).min(step.seconds_max),
            };
            // Settling and checking together take at most about as long as the work.
            sum += work * 1.3 + 2.0;
        }
    }
    sum
}

/// The whole part of a positive number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive; saturates"
)]
pub(super) fn whole(x: f64) -> u64 {
    x as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::experiment;

    fn settings() -> Settings {
        Settings {
            targets: Some(targets::parse_targets("null,memory").unwrap()),
            ..Settings::default()
        }
    }

    fn fault(change: impl FnOnce(&mut Settings)) -> String {
        let mut settings = settings();
        change(&mut settings);
        let experiment = experiment("iibench-classic").unwrap();
        plan(experiment, &settings, Path::new("out"))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn repeats_are_interleaved() {
        let order: Vec<(usize, u32)> = cells(2, 3).iter().map(|c| (c.target, c.repeat)).collect();
        assert_eq!(order, [(0, 1), (1, 1), (1, 2), (0, 2), (0, 3), (1, 3)]);
    }

    #[test]
    fn every_preset_of_every_experiment_resolves() {
        for experiment in super::super::experiments() {
            for preset in Preset::ALL {
                let settings = Settings {
                    preset: Some(preset),
                    ..settings()
                };
                let plan = plan(experiment, &settings, Path::new("out")).unwrap();
                assert!(plan.seconds_estimate > 0.0 && plan.data_bytes > 0);
                assert!(!plan.steps.is_empty());
            }
        }
    }

    #[test]
    fn data_outgrow_memory_four_times_where_the_shape_is_judged() {
        for preset in [Preset::Quick, Preset::Standard, Preset::Published] {
            let settings = Settings {
                preset: Some(preset),
                ..settings()
            };
            let experiment = experiment("iibench-classic").unwrap();
            let plan = plan(experiment, &settings, Path::new("out")).unwrap();
            let memory = plan.limits.memory.unwrap().bytes();
            assert!(plan.data_bytes >= 4 * memory, "{preset}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        assert!(fault(|s| s.mem = Some(ByteSize::mib(1))).contains("64"));
        assert!(fault(|s| s.cache = Some(ByteSize::mib(250))).contains("--cache"));
        assert!(fault(|s| s.scale = Some(0.0)).contains("--scale"));
        assert!(fault(|s| s.repeats = Some(0)).contains("--repeats"));
        assert!(fault(|s| s.redo = Some(11)).contains("--redo"));
        assert!(fault(|s| s.batch = Some(0)).contains("--batch"));
        assert!(fault(|s| s.rate = Some(Rate::PerSecond(-1.0))).contains("--rate"));
        assert!(fault(|s| s.rows = Some(5)).contains("too few"));
    }

    #[test]
    fn another_cap_brings_its_share_of_cache() {
        let experiment = experiment("iibench-classic").unwrap();
        let with = |mem, cache| {
            let settings = Settings {
                mem,
                cache,
                ..settings()
            };
            plan(experiment, &settings, Path::new("out")).unwrap().cache
        };
        assert_eq!(with(None, None), ByteSize::mib(128));
        assert_eq!(with(Some(ByteSize::mib(100)), None), ByteSize::mib(50));
        assert_eq!(with(Some(ByteSize(0)), None), ByteSize::mib(128));
        let small = Some(ByteSize::mib(16));
        assert_eq!(with(Some(ByteSize::mib(100)), small), ByteSize::mib(16));
    }

    #[test]
    fn steps_are_those_of_the_clients_asked_for() {
        let of = |name: &str, clients: &[u32]| {
            let settings = Settings {
                clients: Some(clients.to_vec()),
                ..settings()
            };
            let made = plan(experiment(name).unwrap(), &settings, Path::new("out"));
            made.map_err(|e| e.to_string())
        };
        let oltp = of("oltp-read-only", &[16, 1]).unwrap();
        let names: Vec<&str> = oltp.steps.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["load", "clients-1", "clients-16"]);
        let usual = plan(
            experiment("oltp-read-only").unwrap(),
            &settings(),
            Path::new("out"),
        );
        assert_eq!(oltp.clients, usual.unwrap().clients);
        let refused = |name: &str, clients: &[u32]| of(name, clients).unwrap_err();
        assert!(refused("oltp-read-only", &[4, 4]).contains("4 is there twice"));
        assert!(refused("oltp-read-only", &[0]).contains("use 1 to 2048"));
        assert!(refused("tpcc", &[1, 2]).contains("tpcc takes one number"));
        assert!(refused("redo-log", &[1]).contains("sets --clients itself"));
        assert_eq!(of("linkbench", &[3]).unwrap().clients, 3);
    }

    #[test]
    fn steps_are_named_after_the_caps_asked_for() {
        let of = |name: &str, iops: &[(u64, u64)]| {
            let settings = Settings {
                iops: Some(iops.to_vec()),
                preset: Some(Preset::Smoke),
                ..settings()
            };
            plan(experiment(name).unwrap(), &settings, Path::new("out"))
        };
        let plan = of("tpcc", &[(300, 300), (1000, 1000)]).unwrap();
        let steps = plan.steps.iter().map(|s| (s.name.as_str(), s.setting.iops));
        let wanted = [
            ("load", None),
            ("no-cap", None),
            ("iops-1000", Some(1000)),
            ("iops-300", Some(300)),
        ];
        assert_eq!(steps.collect::<Vec<_>>(), wanted);
        assert_eq!(
            (plan.limits.read_iops, plan.limits.write_iops),
            (None, None)
        );
        let fault = |name: &str, iops: &[(u64, u64)]| of(name, iops).unwrap_err().to_string();
        assert!(fault("tpcc", &[(300, 200)]).contains("300/200"));
        assert!(fault("tpcc", &[(300, 300), (300, 300)]).contains("300 is there twice"));
        assert!(fault("tpcc", &[(0, 0)]).contains("limit of 0"));
        assert!(fault("iibench-classic", &[(300, 300), (200, 200)]).contains("one cap"));
    }

    #[test]
    fn settings_reach_the_plan() {
        let settings = Settings {
            rows: Some(5000),
            iops: Some(vec![(100, 200)]),
            rate: Some(Rate::PerSecond(1000.0)),
            settle: Some(0.0),
            ..settings()
        };
        let experiment = experiment("iibench-classic").unwrap();
        let plan = plan(experiment, &settings, Path::new("out")).unwrap();
        assert_eq!(plan.steps[0].operations, 5000);
        assert_eq!(plan.limits.write_iops, Some(200));
        assert!(matches!(plan.steps[0].load, LoadKind::Open { .. }));
        assert!(!plan.steps[0].settle);
    }
}
