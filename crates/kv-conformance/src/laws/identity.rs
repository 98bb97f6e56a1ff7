//! The identity file: a directory belongs to one engine.

use std::fs;
use std::path::Path;

use kv::identity::{self, FILE, Identity};
use kv::{Error, ErrorKind};

use crate::bench::Bench;
use crate::verbs::{all_keys, create, fill_keys};

/// The error when the store in `directory` is opened.
fn refusal(lab: &Bench<'_>, directory: &Path) -> Error {
    match lab.try_open(directory) {
        Ok(_) => panic!("the store opens; it had to be refused"),
        Err(e) => e,
    }
}

/// Create and close a store, then change its identity file.
fn forge(lab: &Bench<'_>, change: impl FnOnce(&mut Identity)) {
    lab.open().close().unwrap();
    let mut identity = identity::read(&lab.directory()).unwrap().unwrap();
    change(&mut identity);
    let text = format!(
        r#"{{"engine": {:?}, "format": {}, "created": {}, "options": {:?}}}"#,
        identity.engine, identity.format, identity.created, identity.options
    );
    fs::write(lab.directory().join(FILE), text).unwrap();
}

pub(crate) fn file_names_the_engine(lab: &mut Bench<'_>) {
    let db = lab.open();
    let found = identity::read(&lab.directory()).unwrap();
    let found = found.expect("the file is there as soon as the store is open");
    assert_eq!(found.engine, lab.factory().name());
    assert!(0 < found.created, "seconds since 1970");
    db.close().unwrap();
    assert_eq!(identity::read(&lab.directory()).unwrap(), Some(found));
}

pub(crate) fn reopening_leaves_it_as_it_was(lab: &mut Bench<'_>) {
    lab.open().close().unwrap();
    let before = fs::read(lab.directory().join(FILE)).unwrap();
    lab.open().close().unwrap();
    drop(lab.open());
    assert_eq!(fs::read(lab.directory().join(FILE)).unwrap(), before);
}

pub(crate) fn store_of_another_engine_is_refused(lab: &mut Bench<'_>) {
    forge(lab, |identity| identity.engine = "quite-another".to_owned());
    let error = refusal(lab, &lab.directory());
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let text = error.to_string();
    assert!(text.contains("quite-another"), "names theirs: {text}");
    assert!(text.contains(lab.factory().name()), "names ours: {text}");
}

pub(crate) fn newer_format_is_refused(lab: &mut Bench<'_>) {
    forge(lab, |identity| identity.format += 1000);
    let error = refusal(lab, &lab.directory());
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("format"), "{error}");
}

pub(crate) fn garbage_is_corrupt(lab: &mut Bench<'_>) {
    lab.open().close().unwrap();
    for garbage in [&b""[..], b"{", b"null", b"\xff\0"] {
        fs::write(lab.directory().join(FILE), garbage).unwrap();
        let error = refusal(lab, &lab.directory());
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    }
}

pub(crate) fn foreign_files_are_refused_and_left_alone(lab: &mut Bench<'_>) {
    let directory = lab.path("foreign");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("mine"), b"precious").unwrap();
    let error = refusal(lab, &directory);
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert_eq!(fs::read(directory.join("mine")).unwrap(), b"precious");
    assert_eq!(
        fs::read_dir(&directory).unwrap().count(),
        1,
        "nothing is added"
    );
}

pub(crate) fn refused_store_opens_once_it_is_put_right(lab: &mut Bench<'_>) {
    let db = lab.open();
    let t = create(&*db, "t");
    fill_keys(&*db, t, &["k"]);
    db.close().unwrap();
    let path = lab.directory().join(FILE);
    let right = fs::read(&path).unwrap();
    fs::write(&path, b"garbage").unwrap();
    refusal(lab, &lab.directory());
    fs::write(&path, right).unwrap();
    let db = lab.open();
    assert_eq!(all_keys(&*db, db.open_tree("t").unwrap()), ["k"]);
}

pub(crate) fn empty_directory_is_claimed(lab: &mut Bench<'_>) {
    fs::create_dir(lab.directory()).unwrap();
    drop(lab.open());
    assert!(identity::read(&lab.directory()).unwrap().is_some());
}

pub(crate) fn a_file_in_the_place_of_the_directory_is_refused(lab: &mut Bench<'_>) {
    fs::write(lab.directory(), b"a file").unwrap();
    refusal(lab, &lab.directory());
    assert_eq!(fs::read(lab.directory()).unwrap(), b"a file");
}
