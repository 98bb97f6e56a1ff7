//! Privileges under illegal BSON: valid commands with random changes, sent by users with few
//! privileges.
//!
//! `ROMANESCO_SEED=N` repeats a run, `ROMANESCO_COMMANDS=N` makes it longer:
//! `ROMANESCO_COMMANDS=200000 cargo test --release -p server --test it illegal -- --nocapture`.

use bson::{Bson, Document, RawDocument, RawDocumentBuf, doc};
use stdx::Rng;

use super::tree::{self, Fields, Tree};
use super::{RENAMES, ROLES, Role, World, all, no_canary, send};
use crate::client::Client;

/// Default number of commands per run.
const COMMANDS: u64 = 6_000;
/// Number of commands between two checks of the protected data.
const ROUND: u64 = 60;
/// Maximum number of changed fields per command.
const CHANGES: u64 = 4;

fn of_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a whole number"))
}

/// Values that the fields of a command never have, or that other fields have.
fn odd(rng: &mut Rng) -> Tree {
    let odd = [
        Bson::Null,
        Bson::Undefined,
        Bson::MinKey,
        Bson::from(""),
        Bson::from("foreign"),
        Bson::from("foreign.c"),
        Bson::from("admin.system.users"),
        Bson::from("secret"),
        Bson::from(1),
        Bson::from(-1_i64),
        Bson::from(f64::NAN),
        Bson::from(true),
        Bson::from(Document::new()),
        Bson::from(doc! {"db": "foreign", "coll": "c"}),
        Bson::from(doc! {"db": "admin", "coll": "system.users"}),
        Bson::from(doc! {"role": "root", "db": "admin"}),
        Bson::Array(vec![]),
        Bson::Array(vec![Bson::from(doc! {"$unionWith": "secret"})]),
        Bson::Array(vec![Bson::from(
            doc! {"$out": {"db": "foreign", "coll": "c"}},
        )]),
    ];
    Tree::of(&odd[rng.index(odd.len())])
}

/// Change one field of a command.
fn change(fields: &mut Fields, rng: &mut Rng) {
    let ways = tree::ways(fields);
    if ways.is_empty() {
        return;
    }
    let way = &ways[rng.index(ways.len())];
    let rename = RENAMES[rng.index(RENAMES.len())];
    let (place, at) = tree::at(fields, way);
    let (name, value) = place[at].clone();
    let other = match rng.below(4) {
        0 => odd(rng),
        _ => value.renamed(&rename),
    };
    let to = rng.index(place.len() + 1);
    match rng.below(9) {
        0 | 1 => place.insert(to, (name, other)),
        2..=4 => place[at].1 = other,
        5 => {
            let field = place.remove(at);
            let to = rng.index(place.len() + 1);
            place.insert(to, field);
        }
        6 => drop(place.remove(at)),
        7 => place[at].0 = name.to_uppercase(),
        _ => {
            let known = [
                "db", "coll", "$db", "from", "into", "pipeline", "viewOn", "ns", "upsert",
            ];
            let known = known[rng.index(known.len())];
            place.insert(to, (known.to_owned(), other));
        }
    }
}

/// Move a list of documents from a command into a document sequence, or copy it there.
fn apart(fields: &mut Fields, rng: &mut Rng) -> Option<(String, Vec<RawDocumentBuf>)> {
    let lists = fields.iter().enumerate();
    let lists: Vec<usize> = lists
        .filter(|(_, (_, value))| match value {
            Tree::List(list) => list.iter().all(|v| matches!(v, Tree::Fields(_))),
            _ => false,
        })
        .map(|(at, _)| at)
        .collect();
    if lists.is_empty() || rng.below(3) != 0 {
        return None;
    }
    let at = lists[rng.index(lists.len())];
    let (name, list) = match rng.below(3) {
        0 => fields[at].clone(),
        _ => fields.remove(at),
    };
    let Tree::List(list) = list else {
        return None;
    };
    let documents = list.iter().filter_map(|value| match value {
        Tree::Fields(fields) => Some(tree::raw(fields)),
        _ => None,
    });
    Some((name, documents.collect()))
}

/// Read the rest of a cursor, if the reply opened one.
fn rest(user: &mut Client, reply: &Document, role: &Role, sent: &Fields) {
    let Ok(cursor) = reply.get_document("cursor") else {
        return;
    };
    let (Ok(id), Ok(ns)) = (cursor.get_i64("id"), cursor.get_str("ns")) else {
        return;
    };
    let (database, collection) = ns.split_once('.').unwrap();
    if id != 0 {
        let more = user.run(database, doc! {"getMore": id, "collection": collection});
        no_canary(role, &more, sent);
    }
}

#[test]
fn illegal_bson_reaches_nothing_foreign() {
    let seed = of_environment("ROMANESCO_SEED").unwrap_or_else(|| {
        let now = stdx::time::wall().as_nanos() & u128::from(u64::MAX);
        u64::try_from(now).unwrap()
    });
    let count = of_environment("ROMANESCO_COMMANDS").unwrap_or(COMMANDS);
    println!("ROMANESCO_SEED={seed} ROMANESCO_COMMANDS={count}");
    let mut rng = Rng::new(seed);
    for role in ROLES {
        let mut world = World::new();
        let mut user = world.user(role);
        let legal: Vec<Fields> = all(&mut world.root).iter().map(tree::fields).collect();
        let share = count / u64::try_from(ROLES.len()).unwrap();
        let (mut done, mut recent) = (0_u64, Vec::new());
        for number in 1..=share {
            let mut fields = legal[rng.index(legal.len())].clone();
            // Commands with many changes rarely execute, so the number is drawn.
            let most = rng.below(CHANGES) + 1;
            for _ in 0..=rng.below(most) {
                change(&mut fields, &mut rng);
            }
            let sequence = apart(&mut fields, &mut rng);
            let documents: Vec<&RawDocument> = match &sequence {
                None => Vec::new(),
                Some((_, documents)) => documents.iter().map(AsRef::as_ref).collect(),
            };
            let name = sequence.as_ref().map(|(name, _)| name.as_str());
            let sequences: Vec<(&str, &[&RawDocument])> = name
                .iter()
                .map(|name| (*name, documents.as_slice()))
                .collect();
            let what = (fields, sequence.clone());
            match send(&mut user, &tree::raw(&what.0), &sequences) {
                // An invalid message ends its connection.
                None => user = world.user(role),
                Some(reply) => {
                    no_canary(role, &reply, &what);
                    rest(&mut user, &reply, role, &what.0);
                    done += u64::from(reply.get_f64("ok").is_ok_and(|ok| ok > 0.0));
                }
            }
            recent.push(what);
            if number % ROUND == 0 || number == share {
                world.check(role, &recent);
                world.reset();
                recent.clear();
            }
        }
        println!("{}: {done} of {share} were done", role.name);
    }
}
