//! Tests of the contract of the general layer, on the in-memory engine and on betree.

use std::path::Path;

use kv::{Durability, EngineOptions};
use stdx::Rng;

use super::super::{Embedded, open};
use crate::protocol::Open;
use crate::workload::iibench::{Payload, RowParams, Shape};
use crate::workload::table::{Column, Row, Table, Value};
use crate::workload::tables::{By, Lock, Mode, Range, Refused, TableClient, Tables};

fn table() -> Table {
    let columns = [
        Column::int("shop"),
        Column::int("id"),
        Column::text("name", 20),
        Column::float("price").or_null(),
        Column::bytes("blob", 8),
    ];
    Table::new("goods", &columns, 2).index("by_name", &[0, 2], &[3])
}

fn row(shop: i64, id: i64, name: &str) -> Row {
    let price = if id % 3 == 0 {
        Value::Null
    } else {
        Value::Float(id as f64 / 4.0)
    };
    vec![
        shop.into(),
        id.into(),
        name.into(),
        price,
        Value::Bytes(vec![0, 1]),
    ]
}

fn with_store(engine: &str, test: impl FnOnce(&Embedded)) {
    let dir = tempfile::tempdir().unwrap();
    let store = store(engine, dir.path());
    store.create(&[table()]).unwrap();
    test(&store);
}

fn store(engine: &str, directory: &Path) -> Embedded {
    let rows = RowParams {
        seed: 42,
        shape: Shape::Classic,
        payload: Payload::CLASSIC,
        indexes: 3,
    };
    open(&Open {
        engine: engine.to_owned(),
        uri: None,
        directory: directory.to_owned(),
        options: EngineOptions::default(),
        durability: Durability::Interval,
        rows,
        program: None,
        found: false,
        rows_present: 0,
        clients: 2,
        keep: false,
    })
    .unwrap()
}

fn names(client: &mut dyn TableClient, range: &Range<'_>) -> Vec<(i64, String)> {
    let mut names = Vec::new();
    let shown = client.range(range, &mut |row| {
        names.push((row[1].int(), row[2].text().to_owned()));
        true
    });
    assert_eq!(shown.unwrap(), names.len() as u64);
    names
}

fn everywhere(test: impl Fn(&Embedded)) {
    for engine in ["memory", "betree"] {
        with_store(engine, &test);
    }
}

#[test]
fn rows_come_back_by_key_and_by_index_in_both_directions() {
    everywhere(|store| {
        let mut client = store.client().unwrap();
        let client = client.as_mut();
        let rows: Vec<Row> = (0..10)
            .map(|i| row(i % 2, i, if i < 5 { "pear" } else { "apple" }))
            .collect();
        client.insert(0, &rows).unwrap();
        let mut got = Row::new();
        assert!(
            client
                .get(0, &[1.into(), 7.into()], Lock::None, &mut got)
                .unwrap()
        );
        assert_eq!(got, rows[7]);
        assert!(
            !client
                .get(0, &[0.into(), 7.into()], Lock::None, &mut got)
                .unwrap()
        );
        let shop = [Value::Int(0)];
        let all = names(client, &Range::by_index(0, 0, &shop).covered());
        let order: Vec<i64> = all.iter().map(|n| n.0).collect();
        assert_eq!(order, [6, 8, 0, 2, 4], "G7: by name, then by key");
        let back = names(client, &Range::by_key(0, &shop).backward().limit(2));
        assert_eq!(back.iter().map(|n| n.0).collect::<Vec<_>>(), [8, 6]);
        let (from, to) = (Value::Int(2), Value::Int(6));
        let some = names(client, &Range::by_key(0, &shop).between(&from, &to));
        assert_eq!(some.iter().map(|n| n.0).collect::<Vec<_>>(), [2, 4, 6]);
        // The query returns the complete rows of the entries.
        let equal = [Value::Int(1), "pear".into()];
        let mut whole = Vec::new();
        client
            .range(&Range::by_index(0, 0, &equal), &mut |row| {
                whole.push(row.to_vec());
                whole.len() < 2
            })
            .unwrap();
        assert_eq!(whole, [rows[1].clone(), rows[3].clone()]);
    });
}

#[test]
fn an_update_moves_the_index_entry_and_a_delete_removes_it() {
    everywhere(|store| {
        let mut client = store.client().unwrap();
        let client = client.as_mut();
        let old = row(1, 1, "pear");
        client.insert(0, &[old.clone(), row(1, 2, "fig")]).unwrap();
        let new = row(1, 1, "apple");
        client.begin(Mode::Write).unwrap();
        client.update(0, &old, &new).unwrap();
        let all = Range {
            by: By::Index(0),
            ..Range::by_key(0, &[])
        };
        // A transaction sees its own writes.
        assert_eq!(
            names(client, &all),
            [(1, "apple".to_owned()), (2, "fig".to_owned())],
            "G2: its own writes on top"
        );
        client.abort();
        assert_eq!(
            names(client, &all),
            [(2, "fig".to_owned()), (1, "pear".to_owned())]
        );
        client.begin(Mode::Write).unwrap();
        client.update(0, &old, &new).unwrap();
        client.commit().unwrap();
        client.delete(0, &new).unwrap();
        assert_eq!(names(client, &all), [(2, "fig".to_owned())]);
        assert_eq!(
            names(client, &Range::by_key(0, &[])),
            [(2, "fig".to_owned())]
        );
    });
}

