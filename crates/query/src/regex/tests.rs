//! Options, errors, groups and prefixes.

use super::Regex;

fn matches(pattern: &str, options: &str, text: &str) -> bool {
    Regex::new(pattern, options)
        .unwrap()
        .is_match(text)
        .unwrap()
}

#[test]
fn options_change_what_matches() {
    assert!(matches("bc", "", "abcd"));
    assert!(!matches("BC", "", "abcd"));
    assert!(matches("BC", "i", "abcd"));
    assert!(matches("^b", "m", "a\nb"));
    assert!(!matches("^b", "", "a\nb"));
    assert!(matches("a.b", "s", "a\nb"));
    assert!(!matches("a.b", "", "a\nb"));
    assert!(matches("a b # two letters", "x", "ab"));
    assert!(matches("^.$", "u", "\u{e4}"));
    assert!(matches("(?<=a)b(?!c)", "", "abd"));
}

#[test]
fn bad_patterns_and_options_are_refused() {
    assert_eq!(Regex::new("(", "").unwrap_err().code.0, 51091);
    assert_eq!(Regex::new("a", "g").unwrap_err().code.0, 51108);
    assert_eq!(Regex::new("a\0", "").unwrap_err().code.0, 2);
}

#[test]
fn a_pattern_that_explodes_is_an_error_and_no_hang() {
    let regex = Regex::new("^(a+)+$", "").unwrap();
    let text = format!("{}b", "a".repeat(64));
    assert_eq!(regex.is_match(&text).unwrap_err().code.0, 51156);
}

#[test]
fn groups_have_places() {
    let regex = Regex::new("(a)(x)?(b+)", "").unwrap();
    let found = regex.captures_at("zabb", 0).unwrap().unwrap();
    assert_eq!(found.whole, 1..4);
    assert_eq!(found.groups, [Some(1..2), None, Some(2..4)]);
    assert_eq!(regex.captures_at("zabb", 2).unwrap(), None);
    assert_eq!(regex.captures_at("zabb", 9).unwrap(), None);
    let within = regex.captures_at("\u{e9}", 1).unwrap_err();
    assert_eq!(within.code.0, 51156, "a start within a character");
}

#[test]
fn prefixes_are_literal_and_safe() {
    for (pattern, options, expected) in [
        ("^abc", "", Some("abc")),
        ("^abc", "s", Some("abc")),
        ("^abc", "i", None),
        ("^abc", "m", None),
        ("\\Aabc", "m", Some("abc")),
        ("^abc*", "", Some("ab")),
        ("^abc+", "", Some("abc")),
        ("^abc?d", "", Some("ab")),
        ("^abc{0,1}", "", Some("ab")),
        ("^a.c", "", Some("a")),
        ("^a\\.c", "", Some("a.c")),
        ("^a\\dc", "", Some("a")),
        ("^a|b", "", None),
        ("^(abc)", "", None),
        ("^a b", "x", Some("a")),
        ("abc", "", None),
        ("^", "", None),
    ] {
        let regex = Regex::new(pattern, options).unwrap();
        assert_eq!(regex.prefix().as_deref(), expected, "{pattern}");
    }
}
