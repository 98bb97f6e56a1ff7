//! The directory of a sweep: `sweep.json`, and a directory for the run of each cell.

use std::fs;
use std::path::{Path, PathBuf};

use super::{MANIFEST, check_new, holder, load, read_json, write_json};
use crate::error::{Error, Result};
use crate::record::{RunRecord, SCHEMA, Sweep, SweepCell, SweepRecord};

/// The file that makes a directory a sweep.
pub const SWEEP: &str = "sweep.json";

/// Whether a directory holds a sweep.
#[must_use]
pub fn is_sweep(path: &Path) -> bool {
    path.join(SWEEP).is_file()
}

/// Write the plan of a new sweep.
///
/// # Errors
/// When the directory holds anything already, or cannot be written.
pub fn create_sweep(path: &Path, sweep: &Sweep) -> Result<()> {
    check_new(path)?;
    vfs::ensure_dir(path).map_err(|e| Error::io("create", path, &e))?;
    write_json(&path.join(SWEEP), sweep)
}

/// The plan of a sweep.
///
/// # Errors
/// When the directory holds none, or one of another schema.
pub fn read_sweep(path: &Path) -> Result<Sweep> {
    let file = path.join(SWEEP);
    let sweep: Sweep = read_json(&file)?;
    if sweep.schema != SCHEMA {
        return Err(Error::environment(format!(
            "{} was written by another version (schema {}, romanesco {}); this program reads \
             schema {SCHEMA}: use that version, or run the sweep again",
            path.display(),
            sweep.schema,
            sweep.lab_version
        )));
    }
    for cell in &sweep.cells {
        check_cell(&file, &sweep, cell)?;
    }
    Ok(sweep)
}

/// Refuse a cell whose run would be outside of the sweep's directory, or whose values are unknown.
fn check_cell(file: &Path, sweep: &Sweep, cell: &SweepCell) -> Result<()> {
    let inside = Path::new(&cell.directory).components().count() == 1
        && !cell.directory.starts_with(['.', '/']);
    let known = cell.values.len() == sweep.axes.len()
        && (sweep.axes.iter().zip(&cell.values)).all(|(axis, at)| *at < axis.values.len());
    if inside && known {
        return Ok(());
    }
    Err(Error::environment(format!(
        "{} is damaged: the run {:?} does not belong to it",
        file.display(),
        cell.directory
    )))
}

/// Read a sweep with the runs that were started.
///
/// # Errors
/// The errors of [`read_sweep`]; a run that cannot be read is not one: its place has the reason.
pub fn load_sweep(path: &Path) -> Result<SweepRecord> {
    load_with(path, load)
}

/// The same, with another way to read a run.
///
/// # Errors
/// The errors of [`load_sweep`].
pub fn load_with(path: &Path, read: fn(&Path) -> Result<RunRecord>) -> Result<SweepRecord> {
    let sweep = read_sweep(path)?;
    let run = |cell: &SweepCell| -> Result<RunRecord, String> {
        let at = path.join(&cell.directory);
        if !at.join(MANIFEST).exists() {
            return Err("not run yet".to_owned());
        }
        read(&at).map_err(|e| e.message)
    };
    let runs = sweep.cells.iter().map(run).collect();
    Ok(SweepRecord { sweep, runs })
}

/// The process that works on a sweep and the run it works on, if any.
///
/// # Errors
/// The errors of [`read_sweep`].
pub fn sweep_holder(path: &Path) -> Result<Option<(PathBuf, u32)>> {
    for cell in read_sweep(path)?.cells {
        let at = path.join(&cell.directory);
        if !at.join(MANIFEST).exists() {
            continue;
        }
        if let Some(process) = holder(&at)? {
            return Ok(Some((at, process)));
        }
    }
    Ok(None)
}

/// The runs of a sweep that were started, for messages.
pub(super) fn some_run(path: &Path) -> Option<String> {
    let entries = fs::read_dir(path).ok()?;
    let mut runs: Vec<PathBuf> = entries
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| p.join(MANIFEST).exists())
        .collect();
    runs.sort();
    runs.first().map(|p| p.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_sweep_is_kept_and_read_with_its_runs() {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("out");
        let sweep = fixture::sweep(&[8.0, 16.0]);
        create_sweep(&out, &sweep).unwrap();
        assert!(is_sweep(&out) && !is_sweep(place.path()));
        let again = create_sweep(&out, &sweep).unwrap_err();
        assert!(again.message.contains("lab resume"), "{again}");
        let found = load_sweep(&out).unwrap();
        assert_eq!(found.sweep.axes, sweep.axes);
        let not_run: Vec<&str> = found
            .runs
            .iter()
            .map(|r| r.as_ref().unwrap_err().as_str())
            .collect();
        assert_eq!(not_run, ["not run yet", "not run yet"]);
        // A sweep is no run, and the error names what can be done.
        let error = load(&out).unwrap_err();
        assert!(error.message.contains("sweep"), "{error}");
        assert_eq!(sweep_holder(&out).unwrap(), None);
    }

    #[test]
    fn directories_outside_and_unknown_values_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let refused = |change: fn(&mut Sweep)| {
            let mut sweep = fixture::sweep(&[8.0, 16.0]);
            change(&mut sweep);
            write_json(&place.path().join(SWEEP), &sweep).unwrap();
            read_sweep(place.path()).unwrap_err().message
        };
        for change in [
            (|s| s.cells[0].directory = "../elsewhere".to_owned()) as fn(&mut Sweep),
            |s| s.cells[0].directory = "/etc".to_owned(),
            |s| s.cells[0].directory = "..".to_owned(),
            |s| s.cells[0].directory = String::new(),
            |s| s.cells[1].values[0] = 2,
            |s| s.cells[1].values.clear(),
        ] {
            let message = refused(change);
            assert!(message.contains("damaged"), "{message}");
        }
        assert!(refused(|s| s.schema = 99).contains("schema 99"));
    }
}
