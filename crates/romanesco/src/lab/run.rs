//! `romanesco lab run`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use kv::{Codec, Durability};
use lab::experiment::{self, Rate, Settings, SweepPlan};
use lab::run::Begin;
use lab::workload::iibench::{Payload, Shape};
use lab::{display, targets};
use lab_report::record::{Plan, Preset, Prices};
use lab_report::{Error, Result, store};
use stdx::ByteSize;

use super::run_all::All;
use super::run_sweep::{self, Means};
use super::{Show, Switch, conclude, listen, program};

/// The name that selects all experiments.
const ALL: &str = "all";

/// The default settings file, in the current directory.
const CONFIG: &str = "lab.toml";

#[derive(clap::Args)]
#[command(
    after_help = "Settings come from flags, then LAB_* variables, then lab.toml, then the \
preset.\n\nExample: romanesco lab run iibench-classic -t betree,rocksdb:compaction=universal \
--preset quick --mem 256M --out out/first"
)]
pub(crate) struct Args {
    /// Experiment to run (see `lab list`), or `all`
    experiment: Option<String>,
    /// Targets to measure, separated by commas: ENGINE or ENGINE:option=value
    /// [default: every persistent engine compiled in]
    #[arg(short, long, env = "LAB_TARGETS")]
    targets: Option<String>,
    /// Size of the experiment: smoke (20 s), quick (2-5 min), standard (about an hour) or
    /// published (days) [default: quick]
    #[arg(long, env = "LAB_PRESET")]
    preset: Option<Preset>,
    /// Factor by which the preset's number of rows is multiplied [default: 1]
    #[arg(long, env = "LAB_SCALE")]
    scale: Option<f64>,
    /// Number of rows in the initial load [default: the preset's]
    #[arg(long, env = "LAB_ROWS")]
    rows: Option<u64>,
    /// Memory limit per target, for engine and page cache together; 0 for no limit
    /// [default: the preset's]
    #[arg(long, env = "LAB_MEM", value_name = "SIZE")]
    mem: Option<ByteSize>,
    /// Memory for the engine's cache and write buffers [default: the preset's]
    #[arg(long, env = "LAB_CACHE", value_name = "SIZE")]
    cache: Option<ByteSize>,
    /// Limit of I/O operations per second, reads/writes: 1000 or 1000/500; for tpcc one limit per
    /// step: 2000,500 [default: the preset's]
    #[arg(long, env = "LAB_IOPS", value_name = "R[/W]", value_delimiter = ',',
          value_parser = experiment::pair::<u64>)]
    iops: Option<Vec<(u64, u64)>>,
    /// Limit of I/O bytes per second, reads/writes: 125M or 125M/60M [default: no limit]
    #[arg(long, env = "LAB_BW", value_name = "R[/W]", value_parser = experiment::pair::<ByteSize>)]
    bw: Option<(ByteSize, ByteSize)>,
    /// Volume whose operations and bytes per second are the limits, of the price list: gp2,
    /// io1-5000, gp3-6000-250 or 2xgp2 (see `lab list volumes`) [default: no limit]
    #[arg(long, env = "LAB_VOLUME", value_name = "NAME")]
    volume: Option<String>,
    /// Bypass the page cache where the engine supports it
    #[arg(long, env = "LAB_DIRECT")]
    direct: Option<Switch>,
    /// When commits are synced to the log: sync, group, interval or none [default: interval]
    #[arg(long, env = "LAB_DURABILITY")]
    durability: Option<Durability>,
    /// Milliseconds between log syncs with --durability interval [default: 100]
    #[arg(long, env = "LAB_INTERVAL_MS", value_name = "MS")]
    interval_ms: Option<u64>,
    /// Number of client threads; for oltp-read-only a list, one step each [default: 1]
    #[arg(long, env = "LAB_CLIENTS", value_name = "N", value_delimiter = ',')]
    clients: Option<Vec<u32>>,
    /// Number of background threads of the engine [default: 2]
    #[arg(long, env = "LAB_THREADS")]
    threads: Option<u32>,
    /// Arrival rate (open loop): rows, transactions (tpcc, oltp-read-only) or requests (linkbench,
    /// ycsb) per second; `max` for a closed loop at full speed; `auto` to search for the highest
    /// sustained rate [default: max]
    #[arg(long, env = "LAB_RATE")]
    rate: Option<Rate>,
    /// Distribution of arrival times in open loops: poisson or uniform [default: poisson]
    #[arg(long, env = "LAB_ARRIVAL", value_parser = arrival)]
    arrival: Option<bool>,
    /// Highest p99 latency at which a rate counts as sustained, in milliseconds [default: 100]
    #[arg(long, env = "LAB_P99", value_name = "MS")]
    p99: Option<f64>,
    /// Maximum duration of each step, in seconds [default: the preset's]
    #[arg(long, env = "LAB_TIME", value_name = "SECONDS")]
    time: Option<f64>,
    /// Number of runs per target, interleaved (A B B A) [default: 1]
    #[arg(long, env = "LAB_REPEATS")]
    repeats: Option<u32>,
    /// Number of times that a repeat is run again if other programs disturbed it; 0 to keep it
    /// [default: 1; at smoke 0]
    #[arg(long, env = "LAB_REDO", value_name = "N")]
    redo: Option<u32>,
    /// Random seed of the generated data [default: 42]
    #[arg(long, env = "LAB_SEED")]
    seed: Option<u64>,
    /// Maximum duration of a settle phase, in seconds; 0 for none; `auto` for 60 s plus 1 s per
    /// million rows
    #[arg(long, env = "LAB_SETTLE", value_parser = settle)]
    settle: Option<f64>,
    /// Compression of the engine's pages: fast or none [default: fast]
    #[arg(long, env = "LAB_CODEC")]
    codec: Option<Codec>,
    /// Payload length in bytes and its constant (compressible) share in percent: 128:50, or
    /// MIN-MAX:PERCENT
    #[arg(long, env = "LAB_PAYLOAD")]
    payload: Option<Payload>,
    /// Distribution of secondary index keys: classic, current or uniform
    #[arg(long, env = "LAB_INDEX_SHAPE")]
    index_shape: Option<Shape>,
    /// Number of rows per transaction
    #[arg(long, env = "LAB_BATCH")]
    batch: Option<u32>,
    /// Range queries per second during the load, starting in its third interval [default: 0]
    #[arg(long, env = "LAB_QUERIES")]
    queries: Option<f64>,
    /// Variant of the workload: spec or percona (tpcc), facebook or callaghan (linkbench),
    /// thousand, full or disk (many-tables), zipfian, uniform, latest, hotspot, 100-bytes, 10-kb or
    /// 100-kb (ycsb)
    #[arg(long, env = "LAB_VARIANT", value_name = "NAME")]
    variant: Option<String>,
    /// Repeat an article: its experiment, rows (by --scale), memory, caps and engines (see `lab
    /// list articles`)
    #[arg(long = "as", value_name = "ARTICLE")]
    article: Option<String>,
    /// Run once for each value of a setting: NAME=VALUE,VALUE, such as cache=64M,128M,
    /// volume=gp2,io1-5000,2xgp2, clients=1,4,16, codec=none,fast or an option of a target
    /// (betree:page=8K,16K); several settings give every combination
    #[arg(long, value_name = "NAME=LIST")]
    sweep: Vec<String>,
    /// Price list for the report: a name from `lab list prices` or a TOML file [default: aws-2025]
    #[arg(long, env = "LAB_PRICES", value_name = "NAME|FILE")]
    prices: Option<String>,
    /// Results directory [default: results/TIME_EXPERIMENT]
    #[arg(long, env = "LAB_OUT", value_name = "DIR")]
    out: Option<PathBuf>,
    /// Directory for the engines' data files [default: OUT/data]
    #[arg(long, env = "LAB_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Keep the engines' data files after the run
    #[arg(long)]
    keep_data: bool,
    /// Read settings from this TOML file [default: lab.toml, if it exists]
    #[arg(long, env = "LAB_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the plan (steps, disk need, estimated time) and stop
    #[arg(long)]
    dry_run: bool,
    /// Run even if the estimated disk need exceeds the free space
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    show: Show,
}

