//! Settings named after the articles whose experiments are repeated: `--as percona-myrocks-cloud`.
//!
//! - A1. An article sets what it states: the experiment, rows, memory, cache, durability, caps and
//!   the settings of its engines. A flag that sets one of them too is refused by name; targets,
//!   repeats, seed and places are the user's.
//! - A2. `--scale` multiplies rows, memory and cache together, so that their ratios stay those of
//!   the article. Caps on operations stay as they are: with equal ratios a transaction needs as
//!   many operations at every scale.
//! - A3. With a smaller preset, rows and memory are those of the preset; the cache keeps its share
//!   of memory.
//! - A4. What an article does not state is that of the preset `published`.

use kv::Durability;
use lab_report::error::{Error, Result, unknown};
use lab_report::record::Preset;
use stdx::ByteSize;

use super::experiment;
use super::plan::whole;
use super::settings::Settings;
use crate::targets;
use crate::workload::iibench::{Payload, Shape};

/// An article.
pub struct Article {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Author, publisher and date.
    pub by: &'static str,
    /// The experiment.
    pub experiment: &'static str,
    /// What differs here.
    pub differs: &'static str,
    /// Rows of the first load.
    rows: u64,
    /// Memory in GiB, where it is stated.
    memory: Option<u64>,
    /// Caches in GiB; a sweep if there are several. None: that of the preset.
    caches: &'static [u64],
    /// Its engines, where this program can start them. `None`: every persistent engine compiled in.
    targets: Option<&'static str>,
    /// Other swept settings.
    sweep: &'static [&'static str],
    /// Other settings.
    set: fn(&mut Settings),
}

/// Every article.
#[must_use]
pub fn articles() -> &'static [Article] {
    ARTICLES
}

