//! Volumes by name: the caps of a run, written as what a provider sells.
//!
//! ```text
//! [COUNTx]KIND[-OPERATIONS[-MB]]     gp2   io1-5000   2xgp2   gp3-6000-250
//! ```
//!
//! A kind is a volume of a price file, which has its limits and prices with their date and source.
//! Operations and MB per second are those of each of COUNT equal volumes. Without them a volume
//! has as many as its price includes, or, where none can be bought, the most of its kind; MB/s of
//! a kind whose bandwidth follows from its operations are 256 KiB for each.

use serde::{Deserialize, Serialize};

use super::limits::IOPS_MAX;
use super::prices::{Prices, Volume};
use crate::error::unknown;

/// The most volumes of a stripe: what an instance can hold.
pub const STRIPE_MAX: u32 = 24;

/// The largest operation that a provider counts as one, in MB.
const OPERATION_MB: f64 = 256.0 * 1024.0 / 1e6;

/// Equal volumes with a fixed number of operations and bytes per second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedVolume {
    /// Its name, as written.
    pub name: String,
    /// Its kind: a volume of the price file.
    pub kind: String,
    /// The name of the price file.
    pub prices: String,
    /// How many of them.
    pub volumes: u32,
    /// Operations per second of all of them.
    pub iops: u64,
    /// Bytes per second of all of them.
    pub bytes_per_second: u64,
}

impl NamedVolume {
    /// The volumes with this name.
    ///
    /// # Errors
    /// A sentence with what is wrong: an unknown kind (with those of the price file), or more than
    /// a volume of that kind has.
    pub fn parse(text: &str, prices: &Prices) -> Result<NamedVolume, String> {
        let (volumes, rest) = count(text)?;
        let mut parts = rest.split('-');
        let named = parts.next().unwrap_or_default();
        let kinds: Vec<&str> = prices.volumes.iter().map(|v| v.name.as_str()).collect();
        let kind = prices.volumes.iter().find(|v| v.name == named);
        let kind = kind.ok_or_else(|| {
            let of = format!("volume of the prices {}", prices.name);
            unknown(&of, named, &kinds)
        })?;
        let number = |part: Option<&str>| match part.map(str::parse::<u32>) {
            None => Ok(None),
            Some(Ok(number)) if 0 < number => Ok(Some(f64::from(number))),
            Some(_) => Err(format!(
                "volume {text:?}: write [COUNTx]KIND[-OPERATIONS[-MB]], such as io1-5000 or 2xgp2"
            )),
        };
        let (iops, mb) = (number(parts.next())?, number(parts.next())?);
        if parts.next().is_some() {
            number(Some(""))?;
        }
        let iops = operations(kind, iops)?;
        let mb = megabytes(kind, iops, mb)?;
        let all = f64::from(volumes);
        Ok(NamedVolume {
            name: text.to_owned(),
            kind: kind.name.clone(),
            prices: prices.name.clone(),
            volumes,
            iops: whole(iops * all).min(IOPS_MAX),
            bytes_per_second: whole(mb * 1e6 * all),
        })
    }
}

/// The number of volumes, and the rest of the name.
fn count(text: &str) -> Result<(u32, &str), String> {
    let Some((number, rest)) = text.split_once('x') else {
        return Ok((1, text));
    };
    if number.is_empty() || !number.chars().all(|c| c.is_ascii_digit()) {
        return Ok((1, text));
    }
    match number.parse() {
        Ok(volumes) if (1..=STRIPE_MAX).contains(&volumes) => Ok((volumes, rest)),
        _ => Err(format!(
            "volume {text:?}: {number} volumes; use 1 to {STRIPE_MAX}"
        )),
    }
}

fn operations(kind: &Volume, asked: Option<f64>) -> Result<f64, String> {
    let name = &kind.name;
    let most = kind.iops_max;
    match asked {
        Some(asked) if asked <= most => Ok(asked),
        Some(asked) => Err(format!(
            "volume {name}-{asked}: one volume has at most {most} operations/s; stripe several, \
             such as 2x{name}"
        )),
        None if kind.iops_tiers.is_empty() => Ok(most),
        None if 0.0 < kind.iops_included => Ok(kind.iops_included),
        None => Err(format!(
            "volume {name}: its operations are bought one by one; write their number, such as \
             {name}-5000"
        )),
    }
}

fn megabytes(kind: &Volume, iops: f64, asked: Option<f64>) -> Result<f64, String> {
    let name = &kind.name;
    let usual = kind.mb_included.unwrap_or(iops * OPERATION_MB);
    let usual = usual.min(kind.mb_max);
    match asked {
        None => Ok(usual),
        Some(asked) if asked <= usual => Ok(asked),
        Some(_) if kind.mb_month <= 0.0 => Err(format!(
            "volume {name}-{iops}: it has {usual:.0} MB/s, and more cannot be bought"
        )),
        Some(asked) if asked <= kind.mb_max => Ok(asked),
        Some(_) => Err(format!(
            "volume {name}: one volume has at most {} MB/s",
            kind.mb_max
        )),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive; saturates"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, prices: &str) -> Result<(u32, u64, u64), String> {
        let prices = Prices::parse(&Prices::text(prices).unwrap()).unwrap();
        let found = NamedVolume::parse(text, &prices)?;
        assert_eq!((found.name.as_str(), &found.prices), (text, &prices.name));
        Ok((found.volumes, found.iops, found.bytes_per_second))
    }

    #[test]
    fn the_volumes_of_the_articles_of_2018_have_their_limits() {
        let article = |text: &str| parse(text, "aws-2018-article").unwrap();
        assert_eq!(article("gp2"), (1, 10_000, 160_000_000));
        assert_eq!(article("gp2-1500"), (1, 1500, 160_000_000));
        assert_eq!(article("2xgp2"), (2, 20_000, 320_000_000));
        assert_eq!(article("io1-30000"), (1, 30_000, 500_000_000));
        // 1000 operations of 256 KiB.
        assert_eq!(article("io1-1000"), (1, 1000, 262_144_000));
    }

    #[test]
    fn what_is_included_is_the_default_and_more_can_be_bought() {
        let today = |text: &str| parse(text, "aws-2025").unwrap();
        assert_eq!(today("gp3"), (1, 3000, 125_000_000));
        assert_eq!(today("gp3-6000-250"), (1, 6000, 250_000_000));
        assert_eq!(parse("nvme", "local").unwrap().1, 200_000);
    }

    #[test]
    fn mistakes_are_named_with_what_exists() {
        for (text, needles) in [
            ("gp4", &["gp3", "io2", "aws-2025"][..]),
            ("io1", &["io1-5000"]),
            ("io1-90000", &["64000", "2xio1"]),
            ("gp2-3000-300", &["250 MB/s", "cannot be bought"]),
            ("gp3-3000-2000", &["1000 MB/s"]),
            ("0xgp2", &["1 to 24"]),
            ("99999999999xgp2", &["1 to 24"]),
            ("gp2-fast", &["KIND[-OPERATIONS[-MB]]"]),
            ("gp3-1-2-3", &["KIND[-OPERATIONS[-MB]]"]),
            ("gp3-0", &["KIND[-OPERATIONS[-MB]]"]),
            ("", &["gp3"]),
        ] {
            let error = parse(text, "aws-2025").unwrap_err();
            for needle in needles {
                assert!(error.contains(needle), "{text}: {error}");
            }
        }
    }
}
