//! A file system for a store whose power is cut. Only that store uses it; it is in a file behind a
//! loop device.
//!
//! A power cut aborts the file system, with a facility that ext4 has for tests (`mount -o
//! remount,abort`): data that was not written out by then is lost, as the page cache is when power
//! fails, and nothing is written afterwards. Data that the store's syncs had written out is present
//! when the file system is mounted again. The loss of a device's own cache is not simulated: data
//! that reached the device stays.
//!
//! - P1. The mount is visible to the laboratory's processes alone ([`own_mounts`]) and the file has
//!   no name once it is mounted: both vanish with the last of these processes, however it dies.
//! - P2. What was synced before the cut began is present. A sync in progress at the cut may return
//!   success though it failed: ext4 does not check again whether its journal was aborted once the
//!   transaction it waits for has ended (`jbd2_complete_transaction`). So an acknowledgement after
//!   the start of the cut proves nothing. A cut takes tens of milliseconds: the processes that use
//!   the store are halted before it ([`halt`](super::halt)), because they would otherwise continue
//!   to sync for that time.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use lab_report::error::{Error, Result};
use lab_report::record::Plan;
use rustix::process::geteuid;
use stdx::{ByteSize, time};

use crate::programs::found;

/// Maximum size of the file system. Its file is sparse.
const SIZE: ByteSize = ByteSize::gib(8);

/// Arguments of `mkfs`: ext4, fully initialized at once, tuned for a few large files.
const MAKE: [&str; 7] = [
    "-q",
    "-F",
    "-T",
    "largefile",
    "-E",
    "lazy_itable_init=0,lazy_journal_init=0",
    "-Jsize=64",
];

/// Environment variable that is set if this process has a private mount namespace.
const OWN: &str = "ROMANESCO_LAB_OWN_MOUNTS";

/// Number of tries, and the pause between them, of a wait for files that are still being closed: a
/// killed process that waits for the disk keeps its files open until the disk answers.
const PATIENCE: (u32, Duration) = (600, Duration::from_millis(100));

/// The system programs that are used, and the Debian packages that contain them.
const PROGRAMS: [(&str, &str); 6] = [
    ("mkfs.ext4", "e2fsprogs"),
    ("mount", "mount"),
    ("umount", "mount"),
    ("losetup", "mount"),
    ("unshare", "util-linux"),
    ("sync", "coreutils"),
];

/// Directories of system programs that are not in a user's `PATH`.
const SYSTEM: [&str; 2] = ["/usr/sbin", "/sbin"];

/// The reason why power cannot be cut on this machine; `None` if it can.
pub(super) fn lacks() -> Option<&'static str> {
    static LACKS: OnceLock<Option<String>> = OnceLock::new();
    LACKS.get_or_init(look).as_deref()
}

fn look() -> Option<String> {
    if !geteuid().is_root() {
        return Some(
            "power is cut on a file system of the step's own, which takes root".to_owned(),
        );
    }
    let mut needed = PROGRAMS.into_iter();
    if let Some((program, package)) = needed.find(|(name, _)| found(name, &SYSTEM).is_none()) {
        return Some(format!(
            "{program} is missing: install the package {package} of Debian"
        ));
    }
    let mounts = run("unshare", ["--mount", "true"].map(OsStr::new)).is_ok();
    let usable = mounts && Path::new("/dev/loop-control").exists();
    (!usable).then(|| {
        "power is cut on a file system of the step's own, and this container may not mount one"
            .to_owned()
    })
}

/// Re-execute this program in a private mount namespace, if the plan cuts the power. The process id
/// stays the same.
///
/// # Errors
/// When this fails although the checks found no obstacle.
pub fn own_mounts(plan: &Plan) -> Result<()> {
    let cuts = plan.steps.iter().any(|step| step.setting.power);
    if !cuts || env::var_os(OWN).is_some() || lacks().is_some() {
        return Ok(());
    }
    let program =
        env::current_exe().map_err(|e| Error::environment(format!("this program: {e}")))?;
    let failed = command("unshare")?
        .args(["--mount", "--propagation", "private", "--"])
        .arg(program)
        .args(env::args_os().skip(1))
        .env(OWN, "1")
        .exec();
    Err(Error::environment(format!("unshare: {failed}")))
}

/// A mounted file system; dropping it unmounts it and deletes its file.
#[derive(Debug)]
pub(super) struct Power {
    directory: PathBuf,
    device: PathBuf,
    /// Keeps the loop device, and so the file, while nothing is mounted.
    _device: File,
}

impl Power {
    /// Create a file system, and mount it over an empty directory.
    pub(super) fn on(directory: &Path) -> Result<Power> {
        let image = beside(directory);
        let file = File::create(&image).map_err(|e| Error::io("create", &image, &e))?;
        let sized = file.set_len(SIZE.bytes());
        let mounted = sized
            .map_err(|e| Error::io("size", &image, &e))
            .and_then(|()| Power::mount(directory, &image));
        let removed = fs::remove_file(&image).map_err(|e| Error::io("remove", &image, &e));
        mounted.and_then(|power| removed.map(|()| power))
    }

    fn mount(directory: &Path, image: &Path) -> Result<Power> {
        let mut make: Vec<&OsStr> = MAKE.iter().map(OsStr::new).collect();
        make.push(image.as_os_str());
        run("mkfs.ext4", make)?;
        run(
            "mount",
            [
                "-o".as_ref(),
                "loop".as_ref(),
                image.as_os_str(),
                directory.as_os_str(),
            ],
        )?;
        let asked = ["--noheadings", "--output", "NAME", "--associated"].map(OsStr::new);
        let name = ask("losetup", asked.into_iter().chain([image.as_os_str()]))?;
        let device = PathBuf::from(name.trim());
        let held = File::open(&device).map_err(|e| Error::io("open", &device, &e))?;
        // Removed because engines may reject files that they did not create.
        let found = directory.join("lost+found");
        fs::remove_dir(&found).map_err(|e| Error::io("remove", &found, &e))?;
        Ok(Power {
            directory: directory.to_owned(),
            device,
            _device: held,
        })
    }

