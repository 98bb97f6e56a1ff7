//! Runs to read.

use std::sync::Arc;

use super::super::testing::Version;
use crate::run::Run;

pub(super) struct Runs;

impl Runs {
    pub(super) fn new() -> Runs {
        Runs
    }

    pub(super) fn make(&self, versions: &[Version]) -> Arc<Run> {
        Run::stub(versions.iter().map(|v| (v.key.clone(), v.seq, v.op, v.value.clone())).collect())
    }
}
