//! Errors: their kinds, by which callers decide, and their context; the checks of options.

use kv::{EngineOptions, Error, ErrorKind, OptionDoc, Result, TreeOptions};

use crate::bench::Bench;
use crate::verbs::{all_keys, create, finish, put};

fn error_of<T>(result: Result<T>) -> Error {
    match result {
        Ok(_) => panic!("the call succeeded; it had to be refused"),
        Err(e) => e,
    }
}

fn open_with(lab: &Bench<'_>, name: &str, value: &str) -> Error {
    let mut options = lab.options();
    options.own.insert(name.to_owned(), value.to_owned());
    error_of(lab.factory().open(&lab.directory(), &options))
}

/// Whether the documented values of `option` exclude the text `???`.
fn excludes_question_marks(option: &OptionDoc) -> bool {
    let listed = option.values.contains('|');
    let numbers = option.values.starts_with(|c: char| c.is_ascii_digit());
    listed || numbers || option.values == "size"
}

pub(crate) fn unknown_option_is_invalid_and_named(lab: &mut Bench<'_>) {
    let error = open_with(lab, "no_such_option", "1");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("no_such_option"), "{error}");
}

pub(crate) fn unknown_option_leaves_no_store_behind(lab: &mut Bench<'_>) {
    open_with(lab, "no_such_option", "1");
    assert!(vfs_is_empty(lab), "refused before anything is created");
    create(&*lab.open(), "t");
}

fn vfs_is_empty(lab: &Bench<'_>) -> bool {
    match std::fs::read_dir(lab.directory()) {
        Ok(mut entries) => entries.next().is_none(),
        Err(_) => true,
    }
}

pub(crate) fn bad_values_of_options_are_invalid(lab: &mut Bench<'_>) {
    let documented = lab.factory().options().iter();
    for option in documented.filter(|option| excludes_question_marks(option)) {
        let error = open_with(lab, option.name, "???");
        assert_eq!(error.kind(), ErrorKind::Invalid, "{}: {error}", option.name);
        assert!(error.to_string().contains(option.name), "names it: {error}");
    }
}

pub(crate) fn factory_checks_names_of_options(lab: &mut Bench<'_>) {
    let factory = lab.factory();
    factory.check_own(&EngineOptions::default()).unwrap();
    let mut options = EngineOptions::default();
    options
        .own
        .insert("no_such_option".to_owned(), String::new());
    let error = error_of(factory.check_own(&options));
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let text = error.to_string();
    for option in factory.options() {
        assert!(
            text.contains(option.name),
            "{} is not offered: {text}",
            option.name
        );
    }
}

pub(crate) fn errors_about_trees_name_them(lab: &mut Bench<'_>) {
    let db = lab.open();
    create(&*db, "taken");
    let exists = error_of(db.create_tree("taken", &TreeOptions::default()));
    assert!(exists.to_string().contains("taken"), "{exists}");
    let missing = error_of(db.open_tree("missing"));
    assert!(missing.to_string().contains("missing"), "{missing}");
    let missing = error_of(db.drop_tree("missing"));
    assert!(missing.to_string().contains("missing"), "{missing}");
}

pub(crate) fn errors_name_the_engine(lab: &mut Bench<'_>) {
    let db = lab.open();
    let name = lab.factory().name();
    let t = create(&*db, "t");
    put(&*db, t, b"k", b"v");
    let exists = error_of(finish(db.begin_write().unwrap(), |txn| {
        txn.insert(t, b"k", b"w")
    }));
    let taken = error_of(db.create_tree("t", &TreeOptions::default()));
    let missing = error_of(db.open_tree("missing"));
    let bad = error_of(db.create_tree("not a name", &TreeOptions::default()));
    for error in [exists, taken, missing, bad] {
        assert_eq!(error.engine(), Some(name), "{error}");
        assert!(!error.message().is_empty());
    }
}

pub(crate) fn conflict_names_the_engine(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    let slow = db.begin_write().unwrap();
    put(&*db, t, b"k", b"first");
    let error = error_of(finish(slow, |txn| txn.put(t, b"k", b"second")));
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(error.engine(), Some(lab.factory().name()), "{error}");
}

pub(crate) fn failed_calls_change_nothing(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    put(&*db, t, b"k", b"v");
    for _ in 0..20 {
        error_of(db.create_tree("t", &TreeOptions::default()));
        error_of(db.open_tree("missing"));
        error_of(db.drop_tree("missing"));
        error_of(finish(db.begin_write().unwrap(), |txn| {
            txn.insert(t, b"k", b"w")
        }));
    }
    assert_eq!(db.trees().unwrap(), ["t"]);
    assert_eq!(all_keys(&*db, t), ["k"]);
}
