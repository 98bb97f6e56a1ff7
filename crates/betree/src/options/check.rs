//! The check of all options, which names the one that is wrong and what it may be.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::{Codec, Options};
use crate::error::{Error, Result};
use crate::limits::range;

impl Options {
    /// Refuse options that cannot be used.
    ///
    /// # Errors
    /// `Invalid`, naming the option, its value and its range.
    pub fn validate(&self) -> Result<()> {
        number("memory", self.memory, range::MEMORY)?;
        number("buffer_share", self.buffer_share, range::BUFFER_SHARE)?;
        number("rho", self.rho, range::RHO)?;
        number("k_cap", self.k_cap, range::K_CAP)?;
        number("bucket", self.bucket, range::BUCKET)?;
        number("page", self.page, range::PAGE)?;
        number("filter_bits", self.filter_bits, range::FILTER_BITS)?;
        if !matches!(self.log_codec, Codec::None | Codec::Lz4) {
            let codec = self.log_codec;
            let message = format!("option log_codec is {codec}; it may be none or lz4");
            return Err(Error::invalid(message));
        }
        number("log_segment", self.log_segment, range::LOG_SEGMENT)?;
        number("log_max", self.log_max, range::LOG_MAX)?;
        number(
            "checkpoint_bytes",
            self.checkpoint_bytes,
            range::CHECKPOINT_BYTES,
        )?;
        number("threads", self.threads, range::THREADS)?;
        number(
            "transaction_max",
            self.transaction_max,
            range::TRANSACTION_MAX,
        )?;
        time("interval", self.interval, range::INTERVAL)?;
        let interval = self.checkpoint_interval;
        time("checkpoint_interval", interval, range::CHECKPOINT_INTERVAL)?;
        time("group_delay", self.group_delay, range::GROUP_DELAY)?;
        if let Some(age) = self.snapshot_max_age {
            time("snapshot_max_age", age, range::SNAPSHOT_MAX_AGE)?;
        }
        Ok(())
    }
}

fn number<T: PartialOrd + Display>(name: &str, value: T, range: RangeInclusive<T>) -> Result<()> {
    // NaN is in no range.
    if range.contains(&value) {
        return Ok(());
    }
    let (least, most) = range.into_inner();
    Err(Error::invalid(format!(
        "option {name} is {value}; it may be {least} to {most}"
    )))
}

fn time(name: &str, value: Duration, range: RangeInclusive<Duration>) -> Result<()> {
    if range.contains(&value) {
        return Ok(());
    }
    let (least, most) = range.into_inner();
    Err(Error::invalid(format!(
        "option {name} is {value:?}; it may be {least:?} to {most:?}"
    )))
}
