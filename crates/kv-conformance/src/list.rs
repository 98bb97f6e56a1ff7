//! The one list of all laws.
//!
//! Each line is a law and, in brackets, what it needs of an engine ([`crate::Need`]). The list is a macro
//! that hands itself to another: `__law_table` makes it data, `__law_tests` makes it tests.

use crate::law::Law;

/// Hands the list of laws to the macro `$then`.
#[doc(hidden)]
#[macro_export]
macro_rules! __each_law {
    ($then:ident) => {
        $crate::$then! {
            point {
                absent_key_reads_as_none []
                put_key_reads_back []
                put_replaces_the_value []
                deleted_key_is_absent []
                delete_says_whether_the_key_was_there []
                delete_leaves_the_neighbours []
                key_can_return_after_delete []
                empty_value_is_not_absence []
                value_can_become_empty []
                every_byte_is_a_key []
                zero_bytes_do_not_end_keys_or_values []
                prefixes_are_different_keys []
                get_into_clears_the_buffer_first []
                get_into_of_absent_key_leaves_the_buffer_empty []
                trees_do_not_share_keys []
                reading_an_unknown_handle_is_invalid []
            }
            insert {
                insert_sets_an_absent_key []
                insert_of_a_present_key_is_exists []
                insert_of_a_key_with_empty_value_is_exists []
                transaction_goes_on_after_exists []
                insert_sees_own_put []
                second_insert_in_one_transaction_is_exists []
                insert_after_own_delete_succeeds []
                insert_after_committed_delete_succeeds []
            }
            blind {
                blind_put_sets_a_key []
                blind_put_replaces_a_key []
                blind_delete_removes_a_key []
                blind_delete_of_an_absent_key_is_fine []
                own_blind_writes_are_visible []
                the_last_of_blind_and_other_writes_wins []
                blind_writes_roll_back []
                blind_writes_of_one_key_do_not_conflict [ConcurrentWriters, BlindWrites]
                blind_write_after_a_commit_does_not_conflict [ConcurrentWriters, BlindWrites]
            }
            many {
                each_index_gets_its_own_value []
                absent_keys_are_visited_too []
                repeated_keys_are_answered_each []
                no_keys_no_visits []
                a_thousand_keys_agree_with_get []
                a_transaction_reads_its_own_writes []
                a_snapshot_does_not_see_later_commits []
                an_unknown_handle_is_invalid []
            }
            purge {
                included_bounds_are_removed []
                excluded_bounds_stay []
                half_open_range_keeps_its_end []
                excluded_start_included_end []
                unbounded_start_removes_the_head []
                unbounded_end_removes_the_tail []
                whole_range_empties_the_tree []
                empty_and_crossed_ranges_remove_nothing []
                bounds_need_not_be_keys []
                other_trees_are_left_alone []
                own_writes_in_the_range_are_removed []
                writes_after_the_removal_stand []
                removal_rolls_back []
                keys_put_later_are_not_removed []
                thousands_of_keys_are_removed_at_once []
            }
            scan {
                empty_tree_scans_as_nothing []
                forward_is_ascending_byte_order []
                backward_is_descending_byte_order []
                bytes_compare_unsigned []
                one_entry_scans_both_ways []
                backward_is_forward_reversed []
                values_go_with_their_keys []
                ten_thousand_entries_come_in_order []
                deleted_keys_are_passed_over []
                scanning_does_not_cross_into_other_trees []
                scanning_an_unknown_handle_is_invalid []
            }
            bound {
                included_to_included []
                included_to_excluded []
                excluded_to_included []
                excluded_to_excluded []
                unbounded_to_included []
                unbounded_to_excluded []
                included_to_unbounded []
                excluded_to_unbounded []
                bounds_between_keys []
                bounds_outside_all_keys []
                range_before_and_after_all_keys_is_empty []
                single_key_range []
                empty_and_crossed_ranges_hold_nothing []
                prefix_of_a_key_as_bound []
                bounds_of_the_highest_bytes []
                empty_bound_is_before_every_key []
                bound_beyond_the_key_limit_is_only_a_bound [KeyLimit]
                every_window_of_a_large_tree []
            }
            seek {
                forward_to_a_key []
                forward_between_keys []
                forward_before_the_first []
                forward_beyond_the_last []
                backward_to_a_key []
                backward_between_keys []
                backward_beyond_the_last []
                backward_before_the_first []
                forward_before_the_range_goes_to_its_start []
                forward_before_an_excluded_start []
                forward_beyond_the_range_finds_nothing []
                backward_beyond_the_range_goes_to_its_end []
                backward_beyond_an_excluded_end []
                backward_before_the_range_finds_nothing []
                seek_goes_back_as_well []
                seek_revives_an_ended_cursor []
                failed_seek_leaves_the_cursor_at_the_end []
                seek_in_an_empty_range_finds_nothing []
                seek_twice_to_one_key_stays_there []
                seeks_hop_through_a_large_tree []
            }
            cursor {
                nothing_is_current_before_the_first_advance []
                end_stays_the_end []
                nothing_is_current_after_the_end []
                key_and_value_stay_until_the_next_step []
                cursor_does_not_see_later_puts []
                cursor_does_not_see_later_deletes []
                cursor_made_after_a_write_sees_its_snapshot []
                cursor_of_a_large_tree_is_stable_under_heavy_writes []
                several_cursors_of_one_snapshot_are_independent []
                cursors_of_several_trees_at_once []
                point_reads_do_not_move_a_cursor []
                bounds_are_copied_into_the_cursor []
            }
            size {
                the_empty_key_is_a_key [EmptyKeys]
                the_empty_key_is_the_first [EmptyKeys]
                the_empty_key_is_refused [NoEmptyKeys]
                one_byte_keys_are_keys []
                keys_up_to_the_limit_are_taken [KeyLimit]
                longest_key_can_be_sought_and_removed [KeyLimit]
                key_beyond_the_limit_is_invalid [KeyLimit]
                key_beyond_the_limit_in_a_batch_is_invalid [KeyLimit]
                reading_a_key_beyond_the_limit_finds_nothing [KeyLimit]
                deleting_a_key_beyond_the_limit_changes_nothing [KeyLimit]
                values_up_to_the_limit_are_taken [ValueLimit]
                value_beyond_the_limit_is_invalid [ValueLimit]
                transaction_goes_on_after_a_refused_size [KeyLimit]
                megabyte_values_read_back []
                a_large_value_can_shrink_and_grow []
            }
        }
    };
}

/// Makes the list a slice of [`Law`]; of use only inside this crate.
#[doc(hidden)]
#[macro_export]
macro_rules! __law_table {
    ($($theme:ident { $($name:ident [$($need:ident),*])* })*) => {
        &[$($($crate::Law {
            theme: stringify!($theme),
            name: stringify!($name),
            needs: &[$($crate::Need::$need),*],
            run: $crate::laws::$theme::$name,
        }),*),*]
    };
}

/// Every law, theme by theme.
#[must_use]
pub fn laws() -> &'static [Law] {
    crate::__each_law!(__law_table)
}
