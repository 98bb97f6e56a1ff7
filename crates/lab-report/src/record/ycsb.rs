//! YCSB's core workloads (Cooper et al., "Benchmarking cloud serving systems with YCSB", SoCC
//! 2010): their mixes, and which records they request.

use serde::{Deserialize, Serialize};

/// The kinds of operations, in the order of [`Core::weights`].
pub const KINDS: [&str; 5] = ["read", "update", "insert", "scan", "read_modify_write"];

/// A core workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Core {
    /// Half reads, half updates.
    A,
    /// Reads, few updates.
    B,
    /// Reads only.
    C,
    /// Reads of the newest records, few inserts.
    D,
    /// Short scans, few inserts.
    E,
    /// Half reads, half updates of what was read.
    F,
}

impl Core {
    /// All of them, in the order in which YCSB's documentation runs them: those that add no records
    /// come first.
    pub const ALL: [Core; 6] = [Core::A, Core::B, Core::C, Core::F, Core::D, Core::E];

    /// The step that runs it.
    #[must_use]
    pub fn step(self) -> &'static str {
        match self {
            Core::A => "workload-a",
            Core::B => "workload-b",
            Core::C => "workload-c",
            Core::D => "workload-d",
            Core::E => "workload-e",
            Core::F => "workload-f",
        }
    }

    /// What it does.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Core::A => "50 % reads, 50 % updates of one field",
            Core::B => "95 % reads, 5 % updates of one field",
            Core::C => "reads only",
            Core::D => "95 % reads of the newest records, 5 % inserts",
            Core::E => "95 % scans of 1 to 100 records, 5 % inserts",
            Core::F => "50 % reads, 50 % reads of a record with an update of one of its fields",
        }
    }

    /// Shares of the kinds of operations in per cent, in the order of [`KINDS`].
    #[must_use]
    pub fn weights(self) -> [u64; 5] {
        match self {
            Core::A => [50, 50, 0, 0, 0],
            Core::B => [95, 5, 0, 0, 0],
            Core::C => [100, 0, 0, 0, 0],
            Core::D => [95, 0, 5, 0, 0],
            Core::E => [0, 0, 5, 95, 0],
            Core::F => [50, 0, 0, 0, 50],
        }
    }
}

/// Which of the existing records an operation requests. Workload D requests the newest ones always.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Requests {
    /// Zipf's law with the exponent 0.99; the popular records are scattered over the keys.
    Zipfian,
    /// All alike.
    Uniform,
    /// Zipf's law over the age: the newest is requested most.
    Latest,
    /// 80 % of the operations request 20 % of the records.
    Hotspot,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_are_whole_and_only_the_last_workloads_insert() {
        for core in Core::ALL {
            assert_eq!(core.weights().iter().sum::<u64>(), 100, "{core:?}");
        }
        let inserts = Core::ALL.map(|core| 0 < core.weights()[2]);
        assert_eq!(inserts, [false, false, false, false, true, true]);
    }
}
