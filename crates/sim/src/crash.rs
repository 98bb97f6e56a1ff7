//! Which pending ops survive a crash.
//!
//! An [`Outcome`] says which ops survive; exhaustive tests try every outcome. A [`Profile`] states
//! the promises of the device, which limit the possible outcomes. Both, with a seed, make a
//! [`Crash`]: the same crash of the same disk gives the same image.

use std::collections::{BTreeMap, BTreeSet};

use stdx::Rng;

use crate::content::Content;
use crate::inode::FileOp;

/// The promises of the device and the file system about writes that were not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Profile {
    /// A write changes no byte outside the sectors of 512 bytes that it touches. Everything else is
    /// possible: a sector that was being written may be damaged as a whole.
    Atomic512,
    /// As [`Profile::Atomic512`], with blocks of 4,096 bytes.
    Atomic4096,
    /// Ops reach the disk in the order they were made: a prefix survives, its last write torn. The
    /// sector of 512 bytes at which this write is torn may be damaged as a whole.
    Sequential,
    /// Ops that extend a file survive in order, without holes; overwrites in any order.
    OrderedAppend,
    /// Only synced ops survive, whatever the outcome.
    DropsEverything,
    /// All ops survive, whatever the outcome.
    KeepsEverything,
}

/// Which of the pending ops survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// No op.
    None,
    /// All ops.
    All,
    /// Only the last one.
    OnlyLast,
    /// All except the last one.
    AllButLast,
    /// All ops, but only a prefix of the last one.
    PrefixTorn,
    /// A random subset of the ops, some of them torn.
    Random,
}

/// A crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crash {
    /// The device's promises.
    pub profile: Profile,
    /// Which ops survive.
    pub outcome: Outcome,
    /// The seed of all random choices.
    pub seed: u64,
}

/// A pending op, reduced to what decides on its survival.
pub(crate) struct Candidate {
    pub(crate) seq: u64,
    /// The file; `None` for a change of names.
    pub(crate) inode: Option<u64>,
    pub(crate) extends: bool,
}

/// What happens to a pending op in a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Kept,
    Lost,
    /// The new length survives, the bytes do not: they are zeros.
    Zeros,
    /// Random sectors survive, drawn from the seed; with `garbage`, some other sectors are damaged.
    Torn {
        sector: u64,
        seed: u64,
        garbage: bool,
    },
    /// The first sectors survive; with `garbage`, the next one is damaged.
    Prefix {
        sector: u64,
        seed: u64,
        garbage: bool,
    },
}

impl Profile {
    /// All profiles.
    pub const ALL: [Profile; 6] = [
        Profile::Atomic512,
        Profile::Atomic4096,
        Profile::Sequential,
        Profile::OrderedAppend,
        Profile::DropsEverything,
        Profile::KeepsEverything,
    ];

    fn sector(self) -> u64 {
        if self == Profile::Atomic4096 {
            4096
        } else {
            512
        }
    }
}

impl Outcome {
    /// All outcomes.
    pub const ALL: [Outcome; 6] = [
        Outcome::None,
        Outcome::All,
        Outcome::OnlyLast,
        Outcome::AllButLast,
        Outcome::PrefixTorn,
        Outcome::Random,
    ];
}

impl Crash {
    /// A random crash; half of all crashes keep a random subset.
    #[must_use]
    pub fn draw(rng: &mut Rng) -> Crash {
        let profile = Profile::ALL.get(rng.index(Profile::ALL.len()));
        let outcome = Outcome::ALL.get(rng.index(2 * Outcome::ALL.len()));
        Crash {
            profile: *profile.expect("an index below the length"),
            outcome: outcome.copied().unwrap_or(Outcome::Random),
            seed: rng.next_u64(),
        }
    }

    /// What happens to each candidate, by its number; candidates are in order.
    pub(crate) fn fates(self, candidates: &[Candidate]) -> BTreeMap<u64, Fate> {
        let mut rng = Rng::new(self.seed);
        let fates = match self.profile {
            Profile::DropsEverything => vec![Fate::Lost; candidates.len()],
            Profile::KeepsEverything => vec![Fate::Kept; candidates.len()],
            Profile::Sequential => self.prefix(candidates.len(), &mut rng),
            Profile::Atomic512 | Profile::Atomic4096 => self.subset(candidates.len(), &mut rng),
            Profile::OrderedAppend => {
                let drawn = self.subset(candidates.len(), &mut rng);
                order_appends(candidates, drawn)
            }
        };
        assert_eq!(fates.len(), candidates.len(), "each op has a fate");
        candidates.iter().map(|c| c.seq).zip(fates).collect()
    }

    fn prefix(self, n: usize, rng: &mut Rng) -> Vec<Fate> {
        let (cut, torn) = match self.outcome {
            Outcome::None => (0, false),
            Outcome::All => (n, false),
            Outcome::AllButLast => (n.saturating_sub(1), false),
            Outcome::PrefixTorn => (n.saturating_sub(1), true),
            Outcome::OnlyLast | Outcome::Random => (rng.index(n + 1), true),
        };
        let prefix = self.torn_prefix(rng);
        (0..n)
            .map(|i| match i {
                i if i < cut => Fate::Kept,
                i if i == cut && torn => prefix,
                _ => Fate::Lost,
            })
            .collect()
    }

