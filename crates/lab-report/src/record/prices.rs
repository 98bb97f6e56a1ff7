//! Price files: TOML with a date, a source, one instance and the volumes it may use.
//!
//! A month has 730 hours. Sizes are GB of 10^9 bytes, bandwidth is MB of 10^6 bytes per second.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, unknown};

/// The default prices.
pub const DEFAULT_PRICES: &str = "aws-2025";

const BUILT_IN: [(&str, &str); 3] = [
    ("aws-2025", include_str!("../../prices/aws-2025.toml")),
    (
        "aws-2018-article",
        include_str!("../../prices/aws-2018-article.toml"),
    ),
    ("local", include_str!("../../prices/local.toml")),
];

/// A price file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Its name.
    pub name: String,
    /// The date of the prices.
    pub date: String,
    /// The region in which they apply.
    pub region: String,
    /// Their source.
    pub source: String,
    /// Notes for the reader.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The machine.
    pub instance: Instance,
    /// The kinds of volumes.
    #[serde(rename = "volume")]
    pub volumes: Vec<Volume>,
}

/// The machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Its name.
    pub name: String,
    /// On demand, reserved, ...
    pub terms: String,
    /// Dollars per hour.
    pub dollars_per_hour: f64,
    /// Cores (hardware threads).
    pub cores: u32,
    /// Memory in GiB.
    pub memory_gib: f64,
}

/// A step of the price of operations per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    /// The tier ends at this number of operations per second; `None`: it has no end.
    pub up_to: Option<f64>,
    /// Dollars per month for each operation per second.
    pub month: f64,
}

/// A kind of volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Volume {
    /// Its name.
    pub name: String,
    /// Dollars per GB and month.
    pub gb_month: f64,
    /// Operations per second included in the price, independent of the size.
    #[serde(default)]
    pub iops_included: f64,
    /// Operations per second included per GB, if that is more.
    #[serde(default)]
    pub iops_per_gb_included: f64,
    /// The price of more operations per second; empty if they can only be had with a larger volume.
    #[serde(default)]
    pub iops_tiers: Vec<Tier>,
    /// The most operations per second of one volume.
    pub iops_max: f64,
    /// The most operations per second for each GB.
    pub iops_per_gb_max: Option<f64>,
    /// MB/s included in the price; `None` if bandwidth is not charged.
    pub mb_included: Option<f64>,
    /// Dollars per month for each further MB/s; 0 if they cannot be bought.
    #[serde(default)]
    pub mb_month: f64,
    /// The most MB/s of one volume.
    pub mb_max: f64,
    /// The smallest volume in GB.
    pub gb_min: f64,
    /// The largest volume in GB.
    pub gb_max: f64,
    /// Dollars of wear per TB written; 0 if the buyer does not pay for wear.
    #[serde(default)]
    pub tb_written: f64,
}

/// The names of the built-in prices.
#[must_use]
pub fn built_in_prices() -> Vec<&'static str> {
    BUILT_IN.iter().map(|(name, _)| *name).collect()
}

impl Prices {
    /// The text of the built-in prices or the file that `--prices` names.
    ///
    /// # Errors
    /// A sentence: neither a built-in name nor a file that can be read.
    pub fn text(named: &str) -> Result<String> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(name, _)| *name == named) {
            return Ok((*text).to_owned());
        }
        let path = Path::new(named);
        if !path.exists() {
            let hint = "; or name a TOML file of your own";
            return Err(Error::usage(
                unknown("prices", named, &built_in_prices()) + hint,
            ));
        }
        fs::read_to_string(path).map_err(|e| Error::io("read", path, &e))
    }

    /// Parse and check a price file.
    ///
    /// # Errors
    /// A sentence with what is wrong.
    pub fn parse(text: &str) -> Result<Prices> {
        let prices: Prices = toml::from_str(text)
            .map_err(|e| Error::usage(format!("not a price file: {}", e.to_string().trim())))?;
        prices.check()?;
        Ok(prices)
    }

    /// The default prices.
    #[must_use]
    pub fn default_prices() -> Prices {
        let (_, text) = BUILT_IN[0];
        Prices::parse(text).expect("the test of the built-in prices reads them")
    }

    fn check(&self) -> Result<()> {
        let hour = self.instance.dollars_per_hour;
        if !(0.0..1e6).contains(&hour) {
            return Err(Error::usage(format!(
                "price file {}: dollars_per_hour {hour} makes no sense",
                self.name
            )));
        }
        if self.volumes.is_empty() {
            return Err(Error::usage(format!(
                "price file {}: it has no [[volume]]",
                self.name
            )));
        }
        self.volumes.iter().try_for_each(|v| v.check(&self.name))
    }
}

impl Volume {
    fn check(&self, file: &str) -> Result<()> {
        let fault = |what: &str, value: f64| {
            Err(Error::usage(format!(
                "price file {file}, volume {}: {what} {value} makes no sense",
                self.name
            )))
        };
        let prices = [
            ("gb_month", self.gb_month),
            ("iops_included", self.iops_included),
            ("iops_per_gb_included", self.iops_per_gb_included),
            ("mb_month", self.mb_month),
            ("mb_included", self.mb_included.unwrap_or(0.0)),
            ("tb_written", self.tb_written),
            ("gb_min", self.gb_min),
        ];
        let tiers = self
            .iops_tiers
            .iter()
            .map(|t| ("iops_tiers.month", t.month));
        for (what, value) in prices.into_iter().chain(tiers) {
            if !(0.0..1e12).contains(&value) {
                return fault(what, value);
            }
        }
        let limits = [
            ("iops_max", self.iops_max),
            ("iops_per_gb_max", self.iops_per_gb_max.unwrap_or(1.0)),
            ("mb_max", self.mb_max),
            ("gb_max", self.gb_max),
        ];
        for (what, value) in limits {
            if !(0.0 < value && value < 1e12) {
                return fault(what, value);
            }
        }
        if self.gb_max < self.gb_min {
            return fault("gb_max", self.gb_max);
        }
        let mut before = 0.0;
        for tier in &self.iops_tiers {
            let up_to = tier.up_to.unwrap_or(f64::INFINITY);
            if up_to <= before {
                return fault("iops_tiers.up_to", up_to);
            }
            before = up_to;
        }
        Ok(())
    }
}
