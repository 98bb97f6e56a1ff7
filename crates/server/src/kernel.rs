//! What the kernel reports about the process and the machine in `/proc` and `/sys`: the one parser
//! of each file, for the commands and for the metrics. A value that is not reported is `None`.

use std::fs;

use vfs::DeviceId;

/// The columns of the first line of `/proc/stat`, in ticks.
const MODES: [&str; 10] = [
    "user",
    "nice",
    "system",
    "idle",
    "iowait",
    "irq",
    "softirq",
    "steal",
    "guest",
    "guest_nice",
];

/// The text of a file, empty if there is none.
pub(crate) fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The version of the kernel.
pub(crate) fn release() -> String {
    text("/proc/sys/kernel/osrelease").trim().to_owned()
}

/// Kibibytes in a line such as `MemTotal:  16 kB`.
pub(crate) fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let of = |line: &'_ str| {
        let (found, rest) = line.split_once(':')?;
        (found == name).then(|| rest.split_whitespace().next()?.parse().ok())?
    };
    text.lines().find_map(of)
}

/// `/proc/self/stat`: the counters of the process.
pub(crate) struct Process(String);

impl Process {
    /// Read them.
    pub(crate) fn read() -> Process {
        Process::of(&text("/proc/self/stat"))
    }

    fn of(text: &str) -> Process {
        // The name of the process, in parentheses, may contain spaces; the third column follows it.
        Process(
            text.rsplit_once(')')
                .map_or_else(String::new, |(_, rest)| rest.to_owned()),
        )
    }

    /// A column by its number in proc(5), from 3.
    pub(crate) fn column(&self, number: usize) -> Option<u64> {
        let mut columns = self.0.split_whitespace();
        columns.nth(number.checked_sub(3)?)?.parse().ok()
    }
}

/// `/proc/stat`: the counters of the machine.
pub(crate) struct Machine(String);

impl Machine {
    /// Read them.
    pub(crate) fn read() -> Machine {
        Machine(text("/proc/stat"))
    }

    /// Ticks of all processors together, by mode.
    pub(crate) fn ticks(&self) -> Vec<(&'static str, u64)> {
        let line = self.0.lines().find_map(|line| line.strip_prefix("cpu "));
        let ticks = line.unwrap_or_default().split_whitespace();
        let named = MODES.into_iter().zip(ticks);
        named
            .filter_map(|(mode, ticks)| Some((mode, ticks.parse().ok()?)))
            .collect()
    }

    /// The number in a line such as `btime 1700000000`.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        let of = |line: &str| {
            let rest = line.strip_prefix(name)?.strip_prefix(' ')?;
            rest.split_whitespace().next()?.parse().ok()
        };
        self.0.lines().find_map(of)
    }
}

/// What a block device has done since the machine started.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Disk {
    /// Completed reads and writes.
    pub(crate) operations: [u64; 2],
    /// Bytes read and written.
    pub(crate) bytes: [u64; 2],
    /// Milliseconds in which it was busy.
    pub(crate) busy_ms: u64,
}

impl Disk {
    /// The device with these numbers.
    pub(crate) fn read(device: DeviceId) -> Option<Disk> {
        Disk::of(&text(&format!("/sys/dev/block/{device}/stat")))
    }

    fn of(text: &str) -> Option<Disk> {
        /// Bytes of a sector in this file, whatever the device has.
        const SECTOR: u64 = 512;
        let columns: Vec<u64> = text
            .split_whitespace()
            .map_while(|word| word.parse().ok())
            .collect();
        let at = |column: usize| columns.get(column).copied();
        let bytes = |column| Some(at(column)?.saturating_mul(SECTOR));
        Some(Disk {
            operations: [at(0)?, at(4)?],
            bytes: [bytes(2)?, bytes(6)?],
            busy_ms: at(9)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_reported_is_none() {
        let memory = "MemTotal:       24684096 kB\nSwapTotal:  0 kB\nOdd: x kB\n";
        assert_eq!(kibibytes(memory, "MemTotal"), Some(24_684_096));
        assert_eq!(kibibytes(memory, "SwapTotal"), Some(0));
        for name in ["Mem", "MemFree", "Odd"] {
            assert_eq!(kibibytes(memory, name), None, "{name}");
        }
        let process = Process::of("17 (a) b (c) S 1 2 x");
        assert_eq!((process.column(4), process.column(5)), (Some(1), Some(2)));
        assert_eq!((process.column(0), process.column(3)), (None, None));
        assert_eq!((process.column(6), process.column(7)), (None, None));
        let machine = Machine("cpu  1 2 x 4\ncpu0 9 9\nbtime 17\nbtimes 18\n".to_owned());
        assert_eq!(machine.ticks(), [("user", 1), ("nice", 2), ("idle", 4)]);
        assert_eq!(machine.number("btime"), Some(17));
        assert_eq!(machine.number("ctxt"), None);
    }

    #[test]
    fn sectors_of_a_device_have_512_bytes() {
        let disk = Disk::of("   10 0 20 5 30 0 40 6 0 70 80\n").unwrap();
        assert_eq!(disk.operations, [10, 30]);
        assert_eq!(disk.bytes, [10_240, 20_480]);
        assert_eq!(disk.busy_ms, 70);
        assert_eq!(Disk::of(""), None);
        assert_eq!(Disk::of("1 2 3"), None);
    }
}
