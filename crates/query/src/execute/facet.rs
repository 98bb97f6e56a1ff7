//! `$facet`: reads and keeps the whole input, then runs every pipeline over the kept rows.

use std::sync::Arc;

use bson::{Bson, Document, RawDocumentBuf};

use super::spill::{self, Spilled};
use super::{Host, Rows, Spill, build, memory};
use crate::meter::Held;
use crate::stage::Facet;
use crate::{Error, Result, Row};

/// `$facet`.
pub(super) struct FacetRows {
    input: Option<Box<dyn Rows>>,
    facet: Facet,
    /// Memory reserved in the budget of all operations: for the kept input, and for the result.
    kept: Held,
    made: Held,
}

impl FacetRows {
    pub(super) fn new(input: Box<dyn Rows>, facet: Facet) -> FacetRows {
        FacetRows {
            input: Some(input),
            facet,
            kept: Held::new(),
            made: Held::new(),
        }
    }

    /// Reads the input, and returns one source of all its rows for each pipeline.
    fn sources(&mut self, input: &mut dyn Rows, host: &mut dyn Host) -> Result<Vec<Box<dyn Rows>>> {
        let count = self.facet.facets.len();
        let mut kept = Vec::new();
        let mut bytes = 0;
        let mut files: Vec<Box<dyn Spill>> = Vec::new();
        while let Some(row) = input.next(host)? {
            host.check()?;
            if files.is_empty() {
                bytes += memory::row(&row)?;
                kept.push(row.into_raw()?);
                if memory::must_spill("$facet", &mut self.kept, bytes, host)? {
                    for _ in 0..count {
                        let mut file = host.spill()?;
                        for row in &kept {
                            file.append(row.as_bytes())?;
                        }
                        files.push(file);
                    }
                    kept = Vec::new();
                    self.kept.clear();
                }
            } else {
                for file in &mut files {
                    spill::put(file.as_mut(), &row)?;
                }
            }
        }
        if files.is_empty() {
            let kept = Arc::new(kept);
            let shared = |_| -> Box<dyn Rows> { Box::new(Shared::new(&kept)) };
            return Ok((0..count).map(shared).collect());
        }
        let files = files.into_iter();
        Ok(files
            .map(|file| -> Box<dyn Rows> { Box::new(Spilled(file)) })
            .collect())
    }
}

impl Rows for FacetRows {
    fn next(&mut self, host: &mut dyn Host) -> Result<Option<Row>> {
        let Some(mut input) = self.input.take() else {
            return Ok(None);
        };
        let sources = self.sources(input.as_mut(), host)?;
        let mut document = Document::new();
        let mut bytes = 0;
        let facets = std::mem::take(&mut self.facet.facets);
        for ((name, pipeline), source) in facets.into_iter().zip(sources) {
            let mut rows = build(pipeline.optimize(), source)?;
            let mut found = Vec::new();
            while let Some(row) = rows.next(host)? {
                host.check()?;
                let inner = row.into_document()?;
                bytes += memory::document(&inner);
                if bytes > host.memory_limit() {
                    return Err(Error::location(
                        4_031_700,
                        format!(
                            "document constructed by $facet is {bytes} bytes, which exceeds the \
                             limit of {} bytes",
                            host.memory_limit()
                        ),
                    ));
                }
                self.made.require("$facet", bytes)?;
                found.push(Bson::Document(inner));
            }
            document.insert(name, found);
        }
        self.kept.clear();
        Ok(Some(Row::from_document(document)))
    }
}

/// A source of kept rows, which several pipelines share.
struct Shared {
    rows: Arc<Vec<RawDocumentBuf>>,
    next: usize,
}

impl Shared {
    fn new(rows: &Arc<Vec<RawDocumentBuf>>) -> Shared {
        Shared {
            rows: Arc::clone(rows),
            next: 0,
        }
    }
}

impl Rows for Shared {
    fn next(&mut self, _host: &mut dyn Host) -> Result<Option<Row>> {
        let row = self.rows.get(self.next).cloned();
        self.next += 1;
        Ok(row.map(Row::from_raw))
    }
}
