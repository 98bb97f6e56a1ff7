//! Callouts do not change matches, and can end every match.

use stdx::Rng;

use super::{Code, Error, Group, How, MATCH_LIMIT, Options, Pace, Regex};

/// Parts of random patterns: those that may be at the start of a pattern, and difficult ones.
const ATOMS: &[&str] = &[
    "a",
    "b",
    "\u{e4}",
    ".",
    "[ab]",
    "[^a]",
    "[]b]",
    "\\w",
    "\\s",
    "\\d",
    "\\n",
    "^",
    "$",
    "\\b",
    "\\A",
    "\\G",
    "\\K",
    "\\R",
    "\\X",
    "(?i)",
    "(?m)",
    "(?s)",
    "(?x) ",
    "(?<=a)",
    "(?=b)",
    "(?!ab)",
    "(?<!b)",
    "\\Qa*\\E",
    "(?#x*)",
    "(?>a*)",
    "(*SKIP)",
    "(*PRUNE)",
    "(*COMMIT)",
    "(?:ab|a)",
    "(?|(a)|(b))",
    "|",
    "\\x{e4}",
    "[[:alpha:]]",
];
/// References to groups; the groups need not exist.
const REFERENCES: &[&str] = &["\\1", "\\2", "\\g{-1}"];
const REPEATS: &[&str] = &[
    "", "", "", "*", "+", "?", "*?", "+?", "*+", "{1,2}", "{2,}", "{,2}",
];
const SETTINGS: &[&str] = &["", "", "", "(*CRLF)", "(*ANY)", "(*UCP)", "(*NO_START_OPT)"];
const LETTERS: &[&str] = &["a", "a", "b", "A", " ", "\n", "\r\n", "\u{e4}", "1", "*"];

fn pick<'w>(rng: &mut Rng, words: &[&'w str]) -> &'w str {
    let at = rng.below(u64::try_from(words.len()).unwrap());
    words[usize::try_from(at).unwrap()]
}

fn sequence(rng: &mut Rng, depth: u32, refers: bool) -> String {
    let mut pattern = String::new();
    for _ in 0..=rng.below(4) {
        match rng.below(6) {
            0 if depth < 3 => {
                let open = pick(rng, &["(", "(?:", "(?>", "(?<n>"]);
                let inner = sequence(rng, depth + 1, refers);
                pattern.push_str(&format!("{open}{inner})"));
            }
            _ if refers && rng.below(4) == 0 => pattern.push_str(pick(rng, REFERENCES)),
            _ => pattern.push_str(pick(rng, ATOMS)),
        }
        pattern.push_str(pick(rng, REPEATS));
    }
    pattern
}

fn text(rng: &mut Rng, length: u64) -> String {
    (0..rng.below(length)).map(|_| pick(rng, LETTERS)).collect()
}

/// All matches in a text, found as for `$regexFindAll`; an error ends the list.
fn all(
    text: &str,
    mut first: impl FnMut(usize) -> Result<Option<Vec<Group>>, Error>,
) -> Vec<Found> {
    let (mut found, mut start) = (Vec::new(), 0);
    while start <= text.len() {
        let groups = match first(start) {
            Ok(Some(groups)) => groups,
            Ok(None) => break,
            Err(error) => {
                found.push(Err(error));
                break;
            }
        };
        let whole = groups[0].clone().unwrap();
        start = whole.end.max(start);
        if whole.is_empty() || whole.end <= start {
            start += text[start..].chars().next().map_or(1, char::len_utf8);
        }
        found.push(Ok(groups));
    }
    found
}

type Found = Result<Vec<Group>, Error>;

/// All matches of the pattern compiled without callouts, with PCRE2's own limit.
fn plain(code: &Code, text: &str) -> Vec<Found> {
    searched(code, text, MATCH_LIMIT)
}

