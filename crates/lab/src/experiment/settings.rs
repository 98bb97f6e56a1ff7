//! Settings of a run, from flags, `LAB_*` variables or `lab.toml`; the preset provides the rest.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

use kv::{Codec, Durability};
use lab_report::record::{Preset, TargetSpec};
use serde::{Deserialize, Deserializer};
use stdx::ByteSize;

use super::Rate;
use crate::targets::number_equals;
use crate::workload::iibench::{Payload, Shape};

/// The settings. `None` means that the value comes from the next source, in the order flag,
/// variable, `lab.toml`, preset.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The preset (default quick).
    pub preset: Option<Preset>,
    /// Factor for the number of rows of the preset.
    pub scale: Option<f64>,
    /// Rows of the first load.
    pub rows: Option<u64>,
    /// The memory cap; 0 for no cap.
    pub mem: Option<ByteSize>,
    /// Memory for the engine's cache and write buffers.
    pub cache: Option<ByteSize>,
    /// Caps on reads and writes per second: one pair, or several if the steps differ in them.
    pub iops: Option<Vec<(u64, u64)>>,
    /// Read and write bandwidth caps in bytes per second.
    pub bandwidth: Option<(ByteSize, ByteSize)>,
    /// The volumes whose operations and bytes per second are the caps.
    pub volume: Option<String>,
    /// Direct I/O.
    pub direct: Option<bool>,
    /// Durability of each commit (default interval).
    pub durability: Option<Durability>,
    /// Log sync interval in milliseconds.
    pub interval_ms: Option<u64>,
    /// Number of load threads: one number, or several if the steps differ in it.
    pub clients: Option<Vec<u32>>,
    /// Engine background threads.
    pub threads: Option<u32>,
    /// Rate of loads and mixes (default: `max`).
    pub rate: Option<Rate>,
    /// Whether arrivals in open loops are a Poisson process.
    pub poisson: Option<bool>,
    /// Maximum p99 at which a rate counts as sustained, in milliseconds (default 100).
    pub p99_ms: Option<f64>,
    /// Maximum seconds of a load step.
    pub time: Option<f64>,
    /// Number of repeats.
    pub repeats: Option<u32>,
    /// Times that a disturbed repeat is done again.
    pub redo: Option<u32>,
    /// The seed.
    pub seed: Option<u64>,
    /// Maximum duration of a settle phase, in seconds. 0: no settling; infinite: computed from the
    /// number of rows (the default).
    pub settle: Option<f64>,
    /// Compression class.
    pub codec: Option<Codec>,
    /// The payload.
    pub payload: Option<Payload>,
    /// The shape of the index keys.
    pub shape: Option<Shape>,
    /// Rows in one transaction.
    pub batch: Option<u32>,
    /// Range queries per second during the load.
    pub queries: Option<f64>,
    /// The variant of the experiment's workload.
    pub variant: Option<String>,
    /// The results directory.
    pub out: Option<PathBuf>,
    /// Directory of the engines' data.
    pub data_dir: Option<PathBuf>,
    /// Keep the engines' data.
    pub keep_data: Option<bool>,
    /// Name of a built-in price list, or path of a price file.
    pub prices: Option<String>,
    /// The experiment, if the command line names none.
    pub experiment: Option<String>,
    /// The targets, if the command line names none.
    pub targets: Option<Vec<TargetSpec>>,
}

/// Builds settings whose fields are those of `a` where they are set, else those of `b`.
macro_rules! first_of {
    ($a:expr, $b:expr, $($field:ident),+ $(,)?) => {
        Settings { $($field: $a.$field.or($b.$field)),+ }
    };
}

impl Settings {
    /// These settings, with values that are not set taken from `lower`.
    #[must_use]
    pub fn or(self, lower: Settings) -> Settings {
        first_of!(
            self,
            lower,
            preset,
            scale,
            rows,
            mem,
            cache,
            iops,
            bandwidth,
            volume,
            direct,
            durability,
            interval_ms,
            clients,
            threads,
            rate,
            poisson,
            p99_ms,
            time,
            repeats,
            redo,
            seed,
            settle,
            codec,
            payload,
            shape,
            batch,
            queries,
            variant,
            out,
            data_dir,
            keep_data,
            prices,
            experiment,
            targets,
        )
    }