    /// Write out all dirty data of the file system.
    pub(super) fn sync(&self) -> Result<()> {
        run(
            "sync",
            ["--file-system".as_ref(), self.directory.as_os_str()],
        )
    }

    /// Cut the power: from now on nothing is written to the device.
    pub(super) fn cut(&self) -> Result<()> {
        let abort = ["-o", "remount,abort"].map(OsStr::new);
        run(
            "mount",
            abort.into_iter().chain([self.directory.as_os_str()]),
        )
    }

    /// Mount the file system again, once no process has files open on it.
    pub(super) fn back(&self) -> Result<()> {
        let mut tries = PATIENCE.0;
        loop {
            match run("umount", [self.directory.as_os_str()]) {
                Ok(()) => break,
                Err(_) if 0 < tries => tries -= 1,
                Err(e) => return Err(e),
            }
            time::sleep(PATIENCE.1);
        }
        run(
            "mount",
            [self.device.as_os_str(), self.directory.as_os_str()],
        )
    }
}

impl Drop for Power {
    fn drop(&mut self) {
        // If a process has files open on it, the file system exists until that process ends.
        let _ = run("umount", ["--lazy".as_ref(), self.directory.as_os_str()]);
    }
}

/// The path of the image file, beside the directory.
fn beside(directory: &Path) -> PathBuf {
    let mut path = OsString::from(directory);
    path.push(".image");
    PathBuf::from(path)
}

/// The command of a system program, even if it is not in the user's `PATH`.
fn command(program: &str) -> Result<Command> {
    let path = found(program, &SYSTEM);
    path.map(Command::new)
        .ok_or_else(|| Error::environment(format!("{program} is missing")))
}

fn run<'a>(program: &str, arguments: impl IntoIterator<Item = &'a OsStr>) -> Result<()> {
    ask(program, arguments).map(|_| ())
}

/// Run a program and return its output.
fn ask<'a>(program: &str, arguments: impl IntoIterator<Item = &'a OsStr>) -> Result<String> {
    let mut command = command(program)?;
    let output = command.args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|e| Error::environment(format!("{program}: {e}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(Error::environment(format!("{program}: {}", errors.trim())))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::*;

    /// Number of bytes appended at a time.
    const PAGE: usize = 3000;

    /// A temporary directory, the mount point in it, and the file system mounted there; `None` if
    /// that is not possible.
    fn mounted() -> Option<(tempfile::TempDir, PathBuf, Power)> {
        if let Some(why) = lacks() {
            stdx::skip::test(why);
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("store");
        fs::create_dir(&place).unwrap();
        let power = Power::on(&place).unwrap();
        Some((dir, place, power))
    }

    /// Append to a file and sync it until a sync fails; `pages` counts the synced pages.
    fn synced(path: &Path, pages: &AtomicU64) {
        let mut file = File::create(path).unwrap();
        file.sync_all().unwrap();
        while file
            .write_all(&[7; PAGE])
            .and_then(|()| file.sync_data())
            .is_ok()
        {
            pages.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn data_synced_before_the_cut_began_is_present() {
        let Some((_dir, place, power)) = mounted() else {
            return;
        };
        let counts: [AtomicU64; 4] = Default::default();
        let files: Vec<PathBuf> = (0..4).map(|n| place.join(n.to_string())).collect();
        files.iter().for_each(|path| drop(File::create(path)));
        power.sync().unwrap();
        let before = thread::scope(|scope| {
            for (path, count) in files.iter().zip(&counts) {
                scope.spawn(move || synced(path, count));
            }
            while counts
                .iter()
                .any(|pages| pages.load(Ordering::Relaxed) < 10)
            {
                time::sleep(Duration::from_millis(1));
            }
            let before = counts.each_ref().map(|pages| pages.load(Ordering::Relaxed));
            power.cut().unwrap();
            before
        });
        power.back().unwrap();
        for (path, pages) in files.iter().zip(before) {
            let there = fs::metadata(path).unwrap().len();
            assert!(PAGE as u64 * pages <= there, "P2: {there} bytes of {pages}");
        }
    }

    #[test]
    fn synced_data_is_present_after_the_cut_and_the_rest_is_lost() {
        let Some((dir, place, power)) = mounted() else {
            return;
        };
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            1,
            "P1: the file has no name"
        );
        assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
        let written = |name: &str| {
            let mut file = File::create(place.join(name)).unwrap();
            file.write_all(&[7; 10_000]).unwrap();
            file
        };
        written("synced").sync_all().unwrap();
        File::open(&place).unwrap().sync_all().unwrap();
        let mut open = written("not synced");
        power.cut().unwrap();
        let later = open.write_all(b"x").and_then(|()| open.sync_all());
        assert!(later.is_err(), "nothing is written after the cut");
        drop(open);
        power.back().unwrap();
        assert_eq!(fs::read(place.join("synced")).unwrap(), [7; 10_000]);
        let lost = fs::read(place.join("not synced")).unwrap_or_default();
        assert!(lost.is_empty(), "{} bytes", lost.len());
        written("again");
        drop(power);
        assert_eq!(
            fs::read_dir(&place).unwrap().count(),
            0,
            "P1: nothing is mounted any more"
        );
    }
}