fn searched(code: &Code, text: &str, limit: u32) -> Vec<Found> {
    all(text, |start| {
        let mut groups = Vec::new();
        let pace = Pace {
            every: 1,
            ask: &mut |_| true,
        };
        let found = code.search(text, start, limit, pace, Some(&mut groups))?;
        Ok(found.then_some(groups))
    })
}

fn counted(regex: &Regex, text: &str) -> Vec<Found> {
    all(text, |start| {
        let pace = Pace {
            every: 3,
            ask: &mut |_| true,
        };
        regex.captures_at(text, start, pace)
    })
}

/// R3, R4: matches, groups and errors are the same as those of a search without callouts.
#[test]
fn a_match_with_callouts_is_that_without() {
    let (compared, matched) = compare(11, 8_000, SETTINGS, false);
    assert!(
        compared > 10_000 && matched > compared / 4,
        "{compared} {matched}"
    );
}

/// R4, for patterns that refer to groups.
#[test]
fn a_match_with_references_is_that_without_callouts() {
    let (compared, matched) = compare(12, 4_000, &[""], true);
    assert!(
        compared > 3_000 && matched > compared / 10,
        "{compared} {matched}"
    );
}

/// Compares searches of random patterns with and without callouts; returns the number of searches,
/// and of those that found a match.
fn compare(seed: u64, patterns: u32, settings: &[&str], refers: bool) -> (usize, usize) {
    let mut rng = Rng::new(seed);
    let (mut compared, mut matched) = (0, 0);
    for _ in 0..patterns {
        let setting = pick(&mut rng, settings);
        let pattern = format!("{setting}{}", sequence(&mut rng, 0, refers));
        let options = Options {
            caseless: rng.below(4) == 0,
            multi_line: rng.below(3) == 0,
            dot_all: rng.below(3) == 0,
            extended: rng.below(5) == 0,
        };
        let how = How {
            options,
            ..How::default()
        };
        let regex = Regex::new(&pattern, options);
        let code = match Code::new(&pattern, how) {
            Ok(code) => code,
            Err(error) => {
                assert_eq!(regex.err(), Some(error), "{pattern}");
                continue;
            }
        };
        let regex = regex.unwrap_or_else(|error| panic!("{pattern}: {error}"));
        let careful = Code::new(
            &pattern,
            How {
                careful: true,
                ..how
            },
        )
        .unwrap();
        for _ in 0..4 {
            let text = text(&mut rng, 24);
            let expected = plain(&code, &text);
            assert_eq!(
                counted(&regex, &text),
                expected,
                "{pattern:?} {options:?} {text:?}"
            );
            let pace = Pace {
                every: 3,
                ask: &mut |_| true,
            };
            let found = regex.is_match(&text, pace);
            match expected.first() {
                Some(Ok(_)) => assert_eq!(found, Ok(true), "{pattern:?} {options:?} {text:?}"),
                None => assert_eq!(found, Ok(false), "{pattern:?} {options:?} {text:?}"),
                Some(Err(_)) => {}
            }
            let found = searched(&careful, &text, MATCH_LIMIT);
            assert_eq!(found, expected, "careful {pattern:?} {options:?} {text:?}");
            compared += 1;
            matched += usize::from(!expected.is_empty());
        }
    }
    (compared, matched)
}

/// Ends a match at the question number `after`, and checks that few questions follow.
fn stopped(regex: &Regex, text: &str, after: u32) -> Result<bool, Error> {
    let mut asked = 0;
    let pace = Pace {
        every: 4,
        ask: &mut |_| {
            asked += 1;
            asked <= after
        },
    };
    let outcome = regex.is_match(text, pace);
    // One question to end the match, and the last one after it has ended.
    assert!(asked <= after + 2, "asked {asked} times");
    outcome
}

