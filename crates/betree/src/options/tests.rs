//! Options: presets, the division of memory, ranges.

use super::*;
use crate::error::ErrorKind;

#[test]
fn presets_are_sound_and_differ() {
    let presets = [Options::btree(), Options::balanced(), Options::ingest()];
    for preset in &presets {
        preset.validate().unwrap();
    }
    assert_eq!(presets[1], Options::default());
    assert!(presets[1].rho() < presets[0].rho() && presets[2].rho() < presets[1].rho());
    assert!(presets[0].bucket() < presets[1].bucket());
    assert!(presets[1].bucket() < presets[2].bucket());
    assert!(presets.is_sorted_by_key(Options::k_cap));
}

#[test]
fn the_memory_is_divided_without_rest() {
    for memory in [1 << 20, (1 << 20) + 1, 128 << 20, 1 << 40] {
        for share in [0.05, 0.5, 0.95] {
            for (log, threads) in [(true, 2), (false, 0), (true, 64)] {
                let options = Options::default()
                    .with_memory(memory)
                    .with_buffer_share(share)
                    .with_log(log)
                    .with_threads(threads);
                options.validate().unwrap();
                let shares = options.shares();
                assert_eq!(log, 0 < shares.log);
                assert!(shares.log + shares.work <= memory / 4);
                assert!(0 < shares.buffers && 0 < shares.cache);
            }
        }
    }
}

#[test]
fn mistakes_are_named_with_their_range() {
    let base = Options::default;
    let second = Duration::from_secs(1);
    for (options, name) in [
        (base().with_memory(5), "memory is 5; it may be 1048576 to"),
        (base().with_buffer_share(1.0), "buffer_share"),
        (base().with_buffer_share(f64::NAN), "buffer_share"),
        (base().with_rho(0.0), "rho"),
        (base().with_k_cap(0), "k_cap"),
        (base().with_bucket(1), "bucket"),
        (base().with_page(1), "page"),
        (base().with_filter_bits(99), "filter_bits"),
        (
            base().with_log_codec(Codec::Zstd(1)),
            "log_codec is zstd:1; it may be none or lz4",
        ),
        (base().with_log_segment(1), "log_segment"),
        (base().with_log_max(1), "log_max"),
        (base().with_interval(Duration::ZERO), "interval is 0ns"),
        (
            base().with_checkpoint_interval(Duration::ZERO),
            "checkpoint_interval",
        ),
        (base().with_checkpoint_bytes(0), "checkpoint_bytes"),
        (base().with_threads(65), "threads"),
        (base().with_group_delay(second * 2), "group_delay"),
        (
            base().with_snapshot_max_age(Some(Duration::ZERO)),
            "snapshot_max_age",
        ),
        (base().with_transaction_max(u64::MAX), "transaction_max"),
    ] {
        let error = options.validate().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(name), "{name}: {error}");
    }
}

#[test]
fn what_is_set_is_got() {
    let options = Options::default()
        .with_codec(Codec::None)
        .with_delta_codec(Codec::None)
        .with_filter(Filter::All)
        .with_direct_io(true)
        .with_seed(9);
    assert_eq!(
        (options.codec(), options.delta_codec()),
        (Codec::None, Codec::None)
    );
    assert_eq!((options.filter(), options.filter_bits()), (Filter::All, 10));
    assert_eq!((options.direct_io(), options.seed()), (true, Some(9)));
    assert_eq!(options.snapshot_max_age(), None);
}

#[test]
fn two_segments_fit_into_the_log() {
    let options = Options::default().with_log_max(200 << 10);
    options.validate().unwrap();
    assert_eq!(options.log_segment(), 100 << 10);
    let options = options.with_log_segment((64 << 10) + 1);
    assert_eq!(options.log_segment(), 64 << 10);
}

#[test]
fn filter_rules_are_read_back() {
    for filter in [Filter::Auto, Filter::None, Filter::All] {
        assert_eq!(filter.to_string().parse(), Ok(filter));
    }
    assert!("some".parse::<Filter>().unwrap_err().contains("auto"));
}
