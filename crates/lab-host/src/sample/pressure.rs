//! Pressure stall information (kernel: Documentation/accounting/psi.rst).

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::source::Source;
use crate::envelope::Version;

/// Cumulative stall time in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PressureTotals {
    /// Time during which at least one task waited.
    pub some_us: u64,
    /// Time during which all tasks waited; absent for the processor on older kernels.
    pub full_us: Option<u64>,
}

/// The pressure on each resource; `None` if the kernel does not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pressure {
    /// Tasks that wait for a processor.
    pub cpu: Option<PressureTotals>,
    /// Tasks that wait for I/O.
    pub io: Option<PressureTotals>,
    /// Tasks that wait for memory: for reclaim, or for reclaimed pages to be read back.
    pub memory: Option<PressureTotals>,
}

/// The three pressure files, as far as they exist.
#[derive(Debug)]
pub(super) struct PressureFiles(Option<[Source; 3]>);

impl PressureFiles {
    pub(super) fn of_system(proc_root: &Path) -> PressureFiles {
        let directory = proc_root.join("pressure");
        PressureFiles(Some(
            ["cpu", "io", "memory"].map(|name| Source::in_dir(&directory, name)),
        ))
    }

    /// The pressure files of a version 2 group; version 1 has none.
    pub(super) fn of_group(group: Option<(Version, &Path)>) -> PressureFiles {
        let Some((Version::V2, path)) = group else {
            return PressureFiles(None);
        };
        PressureFiles(Some(
            ["cpu.pressure", "io.pressure", "memory.pressure"]
                .map(|name| Source::in_dir(path, name)),
        ))
    }

    pub(super) fn read(&mut self) -> Pressure {
        let Some([cpu, io, memory]) = &mut self.0 else {
            return Pressure::default();
        };
        Pressure {
            cpu: cpu.read().and_then(parse),
            io: io.read().and_then(parse),
            memory: memory.read().and_then(parse),
        }
    }
}

fn parse(text: &str) -> Option<PressureTotals> {
    let total = |kind: &str| -> Option<u64> {
        let line = text.lines().find_map(|l| l.strip_prefix(kind))?;
        let (_, total) = line.rsplit_once("total=")?;
        total.trim().parse().ok()
    };
    Some(PressureTotals {
        some_us: total("some ")?,
        full_us: total("full "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_taken_and_absent_ones_are_none() {
        let text = "some avg10=0.29 avg60=0.19 avg300=0.11 total=14784165\n\
                    full avg10=0.29 avg60=0.19 avg300=0.11 total=14302919\n";
        let totals = parse(text).unwrap();
        assert_eq!(
            (totals.some_us, totals.full_us),
            (14_784_165, Some(14_302_919))
        );
        let only = parse("some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n").unwrap();
        assert_eq!((only.some_us, only.full_us), (5, None));
        assert_eq!(parse(""), None);
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(
            PressureFiles::of_system(dir.path()).read(),
            Pressure::default()
        );
        assert_eq!(PressureFiles::of_group(None).read(), Pressure::default());
    }
}
