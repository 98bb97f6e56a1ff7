//! Drivers of several members in one process, with logs in memory and a network that can be cut.

mod fake;
mod set;

use std::sync::atomic::Ordering;
use std::time::Duration;

use repl::position::Position;

use super::Ask;
use crate::cluster::standing::Standing;
use fake::value_of;
use set::Set;

fn down(wait: u64, force: bool) -> Ask {
    Ask::StepDown {
        wait: Duration::from_millis(wait),
        force,
        frozen: Duration::from_secs(60),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn three_members_elect_one_and_copy_its_entries() {
    let set = Set::started(3).await;
    let primary = set.primary().await;
    let last = set.write(primary, 1).await;
    set.committed_everywhere(last).await;
    set.same_logs();
    for i in 0..3 {
        set.until("the primary is known", || {
            set.view(i).primary == Some(primary)
        })
        .await;
        assert_eq!(set.view(i).is_writable(), i == primary);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_nobody_has_told_of_is_committed() {
    let set = Set::started(3).await;
    let primary = set.primary().await;
    let last = set.storage(primary).write(5).expect("a primary");
    set.committed_everywhere(last).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_loss_of_the_primary_committed_entries_are_kept() {
    let mut set = Set::started(3).await;
    let first = set.primary().await;
    let mut last = Position::ZERO;
    for n in 0..50 {
        last = set.write(first, n).await;
    }
    set.committed_at(first, last).await;
    set.kill(first).await;
    let second = set.primary().await;
    assert_ne!(first, second);
    let kept = set.values(second);
    assert!((0..50).all(|n| kept.contains(&n)), "{kept:?}");
    let later = set.write(second, 100).await;
    set.committed_at(second, later).await;
    set.restart(first).await;
    set.committed_everywhere(later).await;
    set.same_logs();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_connection_to_the_primary_ends_the_wait() {
    let mut set = Set::patient(3).await;
    let first = set.primary().await;
    let last = set.write(first, 1).await;
    set.committed_everywhere(last).await;
    set.kill(first).await;
    set.hint(first).await;
    let second = set.primary().await;
    let later = set.write(second, 3).await;
    set.committed_at(second, later).await;
    assert!(set.values(second).contains(&1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_is_cut_off_takes_its_entries_back() {
    let set = Set::started(3).await;
    let first = set.primary().await;
    let last = set.write(first, 1).await;
    set.committed_everywhere(last).await;
    set.network.cut(first, true);
    set.write(first, 66).await;
    // The driver does not know of this one before writes end (D1).
    set.storage(first).write(67).expect("a primary");
    let second = set.primary_but(first).await;
    let later = set.write(second, 2).await;
    set.committed_at(second, later).await;
    set.until("the old primary steps down", || {
        set.view(first).standing == Standing::Secondary
    })
    .await;
    set.network.cut(first, false);
    set.committed_everywhere(later).await;
    set.same_logs();
    assert!(!set.values(first).contains(&66));
    assert!(!set.values(first).contains(&67));
    assert!(set.values(first).contains(&2));
    let rollbacks = set.storage(first).rollbacks.load(Ordering::Relaxed);
    assert_eq!(rollbacks, 1, "jobs: J1: after what was appended before");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_down_hands_over_and_loses_nothing() {
    let set = Set::started(3).await;
    let first = set.primary().await;
    let last = set.write(first, 1).await;
    set.committed_everywhere(last).await;
    set.ask(first, down(60_000, false)).await.unwrap();
    let second = set.primary_but(first).await;
    assert!(set.values(second).contains(&1));
    let error = set.ask(first, down(1, false)).await.unwrap_err();
    assert_eq!(error.code, query::Code::NOT_WRITABLE_PRIMARY);
    // The clients of the first were shut out before it was a secondary (D1).
    assert!(!set.host(first).is_open());
    assert!(set.host(second).is_open());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_member_to_hand_over_to_a_primary_stays() {
    let set = Set::started(3).await;
    let first = set.primary().await;
    for other in (0..3).filter(|i| *i != first) {
        set.storage(other).stall(true);
    }
    set.write(first, 1).await;
    let error = set.ask(first, down(300, false)).await.unwrap_err();
    assert_eq!(error.code, query::Code::EXCEEDED_TIME_LIMIT);
    for other in (0..3).filter(|i| *i != first) {
        set.storage(other).stall(false);
    }
    assert_eq!(set.primary().await, first);
    let last = set.write(first, 2).await;
    set.committed_everywhere(last).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_whose_sync_fails_halts() {
    let set = Set::started(3).await;
    let primary = set.primary().await;
    let broken = (0..3).find(|i| *i != primary).unwrap();
    set.storage(broken).fail_syncs();
    let last = set.write(primary, 1).await;
    // The others are a majority.
    set.committed_at(primary, last).await;
    set.until("the member halts", || set.view(broken).halted.is_some())
        .await;
    let progress = set.progress(broken);
    assert!(
        progress.durable < last,
        "D2: it reports no entry as durable"
    );
    assert_eq!(set.view(broken).standing, Standing::Recovering);
    assert_eq!(
        set.storage(broken).syncs(),
        1,
        "jobs: J2: it is not tried again"
    );
    let error = set.ask(broken, Ask::StepUp).await.unwrap_err();
    assert!(error.message.contains("disk"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn members_are_added_without_a_vote_until_they_have_the_data() {
    let mut set = Set::started(1).await;
    let primary = set.primary().await;
    let last = set.write(primary, 1).await;
    set.add(1).await;
    set.storage(1).stall(true);
    set.reconfig(primary, &[0, 1]).await.unwrap();
    assert!(set.config(primary).member(1).unwrap().newly_added);
    assert_eq!(set.config(primary).core().majority(), 1);
    set.storage(1).stall(false);
    set.until("the member votes", || {
        !set.config(primary).member(1).unwrap().newly_added
    })
    .await;
    set.committed_everywhere(last).await;
    assert!(value_of(set.storage(1).entries().last().unwrap()).is_some());
    let stale = set.config(primary);
    let again = Ask::Reconfig {
        config: Box::new(stale),
        force: false,
    };
    let error = set.ask(primary, again).await.unwrap_err();
    assert_eq!(error.code.0, 103, "the version must be newer");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_member_whose_source_has_removed_entries_begins_an_initial_sync() {
    let mut set = Set::started(1).await;
    let primary = set.primary().await;
    set.write(primary, 1).await;
    set.storage(primary).remove_first();
    set.add(1).await;
    set.reconfig(primary, &[0, 1]).await.unwrap();
    // The network of this test copies nothing.
    set.until("the attempt fails", || {
        set.view(1).standing == Standing::Startup2 && set.progress(1).info.contains("initial sync")
    })
    .await;
    // It has no vote, so the set works without it.
    let last = set.write(primary, 2).await;
    set.committed_at(primary, last).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_member_is_no_primary_and_keeps_its_vote() {
    let mut set = Set::started(3).await;
    let primary = set.primary().await;
    let term = set.view(primary).term;
    let last = set.write(primary, 1).await;
    set.committed_everywhere(last).await;
    for i in 0..3 {
        set.kill(i).await;
    }
    let stored = set.stored(primary);
    assert_eq!((stored.term, stored.voted_for), (term, Some(primary)));
    for i in 0..3 {
        set.restart(i).await;
        assert!(set.view(i).standing != Standing::Primary, "N4");
    }
    let next = set.primary().await;
    assert!(term < set.view(next).term);
    assert!(set.values(next).contains(&1));
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_freeze_and_maintain_secondaries_only() {
    let set = Set::started(3).await;
    let primary = set.primary().await;
    let other = (0..3).find(|i| *i != primary).unwrap();
    let code = |outcome: query::Result<()>| outcome.unwrap_err().code.0;
    let freeze = || Ask::Freeze(Duration::from_secs(60));
    assert_eq!(code(set.ask(primary, freeze()).await), 95);
    set.ask(other, freeze()).await.unwrap();
    assert_eq!(code(set.ask(primary, Ask::Maintenance(true)).await), 95);
    set.ask(other, Ask::Maintenance(true)).await.unwrap();
    set.until("maintenance", || {
        set.view(other).standing == Standing::Recovering
    })
    .await;
    assert_eq!(code(set.ask(other, Ask::Maintenance(true)).await), 95);
    set.ask(other, Ask::Maintenance(false)).await.unwrap();
    let last = set.write(primary, 1).await;
    set.committed_everywhere(last).await;
    set.ask(other, Ask::SyncFrom(primary)).await.unwrap();
    assert_eq!(code(set.ask(other, Ask::SyncFrom(other)).await), 2);
    set.ask(other, Ask::Freeze(Duration::ZERO)).await.unwrap();
    set.ask(other, Ask::StepUp).await.unwrap();
    assert_eq!(set.primary_but(primary).await, other);
}
