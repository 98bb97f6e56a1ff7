//! Examines the files of a store at rest after a step: draws them as a map, and tries codecs on
//! their pages.

use std::path::Path;

use kv::Encryption;
use lab_map::codec::Tried;
use lab_map::map;
use lab_report::error::Result;
use lab_report::record::StepPlan;
use lab_report::record::map::Map;
use lab_report::store::StepDir;

use super::cell::RunningCell;
use super::exchange::unexpected;
use super::measured::Measured;
use crate::protocol::{Event, Request};

/// Examine the files of a step as its setting requests.
pub(super) fn look(
    running: &mut RunningCell<'_, '_, '_>,
    step: &StepPlan,
    dir: &StepDir,
    measured: &mut Measured,
) -> Result<()> {
    if step.setting.map {
        // The worker has the store open and idle, so the map shows the settled state.
        let key_file = running.target.options.get(Encryption::OPTION);
        let key_file = key_file.filter(|path| *path != "none").map(Path::new);
        match map::read(&running.dir, key_file) {
            Ok(map) => {
                figures(&map, measured);
                dir.write_map(&map)?;
            }
            Err(e) => measured.warnings.push(format!("no map: {}", e.message)),
        }
    }
    if let Some(seconds) = step.setting.codecs {
        let request = Request::Codecs {
            directory: running.dir.clone(),
            seconds,
        };
        match running.ask(&request)? {
            Event::Codecs { tried } => codecs(&tried, measured),
            other => return Err(unexpected(&other)),
        }
    }
    Ok(())
}

/// Add the totals of a map to the numbers of the step.
fn figures(map: &Map, measured: &mut Measured) {
    let sums = &map.sums;
    let mut put = |name: &str, value: f64| measured.extra.insert(name.to_owned(), value);
    put("map_file_bytes", sums.file_bytes as f64);
    put("map_free_bytes", sums.free_bytes as f64);
    put("map_leaves", sums.leaves as f64);
    if let Some(fill) = sums.leaf_fill {
        put("map_leaf_fill", fill);
    }
    if let Some(extents) = sums.extents {
        put("map_extents", extents as f64);
    }
}

/// Add the results of the codecs to the numbers of the step. A codec that does not restore its
/// input makes the step invalid.
fn codecs(tried: &[Tried], measured: &mut Measured) {
    for one in tried {
        let place = format!("codec.{}.{}", one.codec, one.block);
        let mut put = |name: &str, value: f64| {
            measured.extra.insert(format!("{place}.{name}"), value);
        };
        put("ratio", one.ratio);
        put("compress_mb_s", one.compress);
        put("decompress_mb_s", one.decompress);
        if 0 < one.wrong {
            measured.integrity.faults.push(format!(
                "{} gave back {} blocks of {} bytes other than it was given",
                one.codec, one.wrong, one.block
            ));
        }
    }
}
