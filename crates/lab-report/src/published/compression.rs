//! The comparison of compression algorithms of 2016, and measurements of codecs on real pages and
//! inside the engines.

use super::{Beside, Grid, Line, Plot, Value, figure, ratio, result, targets, words};
use crate::record::RunRecord;
use crate::record::experiment::compression::{BLOCKS, CODECS, COMPRESSORS, CONSTANT};

const SOURCE: &str = "The comparison of compression algorithms of 2016 (lzbench over sizes of \
                      blocks), and its correction a month later";

pub(super) fn beside(run: &RunRecord) -> Beside {
    let targets = targets(run);
    let mut plots = Vec::new();
    for constant in CONSTANT {
        plots.extend(targets.iter().filter_map(|t| scatter(run, t, constant)));
    }
    Beside {
        source: SOURCE.to_owned(),
        measured: vec![pages(run, &targets), engines(run, &targets)],
        published: published(),
        plots,
        shapes: Vec::new(),
        notes: words(&[
            "Every block was decompressed and compared with what had been compressed; one that \
             differs makes its step invalid. The published figure for LZ4 was wrong by a factor of \
             two because that was not done.",
            "Pages are taken from all over the files of the engine after a load without \
             compression. Speeds are of one thread, in million bytes before compression a second: \
             the median of three runs, on this machine.",
            "Inside the engines bytes and CPU are those of the whole load with its settling; \
             points are read from a store that was closed, dropped from the page cache and opened \
             again. A codec is at the level the engine takes by default: zlib at 6, zstd at 3, in \
             WiredTiger at 6.",
            "Sizes are of all files of a store. Those of a server have its system tables and logs \
             in them, which do not compress: with little data they are the most of it, and what a \
             codec saves is hidden behind them.",
        ]),
    }
}

fn published() -> Grid {
    let line = |name: &str, ratio: f64| Line {
        name: name.to_owned(),
        values: vec![Value::Number(Some(ratio))],
    };
    Grid {
        caption: "Published in 2016, on other data: the ratio of LZ4".to_owned(),
        columns: words(&["ratio"]),
        lines: vec![
            line("LZ4, as first published", 1.89),
            line("LZ4, as corrected a month later", 3.89),
        ],
    }
}

/// The name of the load step whose rows share `constant` per cent of their bytes.
pub(super) fn load(constant: u8, compressor: &str) -> String {
    format!("load-{constant}-{compressor}")
}

/// A number of a codec on the pages of a target.
fn tried(
    run: &RunRecord,
    target: &str,
    constant: u8,
    (codec, block, what): (&str, u32, &str),
) -> Option<f64> {
    let name = format!("codec.{codec}.{block}.{what}");
    figure(run, target, &load(constant, "none"), &name)
}

fn pages(run: &RunRecord, targets: &[&str]) -> Grid {
    let mut lines = Vec::new();
    for target in targets {
        for constant in CONSTANT {
            for codec in CODECS {
                for block in BLOCKS {
                    let of = |what| tried(run, target, constant, (codec, block, what));
                    if of("ratio").is_none() {
                        continue;
                    }
                    lines.push(Line {
                        name: (*target).to_owned(),
                        values: vec![
                            Value::Text(constant.to_string()),
                            Value::Text(codec.to_owned()),
                            Value::Number(Some(f64::from(block >> 10))),
                            Value::Number(of("ratio")),
                            Value::Number(of("compress_mb_s")),
                            Value::Number(of("decompress_mb_s")),
                        ],
                    });
                }
            }
        }
    }
    Grid {
        caption: "Codecs on pages of the engines' files, every block compared after its way back"
            .to_owned(),
        columns: words(&[
            "payload alike %",
            "codec",
            "block KiB",
            "ratio",
            "compress MB/s",
            "decompress MB/s",
        ]),
        lines,
    }
}

