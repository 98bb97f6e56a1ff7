//! `$setWindowFields`, `$fill`, `$densify`: the whole input is held, then the result given.

use super::{Host, Rows, memory};
use crate::meter::Held;
use crate::settings::Settings;
use crate::window::WindowStage;
use crate::{Result, Row};

/// A stage over ordered partitions.
pub(super) struct WindowRows {
    input: Option<Box<dyn Rows>>,
    stage: WindowStage,
    settings: Settings,
    /// Whether rows are told what they are sorted by.
    keyed: bool,
    result: std::vec::IntoIter<Row>,
    /// Its share of the memory of all operations.
    held: Held,
}

impl WindowRows {
    pub(super) fn new(input: Box<dyn Rows>, stage: WindowStage, settings: &Settings) -> WindowRows {
        WindowRows {
            input: Some(input),
            stage,
            settings: settings.clone(),
            keyed: false,
            result: Vec::new().into_iter(),
            held: Held::new(),
        }
    }

    /// The same; with `keyed` rows are told what they are sorted by.
    pub(super) fn keyed(mut self, keyed: bool) -> WindowRows {
        self.keyed = keyed;
        self
    }
}

impl Rows for WindowRows {
    fn next(&mut self, host: &mut dyn Host) -> Result<Option<Row>> {
        if let Some(mut input) = self.input.take() {
            let (mut rows, mut bytes, mut real) = (Vec::new(), 0, 0);
            while let Some(row) = input.next(host)? {
                host.check()?;
                bytes += memory::row(&row)?;
                if bytes > host.memory_limit() {
                    return Err(memory::exceeded(self.stage.name()));
                }
                // The limit is about documents as they are stored; trees take more.
                let key = row.sort_key();
                let document = row.into_document()?;
                real += memory::document(&document);
                self.held.require(self.stage.name(), real)?;
                rows.push(Row::from_document(document).with_sort_key(key));
            }
            let result = self.stage.apply(rows, &self.settings, self.keyed)?;
            let mut real = 0;
            for row in &result {
                real += memory::document(row.document()?);
            }
            self.held.require(self.stage.name(), real)?;
            self.result = result.into_iter();
        }
        Ok(self.result.next())
    }
}
