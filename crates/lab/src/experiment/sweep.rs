//! Sweeps: the plans of one experiment for every combination of values of some settings.
//!
//! `--sweep NAME=VALUE,VALUE,..` names a setting of `lab run`, or an option of a target
//! (`betree:page`). Each combination is a plan of its own, so that every value is checked before
//! the first run starts.

use std::path::Path;

use lab_report::error::{Error, Result, unknown};
use lab_report::record::{
    NamedVolume, Prices, SweepAxis, SweepCell, SweepValue, TargetSpec, file_name,
};
use stdx::ByteSize;

use super::settings::Settings;
use super::{Experiment, pair, plan};
use crate::targets::{self, number_equals};

/// Maximum number of runs of a sweep.
const CELLS_MAX: usize = 200;

/// Maximum number of swept settings: more are no picture.
const AXES_MAX: usize = 4;

/// A setting that can be swept.
struct Known {
    name: &'static str,
    unit: &'static str,
    /// Sets the value; returns it as a number if it has one.
    set: fn(&mut Settings, &str) -> Result<Option<f64>, String>,
    is_set: fn(&Settings) -> bool,
}

/// A swept setting with what sets its values.
struct Swept {
    axis: SweepAxis,
    how: How,
}

enum How {
    Setting(&'static Known),
    /// An option of the targets with this engine.
    Option {
        engine: String,
        option: String,
    },
}

/// The plans of a sweep.
#[derive(Debug)]
pub struct SweepPlan {
    /// The names of the targets without their swept options.
    pub targets: Vec<String>,
    /// The swept settings.
    pub axes: Vec<SweepAxis>,
    /// The runs.
    pub cells: Vec<SweepCell>,
}

/// The plans of an experiment for each combination of the values of `asked`. `flags` are the
/// settings of the command line alone, `settings` include those of `lab.toml`.
///
/// # Errors
/// A message for a setting that cannot be swept (with those that can), is swept twice, or is set on
/// the command line too; and that of each invalid plan, which names its combination.
pub fn sweep(
    experiment: &Experiment,
    (flags, settings): (&Settings, &Settings),
    asked: &[String],
    out: &Path,
) -> Result<SweepPlan> {
    let targets = match &settings.targets {
        Some(targets) => targets.clone(),
        None => targets::parse_targets(&targets::defaults().join(","))?,
    };
    let swept = axes(asked, flags, settings, &targets).map_err(Error::usage)?;
    let runs: usize = swept.iter().map(|s| s.axis.values.len()).product();
    if CELLS_MAX < runs {
        return Err(Error::usage(format!(
            "--sweep: {runs} runs; at most {CELLS_MAX}"
        )));
    }
    let mut cells = Vec::new();
    for values in combinations(&swept) {
        let cell = cell(experiment, (settings, &targets), &swept, values, out)?;
        cells.push(SweepCell {
            directory: format!("{:03}_{}", cells.len() + 1, cell.directory),
            ..cell
        });
    }
    // A directory was numbered after its plan was made.
    for cell in &mut cells {
        if settings.data_dir.is_none() {
            let dir = out.join(&cell.directory).join("data");
            cell.plan.data_dir = std::path::absolute(&dir)
                .map_err(|e| Error::usage(format!("--out {}: {e}", out.display())))?;
        } else {
            cell.plan.data_dir = cell.plan.data_dir.join(&cell.directory);
        }
    }
    Ok(SweepPlan {
        targets: targets.into_iter().map(|t| t.name).collect(),
        axes: swept.into_iter().map(|s| s.axis).collect(),
        cells,
    })
}

/// The names of the settings that can be swept.
#[must_use]
pub fn swept_settings() -> Vec<&'static str> {
    KNOWN.iter().map(|known| known.name).collect()
}

fn cell(
    experiment: &Experiment,
    (settings, targets): (&Settings, &[TargetSpec]),
    swept: &[Swept],
    values: Vec<usize>,
    out: &Path,
) -> Result<SweepCell> {
    let mut own = Settings {
        targets: Some(targets.to_vec()),
        ..settings.clone()
    };
    let mut names = Vec::new();
    for (one, at) in swept.iter().zip(&values) {
        let value = one.axis.values.get(*at).map_or("", |v| v.text.as_str());
        set(&mut own, one, value).map_err(Error::usage)?;
        names.push((one.axis.name.as_str(), value));
    }
    if let Some(targets) = &mut own.targets {
        number_equals(targets);
    }
    let join = |between: &str, by: &str| {
        let each = names
            .iter()
            .map(|(name, value)| format!("{name}{by}{value}"));
        each.collect::<Vec<_>>().join(between)
    };
    let plan = plan(experiment, &own, out)
        .map_err(|e| e.with_message(format!("{}: {}", join(", ", " "), e.message)))?;
    Ok(SweepCell {
        directory: file_name(&join("_", "-")),
        values,
        plan,
    })
}

