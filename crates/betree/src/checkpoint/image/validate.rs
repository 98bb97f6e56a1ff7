//! Checks the invariants of an image, before encoding and after decoding.

use super::{BucketImage, Image, TreeImage};
use crate::limits::{KEY_MAX, NAME_MAX};
use crate::run::RunMeta;
use crate::types::RunId;

/// What is wrong: the end of a sentence that begins with "the image of the catalog".
type Valid = Result<(), String>;

impl Image {
    /// Check I1 to I5.
    pub(super) fn validate(&self) -> Valid {
        if self.number == 0 || self.log_from.0 > self.last_seq.0.saturating_add(1) {
            return Err("has an impossible number or begin of the log".to_owned());
        }
        let sealed = |run: &RunMeta| run.seal.is_some();
        if self.runs.iter().any(sealed) && !self.runs.iter().all(sealed) {
            return Err("has runs of which some are encrypted (I5)".to_owned());
        }
        for run in &self.runs {
            self.validate_run(run)
                .map_err(|what| format!("has run {}, which {what}", run.id.0))?;
        }
        if !self.runs.is_sorted_by(|a, b| a.id < b.id) {
            return Err("has runs out of order (I1)".to_owned());
        }
        if !self.trees.is_sorted_by(|a, b| a.id < b.id) {
            return Err("has trees out of order (I1)".to_owned());
        }
        let mut names: Vec<&str> = self.trees.iter().map(|tree| &*tree.name).collect();
        names.sort_unstable();
        if !names.is_sorted_by(|a, b| a < b) {
            return Err("has two trees of one name (I1)".to_owned());
        }
        let mut named = Named::new(self);
        for tree in &self.trees {
            self.validate_tree(tree, &mut named)
                .map_err(|what| format!("has tree {}, which {what}", tree.id.0))?;
        }
        named.all()
    }

    fn validate_run(&self, run: &RunMeta) -> Valid {
        if self.next_run <= run.id {
            return Err("has a number never given (I1)".to_owned());
        }
        if self.last_seq < run.max_seq {
            return Err("is newer than the image (I1)".to_owned());
        }
        if KEY_MAX < run.min_key.len().max(run.max_key.len()) {
            return Err("has too long a key".to_owned());
        }
        run.check()
            .map_err(|error| format!("is not possible (I4): {}", error.message()))
    }

    fn validate_tree(&self, tree: &TreeImage, named: &mut Named<'_>) -> Valid {
        if self.next_tree <= tree.id.0 {
            return Err("has a number never given (I1)".to_owned());
        }
        if NAME_MAX < tree.name.len() {
            return Err("has too long a name".to_owned());
        }
        let first = tree.buckets.first().map(|bucket| bucket.lo.len());
        if first != Some(0) || !tree.buckets.is_sorted_by(|a, b| a.lo < b.lo) {
            return Err("has buckets that do not cover its keys in order (I1)".to_owned());
        }
        for bucket in &tree.buckets {
            self.validate_bucket(tree, bucket, named)?;
        }
        Ok(())
    }

    fn validate_bucket(
        &self,
        tree: &TreeImage,
        bucket: &BucketImage,
        named: &mut Named<'_>,
    ) -> Valid {
        if KEY_MAX < bucket.lo.len() || self.last_seq < bucket.flushed {
            return Err("has an impossible bucket (I1)".to_owned());
        }
        named.bucket += 1;
        for &id in &bucket.deltas {
            named.name(tree, id)?;
        }
        let mut last: Option<&RunMeta> = None;
        for &id in &bucket.base {
            let run = named.name(tree, id)?;
            if last.is_some_and(|last| run.min_key <= last.max_key) {
                return Err(format!("has run {} out of order in a base (I3)", id.0));
            }
            last = Some(run);
        }
        Ok(())
    }
}

/// The runs that a bucket refers to (I2).
struct Named<'a> {
    runs: &'a [RunMeta],
    /// Per run: the number of the last bucket that refers to it; 0 for none.
    last: Vec<u64>,
    /// The number of the current bucket.
    bucket: u64,
}

impl<'a> Named<'a> {
    fn new(image: &'a Image) -> Named<'a> {
        Named {
            runs: &image.runs,
            last: vec![0; image.runs.len()],
            bucket: 0,
        }
    }

    fn name(&mut self, tree: &TreeImage, id: RunId) -> Result<&'a RunMeta, String> {
        let index = self.runs.binary_search_by_key(&id, |run| run.id);
        let Some((index, run)) = index.ok().and_then(|i| Some((i, self.runs.get(i)?))) else {
            return Err(format!("names run {}, which does not exist (I2)", id.0));
        };
        if run.tree != tree.id {
            return Err(format!("names run {} of another tree (I2)", id.0));
        }
        let last = self.last.get_mut(index);
        if last.is_none_or(|last| std::mem::replace(last, self.bucket) == self.bucket) {
            return Err(format!("names run {} twice in a bucket (I2)", id.0));
        }
        Ok(run)
    }

    fn all(&self) -> Valid {
        let mut runs = self.runs.iter().zip(&self.last);
        match runs.find(|(_, last)| **last == 0) {
            Some((run, _)) => Err(format!("has run {}, which no bucket names (I2)", run.id.0)),
            None => Ok(()),
        }
    }
}