fn engines(run: &RunRecord, targets: &[&str]) -> Grid {
    let mut lines = Vec::new();
    let planned = |step: &str| run.manifest.plan.steps.iter().any(|s| s.name == step);
    for target in targets {
        for constant in CONSTANT {
            for compressor in COMPRESSORS {
                let step = load(constant, compressor);
                let lacks = result(run, target, &step).is_some_and(|r| r.unsupported.is_some());
                if lacks || !planned(&step) {
                    continue;
                }
                let of = |what: &str| figure(run, target, &step, what);
                let point = format!("point-{constant}-{compressor}");
                let read = |what: &str| figure(run, target, &point, what);
                let mut values = vec![
                    Value::Text(constant.to_string()),
                    Value::Text(compressor.to_owned()),
                ];
                let numbers = [
                    of("rate_mean"),
                    of("file_bytes").map(|b| b / 1e6),
                    ratio(of("file_bytes"), of("rows")),
                    of("cpu_us_per_row"),
                    of("device_write_bytes_per_row").map(|b| b / 1e3),
                    read("rate_mean"),
                    read("latency_p99_ms"),
                    read("cpu_us_per_query"),
                ];
                values.extend(numbers.map(Value::Number));
                lines.push(Line {
                    name: (*target).to_owned(),
                    values,
                });
            }
        }
    }
    Grid {
        caption: "Inside the engines: load, and points read from a cold store".to_owned(),
        columns: words(&[
            "payload alike %",
            "codec",
            "inserts/s",
            "MB",
            "bytes/row",
            "CPU us/insert",
            "device kB/insert",
            "points/s",
            "point p99 ms",
            "CPU us/point",
        ]),
        lines,
    }
}

/// Compression ratio against decompression speed, for blocks of 16 KiB.
fn scatter(run: &RunRecord, target: &str, constant: u8) -> Option<Plot> {
    let block = 16 << 10;
    let points: Vec<(String, f64, f64)> = CODECS
        .into_iter()
        .filter(|codec| *codec != "none")
        .filter_map(|codec| {
            let of = |what| tried(run, target, constant, (codec, block, what));
            Some((codec.to_owned(), of("decompress_mb_s")?, of("ratio")?))
        })
        .collect();
    (!points.is_empty()).then(|| Plot::Scatter {
        title: format!("Ratio by speed of decompression, {target}, {constant} % alike, 16 KiB"),
        x: "MB/s decompressed".to_owned(),
        y: "ratio".to_owned(),
        points,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::analysis::summarize;
    use crate::fixture;
    use crate::record::StepSummary;

    #[test]
    fn codecs_and_engines_have_their_lines_and_points() {
        let extra = |codec: &str, ratio: f64| {
            let place = format!("codec.{codec}.16384");
            [
                (format!("{place}.ratio"), ratio),
                (format!("{place}.compress_mb_s"), 300.0),
                (format!("{place}.decompress_mb_s"), 900.0),
            ]
        };
        let all = extra("lz4", 1.9).into_iter().chain(extra("none", 1.0));
        let step = StepSummary {
            step: load(50, "none"),
            extra: BTreeMap::from_iter(all),
            ..fixture::step("betree", 1, 1000.0)
        };
        let mut run = fixture::run("run", &["betree"], 1, vec![step.clone()]);
        run.manifest.plan.steps[0].name = load(50, "none");
        run.summary = summarize(&run.manifest, &[(step, Vec::new())], true);
        let beside = beside(&run);
        assert_eq!(beside.measured[0].lines.len(), 2);
        assert_eq!(beside.measured[1].lines.len(), 1);
        let [Plot::Scatter { points, .. }] = beside.plots.as_slice() else {
            panic!("{:?}", beside.plots)
        };
        assert_eq!(points, &[("lz4".to_owned(), 900.0, 1.9)]);
        for grid in beside.measured.iter().chain([&beside.published]) {
            let fits = |l: &Line| l.values.len() == grid.columns.len();
            assert!(grid.lines.iter().all(fits), "{}", grid.caption);
        }
    }
}