/// All combinations of values; those of the last setting change fastest.
fn combinations(swept: &[Swept]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for one in swept {
        let mut longer = Vec::new();
        for combination in &all {
            for value in 0..one.axis.values.len() {
                let mut with_value: Vec<usize> = combination.clone();
                with_value.push(value);
                longer.push(with_value);
            }
        }
        all = longer;
    }
    all
}

fn axes(
    asked: &[String],
    flags: &Settings,
    settings: &Settings,
    targets: &[TargetSpec],
) -> Result<Vec<Swept>, String> {
    let mut swept: Vec<Swept> = Vec::new();
    for text in asked {
        let one = axis(text, settings, targets)?;
        let name = &one.axis.name;
        if swept.iter().any(|s| s.axis.name == *name) {
            return Err(format!("--sweep {name} is given twice: write one list"));
        }
        if let How::Setting(known) = &one.how
            && (known.is_set)(flags)
        {
            return Err(format!(
                "--{name} is given and swept: leave out --{name} or --sweep {name}"
            ));
        }
        swept.push(one);
    }
    match swept.len() {
        n if AXES_MAX < n => Err(format!("--sweep: {n} settings; at most {AXES_MAX}")),
        _ => Ok(swept),
    }
}

fn axis(text: &str, settings: &Settings, targets: &[TargetSpec]) -> Result<Swept, String> {
    let (name, list) = text
        .split_once('=')
        .ok_or_else(|| format!("--sweep {text}: write NAME=VALUE,VALUE, such as cache=64M,128M"))?;
    let how = how(name, targets)?;
    let mut values = Vec::new();
    for value in list.split(',').map(str::trim) {
        if value.is_empty() {
            return Err(format!("--sweep {name}: an empty value"));
        }
        let made = make(&how, value, settings).map_err(|e| format!("--sweep {name}: {e}"))?;
        if values.iter().any(|v: &SweepValue| v.text == made.text) {
            return Err(format!("--sweep {name}: {value} is there twice"));
        }
        values.push(made);
    }
    if values.len() < 2 {
        return Err(format!(
            "--sweep {name}: a single value; write several, or set it without a sweep"
        ));
    }
    let mut axis = SweepAxis {
        name: name.to_owned(),
        unit: String::new(),
        values,
    };
    if axis.ordered() {
        axis.values.sort_by(|a, b| order(a).total_cmp(&order(b)));
    }
    axis.unit = match &how {
        How::Setting(known) => known.unit.to_owned(),
        How::Option { .. } => option_unit(&axis).to_owned(),
    };
    Ok(Swept { axis, how })
}

fn how(name: &str, targets: &[TargetSpec]) -> Result<How, String> {
    if let Some(known) = KNOWN.iter().find(|known| known.name == name) {
        return Ok(How::Setting(known));
    }
    let Some((engine, option)) = name.split_once(':') else {
        let names = swept_settings();
        let hint = "; or TARGET:OPTION, such as betree:page";
        return Err(unknown("setting to sweep", name, &names) + hint);
    };
    let own: Vec<&TargetSpec> = targets.iter().filter(|t| t.engine == engine).collect();
    if own.is_empty() {
        let engines: Vec<&str> = targets.iter().map(|t| t.engine.as_str()).collect();
        return Err(format!(
            "--sweep {name}: {}",
            unknown("target of this run", engine, &engines)
        ));
    }
    if own.iter().any(|target| target.options.contains_key(option)) {
        return Err(format!(
            "--sweep {name}: {option} is set by -t too; leave one of them out"
        ));
    }
    Ok(How::Option {
        engine: engine.to_owned(),
        option: option.to_owned(),
    })
}

