//! Target specifications: `rocksdb`, `rocksdb:compaction=universal`, `serve:engine=lmdb`,
//! `mariadb:engine=myrocks`, `postgres`, `mongodb://HOST:PORT`, `mysql://USER@HOST/DB`.

use std::collections::BTreeMap;

use kv::EngineOptions;
use lab_report::Error;
use lab_report::record::TargetSpec;

use super::mongodb::address;
use super::sql::{self, Private};
use super::{Kind, MONGODB, URI, factory, facts, kind, managed};

/// Parse a comma-separated list of targets. A comma separates either two options of one target, or
/// two targets; the text after it decides: `betree:rho=1,codec=zstd:1,lmdb` is two targets. A comma
/// between two hosts of an address is recognized because the text after it is not the name of a
/// target.
///
/// # Errors
/// A message for the user: an unknown engine (with the nearest name), one that is not compiled in
/// (with the feature), an unknown option (with the known ones).
pub fn parse_targets(text: &str) -> lab_report::Result<Vec<TargetSpec>> {
    parse(text).map_err(Error::usage)
}

fn parse(text: &str) -> Result<Vec<TargetSpec>, String> {
    let mut targets: Vec<TargetSpec> = Vec::new();
    for part in text.split(',') {
        let part = part.trim();
        let head = part.split(['=', ':']).next().unwrap_or(part);
        if let Some(last) = targets.last_mut().filter(|t| more_hosts(t, part, head)) {
            let address = last.options.entry(URI.to_owned()).or_default();
            *address = format!("{address},{part}");
            last.name.clone_from(address);
            continue;
        }
        let continues = part[head.len()..].starts_with('=');
        match (continues, targets.last_mut()) {
            (true, Some(last)) => {
                add_option(last, part)?;
                last.name = format!("{},{part}", last.name);
            }
            _ => targets.push(parse_one(part)?),
        }
    }
    check(&targets)?;
    for target in &mut targets {
        target.facts = facts(target);
    }
    number_equals(&mut targets);
    Ok(targets)
}

/// Number the names of targets that are equal in everything: they are measured beside each other
/// for an A/A run. `betree,betree` become `betree#1` and `betree#2`.
pub(crate) fn number_equals(targets: &mut [TargetSpec]) {
    let given: Vec<TargetSpec> = targets.to_vec();
    for (place, target) in targets.iter_mut().enumerate() {
        let equal = |other: &&TargetSpec| other.name == target.name && other.is_equal(target);
        let before = given.iter().take(place).filter(equal).count();
        if 1 < given.iter().filter(equal).count() {
            target.name = format!("{}#{}", target.name, before + 1);
        }
    }
}

/// Whether `part` is one more host of `last`, an address that has no database and no option yet.
fn more_hosts(last: &TargetSpec, part: &str, head: &str) -> bool {
    let Some(rest) = last.options.get(URI).and_then(|u| u.split("://").nth(1)) else {
        return false;
    };
    let named = is_server(head) || factory(head).is_ok();
    !named && !rest.contains(['/', '?']) && !part.contains("://") && !part.is_empty()
}

/// Whether `name` is a server that the lab starts.
fn is_server(name: &str) -> bool {
    name == managed::NAME || Private::NAMES.contains(&name)
}

fn parse_address(text: &str) -> Result<TargetSpec, String> {
    let engine = if text.starts_with(address::SCHEME) {
        MONGODB
    } else if let Some(engine) = sql::address::engine_name(text) {
        engine
    } else {
        let scheme = text.split("://").next().unwrap_or_default();
        return Err(format!(
            "{scheme}:// is no kind of server the lab knows; write {}HOST:PORT, \
             mysql://USER@HOST:PORT/DATABASE or postgres://USER@HOST:PORT/DATABASE",
            address::SCHEME
        ));
    };
    Ok(TargetSpec {
        name: text.to_owned(),
        engine: engine.to_owned(),
        options: BTreeMap::from([(URI.to_owned(), text.to_owned())]),
        facts: None,
    })
}

fn parse_one(text: &str) -> Result<TargetSpec, String> {
    if text.contains("://") {
        return parse_address(text);
    }
    let (engine, options) = match text.split_once(':') {
        Some((engine, options)) => (engine, Some(options)),
        None => (text, None),
    };
    if engine.is_empty() {
        return Err("an empty target name; write -t betree,lmdb".to_owned());
    }
    if !is_server(engine) {
        factory(engine)?;
    }
    let mut target = TargetSpec {
        name: text.to_owned(),
        engine: engine.to_owned(),
        options: BTreeMap::new(),
        facts: None,
    };
    if let Some(options) = options {
        add_option(&mut target, options)?;
    }
    Ok(target)
}

