//! `hist.hlog`: latency histograms in HdrHistogram's log format, one line each, tagged `main` (the
//! step's main operation) and `query` (queries beside a load). Values are microseconds.

use std::time::{Duration, UNIX_EPOCH};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag,
};

use crate::record::decode_histogram;

const MAIN: &str = "main";
const QUERY: &str = "query";

/// The log of one step.
pub(super) fn write(
    seconds: f64,
    main: Option<&Histogram<u64>>,
    query: Option<&Histogram<u64>>,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut builder = IntervalLogWriterBuilder::new();
    builder
        .add_comment("[latency in microseconds; tags: main, query]")
        .with_base_time(UNIX_EPOCH)
        .with_max_value_divisor(1000.0);
    let length = Duration::from_secs_f64(seconds.clamp(0.0, 1e9));
    let written = builder
        .begin_log_with(&mut bytes, &mut serializer)
        .map(|mut log| {
            for (tag, histogram) in [(MAIN, main), (QUERY, query)] {
                if let Some(histogram) = histogram {
                    // Memory does not fail to be written.
                    let _ = log.write_histogram(histogram, Duration::ZERO, length, Tag::new(tag));
                }
            }
        });
    written.expect("writing to memory does not fail");
    bytes
}

/// The histograms of a log: the main one and that of queries, where they are there and whole.
pub(super) fn read(bytes: &[u8]) -> (Option<Histogram<u64>>, Option<Histogram<u64>>) {
    let (mut main, mut query) = (None, None);
    for entry in IntervalLogIterator::new(bytes).flatten() {
        if let LogEntry::Interval(line) = entry {
            let histogram = decode_histogram(line.encoded_histogram()).ok();
            match line.tag().map(|t| t.as_str()) {
                Some(QUERY) => query = histogram,
                _ => main = histogram,
            }
        }
    }
    (main, query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_histograms_come_back() {
        let mut main = Histogram::new_with_bounds(1, 1_000_000, 3).unwrap();
        main.record(777).unwrap();
        let mut query = main.clone();
        query.record(5).unwrap();
        let (m, q) = read(&write(1.5, Some(&main), Some(&query)));
        assert_eq!((m.unwrap().len(), q.unwrap().len()), (1, 2));
        let (m, q) = read(&write(1.5, Some(&main), None));
        assert!(m.is_some() && q.is_none());
        assert_eq!(read(b"garbage\n\xff"), (None, None));
    }
}
