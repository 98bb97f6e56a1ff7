//! Several threads commit at once.

use std::sync::Arc;
use std::time::Duration;

use stdx::sync::{Mutex, spawn};

use crate::types::Seq;

use super::disk::Disk;
use super::{STORE, check, payload, recover, small};
use crate::log::{Log, LogOptions};

const SALT: u64 = 31;

fn commit_from_threads(options: LogOptions, threads: u64, each: u64) -> (Disk, Arc<Log>) {
    let disk = Disk::default();
    let directory = std::path::Path::new(super::DIRECTORY);
    let log = Log::create(Arc::new(disk.clone()), directory, STORE, Seq(1), options).unwrap();
    let log = Arc::new(log);
    let commit = Arc::new(Mutex::new(()));
    let begin = Arc::new(std::sync::Barrier::new(usize::try_from(threads).unwrap()));
    let handles: Vec<_> = (0..threads)
        .map(|thread| {
            let (log, commit) = (Arc::clone(&log), Arc::clone(&commit));
            let begin = Arc::clone(&begin);
            spawn("committer", move || {
                begin.wait();
                for _ in 0..each {
                    let held = commit.lock();
                    let seq = Seq(log.appended().0 + 1);
                    let position = log.append(seq, &[&payload(seq.0, SALT)]).unwrap();
                    drop(held);
                    if thread % 4 == 3 {
                        log.write_ready().unwrap();
                    } else {
                        log.sync_to(position).unwrap();
                        assert!(seq <= log.durable());
                    }
                }
            })
            .unwrap()
        })
        .collect();
    for handle in handles {
        handle.join().unwrap();
    }
    (disk, log)
}

#[test]
fn one_leader_syncs_for_many() {
    let disk = Disk::default();
    let log = Arc::new(super::create(&disk).unwrap());
    let seen = Arc::clone(&log);
    // The first sync ends when seven others wait.
    disk.during_sync(Arc::new(move || {
        while seen.state.lock().waiting < 7 {
            std::thread::yield_now();
        }
    }));
    let commit = Arc::new(Mutex::new(()));
    let commits: Vec<_> = (0..8)
        .map(|_| {
            let (log, commit) = (Arc::clone(&log), Arc::clone(&commit));
            spawn("committer", move || {
                let held = commit.lock();
                let seq = Seq(log.appended().0 + 1);
                let position = log.append(seq, &[b"x"]).unwrap();
                drop(held);
                // The first commit must be in its sync before the others start.
                while 1 < seq.0 && !log.state.lock().syncing {
                    std::thread::yield_now();
                }
                log.sync_to(position).unwrap();
            })
            .unwrap()
        })
        .collect();
    for commit in commits {
        commit.join().unwrap();
    }
    let stats = log.stats();
    assert_eq!(stats.group_commits, 8);
    assert_eq!((stats.groups, stats.syncs), (2, 2), "{stats:?}");
    assert_eq!(log.durable(), Seq(8));
}

#[test]
fn a_delay_loses_nothing() {
    let options = LogOptions {
        group_delay: Duration::from_micros(50),
        ..small()
    };
    let (disk, log) = commit_from_threads(options, 8, 300);
    log.sync().unwrap();
    let stats = log.stats();
    assert!(stats.groups <= stats.group_commits);
    assert!(stats.groups <= stats.syncs);
    let (_, records) = recover(&disk, 1).unwrap();
    assert_eq!(records.len(), 2400);
    check(&records, 1, SALT);
}

#[test]
fn without_a_delay_nothing_is_lost_either() {
    let (disk, log) = commit_from_threads(small(), 4, 500);
    log.sync().unwrap();
    let (_, records) = recover(&disk, 1).unwrap();
    assert_eq!(records.len(), 2000);
    check(&records, 1, SALT);
    assert_eq!(log.durable(), Seq(2000));
}
