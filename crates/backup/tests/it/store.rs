//! The stores and backups of the tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use backup::{Codec, Facts, Manifest, Place, Report, Source, take, verify};
use kv::{
    Batch, Direction, Durability, Engine, EngineOptions, Factory, Flow, KeyRange, TreeOptions,
};

pub(crate) const CODECS: [Codec; 3] = [Codec::None, Codec::Lz4, Codec::Zstd];

pub(crate) fn engines() -> [&'static dyn Factory; 2] {
    [kv_betree::factory(), kv_lmdb::factory()]
}

/// A directory with a store in `db`.
pub(crate) struct Lab {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) engine: Box<dyn Engine>,
}

impl Lab {
    pub(crate) fn new(factory: &dyn Factory) -> Lab {
        Lab::with(factory, &EngineOptions::default())
    }

    pub(crate) fn with(factory: &dyn Factory, options: &EngineOptions) -> Lab {
        let folder = tempfile::tempdir().unwrap();
        let engine = factory.open(&folder.path().join("db"), options).unwrap();
        let tree = engine.create_tree("t", &TreeOptions::default()).unwrap();
        for n in 0..20_u32 {
            let mut batch = Batch::new();
            for m in 0..200_u32 {
                let key = [n.to_be_bytes(), m.to_be_bytes()].concat();
                batch.put(tree, &key, format!("value {m} of {n}").repeat(8).as_bytes());
            }
            engine.write(&batch, Durability::None).unwrap();
        }
        Lab { folder, engine }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn directory(&self, name: &str) -> Place {
        Place::Directory(self.path(name))
    }

    pub(crate) fn archive(&self, name: &str) -> Place {
        Place::Archive(self.path(&format!("{name}.tar")))
    }

    /// Take a backup to its end.
    pub(crate) fn take(&self, place: &Place, codec: Codec) -> Manifest {
        let facts = Facts {
            product: "test".into(),
            ..Facts::default()
        };
        let mut watch = |_| Flow::Continue;
        let taken = take(&*self.engine, place, codec, None, facts, None, &mut watch);
        taken.unwrap().expect("nothing cancelled it")
    }
}

pub(crate) fn open(factory: &dyn Factory, directory: &Path) -> Box<dyn Engine> {
    factory.open(directory, &EngineOptions::default()).unwrap()
}

/// Everything in the tree of a store.
pub(crate) fn content(engine: &dyn Engine) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let tree = engine.open_tree("t").unwrap();
    let snapshot = engine.begin_read().unwrap();
    let cursor = snapshot.cursor(tree, KeyRange::ALL, Direction::Forward);
    let mut cursor = cursor.unwrap();
    let mut found = BTreeMap::new();
    while cursor.advance().unwrap() {
        found.insert(cursor.key().to_vec(), cursor.value().to_vec());
    }
    found
}

pub(crate) fn report(path: &Path) -> Report {
    let source = Source::open(path).unwrap();
    let report = verify(&source, &mut |_| Flow::Continue).unwrap();
    report.expect("nothing cancelled it")
}

/// What a check finds, or why there is no check.
pub(crate) fn findings(path: &Path) -> Vec<String> {
    let checked = Source::open(path).and_then(|source| {
        let report = verify(&source, &mut |_| Flow::Continue)?;
        Ok(report.expect("nothing cancelled it"))
    });
    match checked {
        Ok(report) => report.findings.iter().map(ToString::to_string).collect(),
        Err(error) => vec![error.to_string()],
    }
}

/// Names below a directory, with `/` behind those of directories.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            names.extend(
                self::names(&entry.path())
                    .iter()
                    .map(|n| format!("{name}/{n}")),
            );
            names.push(format!("{name}/"));
        } else {
            names.push(name);
        }
    }
    names.sort();
    names
}