/// A value, checked, with its number.
fn make(how: &How, text: &str, settings: &Settings) -> Result<SweepValue, String> {
    let mut value = SweepValue {
        text: text.to_owned(),
        number: None,
        volume: None,
    };
    match how {
        How::Setting(known) if known.name == VOLUME => {
            let prices = match &settings.prices {
                Some(named) => Prices::text(named).and_then(|text| Prices::parse(&text))?,
                None => Prices::default_prices(),
            };
            let volume = NamedVolume::parse(text, &prices)?;
            value.number = Some(volume.iops as f64);
            value.volume = Some(volume);
        }
        How::Setting(known) => value.number = (known.set)(&mut Settings::default(), text)?,
        How::Option { .. } => {
            let size = text.parse::<ByteSize>().ok();
            let size = size.map(|size| size.bytes() as f64);
            let plain = text.parse().ok().filter(|n: &f64| n.is_finite());
            value.number = plain.or(size);
        }
    }
    Ok(value)
}

/// The place of a value among others: volumes with equal operations are ordered by their bytes.
fn order(value: &SweepValue) -> f64 {
    let bytes = value.volume.as_ref().map_or(0, |v| v.bytes_per_second);
    value.number.unwrap_or(0.0) + bytes as f64 / 1e15
}

/// Bytes if a value of an option is written with a unit.
fn option_unit(axis: &SweepAxis) -> &'static str {
    let plain = |v: &SweepValue| v.text.parse::<f64>().is_ok();
    if axis.ordered() && !axis.values.iter().all(plain) {
        "B"
    } else {
        ""
    }
}

fn set(settings: &mut Settings, swept: &Swept, value: &str) -> Result<(), String> {
    match &swept.how {
        How::Setting(known) => (known.set)(settings, value).map(|_| ()),
        How::Option { engine, option } => {
            for target in settings.targets.iter_mut().flatten() {
                if target.engine == *engine {
                    *target = with_option(target, option, value)?;
                }
            }
            Ok(())
        }
    }
}

/// A target with one more option, checked like one that was written so.
fn with_option(target: &TargetSpec, option: &str, value: &str) -> Result<TargetSpec, String> {
    let options = target.options.iter().map(|(k, v)| format!("{k}={v}"));
    let options: Vec<String> = options.chain([format!("{option}={value}")]).collect();
    let text = format!("{}:{}", target.engine, options.join(","));
    let mut made = targets::parse_targets(&text)?;
    let mut made = made.pop().ok_or("an empty target")?;
    // A name that the user gave stays.
    if !target.name.starts_with(&target.engine) {
        made.name = format!("{}:{option}={value}", target.name);
    }
    Ok(made)
}

const VOLUME: &str = "volume";

/// The value as text, kept by `keep`, and as a number.
fn size(text: &str, keep: impl FnOnce(ByteSize)) -> Result<Option<f64>, String> {
    let size = text.parse::<ByteSize>()?;
    keep(size);
    Ok(Some(size.bytes() as f64))
}

fn number<T: std::str::FromStr + Copy>(
    text: &str,
    keep: impl FnOnce(T),
) -> Result<Option<f64>, String> {
    let value: T = text
        .parse()
        .map_err(|_| format!("not a number: {text:?}"))?;
    keep(value);
    Ok(text.parse().ok().filter(|n: &f64| n.is_finite()))
}

fn word<T: std::str::FromStr<Err = String>>(
    text: &str,
    keep: impl FnOnce(T),
) -> Result<Option<f64>, String> {
    keep(text.parse::<T>()?);
    Ok(None)
}

fn alone(number: u32) -> Vec<u32> {
    vec![number]
}

/// Defines a setting: its name, unit, field, and how its text is read.
macro_rules! known {
    ($name:expr, $unit:expr, $field:ident, $read:ident) => {
        known!($name, $unit, $field, $read, std::convert::identity)
    };
    ($name:expr, $unit:expr, $field:ident, $read:ident, $form:expr) => {
        Known {
            name: $name,
            unit: $unit,
            set: |settings, text| $read(text, |value| settings.$field = Some($form(value))),
            is_set: |settings| settings.$field.is_some(),
        }
    };
}