/// R4: in these patterns, a non-capturing group would change the number of another group, and the
///     pattern would still compile.
#[test]
fn references_mean_the_groups_that_the_pattern_has() {
    let ten = "(.)".repeat(10);
    for (pattern, text, expected) in [
        ("(a)(?<n>b)\\1".to_owned(), "aba", true),
        ("(a)(?<n>b)\\1".to_owned(), "abb", false),
        (format!("{ten}\\10"), "abcdefghijj", true),
        (format!("{ten}\\10"), "abcdefghij\u{8}", false),
        ("(?<n>b)(a)\\g{-1}".to_owned(), "baa", true),
        ("(?<n>b)(a)\\g{-1}".to_owned(), "bab", false),
        ("(a)(?<n>b)(?1)".to_owned(), "aba", true),
        ("(a)(?<n>b)(?1)".to_owned(), "abb", false),
        ("(a)(?i-n)(?<n>b)\\1".to_owned(), "aba", true),
        ("(a)(?'n'b)(?(1)c|d)".to_owned(), "abc", true),
    ] {
        let regex = Regex::new(&pattern, Options::default()).unwrap();
        let pace = Pace {
            every: 8,
            ask: &mut |_| true,
        };
        let found = regex.is_match(text, pace).unwrap();
        assert_eq!(found, expected, "{pattern} in {text:?}");
    }
}

/// R1: the caller is asked during a long match, and can end it.
#[test]
fn a_match_ends_when_its_caller_says_so() {
    let text = "a".repeat(1 << 20);
    for pattern in [
        "(?:a*)[b-c]",
        "a*a*b",
        "(a*)*b",
        "(?:(?:a*+)b|a)*c",
        "(?:a|aa)+$b",
        "(?>(?:a*+b|a)*)c",
        "(?=(?:a*+b|a)*c)a",
        "(a(?1)?a|a)b",
        "a?.*?(?:a*+[bc]|a)+d",
        "[a-z]*,[a-z]*,",
    ] {
        let regex = Regex::new(pattern, Options::default()).unwrap();
        match stopped(&regex, &text, 0) {
            // PCRE2 may find immediately that no match is possible, or that its stack is exhausted.
            Err(Error::Stopped | Error::Match { .. }) | Ok(false) => {}
            other => panic!("{pattern}: {other:?}"),
        }
    }
    for pattern in ["(?:a|x)?a*[b-c]", "a?a*a*[b-c]"] {
        let regex = Regex::new(pattern, Options::default()).unwrap();
        assert_eq!(stopped(&regex, &text, 3), Err(Error::Stopped), "{pattern}");
    }
}

/// R3: PCRE2 still skips start positions that cannot match.
#[test]
fn skipping_of_starts_is_kept() {
    // With quadratic time, the number of callouts would be in the hundreds of thousands.
    let text = "a".repeat(1 << 20);
    for pattern in ["a*b", "a+[b-c]", "(a*)b", "(?i)a*b", "xy[a-z]*"] {
        let regex = Regex::new(pattern, Options::default()).unwrap();
        let mut callouts = 0;
        let pace = Pace {
            every: 1,
            ask: &mut |count| {
                callouts += count;
                callouts < 1_000
            },
        };
        assert_eq!(regex.is_match(&text, pace), Ok(false), "{pattern}");
    }
}

/// R2: a match may exceed the lowered match limit.
#[test]
fn an_attempt_beyond_the_lowered_limit_is_repeated_with_care() {
    let text = format!("{}c", "ab".repeat(1 << 19));
    let regex = Regex::new("^[ab]*?c$", Options::default()).unwrap();
    let pace = Pace {
        every: 1,
        ask: &mut |_| true,
    };
    assert_eq!(regex.is_match(&text, pace), Ok(true));
}

#[test]
fn one_pattern_may_be_used_by_several_threads() {
    let regex = Regex::new("(a+)b", Options::default()).unwrap();
    let search = || {
        for length in 1..200 {
            let text = format!("{}b", "a".repeat(length));
            let pace = Pace {
                every: 8,
                ask: &mut |_| true,
            };
            let groups = regex.captures_at(&text, 0, pace).unwrap().unwrap();
            assert_eq!(groups, [Some(0..length + 1), Some(0..length)]);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(search);
        }
    });
}