#[test]
fn of_two_transactions_that_change_a_row_one_is_refused() {
    everywhere(|store| {
        let (mut one, mut two) = (store.client().unwrap(), store.client().unwrap());
        let start = row(1, 1, "pear");
        one.insert(0, std::slice::from_ref(&start)).unwrap();
        one.begin(Mode::Write).unwrap();
        two.begin(Mode::Write).unwrap();
        let mut seen = Row::new();
        let key = start[..2].to_vec();
        assert!(two.get(0, &start[..2], Lock::Update, &mut seen).unwrap());
        one.update(0, &start, &row(1, 1, "fig")).unwrap();
        one.commit().unwrap();
        let changed = two.update(0, &start, &row(1, 1, "apple"));
        let ended = changed.and_then(|()| two.commit());
        assert_eq!(ended.unwrap_err(), Refused::Conflict, "G3: one fails");
        // Within a transaction, inserting an existing key is a conflict.
        two.begin(Mode::Write).unwrap();
        let again = two.insert(0, &[start]).and_then(|()| two.commit());
        assert_eq!(again.unwrap_err(), Refused::Conflict, "G4: a lost race");
        assert!(two.get(0, &key, Lock::None, &mut seen).unwrap());
        assert_eq!(seen[2].text(), "fig");
    });
}

#[test]
fn index_and_rows_agree_whatever_is_done() {
    everywhere(|store| {
        let mut client = store.client().unwrap();
        let client = client.as_mut();
        let mut model: std::collections::BTreeMap<i64, Row> = std::collections::BTreeMap::new();
        let mut rng = Rng::new(11);
        for _ in 0..500 {
            let id = i64::try_from(rng.below(40)).unwrap();
            let name = ["a", "ab", "b", "\u{1}"][rng.index(4)];
            let new = row(0, id, name);
            match (model.get(&id), rng.chance(0.3)) {
                (Some(old), true) => client.delete(0, old).unwrap(),
                (Some(old), false) => client.update(0, old, &new).unwrap(),
                (None, _) => client.insert(0, std::slice::from_ref(&new)).unwrap(),
            }
            if model.contains_key(&id)
                && names(client, &Range::by_key(0, &[0.into(), id.into()])).is_empty()
            {
                model.remove(&id);
            } else {
                model.insert(id, new);
            }
        }
        let by_key = names(client, &Range::by_key(0, &[]));
        let expected: Vec<(i64, String)> = model
            .iter()
            .map(|(id, row)| (*id, row[2].text().to_owned()))
            .collect();
        assert_eq!(by_key, expected, "seed 11");
        let mut by_name = expected;
        by_name.sort_by(|a, b| (&a.1, a.0).cmp(&(&b.1, b.0)));
        assert_eq!(
            names(client, &Range::by_index(0, 0, &[])),
            by_name,
            "seed 11"
        );
    });
}

#[test]
fn tables_exist_again_after_a_restart_and_vanish_when_dropped() {
    let dir = tempfile::tempdir().unwrap();
    {
        let store = store("betree", dir.path());
        store.create(&[table()]).unwrap();
        store
            .client()
            .unwrap()
            .insert(0, &[row(1, 2, "fig")])
            .unwrap();
        store.engine.close().unwrap();
    }
    let store = store("betree", dir.path());
    store.attach(&[table()]).unwrap();
    let mut client = store.client().unwrap();
    assert_eq!(names(client.as_mut(), &Range::by_key(0, &[])).len(), 1);
    drop(client);
    store.create(&[table()]).unwrap();
    let mut client = store.client().unwrap();
    let rows = names(client.as_mut(), &Range::by_key(0, &[]));
    assert!(rows.is_empty(), "G1: empty, whatever existed");
    let short = client.insert(0, &[row(1, 2, "fig")[..4].to_vec()]);
    let refused = matches!(short, Err(Refused::Failed(_)));
    assert!(refused, "T1: a value for every column: {short:?}");
    drop(client);
    store.drop_all().unwrap();
    assert!(store.attach(&[table()]).is_err());
    let wrong = store.create(&[Table {
        key: Vec::new(),
        ..table()
    }]);
    assert!(wrong.unwrap_err().message.contains("goods"));
}
