//! The setters. Each states the default, the range and the trade-off.

use std::time::Duration;

use super::{Codec, Filter, MasterKey, Options};

impl Options {
    /// Memory for write buffers, cache, fences and reads and writes in flight together, in bytes:
    /// a hard limit. Default 128 MiB; 1 MiB to 16 TiB. More means fewer reads and fewer, larger
    /// flushes, so less rewriting.
    #[must_use]
    pub fn with_memory(mut self, bytes: u64) -> Options {
        self.memory = bytes;
        self
    }

    /// The part of the memory that write buffers may take. Default 0.5; 0.05 to 0.95. More means
    /// less rewriting for random inserts and less cache for reads. What buffers do not use is not
    /// lent to the cache.
    #[must_use]
    pub fn with_buffer_share(mut self, share: f64) -> Options {
        self.buffer_share = share;
        self
    }

    /// Bytes merged for each byte flushed. Default 2; 0.05 to 64. More means fewer runs for
    /// readers to meet and more writing.
    #[must_use]
    pub fn with_rho(mut self, rho: f64) -> Options {
        self.rho = rho;
        self
    }

    /// The most deltas in a bucket before a merge of it is forced, whatever `rho` allows.
    /// Default 16; 1 to 64. More smooths bursts and slows reads of busy buckets.
    #[must_use]
    pub fn with_k_cap(mut self, runs: u32) -> Options {
        self.k_cap = runs;
        self
    }

    /// The stored size a bucket is split at, in bytes. Default 16 MiB; 4 KiB to 1 GiB. Larger
    /// buckets get larger flushes and take longer to merge; smaller ones cost memory each.
    #[must_use]
    pub fn with_bucket(mut self, bytes: u64) -> Options {
        self.bucket = bytes;
        self
    }

    /// The size of a page before compression, in bytes. Default 8 KiB; 256 bytes to 1 MiB. Larger
    /// pages compress better and scan faster; smaller ones make point reads cheaper and let the
    /// cache hold what is read and not its neighbours.
    #[must_use]
    pub fn with_page(mut self, bytes: u32) -> Options {
        self.page = bytes;
        self
    }

    /// The codec of bases. Default lz4. A stronger one trades time of merges for space.
    #[must_use]
    pub fn with_codec(mut self, codec: Codec) -> Options {
        self.codec = codec;
        self
    }

    /// The codec of deltas, which are soon rewritten. Default lz4. A stronger one slows flushes,
    /// which writers wait for; none writes more.
    #[must_use]
    pub fn with_delta_codec(mut self, codec: Codec) -> Options {
        self.delta_codec = codec;
        self
    }

    /// Which runs get a filter. Default auto: deltas of trees created for point lookups. Filters
    /// save reads for keys that a run does not hold, and cost memory and time of flushes.
    #[must_use]
    pub fn with_filter(mut self, filter: Filter) -> Options {
        self.filter = filter;
        self
    }

    /// The size of a filter, in bits for each key. Default 10 (errs in 1 of 100); 4 to 24.
    #[must_use]
    pub fn with_filter_bits(mut self, bits: u8) -> Options {
        self.filter_bits = bits;
        self
    }

    /// Whether there is a log. Default true. Without one, commits are durable at the next
    /// checkpoint and no sooner, and are about a third cheaper.
    #[must_use]
    pub fn with_log(mut self, log: bool) -> Options {
        self.log = log;
        self
    }

    /// The codec of the log: `Codec::None` or `Codec::Lz4`. Default none: with LZ4 the log is about
    /// a third shorter, for about half a nanosecond per byte in the thread that writes it. It pays
    /// where the device is slower than a core compresses, and where its wear counts. A store may be
    /// opened with either, whatever its log was written with.
    #[must_use]
    pub fn with_log_codec(mut self, codec: Codec) -> Options {
        self.log_codec = codec;
        self
    }

    /// The size of a segment of the log, in bytes. Default 64 MiB; 64 KiB to 4 GiB, and in effect
    /// at most half of `log_max`. Segments are preallocated and given back whole; smaller ones are
    /// changed more often.
    #[must_use]
    pub fn with_log_segment(mut self, bytes: u64) -> Options {
        self.log_segment = bytes;
        self
    }

    /// The most log that recovery may have to read, in bytes. Default 1 GiB; 128 KiB to
    /// 16 TiB. Above it the oldest buffers are flushed, however small they are: less means faster
    /// recovery and more, smaller flushes.
    #[must_use]
    pub fn with_log_max(mut self, bytes: u64) -> Options {
        self.log_max = bytes;
        self
    }

    /// How often the log is synced for commits at [`crate::Durability::Interval`]. Default 100 ms;
    /// 1 ms to a day. A power loss takes about this much.
    #[must_use]
    pub fn with_interval(mut self, interval: Duration) -> Options {
        self.interval = interval;
        self
    }

    /// The longest time between checkpoints while anything is written. Default 10 s; 1 ms to a
    /// day. Freed space is reused after a checkpoint; each costs two syncs.
    #[must_use]
    pub fn with_checkpoint_interval(mut self, interval: Duration) -> Options {
        self.checkpoint_interval = interval;
        self
    }

    /// The log written between checkpoints at most, in bytes. Default 256 MiB; 4 KiB to 16 TiB.
    #[must_use]
    pub fn with_checkpoint_bytes(mut self, bytes: u64) -> Options {
        self.checkpoint_bytes = bytes;
        self
    }

    /// Threads for flushes, merges and checkpoints. Default 2; 0 to 64. With 0 the caller does all
    /// background work by calling `Db::step`, which makes runs repeatable.
    #[must_use]
    pub fn with_threads(mut self, threads: u32) -> Options {
        self.threads = threads;
        self
    }

    /// Whether the data file bypasses the page cache of the operating system. Default false. Then
    /// memory is used once and the limit is honest, but nothing outside of it speeds up reads.
    #[must_use]
    pub fn with_direct_io(mut self, direct: bool) -> Options {
        self.direct_io = direct;
        self
    }

    /// How long a commit at [`crate::Durability::Group`] waits for others to share its sync.
    /// Default 0; up to 1 s. Pays where syncs are dear or few.
    #[must_use]
    pub fn with_group_delay(mut self, delay: Duration) -> Options {
        self.group_delay = delay;
        self
    }

    /// The age at which snapshots and transactions end and return `Conflict`. Default none; 1 ms to
    /// a year. A forgotten snapshot keeps every version and every byte since it was taken.
    #[must_use]
    pub fn with_snapshot_max_age(mut self, age: Option<Duration>) -> Options {
        self.snapshot_max_age = age;
        self
    }

    /// The most a transaction or a batch may write, in bytes of its log record. Default and most
    /// 1 GiB; 4 KiB at least. What a transaction has written counts against the write buffers,
    /// and spills into runs of its own when it grows.
    #[must_use]
    pub fn with_transaction_max(mut self, bytes: u64) -> Options {
        self.transaction_max = bytes;
        self
    }

    /// The seed of the jitter that keeps splits and merges from coming in waves. Default: from the
    /// store's identity, so that two stores differ and one store is repeatable.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Options {
        self.seed = Some(seed);
        self
    }

    /// The master key of an encrypted store. Default none: the store is not encrypted. A store is
    /// encrypted, or not, from its creation on. Without its master key and the file `keys.betree`
    /// in its directory its data cannot be read. Encryption costs processor time, 20 bytes per page
    /// and 16 per group of the log.
    #[must_use]
    pub fn with_encryption(mut self, master: Option<MasterKey>) -> Options {
        self.encryption = master;
        self
    }
}
