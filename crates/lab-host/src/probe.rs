//! A short measurement of the device under a directory: its speed without the page cache, and
//! whether caps on it hold.
//!
//! I/O bypasses the page cache (`O_DIRECT`); if the file system refuses that, the probe uses
//! buffered I/O and reports so, and its read rates then measure memory. The probe file is unlinked
//! as soon as it is open, so it never remains, however the probe ends.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use stdx::{ByteSize, Rng};

use lab_report::record::{LimitKind, Limits};

/// Maximum size of the probe file, 256 MiB: larger than the cache of a disk controller, small
/// enough for any data directory.
pub const FILE_MAX: ByteSize = ByteSize::mib(256);

/// Minimum size of the probe file, 1 MiB.
const FILE_MIN: u64 = 1 << 20;

/// Size of the file for cap checks, 8 MiB: small, because it is written under the caps.
const CHECK_FILE: u64 = 8 << 20;

const SMALL: usize = 4 << 10;
const LARGE: usize = 256 << 10;

/// Memory alignment of direct I/O: the largest logical block size in use.
const ALIGNMENT: usize = 4096;

/// Speed of a device without caps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeResult {
    /// True if the I/O bypassed the page cache.
    pub direct: bool,
    /// The size of the file probed, in bytes.
    pub file_bytes: u64,
    /// Sequential writes of 256 KiB, in bytes per second.
    pub write_bytes_per_s: f64,
    /// Random reads of 4 KiB per second, one at a time.
    pub read_iops_1: f64,
    /// Random reads of 4 KiB per second, four at a time.
    pub read_iops_4: f64,
    /// Latency of appending 4 KiB and `fdatasync`.
    pub sync_append: Latency,
}

/// A distribution of durations, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Number of durations.
    pub count: u64,
    /// Median.
    pub p50_us: u64,
    /// 99th percentile.
    pub p99_us: u64,
    /// Maximum.
    pub max_us: u64,
}

/// A measured rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Operations done.
    pub operations: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Elapsed time.
    pub elapsed: Duration,
    /// True if the I/O bypassed the page cache.
    pub direct: bool,
}