const ARTICLES: &[Article] = &[
    Article {
        name: "callaghan-2014",
        title: "TokuMX, MongoDB and InnoDB versus the insert benchmark with disks",
        by: "Mark Callaghan, Small Datum, 24 March 2014",
        experiment: "iibench-classic",
        differs: "rows of 164 and 72 bytes; the disks are those of this machine; TokuMX and \
                  MongoDB 2 cannot be started; the size of the cache is not stated: two thirds of \
                  memory",
        rows: 2_000_000_000,
        memory: Some(72),
        caches: &[48],
        targets: Some("mariadb:engine=innodb"),
        sweep: &[],
        set: |settings| {
            settings.durability = Some(Durability::Sync);
            settings.clients = Some(vec![1]);
            settings.batch = Some(1000);
            settings.queries = Some(0.0);
            settings.shape = Some(Shape::Classic);
        },
    },
    Article {
        name: "callaghan-redo-log-2014",
        title: "Redo logs in MongoDB and InnoDB",
        by: "Mark Callaghan, Small Datum, 23 March 2014",
        experiment: "redo-log",
        differs: "memory is not stated; the sync steps insert a twentieth of the rows; process \
                  kills and power cuts are added",
        rows: 10_000_000,
        memory: None,
        caches: &[],
        targets: Some("mariadb:engine=innodb"),
        sweep: &[],
        set: |_| (),
    },
    Article {
        name: "iibench-mongodb-2014",
        title: "iiBench for MongoDB, its defaults of December 2014",
        by: "Tim Callaghan, Tokutek, 2014",
        experiment: "iibench-classic",
        differs: "memory is not stated; the constant share of a payload stands for its \
                  compressible share",
        rows: 100_000_000,
        memory: None,
        caches: &[],
        targets: None,
        sweep: &[],
        set: |settings| {
            settings.clients = Some(vec![1]);
            settings.batch = Some(1000);
            settings.queries = Some(0.0);
            settings.time = Some(3600.0);
            settings.shape = Some(Shape::Classic);
            settings.payload = "1000:90".parse::<Payload>().ok();
        },
    },
    Article {
        name: "tkachenko-2015",
        title: "Percona Server for MongoDB storage engines in iiBench insert workload",
        by: "Vadim Tkachenko, Percona, 23 December 2015",
        experiment: "insert-vs-threads",
        differs: "rows of 164 and 72 bytes; PerconaFT cannot be started; the SSD is that of this \
                  machine",
        rows: 1_000_000_000,
        memory: Some(20),
        caches: &[10],
        targets: None,
        sweep: &[],
        set: |settings| {
            settings.batch = Some(1000);
            settings.shape = Some(Shape::Classic);
        },
    },
    Article {
        name: "innodb-fill-factor",
        title: "the article on InnoDB's fill factor and page merges (2 M rows keyed by a hash)",
        by: "author and date are not recorded",
        experiment: "fill-factor",
        differs: "three rounds exchange what 400 rounds exchanged there; memory is not stated",
        rows: 2_000_000,
        memory: None,
        caches: &[],
        targets: Some("mariadb:engine=innodb"),
        sweep: &[],
        set: |_| (),
    },
    Article {
        name: "zaitsev-2008",
        title: "MySQL File System Fragmentation Benchmarks",
        by: "Peter Zaitsev, Percona, 21 March 2008",
        experiment: "many-tables",
        differs: "the file system is that of this machine, not ext3; memory is not stated: 12 GiB",
        rows: 10_000_000,
        memory: Some(12),
        caches: &[8],
        targets: Some("mariadb:engine=myisam,mariadb:engine=innodb,innodb_log_file_size=256M"),
        sweep: &[],
        set: |settings| {
            // innodb_flush_log_at_trx_commit=2
            settings.durability = Some(Durability::Interval);
            settings.direct = Some(true);
            settings.variant = Some("full".to_owned());
        },
    },
    Article {
        name: "tkachenko-linkbench-2015",
        title: "InnoDB vs TokuDB in LinkBench benchmark",
        by: "Vadim Tkachenko, Percona, 24 July 2015",
        experiment: "linkbench",
        differs: "100 M nodes, about 115 GB in InnoDB; memory besides the cache is not stated: \
                  20 GiB in all; TokuDB and InnoDB's compressed pages cannot be run",
        rows: 100_000_000,
        memory: Some(20),
        caches: &[12],
        targets: Some("mariadb:engine=innodb"),
        sweep: &[],
        set: |settings| settings.variant = Some("facebook".to_owned()),
    },
    Article {
        name: "percona-myrocks-cloud",
        title: "Saving With MyRocks in The Cloud",
        by: "Vadim Tkachenko, Percona, 1 August 2018",
        experiment: "tpcc",
        differs: "5000 warehouses in one set of tables, not 50; reads and writes are capped each; \
                  MariaDB's InnoDB and MyRocks",
        rows: CUSTOMERS_2018,
        memory: Some(72),
        caches: &[27, 54],
        targets: Some(ENGINES_2018),
        sweep: &["volume=io1-5000,gp2,io1-10000,io1-15000,io1-20000,io1-30000"],
        set: cloud,
    },
    Article {
        name: "percona-iops-scaling",
        title: "Scaling IO-Bound Workloads for MySQL in the Cloud, parts 1 and 2 (io1 volumes)",
        by: "Vadim Tkachenko, Percona, August and 26 September 2018",
        experiment: "tpcc",
        differs: "as percona-myrocks-cloud; the cache is not stated: 27 GiB",
        rows: CUSTOMERS_2018,
        memory: Some(72),
        caches: &[27],
        targets: Some(ENGINES_2018),
        sweep: &[
            "volume=io1-1000,io1-2000,io1-3000,io1-4000,io1-5000,io1-6000,io1-7000,io1-8000,\
             io1-9000,io1-10000,io1-11000,io1-12000,io1-13000,io1-14000,io1-15000,io1-16000,\
             io1-17000,io1-18000,io1-19000,io1-20000,io1-21000,io1-22000,io1-23000,io1-24000,\
             io1-25000,io1-26000,io1-27000,io1-28000,io1-29000,io1-30000",
        ],
        set: cloud,
    },
    Article {
        name: "percona-encryption-2019",
        title: "Measuring Percona Server for MySQL On-Disk Decryption Overhead",
        by: "Percona, 22 February 2019",
        experiment: "oltp-read-only",
        differs: "four tables, not 20, with as many rows; MariaDB's encryption includes the log; \
                  memory besides the cache is not stated: 80 GiB in all",
        rows: 200_000_000,
        memory: Some(80),
        caches: &[5, 60],
        targets: Some("mariadb,mariadb:encrypt=1"),
        sweep: &[],
        set: |settings| {
            settings.clients = Some(vec![1, 4, 16, 32, 64, 96, 128, 256, 512, 1024, 2048]);
            settings.time = Some(300.0);
            settings.direct = Some(true);
        },
    },
];

