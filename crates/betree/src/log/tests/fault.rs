//! Calls that fail.

use std::io;

use stdx::rng::Rng;

use crate::ErrorKind;
use crate::types::Seq;

use super::disk::Disk;
use super::{append, check, create, fill, payload, recover};
use crate::log::Position;

const SALT: u64 = 21;

#[test]
fn a_failed_write_or_sync_poisons_until_opened_again() {
    let sites = ["log.write", "log.sync", "log.rotate", "log.header.sync"];
    let kinds = [io::ErrorKind::Other, io::ErrorKind::StorageFull];
    for (site, kind) in sites
        .iter()
        .flat_map(|site| kinds.map(|kind| (*site, kind)))
    {
        let disk = Disk::default();
        let log = create(&disk).unwrap();
        fill(&log, 10, SALT, true);
        disk.fail(site, 0, kind);
        let mut first = None;
        let (mut acknowledged, mut begun) = (10, 10);
        while first.is_none() {
            begun += 1;
            let outcome = append(&log, &payload(begun, SALT));
            // At the end of a segment there is something to sync only after appends without a sync.
            let outcome = outcome.and_then(|_| match begun % 5 {
                0 => log.sync(),
                _ => log.write_ready(),
            });
            match outcome {
                Ok(()) => acknowledged = log.durable().0,
                Err(error) => first = Some(error),
            }
        }
        let first = first.unwrap().kind();
        // The thread that creates segments ahead has no caller to report errors to.
        let quiet = site == "log.header.sync";
        assert!(
            first == ErrorKind::Io || quiet && first == ErrorKind::Closed,
            "{site}"
        );
        assert!(log.poisoned(), "{site}");
        assert!(acknowledged <= log.durable().0, "{site}");
        let syncs = log.stats().syncs;
        for _ in 0..3 {
            let seq = Seq(log.appended().0 + 1);
            assert_eq!(
                log.append(seq, &[b"x"]).unwrap_err().kind(),
                ErrorKind::Closed
            );
            assert_eq!(log.sync().unwrap_err().kind(), ErrorKind::Closed);
        }
        log.sync_to(Position(Seq(acknowledged))).unwrap();
        assert_eq!(
            log.stats().syncs,
            syncs,
            "{site}: a failed sync is not tried again"
        );
        let (again, records) = recover(&disk, 1).unwrap();
        check(&records, 1, SALT);
        assert!(acknowledged <= again.appended().0);
        assert!(again.appended().0 <= begun);
    }
}

#[test]
fn a_full_disk_appends_nothing_and_goes_on_when_there_is_space() {
    let disk = Disk::default();
    let log = create(&disk).unwrap();
    disk.space(Some(200 << 10));
    let (mut full, mut last) = (0, 0);
    while last < 2000 {
        match append(&log, &payload(last + 1, SALT)) {
            Ok(seq) => last = seq,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Full, "{error}");
                assert_eq!(log.appended(), Seq(last), "nothing was appended");
                assert!(!log.poisoned());
                log.sync().unwrap();
                full += 1;
                disk.space(Some(300 << 10));
            }
        }
    }
    log.sync().unwrap();
    assert!(3 < full, "{full}");
    disk.space(None);
    let (_, records) = recover(&disk, 1).unwrap();
    assert_eq!(records.len(), 2000);
    check(&records, 1, SALT);
}

#[test]
fn recovery_with_a_full_disk_uses_a_spare_or_says_full() {
    let disk = Disk::default();
    let log = create(&disk).unwrap();
    fill(&log, 100, SALT, false);
    log.shrink().unwrap();
    drop(log);
    disk.space(Some(0));
    match recover(&disk, 1) {
        Ok((_, records)) => check(&records, 1, SALT),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Full),
    }
    disk.space(None);
    let (_, records) = recover(&disk, 1).unwrap();
    assert_eq!(records.len(), 100);
}

/// Number of records that no file of the reserve has room for.
const MUCH: u64 = 1200;

/// A full disk with a reserve, and a log killed with many records since its last sync. With `kept`,
/// the device has them; else only the page cache shows them.
fn unproven(kept: bool) -> Disk {
    let disk = Disk::default();
    let log = create(&disk).unwrap();
    log.keep_reserve();
    fill(&log, MUCH, SALT, false);
    while log.appended().0 < 2 * MUCH {
        append(&log, &payload(log.appended().0 + 1, SALT)).unwrap();
    }
    log.write_ready().unwrap();
    drop(log);
    if !kept {
        disk.forget_pending();
    }
    let disk = disk.copy();
    disk.space(Some(0));
    disk
}

/// Number of records after a power loss.
fn after_power_loss(disk: &Disk) -> usize {
    let (_, records) = recover(&disk.crash(&mut Rng::new(SALT)), 1).unwrap();
    records.len()
}

/// Why recovery is refused.
fn refusal(disk: &Disk) -> Option<ErrorKind> {
    recover(disk, 1).err().map(|error| error.kind())
}

#[test]
fn a_full_disk_is_recovered_without_copies_of_what_the_device_has() {
    let disk = unproven(true);
    assert_eq!(refusal(&disk), Some(ErrorKind::Full));
    disk.bypass(true);
    for _ in 0..3 {
        let (log, records) = recover(&disk, 1).unwrap();
        check(&records, 1, SALT);
        assert!(MUCH < log.durable().0, "more than was synced");
        assert_eq!(records.len() as u64, log.durable().0);
        // What was taken for durable survives a power loss.
        assert_eq!(after_power_loss(&disk), records.len());
    }
}

#[test]
fn what_only_the_page_cache_has_is_not_taken_for_durable() {
    let disk = unproven(false);
    disk.bypass(true);
    assert_eq!(refusal(&disk), Some(ErrorKind::Full));
    disk.space(None);
    let (log, records) = recover(&disk, 1).unwrap();
    check(&records, 1, SALT);
    assert!(MUCH < log.durable().0, "they were copied");
    assert_eq!(after_power_loss(&disk), records.len());
}

#[test]
fn a_failing_proof_leaves_records_to_be_copied() {
    let disk = unproven(true);
    disk.bypass(true);
    disk.space(None);
    disk.fail("log.proof.sync", 0, io::ErrorKind::Other);
    let (log, records) = recover(&disk, 1).unwrap();
    check(&records, 1, SALT);
    assert_eq!(records.len() as u64, log.durable().0);
}
