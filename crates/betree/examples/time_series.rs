//! Time series: keys of a sensor and a time; windows, the newest value, averages, retention.
//!
//! `cargo run -p betree --example time_series`

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use betree::{Batch, Db, Durability, KeyRange, Options, Tree, TreeOptions};

const SENSORS: u32 = 8;
const SECONDS: u64 = 3600;

/// What is read back in the end.
#[derive(Debug, PartialEq)]
pub(crate) struct Summary {
    /// Measurements of the newest minute of a sensor.
    pub(crate) window: usize,
    /// The time and the value of the newest measurement.
    pub(crate) newest: Option<(u64, f64)>,
    /// The average of each quarter of an hour.
    pub(crate) averages: Vec<f64>,
    /// Measurements of all sensors that are left after the oldest half was dropped.
    pub(crate) left: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    println!("{:#?}", run(directory.path())?);
    Ok(())
}

/// Store an hour of measurements and read it back.
pub(crate) fn run(directory: &Path) -> Result<Summary, Box<dyn Error>> {
    let db = Db::open(directory, Options::ingest().with_memory(32 << 20))?;
    // Each sensor appends at its own place: ascending keys are written once and never merged.
    let ascending = TreeOptions {
        ascending: true,
        ..TreeOptions::default()
    };
    let series = db.tree_with("series", ascending)?;
    let mut batch = Batch::new();
    for time in 0..SECONDS {
        for sensor in 0..SENSORS {
            let value = f64::from(sensor) + (time / 900) as f64;
            batch.put(series.id(), &key(sensor, time), &value.to_be_bytes());
        }
        // A power loss takes the last tenth of a second; one commit serves all sensors.
        db.write(&batch, Durability::Interval)?;
        batch.clear();
    }

    let window = series.range(key(3, SECONDS - 60)..key(3, SECONDS))?.count();
    let newest = series
        .prefix(3_u32.to_be_bytes())?
        .next_back()
        .transpose()?;
    let newest = newest.and_then(|(key, value)| Some((time(&key)?, number(&value)?)));
    let averages = averages(&series, 3, 900)?;

    for sensor in 0..SENSORS {
        let (start, end) = (key(sensor, 0), key(sensor, SECONDS / 2));
        batch.delete_range(series.id(), KeyRange::half_open(&start, &end));
    }
    db.write(&batch, Durability::Sync)?;
    let left = series.iter()?.count();
    db.close()?;
    Ok(Summary {
        window,
        newest,
        averages,
        left,
    })
}

/// The average of each span of `seconds` of a sensor.
fn averages(series: &Tree, sensor: u32, seconds: u64) -> betree::Result<Vec<f64>> {
    let mut spans: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for entry in series.prefix(sensor.to_be_bytes())? {
        let (key, value) = entry?;
        if let (Some(time), Some(value)) = (time(&key), number(&value)) {
            let (sum, count) = spans.entry(time / seconds).or_default();
            *sum += value;
            *count += 1.0;
        }
    }
    Ok(spans.values().map(|(sum, count)| sum / count).collect())
}

/// Sensor and time, most significant bytes first, so that key order is time order per sensor.
fn key(sensor: u32, time: u64) -> Vec<u8> {
    [&sensor.to_be_bytes()[..], &time.to_be_bytes()].concat()
}

fn time(key: &[u8]) -> Option<u64> {
    key.last_chunk::<8>()
        .map(|bytes| u64::from_be_bytes(*bytes))
}

fn number(value: &[u8]) -> Option<f64> {
    value
        .first_chunk::<8>()
        .map(|bytes| f64::from_be_bytes(*bytes))
}
