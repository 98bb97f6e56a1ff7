//! Tests of the factory in a program that does not contain the library.

use kv::{EngineOptions, ErrorKind};

#[test]
fn open_names_the_missing_feature() {
    let factory = kv_wiredtiger::factory();
    assert!(!factory.available() && factory.version().is_none());
    let dir = tempfile::tempdir().unwrap();
    let error = factory
        .open(dir.path(), &EngineOptions::default())
        .err()
        .unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(
        error.to_string().contains("--features wiredtiger"),
        "{error}"
    );
    assert_eq!(dir.path().read_dir().unwrap().count(), 0);
}
