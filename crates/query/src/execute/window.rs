//! `$setWindowFields`, `$fill`, `$densify`: the whole input is held, then the result given.

use super::{Host, Rows, memory};
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
}

impl WindowRows {
    pub(super) fn new(input: Box<dyn Rows>, stage: WindowStage, settings: &Settings) -> WindowRows {
        WindowRows {
            input: Some(input),
            stage,
            settings: settings.clone(),
            keyed: false,
            result: Vec::new().into_iter(),
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
            let (mut rows, mut bytes) = (Vec::new(), 0);
            while let Some(row) = input.next(host)? {
                host.check()?;
                bytes += memory::row(&row)?;
                if bytes > host.memory_limit() {
                    return Err(memory::exceeded(self.stage.name()));
                }
                rows.push(row);
            }
            let result = self.stage.apply(rows, &self.settings, self.keyed)?;
            self.result = result.into_iter();
        }
        Ok(self.result.next())
    }
}