fn add_option(target: &mut TargetSpec, text: &str) -> Result<(), String> {
    let Some((name, value)) = text.split_once('=') else {
        return Err(format!(
            "not an option: {text:?}; write {}:name=value",
            target.engine
        ));
    };
    if target
        .options
        .insert(name.to_owned(), value.to_owned())
        .is_some()
    {
        return Err(format!(
            "option {name:?} of {} is given twice",
            target.engine
        ));
    }
    Ok(())
}

fn check(targets: &[TargetSpec]) -> Result<(), String> {
    for target in targets {
        let (factory, own) = match kind(target)? {
            Kind::Embedded(factory) => (factory, target.options.clone()),
            Kind::Managed(managed) => (managed.factory, managed.own),
            Kind::Private(_) => continue,
            Kind::Foreign(uri) => {
                if target.engine == MONGODB {
                    address::check(&uri)?;
                } else {
                    sql::address::check(&uri)?;
                }
                if let Some(other) = target.options.keys().find(|k| *k != URI) {
                    return Err(format!(
                        "{uri}: {other:?} belongs behind a ? in the address"
                    ));
                }
                continue;
            }
        };
        if !factory.available() {
            return Err(factory.missing().message().to_owned());
        }
        let options = EngineOptions {
            own,
            ..EngineOptions::default()
        };
        factory
            .check(&options)
            .map_err(|e| e.message().to_owned())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use lab_report::ErrorKind;

    use super::*;

    #[test]
    fn a_list_of_targets_is_read() {
        let targets = parse_targets("null,memory").unwrap();
        let names: Vec<&str> = targets.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["null", "memory"]);
    }

    #[test]
    fn options_may_be_separated_by_commas() {
        let targets = parse_targets("memory:limit=1G,null").unwrap();
        assert_eq!(targets[0].options["limit"], "1G");
        assert_eq!(
            (targets[0].name.as_str(), targets.len()),
            ("memory:limit=1G", 2)
        );
    }

    #[test]
    fn equal_targets_are_numbered() {
        let names = |text: &str| -> Vec<String> {
            let targets = parse_targets(text).unwrap();
            assert!(targets.iter().all(|t| t.facts.is_some()));
            targets.into_iter().map(|t| t.name).collect()
        };
        assert_eq!(names("memory,memory"), ["memory#1", "memory#2"]);
        assert_eq!(
            names("memory:limit=1G,memory,null,memory:limit=1G"),
            ["memory:limit=1G#1", "memory", "null", "memory:limit=1G#2"]
        );
    }

    #[test]
    fn values_may_hold_colons() {
        let targets = parse_targets("betree:rho=1,codec=zstd:1,null,betree").unwrap();
        let names: Vec<&str> = targets.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["betree:rho=1,codec=zstd:1", "null", "betree"]);
        assert_eq!(targets[0].options["codec"], "zstd:1");
    }

    #[test]
    fn servers_stand_among_engines() {
        let text = "mongodb://127.0.0.1:27017,serve:engine=memory,limit=1G,mongodb://a,b:2/x,null";
        let targets = parse_targets(text).unwrap();
        let names: Vec<&str> = targets.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "mongodb://127.0.0.1:27017",
                "serve:engine=memory,limit=1G",
                "mongodb://a,b:2/x",
                "null"
            ]
        );
        assert_eq!(targets[2].engine, MONGODB);
        assert_eq!(targets[1].options["engine"], "memory");
    }

    #[test]
    fn mistakes_are_named() {
        for (text, needle) in [
            ("oracle://h", "mongodb://HOST:PORT"),
            ("mysql://ann:pw@h", "LAB_MYSQL_PASSWORD"),
            ("mariadb:engine=tokudb", "innodb"),
            ("postgres://h:x", "USER@HOST:PORT"),
            ("mongodb+srv://h", "mongodb://HOST:PORT"),
            ("mongodb://ann:pw@h", "LAB_MONGODB_PASSWORD"),
            ("mongodb://h/x,w=1", "behind a ?"),
            ("serve:engine=lmbd", "lmdb"),
            ("serve:engine=null", "keeps nothing"),
            ("serve:engine=memory,nonsense=1", "limit"),
            ("lmbd", "lmdb"),
            ("memory:nonsense=1", "limit"),
            ("memory:limit", "name=value"),
            ("memory:limit=lots", "lots"),
            ("betree:rho=0", "rho"),
            ("betree:codec=gzip", "zstd:1-9"),
            ("lmdb:trees=0", "trees"),
            ("", "empty"),
        ] {
            let error = parse_targets(text).unwrap_err();
            assert!(error.message.contains(needle), "{text}: {error}");
            assert_eq!(error.kind(), ErrorKind::Usage);
        }
    }
}
