//! Faults: which call fails or returns wrong results, when, and for how long.

use stdx::Rng;
use vfs::Site;

use crate::trace::Call;

/// Which sites a fault concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sites {
    /// All.
    All,
    /// The one of this name.
    Is(&'static str),
    /// Those whose names begin with this prefix, such as `log.`.
    StartWith(&'static str),
}

/// When a fault begins, counted in the calls it applies to, from 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// At the nth call.
    Nth(u64),
    /// At each call, with this probability.
    Chance(f64),
}

/// How long it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasts {
    /// One call.
    Once,
    /// All later calls.
    Sticky,
    /// This many calls.
    Heals(u64),
}

/// The content of the page cache after a failed sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// The new content, until evicted, although it is not on disk and will never be (ext4).
    Keep,
    /// The content on disk: old, new or mixed (xfs, btrfs).
    Revert,
}

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The device fails (`EIO`). A write may have been executed in part; a sync behaves as ext4's.
    Eio,
    /// The disk is full (`ENOSPC`). The call has no effect; a sync behaves as ext4's.
    Enospc,
    /// A write writes a part of its bytes, and then fails because the disk is full.
    ShortWrite,
    /// A sync fails (`EIO`); each descriptor reports it once, and the next sync succeeds.
    SyncFails(Pages),
    /// A read returns one wrong bit.
    BitFlip,
    /// A read returns bytes from another position in the file.
    MisdirectedRead,
    /// A write writes to another position in the file and reports success.
    MisdirectedWrite,
    /// A write has no effect and reports success: the old content stays.
    LostWrite,
}

/// A planned fault.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// Where.
    pub sites: Sites,
    /// In which calls; `None`: each kind of call that the [`FaultKind`] applies to.
    pub call: Option<Call>,
    /// From when.
    pub when: When,
    /// How long.
    pub lasts: Lasts,
    /// What.
    pub kind: FaultKind,
}

impl Fault {
    /// `kind` once, at the `nth` call from `site` that it applies to.
    #[must_use]
    pub fn once(site: &'static str, nth: u64, kind: FaultKind) -> Fault {
        Fault {
            sites: Sites::Is(site),
            call: None,
            when: When::Nth(nth),
            lasts: Lasts::Once,
            kind,
        }
    }
}

impl FaultKind {
    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::Eio => "eio",
            FaultKind::Enospc => "enospc",
            FaultKind::ShortWrite => "short",
            FaultKind::SyncFails(Pages::Keep) => "sync-keep",
            FaultKind::SyncFails(Pages::Revert) => "sync-revert",
            FaultKind::BitFlip => "bit-flip",
            FaultKind::MisdirectedRead => "misread",
            FaultKind::MisdirectedWrite => "miswrite",
            FaultKind::LostWrite => "lost-write",
        }
    }

    /// Whether it applies to this kind of call.
    #[must_use]
    pub fn befalls(self, call: Call) -> bool {
        match self {
            FaultKind::Eio => true,
            FaultKind::Enospc => !matches!(call, Call::Read | Call::Remove),
            FaultKind::SyncFails(_) => call == Call::Sync,
            FaultKind::BitFlip | FaultKind::MisdirectedRead => call == Call::Read,
            FaultKind::ShortWrite | FaultKind::MisdirectedWrite | FaultKind::LostWrite => {
                call == Call::Write
            }
        }
    }
}

impl Sites {
    fn holds(&self, site: Site) -> bool {
        match self {
            Sites::All => true,
            Sites::Is(name) => *name == site.0,
            Sites::StartWith(name) => site.0.starts_with(name),
        }
    }
}

/// A fault and its state.
#[derive(Clone)]
struct Armed {
    fault: Fault,
    seen: u64,
    struck: u64,
}

/// The faults of a disk.
#[derive(Clone, Default)]
pub(crate) struct Faults(Vec<Armed>);

impl Faults {
    pub(crate) fn add(&mut self, fault: Fault) {
        self.0.push(Armed {
            fault,
            seen: 0,
            struck: 0,
        });
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The fault of this call: the first one that is due. All faults that apply to the call count
    /// it.
    pub(crate) fn strike(&mut self, site: Site, call: Call, rng: &mut Rng) -> Option<FaultKind> {
        let mut strikes = None;
        for armed in &mut self.0 {
            let fault = &armed.fault;
            let concerns = fault.sites.holds(site)
                && fault.call.is_none_or(|only| only == call)
                && fault.kind.befalls(call);
            if concerns && armed.next(rng) {
                strikes = strikes.or(Some(armed.fault.kind));
            }
        }
        strikes
    }
}

impl Armed {
    fn next(&mut self, rng: &mut Rng) -> bool {
        self.seen += 1;
        let limit = match self.fault.lasts {
            Lasts::Once => 1,
            Lasts::Sticky => u64::MAX,
            Lasts::Heals(calls) => calls,
        };
        let begins = match self.fault.when {
            When::Nth(nth) => self.seen == nth,
            When::Chance(p) => rng.chance(p),
        };
        let strikes = (0 < self.struck || begins) && self.struck < limit;
        self.struck += u64::from(strikes);
        strikes
    }
}
