//! Applies a collation: compares strings and makes their sort keys, with the CLDR data that is
//! compiled into `icu_collator`.

use std::cmp::Ordering;
use std::fmt;

use icu_collator::CollatorBorrowed;
use icu_collator::options::{
    AlternateHandling, CaseLevel, CollatorOptions, MaxVariable as Variable, Strength,
};
use icu_collator::preferences::{CollationCaseFirst, CollationNumericOrdering};

use super::locale;
use super::spec::{Alternate, CaseFirst, Collation, MaxVariable};
use crate::{Error, Result, meter};

/// Bytes of a string of which a sort key is made in one step of the meter.
const STEP: usize = 64;

/// Compares strings by a collation.
pub struct Collator {
    collation: Collation,
    inner: CollatorBorrowed<'static>,
}

impl fmt::Debug for Collator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.collation.fmt(f)
    }
}

impl Collator {
    /// The collator of `collation`.
    ///
    /// # Errors
    /// `BadValue` for a locale without data, or for French ordering of accents in a locale that
    /// does not have it.
    pub fn new(collation: Collation) -> Result<Collator> {
        let mut preferences = locale::preferences(&collation.locale)?;
        preferences.case_first = Some(match collation.case_first {
            CaseFirst::Off => CollationCaseFirst::False,
            CaseFirst::Upper => CollationCaseFirst::Upper,
            CaseFirst::Lower => CollationCaseFirst::Lower,
        });
        preferences.numeric_ordering = Some(if collation.numeric_ordering {
            CollationNumericOrdering::True
        } else {
            CollationNumericOrdering::False
        });
        let mut options = CollatorOptions::default();
        options.strength = Some(match collation.strength {
            1 => Strength::Primary,
            2 => Strength::Secondary,
            4 => Strength::Quaternary,
            5 => Strength::Identical,
            _ => Strength::Tertiary,
        });
        options.case_level = Some(if collation.case_level {
            CaseLevel::On
        } else {
            CaseLevel::Off
        });
        options.alternate_handling = Some(match collation.alternate {
            Alternate::NonIgnorable => AlternateHandling::NonIgnorable,
            Alternate::Shifted => AlternateHandling::Shifted,
        });
        options.max_variable = Some(match collation.max_variable {
            MaxVariable::Punctuation => Variable::Punctuation,
            MaxVariable::Space => Variable::Space,
        });
        let inner = CollatorBorrowed::try_new(preferences, options).map_err(|error| {
            let locale = &collation.locale;
            Error::bad_value(format!("Field 'locale' is invalid: {locale}: {error}"))
        })?;
        if collation.backwards && !collation.locale.starts_with("fr_CA") {
            return Err(Error::bad_value(
                "Field 'backwards' cannot be true for this locale",
            ));
        }
        Ok(Collator { collation, inner })
    }

    /// The order of two strings. Strings that the collation does not distinguish are equal.
    #[must_use]
    pub fn compare(&self, left: &str, right: &str) -> Ordering {
        self.inner.compare(left, right)
    }

    /// The sort key of a string: the byte order of sort keys is the order of the strings.
    ///
    /// The library makes the whole key in one call. Its memory is charged before, and the clock is
    /// checked before and after a long one.
    ///
    /// # Errors
    /// The operation must end, or the key would exceed its memory limit.
    pub fn sort_key(&self, text: &str) -> Result<Vec<u8>> {
        let steps = 1 + text.len() / STEP;
        meter::steps(steps)?;
        let _scope = meter::scope();
        meter::charge("A collation", text.len().saturating_mul(4))?;
        let key = self.made_key(text);
        meter::steps(steps)?;
        Ok(key)
    }

    /// As [`Collator::sort_key`] where no error can be returned: the steps are counted, so that the
    /// next step of the meter checks the clock if it is due. The memory is not charged.
    pub(crate) fn counted_sort_key(&self, text: &str) -> Vec<u8> {
        meter::count(1 + text.len() / STEP);
        self.made_key(text)
    }

    fn made_key(&self, text: &str) -> Vec<u8> {
        let mut key = Vec::with_capacity(text.len().saturating_mul(2));
        match self.inner.write_sort_key_to(text, &mut key) {
            Ok(()) => key,
            Err(never) => match never {},
        }
    }

    /// The collation of this collator.
    #[must_use]
    pub fn collation(&self) -> &Collation {
        &self.collation
    }
}
