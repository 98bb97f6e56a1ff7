//! The names of locales as collations give them: `en`, `en_US`, `zh_Hant`,
//! `de@collation=phonebook`.

use icu_collator::CollatorPreferences;
use icu_locale::Locale;

use crate::{Error, Result};

/// The languages that MongoDB's manual lists under "Supported Languages and Locales".
const LANGUAGES: &[&str] = &[
    "af", "am", "ar", "as", "az", "be", "bg", "bn", "bo", "br", "bs", "ca", "ceb", "chr", "cs",
    "cy", "da", "de", "dsb", "dz", "ee", "el", "en", "eo", "es", "et", "fa", "fi", "fil", "fo",
    "fr", "ga", "gl", "gu", "ha", "haw", "he", "hi", "hr", "hsb", "hu", "hy", "id", "ig", "is",
    "it", "ja", "ka", "kk", "kl", "km", "kn", "ko", "kok", "ky", "lb", "lkt", "ln", "lo", "lt",
    "lv", "mk", "ml", "mn", "mr", "ms", "mt", "my", "nb", "ne", "nl", "nn", "om", "or", "pa", "pl",
    "ps", "pt", "ro", "root", "ru", "se", "si", "sk", "sl", "smn", "sq", "sr", "sv", "sw", "ta",
    "te", "th", "to", "tr", "ug", "uk", "ur", "vi", "wae", "yi", "yo", "zh", "zu",
];

/// The values of ICU's keyword `collation`, and CLDR's keys for them.
const VARIANTS: &[(&str, &str)] = &[
    ("big5han", "big5han"),
    ("compat", "compat"),
    ("dictionary", "dict"),
    ("emoji", "emoji"),
    ("eor", "eor"),
    ("gb2312han", "gb2312"),
    ("phonebook", "phonebk"),
    ("phonetic", "phonetic"),
    ("pinyin", "pinyin"),
    ("reformed", "reformed"),
    ("search", "search"),
    ("searchjl", "searchjl"),
    ("standard", "standard"),
    ("stroke", "stroke"),
    ("traditional", "trad"),
    ("unihan", "unihan"),
    ("zhuyin", "zhuyin"),
];

/// Whether MongoDB accepts `name` as a locale.
pub(super) fn is_known(name: &str) -> bool {
    let (base, keywords) = split(name);
    let mut parts = base.split('_');
    let language = parts.next().unwrap_or_default();
    if !LANGUAGES.contains(&language) || !parts.all(is_subtag) {
        return false;
    }
    keywords.is_none_or(|keywords| variant(keywords).is_some())
}

fn split(name: &str) -> (&str, Option<&str>) {
    match name.split_once('@') {
        Some((base, keywords)) => (base, Some(keywords)),
        None => (name, None),
    }
}

/// A script (`Hant`), a region (`US`, `419`) or a variant (`POSIX`).
fn is_subtag(part: &str) -> bool {
    let upper = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
    };
    match part.len() {
        2 | 3 | 5..=8 => upper(part),
        4 => {
            let (head, tail) = part.split_at_checked(1).unwrap_or_default();
            upper(head) && tail.bytes().all(|byte| byte.is_ascii_lowercase())
        }
        _ => false,
    }
}

/// The CLDR key for the value of the keyword `collation`, as in `collation=phonebook`.
fn variant(keywords: &str) -> Option<&'static str> {
    let name = keywords.strip_prefix("collation=")?;
    let (_, key) = VARIANTS.iter().find(|(known, _)| *known == name)?;
    Some(key)
}

/// The collator preferences of a locale.
pub(super) fn preferences(name: &str) -> Result<CollatorPreferences> {
    let (base, keywords) = split(name);
    let base = if base == "root" { "und" } else { base };
    let mut tag = base.replace("_POSIX", "-u-va-posix").replace('_', "-");
    if let Some(key) = keywords.and_then(variant) {
        tag.push_str(if tag.contains("-u-") {
            "-co-"
        } else {
            "-u-co-"
        });
        tag.push_str(key);
    }
    let locale: Locale = tag
        .parse()
        .map_err(|_| Error::bad_value(format!("Field 'locale' is invalid: {name}")))?;
    Ok(locale.into())
}
