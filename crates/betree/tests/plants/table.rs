//! The table of planted bugs and the lanes that find them.

use std::fmt;

/// The test binary a lane is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Crash,
    Shuttle,
}

/// A test, with settings that make it short.
#[derive(PartialEq, Eq)]
pub(super) struct Lane {
    pub(super) binary: Binary,
    pub(super) test: &'static str,
    pub(super) settings: &'static [(&'static str, &'static str)],
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.test)?;
        self.settings
            .iter()
            .try_for_each(|(_, value)| write!(f, " {value}"))
    }
}

const fn crash(test: &'static str, settings: &'static [(&'static str, &'static str)]) -> Lane {
    Lane {
        binary: Binary::Crash,
        test,
        settings,
    }
}

/// The random lane with few seeds.
const fn random() -> Lane {
    let test = "random::random_crashes_lose_nothing_promised";
    crash(test, &[("BETREE_SIM_RUNS", "360")])
}

/// A script that is crashed at every call.
const SCRIPT: &str = "exhaustive::every_script_survives_a_crash_after_every_call";
/// A script whose calls fail.
const SWEEP: &str = "sweep::each_call_may_fail";

const MANY: &[(&str, &str)] = &[("ROMANESCO_SCHEDULES", "1200")];

const fn shuttle(test: &'static str) -> Lane {
    Lane {
        binary: Binary::Shuttle,
        test,
        settings: &[],
    }
}

/// Lives of a store on a full disk.
const LIVES: &str = "lives::a_full_disk_stops_no_store_for_good";
const FEW: &[(&str, &str)] = &[("BETREE_SIM_RUNS", "30"), ("BETREE_SIM_THREADS", "0")];

const SPILL: &[(&str, &str)] = &[("BETREE_SIM_SCRIPT", "a transaction spills")];
const SYNCED: &[(&str, &str)] = &[("BETREE_SIM_SCRIPT", "synced commits in a row")];
const FIRST: &[(&str, &str)] = &[("BETREE_SIM_SCRIPT", "first checkpoint")];
const FIRST_TORN: &[(&str, &str)] = &[
    ("BETREE_SIM_SCRIPT", "first checkpoint"),
    ("BETREE_SIM_SEEDS", "600"),
];

/// Every plant, and the lane that finds it.
pub(super) const TABLE: &[(&str, Lane)] = &[
    ("acknowledge-before-sync", random()),
    ("commits-pass-crowds", random()),
    ("counter-drift", random()),
    ("delta-at-the-end", random()),
    ("drop-tombstone-early", random()),
    ("filter-forgets-key", random()),
    ("free-twice", random()),
    ("leftovers-stay", random()),
    ("log-released-early", random()),
    ("pivot-off-by-one", random()),
    ("range-delete-takes-end", random()),
    (
        "proof-reads-cache",
        crash(
            "full::what_only_the_page_cache_shows_does_not_open_on_a_full_disk",
            &[],
        ),
    ),
    ("replay-not-copied", random()),
    ("replay-skips-first", random()),
    ("reuse-before-publish", random()),
    ("scan-forgets-tombstone", random()),
    ("scan-skips-first", random()),
    ("skip-directory-sync", random()),
    ("snapshot-off-by-one", random()),
    ("split-loses-buffer", random()),
    ("tree-number-reused", random()),
    (
        "full-frees-nothing",
        crash(
            "full::a_transaction_spills_where_a_checkpoint_frees_space",
            &[],
        ),
    ),
    ("commits-need-no-room", crash(LIVES, FEW)),
    (
        "merges-take-kept-room",
        crash(
            "full::a_merge_leaves_the_room_that_is_kept_for_a_flush",
            &[],
        ),
    ),
    (
        "spills-take-kept-room",
        crash(
            "full::a_spill_leaves_the_room_that_is_kept_for_a_flush",
            &[],
        ),
    ),
    (
        "absorb-ignores-shared-runs",
        crash(
            "absorb::deleted_keys_stay_deleted_when_their_buckets_are_given_up",
            &[],
        ),
    ),
    ("half-a-bulk-commit", crash(SCRIPT, SPILL)),
    ("image-before-data-sync", crash(SCRIPT, FIRST)),
    ("superblock-at-once", crash(SCRIPT, FIRST_TORN)),
    ("poison-forgotten", crash(SWEEP, SYNCED)),
    ("retry-sync", crash(SWEEP, SYNCED)),
    (
        "skip-checksum",
        crash(
            "damage::damage_to_each_byte_is_found",
            &[("BETREE_SIM_EVERY", "97")],
        ),
    ),
    (
        "skip-page-identity",
        crash("damage::damage_by_exchanged_pages_is_found", &[]),
    ),
    (
        "close-forgets-writers",
        shuttle("close::a_spill_beside_close_writes_nothing_into_the_next_store"),
    ),
    (
        "epoch-after-capture",
        shuttle("checkpoints::what_an_image_names_is_not_given_out"),
    ),
    (
        "lost-wake-up",
        shuttle("commits::what_was_acknowledged_survives_a_crash_at_any_moment"),
    ),
    (
        "merges-claim-nothing",
        shuttle("full::merges_on_a_full_disk_leave_each_other_room"),
    ),
    (
        "put-back-clears-mark",
        shuttle("full::a_failed_flush_leaves_the_marks_of_others_alone"),
    ),
    (
        "sharing-forgotten",
        shuttle("buckets::snapshots_see_whole_commits_while_buckets_split"),
    ),
    (
        "skip-conflict-check",
        shuttle("transactions::no_increment_is_lost"),
    ),
    (
        "stale-plan",
        Lane {
            settings: MANY,
            ..shuttle("buckets::snapshots_see_whole_commits_while_buckets_split")
        },
    ),
    (
        "visible-before-applied",
        shuttle("buckets::snapshots_see_whole_commits_while_buckets_are_flushed_and_merged"),
    ),
];