/// Customers of 5000 warehouses.
const CUSTOMERS_2018: u64 = 150_000_000;

const ENGINES_2018: &str = "mariadb:engine=innodb,mariadb:engine=myrocks";

fn cloud(settings: &mut Settings) {
    settings.variant = Some("percona".to_owned());
    settings.prices = Some("aws-2018-article".to_owned());
    settings.direct = Some(true);
}

/// A flag of `lab run`, and whether settings have it.
type Flag = (&'static str, fn(&Settings) -> bool);

/// The flags that an article may set (A1).
const FLAGS: &[Flag] = &[
    ("rows", |s| s.rows.is_some()),
    ("mem", |s| s.mem.is_some()),
    ("cache", |s| s.cache.is_some()),
    ("iops", |s| s.iops.is_some()),
    ("bw", |s| s.bandwidth.is_some()),
    ("volume", |s| s.volume.is_some()),
    ("direct", |s| s.direct.is_some()),
    ("durability", |s| s.durability.is_some()),
    ("clients", |s| s.clients.is_some()),
    ("rate", |s| s.rate.is_some()),
    ("time", |s| s.time.is_some()),
    ("codec", |s| s.codec.is_some()),
    ("payload", |s| s.payload.is_some()),
    ("index-shape", |s| s.shape.is_some()),
    ("batch", |s| s.batch.is_some()),
    ("queries", |s| s.queries.is_some()),
    ("variant", |s| s.variant.is_some()),
    ("prices", |s| s.prices.is_some()),
];

/// The settings of an article under those of the command line, and its sweeps with those of the
/// command line.
///
/// # Errors
/// A message for an unknown article, and for each flag or sweep of something that the article sets.
pub fn as_article(
    name: &str,
    flags: Settings,
    sweeps: &[String],
) -> Result<(Settings, Vec<String>)> {
    let names: Vec<&str> = ARTICLES.iter().map(|article| article.name).collect();
    let article = ARTICLES.iter().find(|article| article.name == name);
    let article = article.ok_or_else(|| Error::usage(unknown("article", name, &names)))?;
    let (own, swept) = article.settings(&flags)?;
    article.check(&own, &swept, &flags, sweeps)?;
    let mut merged = flags.or(own);
    if merged.rows.is_some() {
        // It is in the rows already.
        merged.scale = None;
    }
    Ok((merged, sweeps.iter().cloned().chain(swept).collect()))
}

impl Article {
    /// What the article sets, at the scale or the preset of `flags`, and what it sweeps.
    fn settings(&self, flags: &Settings) -> Result<(Settings, Vec<String>)> {
        let preset = flags.preset.unwrap_or(Preset::Published);
        let sizes = (experiment(self.experiment)?.sizes)(preset);
        let mut own = Settings {
            experiment: Some(self.experiment.to_owned()),
            preset: Some(preset),
            ..Settings::default()
        };
        (self.set)(&mut own);
        if let Some(targets) = self.targets.filter(|_| flags.targets.is_none()) {
            own.targets = Some(targets::parse_targets(targets)?);
        }
        let mut memory = sizes.memory_mib as f64;
        if preset == Preset::Published {
            let scale = flags.scale.unwrap_or(1.0);
            if !(0.0 < scale && scale <= 1.0) {
                return Err(Error::usage(format!(
                    "--scale {scale}: with --as above 0 and at most 1, such as 0.001"
                )));
            }
            own.rows = Some(whole(self.rows as f64 * scale).max(1));
            if let Some(gib) = self.memory {
                memory = (gib as f64 * 1024.0 * scale).ceil();
                own.mem = Some(ByteSize::mib(whole(memory)));
            }
        }
        let mut swept: Vec<String> = self.sweep.iter().map(|s| (*s).to_owned()).collect();
        let share = |gib: &u64| {
            let all = self.memory.map_or(1.0, |all| all as f64);
            // In KiB, so that three quarters are not exceeded by a rounding.
            whole(memory * 1024.0 * *gib as f64 / all)
        };
        match self.caches {
            [] => {}
            [one] => own.cache = Some(ByteSize(share(one) << 10)),
            several => {
                let each: Vec<String> = several.iter().map(|c| format!("{}K", share(c))).collect();
                swept.insert(0, format!("cache={}", each.join(",")));
            }
        }
        Ok((own, swept))
    }

    /// A1.
    fn check(
        &self,
        own: &Settings,
        swept: &[String],
        flags: &Settings,
        sweeps: &[String],
    ) -> Result<()> {
        let name = self.name;
        if let Some(other) = flags
            .experiment
            .as_deref()
            .filter(|e| *e != self.experiment)
        {
            return Err(Error::usage(format!(
                "--as {name} is the experiment {}, not {other}: leave the experiment out",
                self.experiment
            )));
        }
        let axis = |text: &String| text.split('=').next().unwrap_or_default().to_owned();
        let own_axes: Vec<String> = swept.iter().map(axis).collect();
        let sizes = ["rows", "mem", "cache"];
        let sets = |flag: &Flag| {
            let by_volume =
                own_axes.iter().any(|a| a == "volume") && ["iops", "bw"].contains(&flag.0);
            flag.1(own)
                || own_axes.iter().any(|a| a == flag.0)
                || sizes.contains(&flag.0)
                || by_volume
        };
        let refused = |what: String| {
            let hint = "leave it out (--scale and --preset change the size)";
            Err(Error::usage(format!(
                "--as {name} sets {what} itself: {hint}"
            )))
        };
        if let Some((flag, _)) = FLAGS.iter().find(|flag| flag.1(flags) && sets(flag)) {
            return refused(format!("--{flag}"));
        }
        for asked in sweeps.iter().map(axis) {
            if FLAGS.iter().any(|flag| flag.0 == asked && sets(flag)) {
                return refused(format!("{asked}, which --sweep {asked} would change,"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{plan, sweep};
    use super::*;
    use lab_report::record::Plan;

    fn plans(name: &str, flags: Settings) -> Result<Vec<Plan>> {
        let (settings, sweeps) = as_article(name, flags, &[])?;
        let experiment = experiment(settings.experiment.as_deref().unwrap())?;
        let out = Path::new("out");
        if sweeps.is_empty() {
            return Ok(vec![plan(experiment, &settings, out)?]);
        }
        let none = Settings::default();
        let found = sweep(experiment, (&none, &settings), &sweeps, out)?;
        Ok(found.cells.into_iter().map(|cell| cell.plan).collect())
    }

    /// Targets that every build has.
    fn flags() -> Settings {
        Settings {
            targets: Some(targets::parse_targets("memory").unwrap()),
            ..Settings::default()
        }
    }

    #[test]
    fn every_article_can_be_planned_at_every_size() {
        for article in articles() {
            let full = plans(article.name, Settings::default()).unwrap();
            assert!(
                !full.is_empty() && full[0].preset == Preset::Published,
                "A4"
            );
            for preset in [Preset::Smoke, Preset::Quick, Preset::Standard] {
                let own = Settings {
                    preset: Some(preset),
                    ..flags()
                };
                let small = plans(article.name, own).unwrap();
                assert_eq!(small.len(), full.len(), "{}", article.name);
            }
            let scaled = Settings {
                scale: Some(0.02),
                ..flags()
            };
            plans(article.name, scaled).unwrap();
            assert!(!article.differs.is_empty() && !article.by.is_empty());
        }
    }

    #[test]
    fn the_cloud_article_sweeps_its_caches_and_volumes() {
        let full = plans("percona-myrocks-cloud", Settings::default()).unwrap();
        assert_eq!(full.len(), 2 * 6);
        let (first, last) = (&full[0], &full[11]);
        assert_eq!(first.cache, ByteSize::mib(27 << 10));
        assert_eq!(last.cache, ByteSize::mib(54 << 10));
        assert_eq!(first.limits.memory, Some(ByteSize::mib(72 << 10)));
        assert_eq!(last.volume.as_ref().unwrap().name, "io1-30000");
        let names: Vec<&str> = first.targets.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["mariadb:engine=innodb", "mariadb:engine=myrocks"]);
        // A2: sizes are scaled together, caps are not.
        let scaled = Settings {
            scale: Some(0.01),
            ..flags()
        };
        let scaled = plans("percona-myrocks-cloud", scaled).unwrap();
        let ratio = |plan: &Plan| {
            let memory = plan.limits.memory.unwrap().bytes() as f64;
            (
                plan.cache.bytes() as f64 / memory,
                plan.data_bytes as f64 / memory,
            )
        };
        let (a, b) = (ratio(first), ratio(&scaled[0]));
        assert!((a.0 - b.0).abs() < 0.001, "A2: {a:?} {b:?}");
        assert!((a.1 / b.1 - 1.0).abs() < 0.1, "A2: {a:?} {b:?}");
        assert_eq!(scaled[0].steps[2].setting.iops, Some(5000), "A2");
        // A3.
        let quick = Settings {
            preset: Some(Preset::Quick),
            ..flags()
        };
        let quick = plans("percona-myrocks-cloud", quick).unwrap();
        assert!((ratio(&quick[0]).0 - a.0).abs() < 0.001, "A3");
        assert_eq!(quick[0].limits.memory, Some(ByteSize::mib(192)), "A3");
    }

    #[test]
    fn what_an_article_sets_is_refused_by_name() {
        let refused = |name: &str, sweeps: &[&str], change: fn(&mut Settings)| {
            let mut own = flags();
            change(&mut own);
            let sweeps: Vec<String> = sweeps.iter().map(|s| (*s).to_owned()).collect();
            as_article(name, own, &sweeps).unwrap_err().message
        };
        let of = "callaghan-2014";
        let message = refused(of, &[], |s| s.durability = Some(Durability::None));
        assert!(
            message.contains("callaghan-2014 sets --durability itself"),
            "A1: {message}"
        );
        assert!(refused(of, &[], |s| s.rows = Some(5000)).contains("--rows"));
        assert!(refused(of, &[], |s| s.mem = Some(ByteSize::mib(100))).contains("--mem"));
        assert!(refused(of, &[], |s| s.scale = Some(2.0)).contains("--scale 2"));
        let other = refused(of, &[], |s| s.experiment = Some("tpcc".to_owned()));
        assert!(other.contains("iibench-classic, not tpcc"), "{other}");
        assert!(refused(of, &["cache=1M,2M"], |_| ()).contains("--sweep cache"));
        let of = "percona-myrocks-cloud";
        assert!(refused(of, &[], |s| s.iops = Some(vec![(1, 1)])).contains("--iops"));
        assert!(refused(of, &["volume=gp2,gp3"], |_| ()).contains("--sweep volume"));
        let unknown = refused("callaghan-2015", &[], |_| ());
        assert!(
            unknown.contains("did you mean \"callaghan-2014\"?"),
            "{unknown}"
        );
        // What the article leaves open is the user's.
        let mut own = flags();
        own.codec = Some(kv::Codec::None);
        let sweeps = ["threads=1,2".to_owned()];
        let (settings, swept) = as_article("callaghan-2014", own, &sweeps).unwrap();
        assert_eq!((settings.codec, swept.len()), (Some(kv::Codec::None), 1));
        assert_eq!(settings.targets.unwrap()[0].name, "memory");
    }
}