pub(crate) fn run(args: Args) -> Result<u8> {
    let (show, dry_run, force) = (args.show, args.dry_run, args.force);
    let file = config(args.config.as_deref())?;
    let (article, mut sweep) = (args.article.clone(), args.sweep.clone());
    let mut flags = args.settings()?;
    if let Some(article) = article {
        (flags, sweep) = experiment::as_article(&article, flags, &sweep)?;
    }
    let settings = flags.clone().or(file);
    let name = settings.experiment.clone().ok_or_else(|| {
        Error::usage("no experiment given; try `romanesco lab run iibench-classic`")
    })?;
    if name == ALL {
        if !sweep.is_empty() {
            return Err(Error::usage(
                "--sweep is for one experiment; `lab run all` runs each of them once",
            ));
        }
        let all = All {
            out: settings.out.clone().unwrap_or_else(|| default_out(&name)),
            command: env::args().collect(),
            program: program()?,
            prices: prices(settings.prices.as_deref())?,
            force,
            dry_run,
            show,
        };
        return all.run(&settings, &listen()?);
    }
    let experiment = experiment::experiment(&name)?;
    let out = settings.out.clone().unwrap_or_else(|| default_out(&name));
    if !sweep.is_empty() {
        let plan = experiment::sweep(experiment, (&flags, &settings), &sweep, &out)?;
        let means = Means {
            out: &out,
            program: program()?,
            force,
            show,
        };
        return swept(&name, plan, &means, dry_run, settings.prices.as_deref());
    }
    let plan = experiment::plan(experiment, &settings, &out)?;
    let prices = prices(settings.prices.as_deref())?;
    one(plan, &out, prices, (dry_run, force, show))
}

