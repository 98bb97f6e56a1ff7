//! The examples are run, and what they return is checked.

#[path = "../../examples/counter.rs"]
#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
mod counter;
#[path = "../../examples/orders.rs"]
#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
mod orders;
#[path = "../../examples/queue.rs"]
#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
mod queue;
#[path = "../../examples/secondary_index.rs"]
#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
mod secondary_index;
#[path = "../../examples/time_series.rs"]
#[expect(dead_code, reason = "`main` is for `cargo run --example`")]
mod time_series;

#[test]
fn the_counter_loses_no_addition() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(counter::run(directory.path()).unwrap(), 1000);
    // A counter continues where the store was closed.
    assert_eq!(counter::run(directory.path()).unwrap(), 2000);
}

#[test]
fn the_queue_gives_each_job_to_one_consumer_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let taken = queue::run(directory.path()).unwrap();
    assert!(taken.iter().all(|numbers| numbers.is_sorted()));
    let mut all = taken.concat();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..300));
}

#[test]
fn the_index_finds_rows_as_they_are_now() {
    let directory = tempfile::tempdir().unwrap();
    let names = secondary_index::run(directory.path()).unwrap();
    assert_eq!(names, ["Ada", "Blaise", "Emil"]);
}

#[test]
fn the_time_series_is_summed_up_and_cut() {
    let directory = tempfile::tempdir().unwrap();
    let expected = time_series::Summary {
        window: 60,
        newest: Some((3599, 6.0)),
        averages: vec![3.0, 4.0, 5.0, 6.0],
        left: 8 * 1800,
    };
    assert_eq!(time_series::run(directory.path()).unwrap(), expected);
}

#[test]
fn the_orders_are_found_by_price() {
    let directory = tempfile::tempdir().unwrap();
    // Prices are `number * 7919 % 100000`, which takes each value below 100000 at most once.
    let expected = (0..10_000_u64).filter(|n| (500..600).contains(&(n * 7919 % 100_000)));
    assert_eq!(orders::run(directory.path()).unwrap(), expected.count());
}
