//! Random changes of the catalog beside index builds, against a model.
//!
//! Two collections; builds that stop at each of their points, and go on when a draw says so;
//! between these steps writes, `collMod`, renames, drops, `dropIndexes`, further `createIndexes`,
//! a transaction that reads, kills, and restarts. One thread runs at a time, so that a seed repeats
//! a run. After each step the collections, their indexes and which of them are ready are as the
//! model says, and `validate` finds nothing.
//!
//! `ROMANESCO_SEEDS=n` draws more programs, `ROMANESCO_SEED=n` begins with that one, and repeats
//! only it if their number is not given.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bson::{Document, doc};
use kv::{Durability, Factory};
use query::{Code, Result};
use stdx::Rng;

use super::super::Point::{Begun, Put, Read, Waits};
use super::known::{Coll, Doc, Idx, judge, pool};
use super::rig::{Actor, News, Site, code, counting, named, raw};
use crate::ddl::{CreateIndexesReply, IndexNames};
use crate::txn::{Op, SessionId, SessionRef};
use crate::write::{DeleteStatement, UpdateStatement};

const NAMES: [&str; 2] = ["x", "y"];
const SEEDS: u64 = 5;
const STEPS: usize = 150;
/// Maximum number of concurrent operations.
const ACTORS: usize = 4;
const BUSY: Code = Code::BACKGROUND_OPERATION_IN_PROGRESS_FOR_NAMESPACE;

/// A `createIndexes` in progress.
struct Flight {
    actor: Actor,
    number: u64,
    name: &'static str,
    wanted: Vec<Idx>,
    /// Whether its indexes are in the catalog.
    alive: bool,
    /// Whether two documents have had the same key of one of its unique indexes since it began.
    twins: bool,
    killed: bool,
    /// The build for which it waits.
    waits: Option<u64>,
}

/// The state that a transaction reads.
struct Txn {
    number: i64,
    /// Set when the transaction first reads an existing collection, which opens its snapshot.
    seen: Option<BTreeMap<&'static str, Coll>>,
}

struct World {
    site: Option<Site>,
    rng: Rng,
    colls: BTreeMap<&'static str, Coll>,
    flights: Vec<Flight>,
    txn: Option<Txn>,
    last: u64,
    /// How often each kind of event has occurred.
    happened: BTreeMap<&'static str, u32>,
}

fn environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a number"))
}

fn run(factory: &'static dyn Factory) {
    let first = environment("ROMANESCO_SEED");
    let usual = if first.is_some() { 1 } else { SEEDS };
    let (first, count) = (
        first.unwrap_or(0),
        environment("ROMANESCO_SEEDS").unwrap_or(usual),
    );
    let seeds = first..first + count;
    let mut happened: BTreeMap<&'static str, u32> = BTreeMap::new();
    for seed in seeds.clone() {
        println!("ROMANESCO_SEED={seed} on {}", factory.name());
        let mut world = World::new(factory, seed);
        for step in 0..STEPS {
            print!("{step}: ");
            world.step();
            world.check();
        }
        world.end_all();
        world.check();
        for (what, count) in world.happened {
            *happened.entry(what).or_default() += count;
        }
    }
    println!("{happened:?}");
    if seeds.end - seeds.start < SEEDS {
        return;
    }
    // An event that occurs too rarely is not tested.
    let floor = [
        "built",
        "twins",
        "aborted",
        "interrupted",
        "waited",
        "busy",
        "seen",
        "unseen",
    ];
    for what in floor {
        assert!(
            happened.contains_key(what),
            "{what} never happened: {happened:?}"
        );
    }
}

#[test]
fn the_catalog_is_as_the_model_says_on_betree() {
    run(kv_betree::factory());
}

#[test]
fn the_catalog_is_as_the_model_says_on_the_reference() {
    run(kv::memory::factory());
}

#[test]
fn the_catalog_is_as_the_model_says_on_lmdb() {
    run(kv_lmdb::factory());
}

impl World {
    fn new(factory: &'static dyn Factory, seed: u64) -> World {
        World {
            site: Some(Site::new(factory)),
            rng: Rng::new(seed),
            colls: BTreeMap::new(),
            flights: Vec::new(),
            txn: None,
            last: 0,
            happened: BTreeMap::new(),
        }
    }