/// Run a plan, or print it.
fn one(
    plan: Plan,
    out: &Path,
    prices: Option<String>,
    (dry_run, force, show): (bool, bool, Show),
) -> Result<u8> {
    if dry_run {
        if show.json {
            say!("{}", serde_json::json!({ "event": "plan", "plan": plan }));
        } else {
            say!("{}", display::plan_text(&plan));
        }
        return Ok(0);
    }
    lab::run::own_mounts(&plan)?;
    let interrupt = listen()?;
    let begin = Begin {
        out,
        command: env::args().collect(),
        commit: env!("ROMANESCO_COMMIT").to_owned(),
        program: program()?,
        force,
        prices,
    };
    let mut display = show.display();
    let summary = lab::run::run(plan, begin, display.as_mut(), &interrupt)?;
    drop(display);
    conclude(out, &summary, show)
}

/// Run a sweep, or print its plans.
fn swept(
    name: &str,
    plan: SweepPlan,
    means: &Means<'_>,
    dry_run: bool,
    named: Option<&str>,
) -> Result<u8> {
    if dry_run {
        for cell in &plan.cells {
            if means.show.json {
                say!(
                    "{}",
                    serde_json::json!({ "event": "plan", "plan": cell.plan })
                );
            } else {
                say!("{}\n{}\n", cell.directory, display::plan_text(&cell.plan));
            }
        }
        return Ok(0);
    }
    let sweep = run_sweep::record(name, plan, env::args().collect(), prices(named)?);
    let interrupt = listen()?;
    store::create_sweep(means.out, &sweep)?;
    means.run(&sweep, &interrupt)
}

impl Args {
    fn settings(self) -> Result<Settings> {
        let targets = self
            .targets
            .as_deref()
            .map(targets::parse_targets)
            .transpose()?;
        Ok(Settings {
            preset: self.preset,
            scale: self.scale,
            rows: self.rows,
            mem: self.mem,
            cache: self.cache,
            iops: self.iops,
            bandwidth: self.bw,
            volume: self.volume,
            direct: self.direct.map(|s| s == Switch::On),
            durability: self.durability,
            interval_ms: self.interval_ms,
            clients: self.clients,
            threads: self.threads,
            rate: self.rate,
            poisson: self.arrival,
            p99_ms: self.p99,
            time: self.time,
            repeats: self.repeats,
            redo: self.redo,
            seed: self.seed,
            settle: self.settle,
            codec: self.codec,
            payload: self.payload,
            shape: self.index_shape,
            batch: self.batch,
            queries: self.queries,
            variant: self.variant,
            out: self.out,
            data_dir: self.data_dir,
            keep_data: self.keep_data.then_some(true),
            prices: self.prices,
            experiment: self.experiment,
            targets,
        })
    }
}

/// The text of the price list `named`, which has been parsed without errors.
fn prices(named: Option<&str>) -> Result<Option<String>> {
    let Some(named) = named else { return Ok(None) };
    let text = Prices::text(named)?;
    Prices::parse(&text)?;
    Ok(Some(text))
}

fn config(named: Option<&Path>) -> Result<Settings> {
    let path = named.unwrap_or(Path::new(CONFIG));
    if named.is_none() && !path.exists() {
        return Ok(Settings::default());
    }
    let text = fs::read_to_string(path).map_err(|e| Error::io("read", path, &e))?;
    Settings::from_toml(&text).map_err(|e| Error::usage(format!("{}: {e}", path.display())))
}

fn default_out(experiment: &str) -> PathBuf {
    let time = lab_report::store::now_text().replace([':', '-'], "");
    let process = std::process::id() & 0xFFFF;
    Path::new("results").join(format!("{time}_{experiment}_{process:04x}"))
}

fn settle(text: &str) -> Result<f64, String> {
    if text == "auto" {
        return Ok(f64::INFINITY);
    }
    number(text).ok_or_else(|| format!("not a time: {text:?}; use seconds, or auto"))
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|n: &f64| n.is_finite())
}

fn arrival(text: &str) -> Result<bool, String> {
    match text {
        "poisson" => Ok(true),
        "uniform" => Ok(false),
        _ => Err(format!(
            "not an arrival process: {text:?}; use poisson or uniform"
        )),
    }
}
