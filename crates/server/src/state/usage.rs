//! Usage of collections: number and time of commands by kind, for `top` and `$collStats`.
//!
//! The map is bounded: collections beyond the bound are not counted until others are dropped.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use stdx::sync::RwLock;

use crate::command::Kind;
use crate::limits::COUNTED;
use crate::metrics::Latency;

/// Statistics of the commands on one collection.
#[derive(Default)]
pub(crate) struct Usage {
    pub(crate) reads: Latency,
    pub(crate) writes: Latency,
    kinds: [Latency; 6],
}

impl Usage {
    /// The commands of one kind.
    pub(crate) fn of(&self, kind: Kind) -> &Latency {
        let [query, getmore, insert, update, remove, command] = &self.kinds;
        match kind {
            Kind::Query => query,
            Kind::GetMore => getmore,
            Kind::Insert => insert,
            Kind::Update => update,
            Kind::Remove => remove,
            Kind::Command => command,
        }
    }
}

type Collections = HashMap<String, Arc<Usage>>;

/// Statistics of all collections in use, by database.
#[derive(Default)]
pub(crate) struct Usages {
    databases: RwLock<HashMap<String, Collections>>,
}

impl Usages {
    /// Count a command on a collection.
    pub(crate) fn note(
        &self,
        (database, collection): (&str, &str),
        (kind, writes): (Kind, bool),
        taken: Duration,
    ) {
        let Some(usage) = self.usage(database, collection) else {
            return;
        };
        usage.of(kind).record(taken);
        match writes {
            true => usage.writes.record(taken),
            false => usage.reads.record(taken),
        }
    }

    fn usage(&self, database: &str, collection: &str) -> Option<Arc<Usage>> {
        if let Some(usage) = self.get(database, collection) {
            return Some(usage);
        }
        let mut databases = self.databases.write();
        let known: usize = databases.values().map(HashMap::len).sum();
        if COUNTED <= known {
            return None;
        }
        let collections = databases.entry(database.to_owned()).or_default();
        let usage = collections.entry(collection.to_owned()).or_default();
        Some(Arc::clone(usage))
    }

    /// The statistics of a collection.
    pub(crate) fn get(&self, database: &str, collection: &str) -> Option<Arc<Usage>> {
        let databases = self.databases.read();
        databases.get(database)?.get(collection).map(Arc::clone)
    }

    /// The statistics of all collections, ordered by full name; removes those for which `exists`
    /// returns false.
    pub(crate) fn list(&self, exists: impl Fn(&str, &str) -> bool) -> Vec<(String, Arc<Usage>)> {
        let mut databases = self.databases.write();
        let mut all = Vec::new();
        for (database, collections) in databases.iter_mut() {
            collections.retain(|collection, _| exists(database, collection));
            for (collection, usage) in collections.iter() {
                all.push((format!("{database}.{collection}"), Arc::clone(usage)));
            }
        }
        databases.retain(|_, collections| !collections.is_empty());
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collections_are_counted_until_they_are_gone() {
        let usages = Usages::default();
        let taken = Duration::from_micros(7);
        usages.note(("d", "a"), (Kind::Insert, true), taken);
        usages.note(("d", "a"), (Kind::Query, false), taken);
        usages.note(("d", "b"), (Kind::Query, false), taken);
        let names = |list: Vec<(String, Arc<Usage>)>| -> Vec<String> {
            list.into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names(usages.list(|_, _| true)), ["d.a", "d.b"]);
        let a = usages.get("d", "a").unwrap();
        assert_eq!(a.of(Kind::Insert).ops.get(), 1);
        assert_eq!((a.reads.micros.get(), a.writes.micros.get()), (7, 7));
        assert_eq!(names(usages.list(|_, name| name == "b")), ["d.b"]);
        assert!(usages.get("d", "a").is_none());
    }
}