    fn site(&self) -> &Site {
        self.site.as_ref().expect("it is open")
    }

    fn happens(&mut self, what: &'static str) {
        *self.happened.entry(what).or_default() += 1;
    }

    /// The next unused number.
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn name(&mut self) -> &'static str {
        NAMES[self.rng.index(NAMES.len())]
    }

    /// The collection with this name, for a change that gives it a new state number.
    fn change(&mut self, name: &'static str) -> &mut Coll {
        let state = self.next();
        let coll = self.colls.entry(name).or_default();
        coll.state = state;
        coll
    }

    fn step(&mut self) {
        match self.rng.below(32) {
            0..5 => self.create(),
            5..12 => self.go_on(),
            12 | 13 => self.finish_one(),
            14 => self.kill(),
            15..18 => self.modify(),
            18 | 19 => self.rename(),
            20 => self.drop_coll(),
            21 => self.drop_indexes(),
            22..27 => self.write(),
            27 => self.fill(),
            28..31 => self.read_in_transaction(),
            _ => self.restart(),
        }
        for flight in self.flights.iter_mut().filter(|f| f.alive) {
            let coll = self.colls.get(flight.name).expect("it is built");
            let mut unique = flight.wanted.iter().filter(|idx| idx.unique);
            flight.twins |= unique.any(|idx| coll.has_twins(idx));
        }
    }

    /// Compare the store with the model.
    fn check(&mut self) {
        let site = self.site();
        for name in NAMES {
            let ns = named(name);
            let Some(coll) = self.colls.get(name) else {
                assert!(site.store.lookup(&ns).is_none(), "{name} is there");
                continue;
            };
            let wanted: Vec<(String, bool)> = std::iter::once(("_id_".to_owned(), true))
                .chain(
                    coll.indexes
                        .iter()
                        .map(|idx| (idx.name(), idx.build.is_none())),
                )
                .collect();
            assert_eq!(site.indexes(&ns), wanted, "{name}");
            for idx in coll.indexes.iter().filter(|idx| idx.build.is_none()) {
                let index = site.store.collection(&ns).unwrap();
                let index = index.index(&idx.name()).unwrap().spec().clone();
                assert_eq!(
                    (index.unique, index.hidden),
                    (idx.unique, idx.hidden),
                    "{idx:?}"
                );
                if !idx.hidden {
                    let all = crate::CountRequest {
                        hint: Some(idx.name().into()),
                        ..counting(&doc! {})
                    };
                    let n = site.store.count(&site.op, &ns, &all);
                    assert_eq!(n, Ok(coll.docs.len() as u64), "{name} by {idx:?}");
                }
            }
            assert_eq!(site.count(&ns, doc! { "a": 7 }), coll.sevens(), "{name}");
        }
        site.validate();
    }

    /// `createIndexes`, up to its first point.
    fn create(&mut self) {
        if ACTORS <= self.flights.len() {
            return;
        }
        let name = self.name();
        let pool = pool();
        let mut wanted: Vec<Idx> = (0..1 + self.rng.index(2))
            .map(|_| pool[self.rng.index(pool.len())].clone())
            .collect();
        if !self.colls.contains_key(name) {
            self.change(name);
        }
        let coll = self.colls.get(name).expect("it was made above");
        // Usually an index that is being built.
        let built = coll.indexes.iter().find(|idx| idx.build.is_some());
        if let Some(idx) = built
            && self.rng.chance(0.4)
        {
            wanted = vec![idx.clone()];
        }
        let (mut fresh, mut waits, mut refused) = (Vec::<Idx>::new(), None, false);
        for idx in &wanted {
            let there = coll.indexes.iter().chain(&fresh);
            match there.into_iter().find(|there| there.fields == idx.fields) {
                None => fresh.push(idx.clone()),
                Some(there) if there.unique != idx.unique || there.ttl != idx.ttl => refused = true,
                Some(there) => waits = there.build.map(|build| (build, idx.clone())).or(waits),
            }
        }
        // An operation that waits requests one index: with several, the order in which it meets
        // their builds would be undetermined.
        if let Some((_, idx)) = &waits {
            wanted = vec![idx.clone()];
            refused = false;
        }
        let specs: Vec<Document> = wanted.iter().map(Idx::spec).collect();
        println!("create {specs:?} on {name}");
        let number = self.next();
        let site = self.site();
        let actor = site.create(&named(name), &specs, &[Begun, Read, Put, Waits]);
        let mut flight = Flight {
            actor,
            number,
            name,
            wanted,
            alive: false,
            twins: false,
            killed: false,
            waits: waits.map(|(build, _)| build),
        };
        if flight.waits.is_some() {
            flight.actor.at(Waits);
            self.flights.push(flight);
        } else if refused {
            assert_eq!(code(flight.actor.end()), Code::INDEX_KEY_SPECS_CONFLICT);
        } else if fresh.is_empty() {
            flight.actor.end().unwrap();
        } else {
            flight.actor.at(Begun);
            flight.wanted = fresh;
            self.begun(flight);
        }
    }

    /// An actor has put its indexes into the catalog.
    fn begun(&mut self, mut flight: Flight) {
        let coll = self.change(flight.name);
        for idx in &flight.wanted {
            coll.indexes.push(Idx {
                build: Some(flight.number),
                ..idx.clone()
            });
        }
        flight.alive = true;
        flight.waits = None;
        self.flights.push(flight);
    }

    /// A random actor that builds and does not wait.
    fn builder(&mut self) -> Option<usize> {
        let builds = (0..self.flights.len()).filter(|at| self.flights[*at].waits.is_none());
        let builds: Vec<usize> = builds.collect();
        (!builds.is_empty()).then(|| builds[self.rng.index(builds.len())])
    }

    fn go_on(&mut self) {
        let Some(at) = self.builder() else {
            return;
        };
        println!("go on with {}", self.flights[at].number);
        self.go(at);
    }

    /// Let an actor continue to its next point; returns whether it has ended.
    fn go(&mut self, at: usize) -> bool {
        match self.flights[at].actor.go().news() {
            News::At(_) => false,
            News::Done(done) => {
                let flight = self.flights.remove(at);
                self.ended(flight, done);
                true
            }
            News::Dead => panic!("it has not ended"),
        }
    }

    fn finish_one(&mut self) {
        if let Some(at) = self.builder() {
            println!("finish {}", self.flights[at].number);
            while !self.go(at) {}
        }
    }

    fn kill(&mut self) {
        if let Some(at) = self.builder() {
            println!("kill {}", self.flights[at].number);
            self.flights[at].killed = true;
            self.flights[at].actor.kill();
        }
    }

    /// A build has ended.
    fn ended(&mut self, flight: Flight, done: Result<CreateIndexesReply>) {
        let failed = done.as_ref().err().map(|error| error.code);
        println!(
            "    {} has ended: {:?}",
            flight.number,
            done.map_err(|e| e.message)
        );
        if !flight.alive {
            assert_eq!(failed, Some(Code::INDEX_BUILD_ABORTED));
            self.happens("aborted");
            return self.tell(flight.number, failed);
        }
        let number = flight.number;
        let is_of = move |idx: &Idx| idx.build == Some(number);
        let coll = self.change(flight.name);
        match failed {
            None => {
                let built = coll.indexes.iter().filter(|idx| is_of(idx));
                let twins = built
                    .filter(|idx| idx.unique)
                    .any(|idx| coll.has_twins(idx));
                assert!(!twins, "two documents have one key");
                for idx in coll.indexes.iter_mut().filter(|idx| is_of(idx)) {
                    idx.build = None;
                }
                self.happens("built");
            }
            Some(Code::DUPLICATE_KEY) => {
                assert!(flight.twins, "no two documents have had one key");
                coll.indexes.retain(|idx| !is_of(idx));
                self.happens("twins");
            }
            Some(Code::INTERRUPTED) => {
                assert!(flight.killed);
                coll.indexes.retain(|idx| !is_of(idx));
                self.happens("interrupted");
                return self.take_over(number);
            }
            other => panic!("{other:?}"),
        }
        self.tell(number, failed);
    }

    /// The operations that wait for a build share its outcome.
    fn tell(&mut self, build: u64, failed: Option<Code>) {
        while let Some(at) = self.flights.iter().position(|f| f.waits == Some(build)) {
            let waiter = self.flights.remove(at);
            let done = waiter.actor.end();
            assert_eq!(done.err().map(|error| error.code), failed);
            self.happens("waited");
        }
    }

    /// When a build is given up, one of the waiting operations builds the index and the others wait
    /// for that one.
    fn take_over(&mut self, build: u64) {
        let is_waiter = |f: &Flight| f.waits == Some(build);
        let mut waiters = Vec::new();
        while let Some(at) = self.flights.iter().position(is_waiter) {
            waiters.push(self.flights.remove(at));
        }
        let mut rest = Vec::new();
        let mut heir = None;
        for waiter in waiters {
            match waiter.actor.news() {
                News::At(Begun) => heir = Some(waiter),
                News::At(Waits) => rest.push(waiter),
                other => panic!("{other:?}"),
            }
        }
        let Some(heir) = heir else {
            assert!(rest.is_empty(), "one of them builds");
            return;
        };
        for mut waiter in rest {
            waiter.waits = Some(heir.number);
            self.flights.push(waiter);
        }
        self.happens("taken over");
        self.begun(heir);
    }

    fn modify(&mut self) {
        let name = self.name();
        let pool = pool();
        let wanted = &pool[self.rng.index(pool.len())];
        let draw = self.rng.below(5);
        let (option, value) = match draw {
            0 => ("hidden", true),
            1 => ("hidden", false),
            2 | 3 => ("prepareUnique", true),
            _ => ("unique", true),
        };
        println!("collMod {name} {} {option}: {value}", wanted.name());
        let fields = doc! { "index": { "name": wanted.name(), option: value } };
        let site = self.site();
        let done = site.store.coll_mod(&site.op, &named(name), &raw(&fields));
        let failed = done.err().map(|error| error.code);
        let Some(coll) = self.colls.get_mut(name) else {
            return assert_eq!(failed, Some(Code::NAMESPACE_NOT_FOUND));
        };
        if coll.is_built() {
            self.happens("busy");
            return assert_eq!(failed, Some(BUSY));
        }
        let at = coll.indexes.iter().position(|i| i.fields == wanted.fields);
        let Some(at) = at else {
            return assert_eq!(failed, Some(Code::INDEX_NOT_FOUND));
        };
        let idx = coll.indexes[at].clone();
        let expected = match option {
            "unique" if idx.unique => None,
            "unique" if !idx.prepare => Some(Code::INVALID_OPTIONS),
            "unique" if coll.has_twins(&idx) => Some(Code::CANNOT_CONVERT_INDEX_TO_UNIQUE),
            _ => None,
        };
        assert_eq!(failed, expected);
        if failed.is_some() {
            return;
        }
        let idx = &mut self.change(name).indexes[at];
        match option {
            "hidden" => idx.hidden = value,
            "prepareUnique" => idx.prepare |= !idx.unique,
            _ => (idx.unique, idx.prepare) = (true, false),
        }
    }

    fn rename(&mut self) {
        let from = self.name();
        let to = if from == "x" { "y" } else { "x" };
        let drop_target = self.rng.chance(0.6);
        println!("rename {from} to {to}, dropping it: {drop_target}");
        let site = self.site();
        let done = site
            .store
            .rename(&site.op, &named(from), &named(to), drop_target);
        let failed = done.err().map(|error| error.code);
        let built = |coll: Option<&Coll>| coll.is_some_and(Coll::is_built);
        let (source, target) = (self.colls.get(from), self.colls.get(to));
        if source.is_none() {
            return assert_eq!(failed, Some(Code::NAMESPACE_NOT_FOUND));
        }
        if target.is_some() && !drop_target {
            return assert_eq!(failed, Some(Code::NAMESPACE_EXISTS));
        }
        if built(source) || built(target) {
            self.happens("busy");
            return assert_eq!(failed, Some(BUSY));
        }
        assert_eq!(failed, None);
        let coll = self.colls.remove(from).expect("it was there");
        self.colls.insert(to, coll);
        self.change(to);
    }

    /// Abort the builds of a collection whose indexes were removed.
    fn abort(&mut self, name: &'static str, gone: &dyn Fn(u64) -> bool) {
        for flight in self.flights.iter_mut() {
            if flight.alive && flight.name == name && gone(flight.number) {
                flight.alive = false;
            }
        }
    }

    fn drop_coll(&mut self) {
        let database = self.rng.chance(0.3);
        let name = self.name();
        let site = self.site();
        println!("drop {}", if database { "all" } else { name });
        let done = match database {
            true => site.store.drop_database(&site.op, "d"),
            false => site.store.drop_collection(&site.op, &named(name)),
        };
        let names: &[&str] = if database { &NAMES } else { &[name] };
        let mut there = false;
        for name in NAMES.into_iter().filter(|name| names.contains(name)) {
            there |= self.colls.remove(name).is_some();
            self.abort(name, &|_| true);
        }
        assert_eq!(done, Ok(there));
    }

    fn drop_indexes(&mut self) {
        let name = self.name();
        let pool = pool();
        let chosen: BTreeSet<String> = (0..1 + self.rng.index(2))
            .map(|_| pool[self.rng.index(pool.len())].name())
            .collect();
        let names = match self.rng.chance(0.3) {
            true => IndexNames::All,
            false => IndexNames::Names(chosen.iter().cloned().collect()),
        };
        println!("dropIndexes {names:?} of {name}");
        let site = self.site();
        let done = site.store.drop_indexes(&site.op, &named(name), &names);
        let failed = done.err().map(|error| error.code);
        let Some(coll) = self.colls.get(name) else {
            return assert_eq!(failed, Some(Code::NAMESPACE_NOT_FOUND));
        };
        let all = names == IndexNames::All;
        let is_gone = |idx: &Idx| all || chosen.contains(&idx.name());
        let gone: Vec<&Idx> = coll.indexes.iter().filter(|idx| is_gone(idx)).collect();
        let whole = |build: u64| {
            let mut of_build = coll.indexes.iter().filter(|i| i.build == Some(build));
            of_build.all(&is_gone) && gone.iter().all(|i| i.build == Some(build))
        };
        let builds: BTreeSet<u64> = gone.iter().filter_map(|idx| idx.build).collect();
        let found = all || (gone.len() == chosen.len() && builds.iter().all(|b| whole(*b)));
        if !found {
            return assert_eq!(failed, Some(Code::INDEX_NOT_FOUND));
        }
        assert_eq!(failed, None);
        self.change(name).indexes.retain(|idx| !is_gone(idx));
        self.abort(name, &|number| builds.contains(&number));
    }

    /// Insert enough documents that a build has several portions.
    fn fill(&mut self) {
        let name = self.name();
        println!("fill {name}");
        for _ in 0..60 {
            self.insert(name);
        }
    }

    fn draw(&mut self) -> Doc {
        let wide = self.rng.chance(0.93);
        let mut below = |limit| i32::try_from(self.rng.below(limit)).unwrap();
        Doc {
            a: below(10),
            u: below(if wide { 1_000_000 } else { 10 }),
        }
    }

    fn insert(&mut self, name: &'static str) {
        let (id, new) = (i32::try_from(self.next()).unwrap(), self.draw());
        let site = self.site();
        let document = doc! { "_id": id, "a": new.a, "u": new.u };
        let done = site.put(&named(name), &document);
        if !self.colls.contains_key(name) {
            self.change(name);
        }
        let coll = self.colls.get_mut(name).expect("it was made above");
        if judge(coll.refuses(id, None, new), done) {
            coll.docs.insert(id, new);
        }
    }

    fn write(&mut self) {
        let name = self.name();
        let ids = self.colls.get(name).map(|coll| coll.docs.keys().copied());
        let ids: Vec<i32> = ids.into_iter().flatten().collect();
        if ids.is_empty() || self.rng.chance(0.4) {
            println!("insert into {name}");
            return self.insert(name);
        }
        let id = ids[self.rng.index(ids.len())];
        if self.rng.chance(0.4) {
            println!("delete {id} from {name}");
            let site = self.site();
            let gone = DeleteStatement::new(raw(&doc! { "_id": id }));
            let done = site.store.delete(&site.op, &named(name), &[gone], true);
            assert_eq!(done.unwrap().n, 1);
            self.colls
                .get_mut(name)
                .expect("it has one")
                .docs
                .remove(&id);
            return;
        }
        let new = self.draw();
        println!("update {id} of {name} to {new:?}");
        let change = doc! { "$set": { "a": new.a, "u": new.u } };
        let change = UpdateStatement::new(raw(&doc! { "_id": id }), raw(&change));
        let site = self.site();
        let reply = site
            .store
            .update(&site.op, &named(name), &[change], true, false)
            .unwrap();
        let done = match reply.errors.into_iter().next() {
            None => Ok(()),
            Some(first) => Err(first.error),
        };
        let coll = self.colls.get_mut(name).expect("it has one");
        let old = coll.docs.get(&id).copied();
        if judge(coll.refuses(id, old, new), done) {
            coll.docs.insert(id, new);
        }
    }

    fn session(number: i64) -> Op<'static> {
        let id = SessionId {
            id: [7; 16],
            uid: [0; 32],
        };
        Op {
            session: Some(SessionRef {
                id,
                txn_number: Some(number),
                stmt_id: 0,
                stmt_ids: None,
            }),
            ..Op::new(Durability::Group)
        }
    }

    /// A read in a transaction; begins a transaction if none is open.
    fn read_in_transaction(&mut self) {
        let name = self.name();
        let start = self.txn.is_none();
        let mut txn = match self.txn.take() {
            Some(txn) => txn,
            None => Txn {
                number: i64::try_from(self.next()).unwrap(),
                seen: None,
            },
        };
        println!(
            "read {name} in transaction {}, beginning: {start}",
            txn.number
        );
        if !start && self.rng.chance(0.1) {
            let session = World::session(txn.number);
            return self.site().store.abort_transaction(&session).unwrap();
        }
        let (store, ns) = (Arc::clone(&self.site().store), named(name));
        let read = move |op: &Op<'_>| store.count(op, &ns, &counting(&doc! { "a": 7 }));
        let session = World::session(txn.number);
        let found = self.site().store.in_transaction(session, start, read);
        if txn.seen.is_none() && self.colls.contains_key(name) {
            txn.seen = Some(self.colls.clone());
        }
        let seen = txn.seen.as_ref().and_then(|seen| seen.get(name)).cloned();
        let same =
            seen.as_ref().map(|coll| coll.state) == self.colls.get(name).map(|coll| coll.state);
        match found {
            Ok(n) => {
                assert_eq!(
                    n,
                    seen.as_ref().map_or(0, Coll::sevens),
                    "as it was in the beginning"
                );
                self.txn = Some(txn);
                self.happens("seen");
            }
            Err(error) => {
                assert_eq!(error.code, Code::SNAPSHOT_UNAVAILABLE, "{error}");
                assert!(!same, "nothing has changed");
                self.happens("unseen");
            }
        }
    }

    fn end_transaction(&mut self) {
        if let Some(txn) = self.txn.take() {
            let session = World::session(txn.number);
            self.site().store.abort_transaction(&session).unwrap();
        }
    }

    fn end_all(&mut self) {
        println!("end all");
        self.end_transaction();
        while let Some(at) = self.builder() {
            while !self.go(at) {}
        }
        assert!(self.flights.is_empty(), "no flight is open");
    }

    /// End the process with all operations in progress, and start another one.
    fn restart(&mut self) {
        if !self.site().store.engine().capabilities().persistent {
            return;
        }
        println!("restart");
        self.end_transaction();
        let is_aborted = |f: &Flight| !f.alive && f.waits.is_none();
        while let Some(at) = self.flights.iter().position(is_aborted) {
            while !self.go(at) {}
        }
        while let Some(at) = self.builder() {
            let dead = self.flights.remove(at);
            dead.actor.die();
            // An operation that waits for the ended build takes it over, and removes what that
            // build left.
            let number = dead.number;
            if self.flights.iter().any(|f| f.waits == Some(number)) {
                let flying: Vec<u64> = self.flights.iter().map(|f| f.number).collect();
                let is_left = |idx: &Idx| idx.build.is_some_and(|b| !flying.contains(&b));
                let coll = self.colls.get_mut(dead.name).expect("it is built");
                coll.indexes.retain(|idx| !is_left(idx));
                self.take_over(number);
            }
        }
        let site = self.site.take().expect("it is open");
        self.site = Some(site.reopen());
        for coll in self.colls.values_mut() {
            // Interrupted builds are restarted as one build, and their indexes come last.
            let (built, ready): (Vec<Idx>, Vec<Idx>) =
                coll.indexes.drain(..).partition(|idx| idx.build.is_some());
            coll.indexes = ready;
            if built.iter().any(|idx| idx.unique && coll.has_twins(idx)) {
                continue;
            }
            coll.indexes
                .extend(built.into_iter().map(|idx| Idx { build: None, ..idx }));
        }
        self.happens("restart");
    }
}