/// Every setting that can be swept.
const KNOWN: &[Known] = &[
    known!("cache", "B", cache, size),
    known!("mem", "B", mem, size),
    Known {
        name: VOLUME,
        unit: "operations/s",
        set: |settings, text| {
            settings.volume = Some(text.to_owned());
            Ok(None)
        },
        is_set: |settings| settings.volume.is_some(),
    },
    Known {
        name: "iops",
        unit: "operations/s",
        set: |settings, text| {
            let caps: (u64, u64) = pair(text)?;
            settings.iops = Some(vec![caps]);
            Ok(Some(caps.0 as f64))
        },
        is_set: |settings| settings.iops.is_some(),
    },
    Known {
        name: "bw",
        unit: "B",
        set: |settings, text| {
            let caps: (ByteSize, ByteSize) = pair(text)?;
            settings.bandwidth = Some(caps);
            Ok(Some(caps.0.bytes() as f64))
        },
        is_set: |settings| settings.bandwidth.is_some(),
    },
    known!("clients", "", clients, number, alone),
    known!("threads", "", threads, number),
    known!("rows", "rows", rows, number),
    known!("batch", "rows", batch, number),
    known!("queries", "queries/s", queries, number),
    known!("interval-ms", "ms", interval_ms, number),
    known!("codec", "", codec, word),
    known!("durability", "", durability, word),
    known!("payload", "", payload, word),
    known!("index-shape", "", shape, word),
    Known {
        name: "direct",
        unit: "",
        set: |settings, text| {
            settings.direct = Some(match text {
                "on" => true,
                "off" => false,
                _ => return Err(format!("{text:?}: use on or off")),
            });
            Ok(None)
        },
        is_set: |settings| settings.direct.is_some(),
    },
    Known {
        name: "variant",
        unit: "",
        set: |settings, text| {
            settings.variant = Some(text.to_owned());
            Ok(None)
        },
        is_set: |settings| settings.variant.is_some(),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::experiment;

    fn settings() -> Settings {
        Settings {
            targets: Some(targets::parse_targets("memory,null").unwrap()),
            ..Settings::default()
        }
    }

    fn swept(name: &str, settings: &Settings, asked: &[&str]) -> Result<SweepPlan> {
        let asked: Vec<String> = asked.iter().map(|a| (*a).to_owned()).collect();
        let flags = settings.clone();
        let experiment = experiment(name).unwrap();
        sweep(experiment, (&flags, settings), &asked, Path::new("out"))
    }

    fn fault(settings: &Settings, asked: &[&str]) -> String {
        swept("iibench-classic", settings, asked)
            .unwrap_err()
            .message
    }

    #[test]
    fn each_combination_has_its_plan_in_ascending_order() {
        let found = swept(
            "iibench-classic",
            &settings(),
            &["cache=64M,16M", "codec=none,fast"],
        )
        .unwrap();
        let directories: Vec<&str> = found.cells.iter().map(|c| c.directory.as_str()).collect();
        assert_eq!(
            directories,
            [
                "001_cache-16M_codec-none",
                "002_cache-16M_codec-fast",
                "003_cache-64M_codec-none",
                "004_cache-64M_codec-fast"
            ]
        );
        let plan = &found.cells[2].plan;
        assert_eq!(
            (plan.cache, plan.codec),
            (ByteSize::mib(64), kv::Codec::None)
        );
        assert!(plan.data_dir.ends_with("out/003_cache-64M_codec-none/data"));
        assert_eq!(
            (found.axes[0].ordered(), found.axes[1].ordered()),
            (true, false)
        );
        assert_eq!(found.axes[0].unit, "B");
        assert_eq!(found.targets, ["memory", "null"]);
        let placed = Settings {
            data_dir: Some("/elsewhere".into()),
            ..settings()
        };
        let found = swept("iibench-classic", &placed, &["cache=16M,64M"]).unwrap();
        assert!(
            found.cells[1]
                .plan
                .data_dir
                .ends_with("elsewhere/002_cache-64M")
        );
    }

    #[test]
    fn volumes_are_caps_of_operations_and_bytes() {
        let settings = Settings {
            prices: Some("aws-2018-article".to_owned()),
            ..settings()
        };
        let asked = ["volume=2xgp2,io1-5000,gp2"];
        let found = swept("iibench-classic", &settings, &asked).unwrap();
        let names: Vec<&str> = found.axes[0]
            .values
            .iter()
            .map(|v| v.text.as_str())
            .collect();
        assert_eq!(names, ["io1-5000", "gp2", "2xgp2"]);
        let limits = found.cells[1].plan.limits;
        assert_eq!(
            (limits.read_iops, limits.write_bps),
            (Some(10_000), Some(160_000_000))
        );
        // Where steps have caps of their own, the volume is the cap of one step.
        let found = swept("tpcc", &settings, &asked).unwrap();
        let plan = &found.cells[0].plan;
        assert_eq!((plan.limits.read_iops, plan.limits.read_bps), (None, None));
        let capped: Vec<_> = plan
            .steps
            .iter()
            .filter(|s| s.setting.iops.is_some())
            .collect();
        assert_eq!(capped.len(), 1);
        assert_eq!(capped[0].name, "iops-5000");
        assert_eq!(capped[0].setting.bandwidth, Some(500_000_000));
        assert_eq!(plan.volume.as_ref().unwrap().name, "io1-5000");
    }

    #[test]
    fn options_of_targets_apply_to_their_engine() {
        let found = swept("iibench-classic", &settings(), &["memory:limit=1G,2G"]).unwrap();
        let plan = &found.cells[1].plan;
        let names: Vec<&str> = plan.targets.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["memory:limit=2G", "null"]);
        assert_eq!(
            (found.axes[0].unit.as_str(), found.axes[0].ordered()),
            ("B", true)
        );
        let twice = Settings {
            targets: Some(targets::parse_targets("memory,memory").unwrap()),
            ..Settings::default()
        };
        let found = swept("iibench-classic", &twice, &["memory:limit=1G,2G"]).unwrap();
        assert_eq!(found.cells[0].plan.targets[1].name, "memory:limit=1G#2");
    }

    #[test]
    fn clients_of_steps_keep_a_common_name() {
        let found = swept("oltp-read-only", &settings(), &["clients=1,16"]).unwrap();
        let steps: Vec<&str> = found.cells[1]
            .plan
            .steps
            .iter()
            .map(|s| s.name.as_str())
            .collect();
        assert_eq!(steps, ["load", "clients-16"]);
    }

    #[test]
    fn mistakes_are_named_with_what_exists() {
        let none = settings();
        for (asked, needles) in [
            (
                &["cash=1M,2M"][..],
                &["cache", "volume", "TARGET:OPTION"][..],
            ),
            (&["cache"], &["NAME=VALUE,VALUE"]),
            (&["cache=16M"], &["a single value"]),
            (&["cache=16M,"], &["empty value"]),
            (&["cache=16M,16M"], &["twice"]),
            (&["cache=16M,lots"], &["lots"]),
            (&["cache=16M,64M", "cache=1M,2M"], &["given twice"]),
            (&["cache=16M,90G"], &["cache 90G: ", "leaves too little"]),
            (&["volume=gp2,gp9"], &["gp3", "aws-2025"]),
            (&["lmdb:trees=1,2"], &["memory, null"]),
            (&["memory:nonsense=1,2"], &["limit"]),
            (&["volume=gp2,gp3", "iops=1,2"], &["--volume", "--iops"]),
            (&["clients=1,x"], &["not a number", "x"]),
            (&["codec=fast,gzip"], &["gzip"]),
            (&["variant=a,b"], &["no variants"]),
            (&["direct=on,maybe"], &["on or off"]),
        ] {
            let message = fault(&none, asked);
            for needle in needles {
                assert!(message.contains(needle), "{asked:?}: {message}");
            }
        }
        let set = Settings {
            cache: Some(ByteSize::mib(16)),
            ..settings()
        };
        assert!(fault(&set, &["cache=16M,64M"]).contains("--cache is given and swept"));
        let fixed = swept("redo-log", &none, &["clients=1,2"])
            .unwrap_err()
            .message;
        assert!(
            fixed.contains("clients 1: redo-log sets --clients itself"),
            "{fixed}"
        );
        let many: Vec<String> = (1..=256).map(|n| n.to_string()).collect();
        let many = format!("clients={}", many.join(","));
        assert!(fault(&none, &[&many]).contains("at most 200"));
    }

    #[test]
    fn every_setting_has_an_effect_on_the_settings_it_names() {
        let examples = [
            ("cache", "16M"),
            ("mem", "1G"),
            ("volume", "gp3"),
            ("iops", "100/50"),
            ("bw", "10M"),
            ("clients", "2"),
            ("threads", "2"),
            ("rows", "5000"),
            ("batch", "10"),
            ("queries", "5"),
            ("interval-ms", "50"),
            ("codec", "none"),
            ("durability", "sync"),
            ("payload", "128:50"),
            ("index-shape", "uniform"),
            ("direct", "on"),
            ("variant", "percona"),
        ];
        assert_eq!(examples.map(|e| e.0).len(), KNOWN.len());
        for (name, value) in examples {
            let known = KNOWN.iter().find(|k| k.name == name).unwrap();
            let mut settings = Settings::default();
            assert!(!(known.is_set)(&settings), "{name}");
            (known.set)(&mut settings, value).unwrap();
            assert!((known.is_set)(&settings), "{name}");
        }
    }
}
