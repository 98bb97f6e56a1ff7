//! Faults: the calls that fail or return wrong results, from when on, and for how long.

use stdx::Rng;
use vfs::Site;

use crate::trace::Call;

/// The sites to which a fault applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sites {
    /// All sites.
    All,
    /// The site of this name.
    Is(&'static str),
    /// The sites whose names begin with this prefix, such as `log.`.
    StartWith(&'static str),
}

/// When a fault begins. Calls are counted from 1; only calls to which the fault applies count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// At the call with this number.
    Nth(u64),
    /// At each call, with this probability.
    Chance(f64),
}

/// For how many calls a fault lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasts {
    /// One call.
    Once,
    /// All later calls.
    Sticky,
    /// This many calls.
    Heals(u64),
}

/// What the page cache contains after a failed sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// The new content until it is evicted, although it is not on disk and will never be (ext4).
    Keep,
    /// The content of the disk, which may be old, new or a mixture (xfs, btrfs).
    Revert,
}

/// What a fault does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The device fails (`EIO`). A write may be executed in part; a sync fails as on ext4
    /// ([`Pages::Keep`]).
    Eio,
    /// The disk is full (`ENOSPC`). The call has no effect; a sync fails as on ext4
    /// ([`Pages::Keep`]).
    Enospc,
    /// A write writes a part of its bytes, and then fails because the disk is full.
    ShortWrite,
    /// A sync fails (`EIO`); each descriptor reports it once, and the next sync succeeds.
    SyncFails(Pages),
    /// A read returns one inverted bit.
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
    /// The sites to which the fault applies.
    pub sites: Sites,
    /// The kind of call; `None` for every kind to which the [`FaultKind`] applies.
    pub call: Option<Call>,
    /// When the fault begins.
    pub when: When,
    /// For how many calls it lasts.
    pub lasts: Lasts,
    /// What the fault does.
    pub kind: FaultKind,
}

impl Fault {
    /// A fault that happens once, at the `nth` call from `site` to which `kind` applies.
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
    /// The name of the fault in tables.
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

    /// Whether the fault applies to this kind of call.
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

/// A planned fault, with the number of calls counted so far and the number of calls that it has
/// affected.
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

    /// The fault for this call: the first one that is due. The call is counted for every fault that
    /// applies to it.
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
