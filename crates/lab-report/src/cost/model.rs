//! What a volume costs by the month that gives what is required: the arithmetic alone.
//!
//! ```text
//! GB      at least what is required, the smallest volume, and what the operations ask for
//!         (where a volume gives operations by its size, or no more than a number for each GB)
//! dollars GB * price + tiers(operations - included) + (MB/s - included) * price
//! ```
//!
//! Where one volume cannot do it, the load is striped over as few equal ones as can.

use serde::{Deserialize, Serialize};

use crate::record::{STRIPE_MAX, Tier, Volume};

/// The requirements of a store on its volume.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Requirement {
    /// Size in GB of 10^9 bytes.
    pub gb: f64,
    /// Operations per second, of at most 256 KiB.
    pub iops: f64,
    /// MB of 10^6 bytes per second.
    pub mb: f64,
}

/// Volumes that give it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Priced {
    /// How many equal volumes.
    pub volumes: u32,
    /// GB of all of them.
    pub gb: f64,
    /// Dollars per month of all of them.
    pub dollars: f64,
}

/// The price of as few volumes of a kind as give what is required.
///
/// # Errors
/// A sentence where none of that kind can.
pub fn price(volume: &Volume, required: &Requirement) -> Result<Priced, String> {
    for volumes in 1..=STRIPE_MAX {
        if let Some(priced) = price_of(volume, volumes, required) {
            return Ok(priced);
        }
    }
    Err(format!(
        "not possible: {STRIPE_MAX} volumes do not give {:.0} GB, {:.0} operations/s and {:.0} \
         MB/s",
        required.gb, required.iops, required.mb
    ))
}

/// The price of `volumes` equal volumes that together give what is required; `None` where they
/// cannot.
#[must_use]
pub fn price_of(volume: &Volume, volumes: u32, required: &Requirement) -> Option<Priced> {
    let share = f64::from(volumes);
    let each = Requirement {
        gb: required.gb / share,
        iops: required.iops / share,
        mb: required.mb / share,
    };
    let (gb, dollars) = one(volume, &each)?;
    Some(Priced {
        volumes,
        gb: gb * share,
        dollars: dollars * share,
    })
}

/// Size and price of one volume; `None` where one cannot do it.
fn one(volume: &Volume, required: &Requirement) -> Option<(f64, f64)> {
    if required.iops > volume.iops_max || required.mb > volume.mb_max {
        return None;
    }
    let mut gb = required.gb.max(volume.gb_min);
    if let Some(most) = volume.iops_per_gb_max {
        // What comes with every volume needs no size.
        if required.iops > volume.iops_included {
            gb = gb.max(required.iops / most);
        }
    }
    if volume.iops_tiers.is_empty() && required.iops > volume.iops_included {
        if volume.iops_per_gb_included <= 0.0 {
            return None;
        }
        gb = gb.max(required.iops / volume.iops_per_gb_included);
    }
    let gb = gb.ceil();
    if gb > volume.gb_max {
        return None;
    }
    let included = volume.iops_included.max(volume.iops_per_gb_included * gb);
    let mut dollars = gb * volume.gb_month + tiers(&volume.iops_tiers, included, required.iops);
    if let Some(included) = volume.mb_included
        && required.mb > included
    {
        if volume.mb_month <= 0.0 {
            return None;
        }
        dollars += (required.mb - included) * volume.mb_month;
    }
    Some((gb, dollars))
}

/// Dollars of the operations between those included and those required.
fn tiers(tiers: &[Tier], included: f64, required: f64) -> f64 {
    let mut dollars = 0.0;
    let mut from = included;
    for tier in tiers {
        let to = tier.up_to.unwrap_or(f64::INFINITY).min(required);
        if to > from {
            dollars += (to - from) * tier.month;
            from = to;
        }
    }
    dollars
}
