//! Halts processes, and waits until none of their threads runs.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use stdx::time;

/// Interval at which a wait polls.
const LOOK: Duration = Duration::from_millis(1);

/// Maximum wait for threads that still run or are about to stop.
const MOVING_MAX: Duration = Duration::from_secs(5);

/// Halt all processes at nearly the same moment, as a power failure would. A thread that waits for
/// the disk stops when the disk has answered, before its program sees the answer.
pub(super) fn halt(processes: &[u32]) {
    let ids = || processes.iter().filter_map(|id| i32::try_from(*id).ok());
    for pid in ids().filter_map(Pid::from_raw) {
        // The process may have ended by itself.
        let _ = kill_process(pid, Signal::STOP);
    }
    let end = time::now() + MOVING_MAX;
    while ids().any(moves) && time::now() < end {
        time::sleep(LOOK);
    }
}

/// The state of a process or thread, as in the text of its `stat`; see proc(5).
pub(super) fn state(stat: &str) -> Option<char> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.trim_start().chars().next()
}

/// Whether any thread of a process runs, or may start to run at any moment.
fn moves(process: i32) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    threads.into_iter().flatten().flatten().any(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        matches!(state(&stat), Some('R' | 'S'))
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_that_was_halted_moves_no_more() {
        let mut busy = Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap();
        let id = i32::try_from(busy.id()).unwrap();
        // While its program is being read from the disk, the process neither runs nor sleeps.
        while !moves(id) {
            assert!(busy.try_wait().unwrap().is_none(), "it ended by itself");
            time::sleep(LOOK);
        }
        halt(&[busy.id()]);
        assert!(!moves(id));
        busy.kill().unwrap();
        busy.wait().unwrap();
        // Halting a process that has ended is no error.
        halt(&[busy.id()]);
    }

    #[test]
    fn states_are_read_behind_any_name() {
        assert_eq!(state("7 (a) b) T 1 7"), Some('T'));
        assert_eq!(state(""), None);
    }
}