    /// Read `lab.toml`. Unknown keys are errors.
    ///
    /// # Errors
    /// A message with the line.
    pub fn from_toml(text: &str) -> Result<Settings, String> {
        let file: File = toml::from_str(text).map_err(|e| sentence(text, &e))?;
        let targets = if file.target.is_empty() {
            None
        } else {
            let all = file.target.into_iter().map(Target::spec);
            let mut all = all.collect::<Result<Vec<_>, _>>()?;
            number_equals(&mut all);
            Some(all)
        };
        let (run, limits) = (file.run, file.limits);
        let experiment = match run.experiments.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            _ => return Err("run.experiments: one experiment at a time".to_owned()),
        };
        Ok(Settings {
            preset: run.preset.map(|p| p.0),
            scale: run.scale,
            rows: run.rows,
            mem: limits.mem,
            cache: limits.cache,
            iops: limits.iops.map(|caps| caps.0),
            bandwidth: limits.bw.map(|[r, w]| (r, w)),
            volume: limits.volume,
            direct: run.direct,
            durability: run.durability.map(|d| d.0),
            interval_ms: run.interval_ms,
            clients: run.clients.map(|clients| clients.0),
            threads: run.threads,
            rate: run.rate,
            poisson: run.poisson,
            p99_ms: run.p99_ms,
            time: run.time,
            repeats: run.repeats,
            redo: run.redo,
            seed: run.seed,
            settle: run.settle,
            codec: run.codec.map(|c| c.0),
            payload: run.payload.map(|p| p.0),
            shape: run.index_shape.map(|s| s.0),
            batch: run.batch,
            queries: run.queries,
            variant: run.variant,
            out: run.out,
            data_dir: run.data_dir,
            keep_data: run.keep_data,
            prices: file.prices.named,
            experiment,
            targets,
        })
    }
}

/// The error of the parser as a single line.
fn sentence(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map_or(String::new(), |b| {
        format!("line {}: ", b.matches('\n').count() + 1)
    });
    format!("{line}{}", error.message().replace('\n', "; "))
}

/// A value that the file contains as text.
#[derive(Clone, Debug)]
struct Text<T>(T);

impl<'de, T: std::str::FromStr<Err = String>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text<T>, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Text).map_err(serde::de::Error::custom)
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    run: Run,
    limits: Limits,
    prices: NamedPrices,
    target: Vec<Target>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct NamedPrices {
    #[serde(rename = "use")]
    named: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct Run {
    experiments: Vec<String>,
    preset: Option<Text<Preset>>,
    scale: Option<f64>,
    rows: Option<u64>,
    direct: Option<bool>,
    durability: Option<Text<Durability>>,
    interval_ms: Option<u64>,
    clients: Option<Clients>,
    threads: Option<u32>,
    rate: Option<Rate>,
    poisson: Option<bool>,
    p99_ms: Option<f64>,
    time: Option<f64>,
    repeats: Option<u32>,
    redo: Option<u32>,
    seed: Option<u64>,
    settle: Option<f64>,
    codec: Option<Text<Codec>>,
    payload: Option<Text<Payload>>,
    index_shape: Option<Text<Shape>>,
    batch: Option<u32>,
    queries: Option<f64>,
    variant: Option<String>,
    out: Option<PathBuf>,
    data_dir: Option<PathBuf>,
    keep_data: Option<bool>,
}

/// Caps on operations: one number for reads and writes, or text in the syntax of `--iops`.
struct Caps(Vec<(u64, u64)>);

impl<'de> Deserialize<'de> for Caps {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Caps, D::Error> {
        #[derive(Deserialize)]
        #[serde(
            untagged,
            expecting = "expected [reads, writes], or a text such as \"2000,500\""
        )]
        enum Written {
            Pair([u64; 2]),
            List(String),
        }
        Ok(Caps(match Written::deserialize(deserializer)? {
            Written::Pair([reads, writes]) => vec![(reads, writes)],
            Written::List(text) => {
                let caps = text.split(',').map(|cap| pair(cap.trim()));
                caps.collect::<Result<_, _>>()
                    .map_err(serde::de::Error::custom)?
            }
        }))
    }
}

/// Numbers of clients: one number, or text in the syntax of `--clients`.
struct Clients(Vec<u32>);

