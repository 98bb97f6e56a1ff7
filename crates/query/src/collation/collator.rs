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
use crate::{Error, Result};

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
    #[must_use]
    pub fn sort_key(&self, text: &str) -> Vec<u8> {
        let mut key = Vec::with_capacity(text.len() * 2);
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