impl Rate {
    /// Operations per second.
    #[must_use]
    pub fn iops(&self) -> f64 {
        self.operations as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Bytes per second.
    #[must_use]
    pub fn bytes_per_s(&self) -> f64 {
        self.bytes as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// Probes the device under a directory.
#[derive(Debug)]
pub struct DeviceProbe;

impl DeviceProbe {
    /// Probe in `dir` for about `duration` in all, with a file of `file_size` (clamped to between 1
    /// MiB and [`FILE_MAX`]).
    ///
    /// # Errors
    /// An error of the operating system: no space, no permission to write, a failing device.
    pub fn run(dir: &Path, duration: Duration, file_size: ByteSize) -> io::Result<ProbeResult> {
        let size = file_size.bytes().clamp(FILE_MIN, FILE_MAX.bytes());
        let share = duration / 4;
        let scratch = Scratch::create(dir)?;
        let write = scratch.fill(size, Some(share))?;
        let read = |threads| {
            let job = Job::new(Direction::Read, SMALL, threads, share);
            scratch.random(&job, write.bytes.max(FILE_MIN))
        };
        let (one, four) = (read(1)?, read(4)?);
        Ok(ProbeResult {
            direct: scratch.direct,
            file_bytes: write.bytes,
            write_bytes_per_s: write.bytes_per_s(),
            read_iops_1: one.iops(),
            read_iops_4: four.iops(),
            sync_append: Scratch::create(dir)?.appends(share, size)?,
        })
    }
}

/// Random reads of 4 KiB in `dir`, four at a time for `duration`. Called in a capped process, it
/// measures the rate that a cap on read IOPS admits.
///
/// # Errors
/// An error of the operating system.
pub fn direct_read_iops(dir: &Path, duration: Duration) -> io::Result<Rate> {
    let scratch = Scratch::create(dir)?;
    scratch.fill(CHECK_FILE, None)?;
    scratch.random(&Job::new(Direction::Read, SMALL, 4, duration), CHECK_FILE)
}

/// Random overwrites of 4 KiB, as [`direct_read_iops`].
///
/// # Errors
/// An error of the operating system.
pub fn direct_write_iops(dir: &Path, duration: Duration) -> io::Result<Rate> {
    let scratch = Scratch::create(dir)?;
    scratch.fill(CHECK_FILE, None)?;
    scratch.random(&Job::new(Direction::Write, SMALL, 4, duration), CHECK_FILE)
}

/// One cap and the measured rate of the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapCheck {
    /// The capped quantity.
    pub limit: LimitKind,
    /// Operations or bytes per second allowed.
    pub cap: u64,
    /// Operations or bytes per second measured.
    pub measured: f64,
    /// The measured rate as a multiple of the cap. Above 1.05 the cap does not hold. Well below 1,
    /// another limit is tighter: the speed of the device, or another cap.
    pub ratio: f64,
    /// False if only buffered I/O could be measured, which proves nothing about a cap.
    pub direct: bool,
}

/// Measure every I/O cap of `limits` for `duration` each. Must be called in the capped process.
///
/// # Errors
/// An error of the operating system.
pub fn check_caps(dir: &Path, limits: &Limits, duration: Duration) -> io::Result<Vec<CapCheck>> {
    let mut checks = Vec::new();
    let scratch = Scratch::create(dir)?;
    scratch.fill(CHECK_FILE, None)?;
    for (limit, cap) in limits.each() {
        let Some(cap) = cap else { continue };
        let (direction, block) = match limit {
            LimitKind::ReadIops => (Direction::Read, SMALL),
            LimitKind::WriteIops => (Direction::Write, SMALL),
            LimitKind::ReadBps => (Direction::Read, LARGE),
            LimitKind::WriteBps => (Direction::Write, LARGE),
            LimitKind::Memory => continue,
        };
        let rate = scratch.random(&Job::new(direction, block, 4, duration), CHECK_FILE)?;
        let measured = match block {
            SMALL => rate.iops(),
            _ => rate.bytes_per_s(),
        };
        checks.push(CapCheck {
            limit,
            cap,
            measured,
            ratio: measured / cap as f64,
            direct: rate.direct,
        });
    }
    Ok(checks)
}

/// Whether direct I/O on files in `dir` works.
///
/// # Errors
/// The reason why direct I/O does not work.
pub fn direct_io_works(dir: &Path) -> Result<(), String> {
    let scratch = Scratch::create(dir).map_err(|e| e.to_string())?;
    if !scratch.direct {
        return Err("the file system refuses O_DIRECT".to_owned());
    }
    let buffer = AlignedBuffer::random(SMALL, 1);
    let written = scratch.file.write_all_at(buffer.bytes(), 0);
    written.map_err(|e| format!("a direct write of 4 KiB failed: {e}"))
}

#[derive(Clone, Copy, Debug)]
enum Direction {
    Read,
    Write,
}

/// Parameters of random I/O.
#[derive(Debug)]
struct Job {
    direction: Direction,
    block: usize,
    threads: u64,
    duration: Duration,
}

impl Job {
    fn new(direction: Direction, block: usize, threads: u64, duration: Duration) -> Job {
        Job {
            direction,
            block,
            threads,
            duration,
        }
    }
}

/// An unlinked file for probes.
#[derive(Debug)]
struct Scratch {
    file: File,
    direct: bool,
}

impl Scratch {
    fn create(dir: &Path) -> io::Result<Scratch> {
        let unique = stdx::time::wall().as_nanos();
        let name = format!("romanesco-probe-{}-{unique}.tmp", std::process::id());
        let path = dir.join(name);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let open = rustix::fs::open(&path, flags | OFlags::DIRECT, Mode::RUSR | Mode::WUSR);
        let scratch = match open {
            Ok(descriptor) => Scratch {
                file: File::from(descriptor),
                direct: true,
            },
            Err(rustix::io::Errno::INVAL) => {
                // A failed open may have left the file behind, so this open does not use `EXCL`.
                let mut options = OpenOptions::new();
                options.read(true).write(true).create(true).truncate(true);
                Scratch {
                    file: options.open(&path)?,
                    direct: false,
                }
            }
            Err(e) => return Err(e.into()),
        };
        std::fs::remove_file(&path)?;
        Ok(scratch)
    }

    /// Write the first `size` bytes sequentially. If `limit` passes before the end, writing stops
    /// once the bytes that later reads need, [`FILE_MIN`], are written.
    fn fill(&self, size: u64, limit: Option<Duration>) -> io::Result<Rate> {
        let buffer = AlignedBuffer::random(LARGE, 7);
        let begin = stdx::time::now();
        let (mut bytes, mut operations) = (0, 0);
        while bytes < size {
            if bytes >= FILE_MIN && limit.is_some_and(|limit| begin.elapsed() >= limit) {
                break;
            }
            self.file.write_all_at(buffer.bytes(), bytes)?;
            bytes += LARGE as u64;
            operations += 1;
        }
        self.file.sync_data()?;
        Ok(Rate {
            operations,
            bytes,
            elapsed: begin.elapsed(),
            direct: self.direct,
        })
    }

    /// Random I/O within the first `size` bytes.
    fn random(&self, job: &Job, size: u64) -> io::Result<Rate> {
        let begin = stdx::time::now();
        let counts: Vec<io::Result<u64>> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..job.threads)
                .map(|seed| scope.spawn(move || self.random_one(job, size, seed)))
                .collect();
            let panicked = || Err(io::Error::other("a probe thread panicked"));
            let joined = workers.into_iter().map(|w| w.join());
            joined.map(|r| r.unwrap_or_else(|_| panicked())).collect()
        });
        let elapsed = begin.elapsed();
        let operations = counts.into_iter().sum::<io::Result<u64>>()?;
        Ok(Rate {
            operations,
            bytes: operations * job.block as u64,
            elapsed,
            direct: self.direct,
        })
    }

    fn random_one(&self, job: &Job, size: u64, seed: u64) -> io::Result<u64> {
        let mut rng = Rng::new(seed);
        let mut buffer = AlignedBuffer::random(job.block, seed);
        let block = job.block as u64;
        let begin = stdx::time::now();
        let mut operations = 0;
        while begin.elapsed() < job.duration {
            let offset = rng.below(size / block) * block;
            match job.direction {
                Direction::Read => self.file.read_exact_at(buffer.bytes_mut(), offset)?,
                Direction::Write => self.file.write_all_at(buffer.bytes(), offset)?,
            }
            operations += 1;
        }
        Ok(operations)
    }

    /// Append and sync for `duration`, up to `size` bytes.
    fn appends(&self, duration: Duration, size: u64) -> io::Result<Latency> {
        let buffer = AlignedBuffer::random(SMALL, 3);
        let begin = stdx::time::now();
        let mut times = Vec::new();
        let mut offset = 0;
        while offset < size && (times.is_empty() || begin.elapsed() < duration) {
            let start = stdx::time::now();
            self.file.write_all_at(buffer.bytes(), offset)?;
            self.file.sync_data()?;
            times.push(u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX));
            offset += SMALL as u64;
        }
        Ok(Latency::of(times))
    }
}