impl<'de> Deserialize<'de> for Clients {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Clients, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a number, or a list such as [1, 16]")]
        enum Written {
            One(u32),
            List(Vec<u32>),
        }
        Ok(Clients(match Written::deserialize(deserializer)? {
            Written::One(one) => vec![one],
            Written::List(list) => list,
        }))
    }
}

/// Parse `READS/WRITES`, or one value for both.
///
/// # Errors
/// A message that quotes the invalid value.
pub fn pair<T: FromStr + Clone>(text: &str) -> Result<(T, T), String> {
    let (read, write) = text.split_once('/').unwrap_or((text, text));
    let one = |part: &str| part.parse().map_err(|_| format!("not a number: {part:?}"));
    Ok((one(read)?, one(write)?))
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Limits {
    mem: Option<ByteSize>,
    cache: Option<ByteSize>,
    iops: Option<Caps>,
    bw: Option<[ByteSize; 2]>,
    volume: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Target {
    name: Option<String>,
    kind: Option<String>,
    engine: String,
    #[serde(default)]
    options: BTreeMap<String, String>,
}

impl Target {
    fn spec(self) -> Result<TargetSpec, String> {
        let kinds = ["embedded", "serve", "mongodb"];
        if let Some(kind) = self.kind.filter(|k| !kinds.contains(&k.as_str())) {
            return Err(lab_report::error::unknown("target kind", &kind, &kinds));
        }
        let options: Vec<String> = self
            .options
            .iter()
            .map(|(k, v)| format!("{k}={v}"))
            .collect();
        let spec = match options.as_slice() {
            [] => self.engine.clone(),
            _ => format!("{}:{}", self.engine, options.join(",")),
        };
        let mut targets = crate::targets::parse_targets(&spec)?;
        let mut target = targets.pop().ok_or("an empty target")?;
        if let Some(name) = self.name {
            target.name = name;
        }
        Ok(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = r#"
        [run]
        experiments = ["iibench-classic"]
        preset = "smoke"
        seed = 7
        durability = "sync"
        [limits]
        mem = "384M"
        iops = [250, 500]
        [[target]]
        name = "ram"
        engine = "memory"
        options = { limit = "1G" }
    "#;

    #[test]
    fn a_file_is_read_and_flags_go_first() {
        let file = Settings::from_toml(EXAMPLE).unwrap();
        let flags = Settings {
            seed: Some(8),
            ..Settings::default()
        };
        let both = flags.or(file);
        assert_eq!((both.seed, both.preset), (Some(8), Some(Preset::Smoke)));
        assert_eq!(both.mem, Some(ByteSize::mib(384)));
        assert_eq!(both.iops, Some(vec![(250, 500)]));
        assert_eq!(both.durability, Some(Durability::Sync));
        assert_eq!(both.targets.unwrap()[0].name, "ram");
    }

    #[test]
    fn caps_are_a_pair_or_a_list() {
        let of = |text: &str| Settings::from_toml(&format!("[limits]\niops = {text}"));
        assert_eq!(of("[250, 500]").unwrap().iops, Some(vec![(250, 500)]));
        let list = of("\"2000, 500/250\"").unwrap().iops;
        assert_eq!(list, Some(vec![(2000, 2000), (500, 250)]));
        for wrong in ["\"fast\"", "[1, 2, 3]", "7"] {
            let error = of(wrong).unwrap_err();
            assert!(error.starts_with("line 2: "), "{error}");
        }
    }

    #[test]
    fn clients_are_a_number_or_a_list() {
        let of = |text: &str| Settings::from_toml(&format!("[run]\nclients = {text}"));
        assert_eq!(of("4").unwrap().clients, Some(vec![4]));
        assert_eq!(of("[1, 16]").unwrap().clients, Some(vec![1, 16]));
        let error = of("\"many\"").unwrap_err();
        assert!(
            error.starts_with("line 2: ") && error.contains("a list such as"),
            "{error}"
        );
    }

    #[test]
    fn unknown_keys_and_bad_values_are_named() {
        for (text, needle) in [
            ("[run]\nsede = 1", "sede"),
            ("[run]\npreset = \"fast\"", "fast"),
            ("[limits]\nmem = \"lots\"", "lots"),
            ("[[target]]\nengine = \"lmbd\"", "lmdb"),
        ] {
            let error = Settings::from_toml(text).unwrap_err();
            assert!(error.contains(needle), "{text}: {error}");
        }
    }
}