    fn subset(self, n: usize, rng: &mut Rng) -> Vec<Fate> {
        let density = [0.1, 0.5, 0.9];
        let density = density.get(rng.index(density.len())).copied();
        let density = density.unwrap_or(0.5);
        (1..=n)
            .map(|i| match (self.outcome, i == n) {
                (Outcome::None, _) | (Outcome::OnlyLast, false) | (Outcome::AllButLast, true) => {
                    Fate::Lost
                }
                (Outcome::PrefixTorn, true) => self.torn_prefix(rng),
                (Outcome::Random, _) => self.any(density, rng),
                _ => Fate::Kept,
            })
            .collect()
    }

    fn torn_prefix(self, rng: &mut Rng) -> Fate {
        Fate::Prefix {
            sector: self.profile.sector(),
            seed: rng.next_u64(),
            garbage: rng.chance(0.2),
        }
    }

    fn any(self, density: f64, rng: &mut Rng) -> Fate {
        if rng.chance(0.25) {
            return Fate::Torn {
                sector: self.profile.sector(),
                seed: rng.next_u64(),
                garbage: rng.chance(0.5),
            };
        }
        match (rng.chance(density), rng.chance(0.3)) {
            (true, _) => Fate::Kept,
            (false, true) => Fate::Zeros,
            (false, false) => Fate::Lost,
        }
    }
}

/// Prevents a length that survives without its bytes: after the first extending op of a file that
/// is not kept whole, all later extending ops of this file are lost.
fn order_appends(candidates: &[Candidate], drawn: Vec<Fate>) -> Vec<Fate> {
    let mut ended = BTreeSet::new();
    let each = candidates.iter().zip(drawn);
    each.map(|(candidate, fate)| {
        if !candidate.extends {
            return if fate == Fate::Zeros {
                Fate::Lost
            } else {
                fate
            };
        }
        if ended.contains(&candidate.inode) {
            return Fate::Lost;
        }
        if fate != Fate::Kept {
            ended.insert(candidate.inode);
        }
        match fate {
            Fate::Torn { sector, seed, .. } | Fate::Prefix { sector, seed, .. } => Fate::Prefix {
                sector,
                seed,
                garbage: false,
            },
            Fate::Zeros => Fate::Lost,
            fate => fate,
        }
    })
    .collect()
}

impl Fate {
    /// Whether a change of names survives; it cannot survive in part.
    pub(crate) fn keeps_name(self) -> bool {
        match self {
            Fate::Kept => true,
            Fate::Lost | Fate::Zeros => false,
            Fate::Torn { seed, .. } | Fate::Prefix { seed, .. } => seed.is_multiple_of(2),
        }
    }

    /// Apply the surviving part of `op` to `content`.
    pub(crate) fn apply(self, op: &FileOp, content: &mut Content) {
        let FileOp::Write { offset, bytes, .. } = op else {
            if self.keeps_name() {
                op.apply(content);
            }
            return;
        };
        let end = offset + bytes.len() as u64;
        match self {
            Fate::Kept => op.apply(content),
            Fate::Lost => {}
            Fate::Zeros => content.set_len(content.len().max(end)),
            Fate::Torn {
                sector,
                seed,
                garbage,
            } => {
                let mut rng = Rng::new(seed);
                if rng.chance(0.5) {
                    content.set_len(content.len().max(end));
                }
                for (at, piece) in sectors(*offset, bytes, sector) {
                    if rng.chance(0.5) {
                        content.write(at, piece);
                    } else if garbage && rng.chance(0.5) {
                        damage(content, at, piece, sector, &mut rng);
                    }
                }
            }
            Fate::Prefix {
                sector,
                seed,
                garbage,
            } => {
                let pieces: Vec<_> = sectors(*offset, bytes, sector).collect();
                let mut rng = Rng::new(seed);
                let kept = rng.index(pieces.len() + 1);
                for (i, (at, piece)) in pieces.into_iter().enumerate() {
                    if i < kept {
                        content.write(at, piece);
                    } else if i == kept && garbage {
                        damage(content, at, piece, sector, &mut rng);
                    }
                }
            }
        }
    }
}

/// Damage the sector to which `piece` was being written at `at`: the first bytes of the piece may
/// have been written; all other bytes of the sector are random or zero, including those that the
/// write did not cover and those that were durable before.
fn damage(content: &mut Content, at: u64, piece: &[u8], sector: u64, rng: &mut Rng) {
    let start = at - at % sector;
    let end = content.len().max(at + piece.len() as u64);
    let length = sector.min(end - start);
    let mut rest = vec![0; usize::try_from(length).expect("at most a sector")];
    if rng.chance(0.7) {
        rng.fill(&mut rest);
    }
    content.write(start, &rest);
    let arrived = rng.index(piece.len() + 1);
    let (arrived, _) = piece.split_at(arrived);
    content.write(at, arrived);
}

/// `bytes` at `offset`, split at sector boundaries.
fn sectors(offset: u64, bytes: &[u8], sector: u64) -> impl Iterator<Item = (u64, &[u8])> {
    let mut rest = bytes;
    let mut at = offset;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let room = usize::try_from(sector - at % sector).expect("at most a sector");
        let (piece, tail) = rest.split_at(room.min(rest.len()));
        let item = (at, piece);
        rest = tail;
        at += piece.len() as u64;
        Some(item)
    })
}
