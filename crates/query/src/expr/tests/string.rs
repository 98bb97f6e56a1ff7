//! Strings: bytes and code points, searches, regular expressions.

use bson::{Bson, Regex, bson, doc};

use super::{check, refuse};

#[test]
fn whole_strings() {
    let d = doc! { "s": "caf\u{e9}", "n": null, "i": 5 };
    check(
        doc! { "$concat": ["$s", "!"] },
        d.clone(),
        bson!("caf\u{e9}!"),
    );
    check(doc! { "$concat": ["$s", "$n"] }, d.clone(), Bson::Null);
    check(doc! { "$toUpper": "$s" }, d.clone(), bson!("CAF\u{e9}"));
    check(doc! { "$toLower": "$n" }, d.clone(), bson!(""));
    check(doc! { "$toUpper": "$i" }, d.clone(), bson!("5"));
    let odd = doc! { "x": f64::NAN, "y": f64::NEG_INFINITY };
    check(
        doc! { "$substrCP": ["$x", 0, 3] },
        odd.clone(),
        bson!("nan"),
    );
    check(doc! { "$toUpper": "$y" }, odd, bson!("-INF"));
    let stamp = |time, increment| {
        let stamp = bson::Timestamp { time, increment };
        doc! { "t": stamp }
    };
    check(
        doc! { "$substrCP": ["$t", 0, 99] },
        stamp(2, 1),
        bson!("Jan  1 00:00:02:1"),
    );
    check(
        doc! { "$toLower": "$t" },
        stamp(1_700_000_000, 3),
        bson!("nov 14 22:13:20:3"),
    );
    check(doc! { "$strLenBytes": "$s" }, d.clone(), Bson::Int32(5));
    check(doc! { "$strLenCP": "$s" }, d.clone(), Bson::Int32(4));
    check(
        doc! { "$strcasecmp": ["abc", "ABD"] },
        d.clone(),
        Bson::Int32(-1),
    );
    refuse(
        doc! { "$concat": ["$s", "$i"] },
        d.clone(),
        16_702,
        "only supports strings, not int",
    );
    refuse(doc! { "$strLenCP": "$n" }, d.clone(), 34_471, "found: null");
    refuse(doc! { "$strLenBytes": "$x" }, d, 34_473, "found: missing");
}

#[test]
fn substrings() {
    let d = doc! { "s": "caf\u{e9}s" };
    check(
        doc! { "$substrBytes": ["$s", 0, 3] },
        d.clone(),
        bson!("caf"),
    );
    check(
        doc! { "$substrBytes": ["$s", 5, -1] },
        d.clone(),
        bson!("s"),
    );
    check(doc! { "$substr": ["$s", 99, 1] }, d.clone(), bson!(""));
    check(
        doc! { "$substrCP": ["$s", 3, 2] },
        d.clone(),
        bson!("\u{e9}s"),
    );
    check(doc! { "$substrBytes": ["$x", 0, 1] }, d.clone(), bson!(""));
    refuse(
        doc! { "$substrBytes": ["$s", 4, 1] },
        d.clone(),
        28_656,
        "continuation byte",
    );
    refuse(
        doc! { "$substrBytes": ["$s", 0, 4] },
        d.clone(),
        28_657,
        "middle of a UTF-8",
    );
    refuse(
        doc! { "$substrBytes": ["$s", -1, 4] },
        d.clone(),
        50_752,
        "non-negative",
    );
    refuse(
        doc! { "$substrCP": ["$s", 0, -1] },
        d.clone(),
        34_454,
        "nonnegative",
    );
    refuse(
        doc! { "$substrCP": ["$s", 1.5, 1] },
        d,
        34_451,
        "32-bit integral",
    );
}

#[test]
fn searches_count_bytes_or_points() {
    let d = doc! { "s": "\u{e9}l\u{e9}gante" };
    check(
        doc! { "$indexOfBytes": ["$s", "g"] },
        d.clone(),
        Bson::Int32(5),
    );
    check(
        doc! { "$indexOfCP": ["$s", "g"] },
        d.clone(),
        Bson::Int32(3),
    );
    check(
        doc! { "$indexOfCP": ["$s", "\u{e9}", 1] },
        d.clone(),
        Bson::Int32(2),
    );
    check(
        doc! { "$indexOfCP": ["$s", "g", 0, 3] },
        d.clone(),
        Bson::Int32(-1),
    );
    check(
        doc! { "$indexOfBytes": ["$s", "", 2] },
        d.clone(),
        Bson::Int32(2),
    );
    check(doc! { "$indexOfCP": ["$x", "g"] }, d.clone(), Bson::Null);
    check(
        doc! { "$indexOfCP": ["$s", "g", 50] },
        d.clone(),
        Bson::Int32(-1),
    );
    refuse(
        doc! { "$indexOfBytes": ["$s", 1] },
        d.clone(),
        40_092,
        "second argument, found: int",
    );
    refuse(
        doc! { "$indexOfCP": ["$s", "g", -1] },
        d.clone(),
        40_097,
        "nonnegative starting",
    );
    refuse(
        doc! { "$indexOfCP": ["$s", "g", "a"] },
        d,
        40_096,
        "integral starting index",
    );
}

