//! A sort that can be interrupted: the sort of the standard library cannot be, since its comparison
//! cannot fail.

use std::cmp::Ordering;

use crate::Result;

/// Runs up to this length are sorted by insertion; longer runs are only merged.
const RUN: usize = 16;

/// Sorts `items`; equal items keep their order. Every comparison counts as a step.
///
/// # Errors
/// Errors of [`super::step`]; the items are lost then.
pub fn sort_by<T>(items: Vec<T>, mut compare: impl FnMut(&T, &T) -> Ordering) -> Result<Vec<T>> {
    let mut after = |left: &T, right: &T| -> Result<bool> {
        super::step()?;
        Ok(compare(left, right).is_gt())
    };
    let mut runs = runs(items, &mut after)?;
    while runs.len() > 1 {
        let mut merged = Vec::with_capacity(runs.len().div_ceil(2));
        let mut rest = runs.into_iter();
        while let Some(left) = rest.next() {
            merged.push(match rest.next() {
                Some(right) => merge(left, right, &mut after)?,
                None => left,
            });
        }
        runs = merged;
    }
    Ok(runs.pop().unwrap_or_default())
}

/// Splits the items into sorted runs: those that are in order already, else short runs sorted by
/// insertion.
fn runs<T>(items: Vec<T>, after: &mut impl FnMut(&T, &T) -> Result<bool>) -> Result<Vec<Vec<T>>> {
    let mut runs: Vec<Vec<T>> = Vec::new();
    for item in items {
        let Some(run) = runs.last_mut() else {
            runs.push(vec![item]);
            continue;
        };
        let behind = match run.last() {
            Some(last) => !after(last, &item)?,
            None => true,
        };
        if behind {
            run.push(item);
        } else if run.len() < RUN {
            let mut at = run.len() - 1;
            while let Some(before) = at.checked_sub(1).and_then(|before| run.get(before)) {
                if !after(before, &item)? {
                    break;
                }
                at -= 1;
            }
            run.insert(at, item);
        } else {
            runs.push(vec![item]);
        }
    }
    Ok(runs)
}

fn merge<T>(
    left: Vec<T>,
    right: Vec<T>,
    after: &mut impl FnMut(&T, &T) -> Result<bool>,
) -> Result<Vec<T>> {
    // All items of the left run come before those of the right run: only the right run is moved.
    if let (Some(last), Some(first)) = (left.last(), right.first())
        && !after(last, first)?
    {
        let mut merged = left;
        merged.extend(right);
        return Ok(merged);
    }
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter(), right.into_iter());
    let (mut one, mut other) = (left.next(), right.next());
    loop {
        match (one, other) {
            (Some(a), Some(b)) => {
                if after(&a, &b)? {
                    merged.push(b);
                    (one, other) = (Some(a), right.next());
                } else {
                    merged.push(a);
                    (one, other) = (left.next(), Some(b));
                }
            }
            (Some(a), None) => {
                merged.push(a);
                merged.extend(left);
                return Ok(merged);
            }
            (None, Some(b)) => {
                merged.push(b);
                merged.extend(right);
                return Ok(merged);
            }
            (None, None) => return Ok(merged),
        }
    }
}