impl Latency {
    fn of(mut times: Vec<u64>) -> Latency {
        times.sort_unstable();
        // Percentile by nearest rank: the smallest duration such that at least `percent` % of all
        // are not longer.
        let rank = |percent: usize| {
            let index = (times.len() * percent).div_ceil(100).saturating_sub(1);
            times.get(index).copied().unwrap_or(0)
        };
        Latency {
            count: times.len() as u64,
            p50_us: rank(50),
            p99_us: rank(99),
            max_us: rank(100),
        }
    }
}

/// A buffer aligned for direct I/O.
#[derive(Debug)]
struct AlignedBuffer {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl AlignedBuffer {
    /// `length` bytes that neither compress nor deduplicate.
    fn random(length: usize, seed: u64) -> AlignedBuffer {
        let mut bytes = vec![0; length + ALIGNMENT];
        Rng::new(seed ^ 0x5EED).fill(&mut bytes);
        let start = bytes.as_ptr().align_offset(ALIGNMENT);
        assert!(start <= ALIGNMENT, "bytes can be aligned to any address");
        AlignedBuffer {
            bytes,
            start,
            length,
        }
    }

    fn bytes(&self) -> &[u8] {
        let range = self.start..self.start + self.length;
        self.bytes
            .get(range)
            .expect("ALIGNMENT spare bytes were allocated")
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let range = self.start..self.start + self.length;
        self.bytes
            .get_mut(range)
            .expect("ALIGNMENT spare bytes were allocated")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_rank() {
        let latency = Latency::of((1..=200).rev().collect());
        assert_eq!((latency.count, latency.p50_us), (200, 100));
        assert_eq!((latency.p99_us, latency.max_us), (198, 200));
        assert_eq!(Latency::of(Vec::new()), Latency::default());
        assert_eq!(Latency::of(vec![5]).p99_us, 5);
    }

    #[test]
    fn buffers_are_aligned() {
        for length in [SMALL, LARGE] {
            let buffer = AlignedBuffer::random(length, 1);
            assert_eq!(buffer.bytes().len(), length);
            assert_eq!(buffer.bytes().as_ptr().align_offset(ALIGNMENT), 0);
        }
    }

    #[test]
    fn a_short_probe_measures_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let duration = Duration::from_millis(200);
        let result = DeviceProbe::run(dir.path(), duration, ByteSize::mib(1)).unwrap();
        println!("{result:?}");
        assert_eq!(result.file_bytes, 1 << 20);
        assert!(result.write_bytes_per_s > 0.0 && result.read_iops_1 > 0.0);
        assert!(result.read_iops_4 > 0.0 && result.sync_append.count > 0);
        let latency = result.sync_append;
        assert!(latency.p50_us <= latency.p99_us && latency.p99_us <= latency.max_us);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert_eq!(direct_io_works(dir.path()).is_ok(), result.direct);
    }

    #[test]
    fn every_io_cap_is_checked_and_memory_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let limits = Limits {
            memory: Some(ByteSize::gib(1)),
            read_iops: Some(1_000_000_000),
            write_bps: Some(1 << 50),
            ..Limits::default()
        };
        let checks = check_caps(dir.path(), &limits, Duration::from_millis(20)).unwrap();
        let kinds: Vec<_> = checks.iter().map(|c| c.limit).collect();
        assert_eq!(kinds, [LimitKind::ReadIops, LimitKind::WriteBps]);
        assert!(
            checks.iter().all(|c| c.ratio > 0.0 && c.ratio < 1.0),
            "{checks:?}"
        );
        let write = direct_write_iops(dir.path(), Duration::from_millis(20)).unwrap();
        assert!(write.operations > 0 && write.bytes == write.operations * SMALL as u64);
    }

    #[test]
    fn a_missing_directory_is_an_error() {
        let missing = Path::new("/nonexistent/dir");
        assert!(direct_read_iops(missing, Duration::ZERO).is_err());
        assert!(direct_io_works(missing).is_err());
    }
}