#[test]
fn splitting_and_replacing() {
    let d = doc! { "s": "a-b--c" };
    check(
        doc! { "$split": ["$s", "-"] },
        d.clone(),
        bson!(["a", "b", "", "c"]),
    );
    check(doc! { "$split": ["$s", null] }, d.clone(), Bson::Null);
    refuse(
        doc! { "$split": ["$s", ""] },
        d.clone(),
        40_087,
        "non-empty",
    );
    refuse(
        doc! { "$split": [1, ""] },
        d.clone(),
        40_085,
        "first argument, found: int",
    );
    let replace = |op: &str| doc! { op: { "input": "$s", "find": "-", "replacement": "+" } };
    check(replace("$replaceOne"), d.clone(), bson!("a+b--c"));
    check(replace("$replaceAll"), d.clone(), bson!("a+b++c"));
    let with = |find: Bson| {
        doc! { "$replaceOne": {
        "input": "$s", "find": find, "replacement": "" } }
    };
    check(with(Bson::Null), d.clone(), Bson::Null);
    refuse(
        with(bson!(1)),
        d.clone(),
        51_745,
        "requires that 'find' be a string, found: 1",
    );
    refuse(
        doc! { "$replaceAll": { "input": 1, "find": "" } },
        d,
        51_747,
        "'replacement'",
    );
}

#[test]
fn trimming() {
    let d = doc! { "s": " \t\u{a0}x y\n" };
    check(doc! { "$trim": { "input": "$s" } }, d.clone(), bson!("x y"));
    check(
        doc! { "$ltrim": { "input": "$s" } },
        d.clone(),
        bson!("x y\n"),
    );
    check(
        doc! { "$rtrim": { "input": "$s" } },
        d.clone(),
        bson!(" \t\u{a0}x y"),
    );
    let chars = |chars: Bson| doc! { "$trim": { "input": "abcba", "chars": chars } };
    check(chars(bson!("ab")), d.clone(), bson!("c"));
    check(chars(Bson::Null), d.clone(), Bson::Null);
    refuse(
        chars(bson!(1)),
        d.clone(),
        50_700,
        "requires 'chars' to be a string, got 1",
    );
    refuse(
        doc! { "$trim": { "chars": "a" } },
        d.clone(),
        50_695,
        "requires an 'input' field",
    );
    refuse(
        doc! { "$trim": { "input": "", "x": 1 } },
        d.clone(),
        50_694,
        "unknown argument: x",
    );
    refuse(doc! { "$trim": "a" }, d, 50_696, "found string");
}

#[test]
fn regular_expressions() {
    let d = doc! { "s": "\u{e9}a1 a22", "r": "A(\\d+)", "n": null };
    let find = |op: &str| doc! { op: { "input": "$s", "regex": "$r", "options": "i" } };
    check(find("$regexMatch"), d.clone(), Bson::Boolean(true));
    check(
        find("$regexFind"),
        d.clone(),
        bson!({ "match": "a1", "idx": 1, "captures": ["1"] }),
    );
    check(
        find("$regexFindAll"),
        d.clone(),
        bson!([
            { "match": "a1", "idx": 1, "captures": ["1"] },
            { "match": "a22", "idx": 4, "captures": ["22"] },
        ]),
    );
    let constant = |regex: Bson| doc! { "$regexFind": { "input": "$s", "regex": regex } };
    let group = Bson::RegularExpression(Regex {
        pattern: "(x)|a".try_into().unwrap(),
        options: "".try_into().unwrap(),
    });
    check(
        constant(group),
        d.clone(),
        bson!({ "match": "a", "idx": 1, "captures": [null] }),
    );
    let empty = doc! { "$size": { "$regexFindAll": { "input": "$s", "regex": "" } } };
    check(empty, d.clone(), Bson::Int32(8));
    let null = |op: &str| doc! { op: { "input": "$n", "regex": "a" } };
    check(null("$regexMatch"), d.clone(), Bson::Boolean(false));
    check(null("$regexFind"), d.clone(), Bson::Null);
    check(null("$regexFindAll"), d.clone(), bson!([]));
    refuse(
        constant(bson!("(")),
        d.clone(),
        51_111,
        "Invalid Regex in $regexFind",
    );
    refuse(constant(bson!(1)), d.clone(), 51_105, "string or regex");
    let options = doc! { "$regexMatch": { "input": "a", "regex": "a", "options": "q" } };
    refuse(options, d.clone(), 51_108, "$regexMatch");
    refuse(
        doc! { "$regexMatch": { "input": 1, "regex": "a" } },
        d,
        51_104,
        "type string",
    );
}

#[test]
fn an_old_name_of_an_operator_stands_for_the_new_one() {
    check(
        doc! { "$substr": ["$s", 0, 1] },
        doc! { "s": "abc" },
        bson!("a"),
    );
    for name in ["$substr", "$substrBytes"] {
        refuse(
            doc! { name: ["$s", 0] },
            doc! {},
            16_020,
            "Expression $substrBytes takes exactly 3 arguments. 2 were passed in.",
        );
    }
}

#[test]
fn random_numbers_take_nothing() {
    refuse(
        doc! { "$rand": 1 },
        doc! {},
        10_065,
        "invalid parameter: expected an object ($rand)",
    );
    refuse(
        doc! { "$rand": { "a": 1 } },
        doc! {},
        3_040_501,
        "arguments",
    );
    refuse(doc! { "$rand": [1] }, doc! {}, 3_040_501, "arguments");
}
