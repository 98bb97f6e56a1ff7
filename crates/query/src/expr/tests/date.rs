//! Dates: parts, zones, formats, parsing, arithmetic.

use bson::{Bson, DateTime, bson, doc};

use super::super::civil::{Civil, DAY, date_of_days, days_of_date};
use super::super::date_text;
use super::{check, refuse};

fn date(text: &str) -> Bson {
    Bson::DateTime(DateTime::from_millis(
        date_text::parse(text, None, None).unwrap(),
    ))
}

#[test]
fn the_calendar_inverts() {
    for days in (-1_000_000..1_000_000).step_by(37) {
        let (year, month, day) = date_of_days(days);
        assert_eq!(days_of_date(year, month, day), days);
        let civil = Civil::from_millis(days * DAY + 1);
        assert_eq!((civil.days(), civil.time()), (days, 1));
    }
    assert_eq!(date_of_days(0), (1970, 1, 1));
    assert_eq!(days_of_date(2000, 3, 1), 11_017);
}

#[test]
fn parts() {
    let d = doc! { "d": date("2023-01-01T12:34:56.789Z") };
    let parts = [
        ("$year", 2023),
        ("$month", 1),
        ("$dayOfMonth", 1),
        ("$dayOfYear", 1),
        ("$dayOfWeek", 1),
        ("$week", 1),
        ("$hour", 12),
        ("$minute", 34),
        ("$second", 56),
        ("$millisecond", 789),
        ("$isoWeek", 52),
        ("$isoDayOfWeek", 7),
    ];
    for (op, expected) in parts {
        check(doc! { op: "$d" }, d.clone(), Bson::Int32(expected));
        check(
            doc! { op: { "date": "$d" } },
            d.clone(),
            Bson::Int32(expected),
        );
        check(doc! { op: "$x" }, d.clone(), Bson::Null);
    }
    check(doc! { "$isoWeekYear": "$d" }, d.clone(), Bson::Int64(2022));
    let zoned = doc! { "$hour": { "date": "$d", "timezone": "America/New_York" } };
    check(zoned, d.clone(), Bson::Int32(7));
    let offset = doc! { "$dayOfMonth": { "date": "$d", "timezone": "+13:00" } };
    check(offset, d.clone(), Bson::Int32(2));
    refuse(
        doc! { "$year": "x" },
        d.clone(),
        16_006,
        "can't convert from BSON type string to Date",
    );
    refuse(
        doc! { "$year": { "timezone": "UTC" } },
        d.clone(),
        40_539,
        "missing 'date'",
    );
    refuse(
        doc! { "$year": { "date": "$d", "x": 1 } },
        d.clone(),
        40_535,
        "unrecognized option",
    );
    refuse(
        doc! { "$year": ["$d", 1] },
        d.clone(),
        40_536,
        "exactly one argument",
    );
    let wrong = doc! { "$year": { "date": "$d", "timezone": "Mars/Base" } };
    refuse(
        wrong,
        d,
        40_485,
        "unrecognized time zone identifier: \"Mars/Base\"",
    );
}

#[test]
fn formats() {
    let d = doc! { "d": date("2024-03-05T07:08:09.012Z"), "n": null };
    let format = |format: &str, zone: &str| {
        doc! { "$dateToString": {
        "date": "$d", "format": format, "timezone": zone } }
    };
    check(
        doc! { "$dateToString": { "date": "$d" } },
        d.clone(),
        bson!("2024-03-05T07:08:09.012Z"),
    );
    check(
        format("%Y/%m/%d %H:%M:%S.%L %%", "UTC"),
        d.clone(),
        bson!("2024/03/05 07:08:09.012 %"),
    );
    check(
        format("%j %w %u %U %V %G %z %Z", "Asia/Kathmandu"),
        d.clone(),
        bson!("065 3 2 09 10 2024 +0545 345"),
    );
    check(format("%d %b %B", "UTC"), d.clone(), bson!("05 Mar March"));
    let zoned = doc! { "$dateToString": { "date": "$d", "timezone": "Europe/Rome" } };
    check(zoned, d.clone(), bson!("2024-03-05T08:08:09.012"));
    let null = doc! { "$dateToString": { "date": "$n", "onNull": "none" } };
    check(null, d.clone(), bson!("none"));
    check(
        doc! { "$dateToString": { "date": "$n" } },
        d.clone(),
        Bson::Null,
    );
    refuse(
        format("%Q", "UTC"),
        d.clone(),
        18_536,
        "Invalid format character '%Q'",
    );
    refuse(format("%", "UTC"), d.clone(), 18_535, "Unmatched '%'");
    refuse(doc! { "$dateToString": {} }, d, 18_628, "Missing 'date'");
}

#[test]
fn texts() {
    let parse = |text: &str| doc! { "$dateFromString": { "dateString": text } };
    for (text, expected) in [
        ("2017-02-08T12:10:40.787Z", "2017-02-08T12:10:40.787Z"),
        ("2017-02-08 12:10:40", "2017-02-08T12:10:40Z"),
        ("2017-02-08", "2017-02-08T00:00:00Z"),
        ("20170208", "2017-02-08T00:00:00Z"),
        ("2017-02-08T12:10:40+0100", "2017-02-08T11:10:40Z"),
        ("July 4, 2017", "2017-07-04"),
        ("4 Jul 2017 10:00", "2017-07-04T10:00:00Z"),
    ] {
        check(parse(text), doc! {}, date(expected));
    }
    for text in [
        "",
        "yesterday",
        "2017-13-01",
        "2017-02-30",
        "2017-02-08T25:00",
        "2017-02-08?",
        "2017-02-08T12:10:40 America/New_York",
    ] {
        refuse(parse(text), doc! {}, 241, text);
    }
    let by = |text: &str, format: &str| {
        doc! { "$dateFromString": {
        "dateString": text, "format": format, "timezone": "Europe/Rome" } }
    };
    check(
        by("08-02-2017", "%d-%m-%Y"),
        doc! {},
        date("2017-02-07T23:00:00Z"),
    );
    check(
        by("2017 W06.3", "%G W%V.%u"),
        doc! {},
        date("2017-02-07T23:00:00Z"),
    );
    check(
        by("2017:039", "%Y:%j"),
        doc! {},
        date("2017-02-07T23:00:00Z"),
    );
    refuse(
        by("08-02", "%d-%m"),
        doc! {},
        241,
        "incomplete date/time string",
    );
    refuse(
        by("2017-01-01+0100", "%Y-%m-%d%z"),
        doc! {},
        241,
        "together with a timezone",
    );
    let caught = doc! { "$dateFromString": { "dateString": 5, "onError": "bad" } };
    check(caught, doc! {}, bson!("bad"));
    let null = doc! { "$dateFromString": { "dateString": "$x", "onNull": "none" } };
    check(null, doc! {}, bson!("none"));
}

#[test]
fn dates_are_read_in_the_forms_that_people_write() {
    for (text, expected) in [
        ("July 4th, 2017", "2017-07-04T00:00:00Z"),
        ("July 4th, 2017 12:39:30 BST", "2017-07-04T11:39:30Z"),
        ("July 4th, 2017 11am", "2017-07-04T11:00:00Z"),
        ("July 4th, 2017 12pm", "2017-07-04T12:00:00Z"),
        ("July 4th, 2017 12:05 a.m.", "2017-07-04T00:05:00Z"),
        ("Jul-04-2017", "2017-07-04T00:00:00Z"),
        ("July 2017", "2017-07-01T00:00:00Z"),
        ("7/4/17", "2017-07-04T00:00:00Z"),
        ("7/4/71", "1971-07-04T00:00:00Z"),
        ("04-07-2017", "2017-07-04T00:00:00Z"),
        ("4.7.2017", "2017-07-04T00:00:00Z"),
        ("17-07-04", "2017-07-04T00:00:00Z"),
        ("04-Jul-17", "2017-07-04T00:00:00Z"),
        ("2017-Jul-04 noon", "2017-07-04T12:00:00Z"),
        ("2017-07-04 12:48:07 GMT+0545", "2017-07-04T07:03:07Z"),
        ("2017-07-04 12:48:07 GMT-0200", "2017-07-04T14:48:07Z"),
        ("Tue, 04 Jul 2017 11:56:02 +0200", "2017-07-04T09:56:02Z"),
        ("Tue, 4 Jul 2017 11:56:02 GMT", "2017-07-04T11:56:02Z"),
        // The date moves forward to the day of the week.
        ("Thu, 4 Jul 2017", "2017-07-06T00:00:00Z"),
        ("04/Jul/2017:11:56:02 +0000", "2017-07-04T11:56:02Z"),
        ("2017-07-04T11:56.02.81", "2017-07-04T11:56:02.810Z"),
        ("20170704T115602", "2017-07-04T11:56:02Z"),
        ("2017-W27-2", "2017-07-04T00:00:00Z"),
        ("2017185", "2017-07-04T00:00:00Z"),
        ("11:56:02 4 July 2017", "2017-07-04T11:56:02Z"),
        (
            "2017-07-14T12:02:44.771 GMT+02:00",
            "2017-07-14T10:02:44.771Z",
        ),
        ("2017-07-14T12:02:44.771+03", "2017-07-14T09:02:44.771Z"),
        ("2017-07-14T12:02:44.771 CEST", "2017-07-14T10:02:44.771Z"),
        ("2017-07-14T12:02:44.771 PDT", "2017-07-14T19:02:44.771Z"),
        ("2017-07-14T12:02:44.771 (PDT)", "2017-07-14T19:02:44.771Z"),
        ("2017-07-14T12:02:44.771 A", "2017-07-14T11:02:44.771Z"),
        ("2017-07-14T12:02:44.771 L", "2017-07-14T01:02:44.771Z"),
        ("2017-07-14T12:02:44.771 P", "2017-07-14T15:02:44.771Z"),
    ] {
        check(doc! { "$toDate": text }, doc! {}, date(expected));
    }
    for text in ["July 4th", "12:50:53", "7/4", "July"] {
        refuse(doc! { "$toDate": text }, doc! {}, 241, "incomplete");
    }
    for text in [
        "2017, 12:50:53",
        "60.Monday1770/06:59",
        "2017-07-04 2018-07-04",
        "2017-07-04 13pm",
        "2017-07-04 11:00 12:00",
        "July 4th, 2017 UTC UTC",
        "\u{661}/\u{662}/2017",
    ] {
        refuse(doc! { "$toDate": text }, doc! {}, 241, "Error parsing");
    }
}

#[test]
fn zones_in_a_text_go_with_the_zone_of_utc_only() {
    let parse = |zone: &str| {
        doc! { "$dateFromString": { "dateString": "2017-07-04T12:00:00+02:00", "timezone": zone } }
    };
    check(parse("UTC"), doc! {}, date("2017-07-04T10:00:00Z"));
    refuse(
        parse("Europe/Rome"),
        doc! {},
        241,
        "together with a timezone",
    );
}

#[test]
fn from_and_to_parts() {
    let from = |spec: bson::Document| doc! { "$dateFromParts": spec };
    check(
        from(doc! { "year": 2017, "month": 2, "day": 8 }),
        doc! {},
        date("2017-02-08"),
    );
    check(
        from(doc! { "year": 2017, "month": 14, "day": 0 }),
        doc! {},
        date("2018-01-31"),
    );
    check(
        from(doc! { "year": 2017, "hour": -1 }),
        doc! {},
        date("2016-12-31T23:00:00Z"),
    );
    let iso = doc! { "isoWeekYear": 2017, "isoWeek": 6, "isoDayOfWeek": 3 };
    check(from(iso), doc! {}, date("2017-02-08"));
    let zoned = doc! { "year": 2017, "timezone": "America/New_York" };
    check(from(zoned), doc! {}, date("2017-01-01T05:00:00Z"));
    check(from(doc! { "year": "$x" }), doc! {}, Bson::Null);
    refuse(
        from(doc! { "month": 1 }),
        doc! {},
        40_516,
        "either 'year' or 'isoWeekYear'",
    );
    refuse(
        from(doc! { "year": 1, "isoWeek": 1 }),
        doc! {},
        40_489,
        "mixing",
    );
    refuse(
        from(doc! { "year": 10_000 }),
        doc! {},
        40_523,
        "range 1 to 9999",
    );
    refuse(
        from(doc! { "year": "a" }),
        doc! {},
        40_515,
        "'year' must evaluate to an integer",
    );
    let d = doc! { "d": date("2017-02-08T01:02:03.004Z") };
    let to = |iso: bool| doc! { "$dateToParts": { "date": "$d", "iso8601": iso } };
    let time = doc! { "hour": 1, "minute": 2, "second": 3, "millisecond": 4 };
    let mut expected = doc! { "year": 2017, "month": 2, "day": 8 };
    expected.extend(time.clone());
    check(to(false), d.clone(), Bson::Document(expected));
    let mut expected = doc! { "isoWeekYear": 2017, "isoWeek": 6, "isoDayOfWeek": 3 };
    expected.extend(time);
    check(to(true), d, Bson::Document(expected));
}

#[test]
fn steps_keep_local_time() {
    let step = |op: &str, from: &str, unit: &str, amount: i64, zone: &str| {
        doc! { op: {
        "startDate": date(from), "unit": unit, "amount": amount, "timezone": zone } }
    };
    let add = "$dateAdd";
    check(
        step(add, "2024-01-31", "month", 1, "UTC"),
        doc! {},
        date("2024-02-29"),
    );
    check(
        step("$dateSubtract", "2024-02-29", "year", 1, "UTC"),
        doc! {},
        date("2023-02-28"),
    );
    check(
        step(add, "2024-01-31", "quarter", -1, "UTC"),
        doc! {},
        date("2023-10-31"),
    );
    // Clocks go forward in Rome on 2024-03-31.
    check(
        step(add, "2024-03-30T11:00:00Z", "day", 1, "Europe/Rome"),
        doc! {},
        date("2024-03-31T10:00:00Z"),
    );
    check(
        step(add, "2024-03-30T11:00:00Z", "hour", 24, "Europe/Rome"),
        doc! {},
        date("2024-03-31T11:00:00Z"),
    );
    refuse(
        step(add, "2024-01-01", "eon", 1, "UTC"),
        doc! {},
        9,
        "time unit: eon",
    );
    refuse(
        step(add, "2024-01-01", "year", i64::MAX, "UTC"),
        doc! {},
        5_976_500,
        "out of range",
    );
    refuse(
        doc! { "$dateAdd": { "startDate": 1, "unit": "day", "amount": 1 } },
        doc! {},
        5_166_403,
        "convertible to a date",
    );
    refuse(
        doc! { "$dateAdd": { "startDate": 1 } },
        doc! {},
        5_166_402,
        "to be present",
    );
}

#[test]
fn differences_count_boundaries() {
    let diff = |from: &str, to: &str, unit: &str| {
        doc! { "$dateDiff": {
        "startDate": date(from), "endDate": date(to), "unit": unit } }
    };
    for (from, to, unit, expected) in [
        ("2023-12-31T23:59:59Z", "2024-01-01", "year", 1),
        ("2024-01-01", "2023-12-31", "quarter", -1),
        ("2024-01-31", "2024-03-01", "month", 2),
        ("2024-03-02", "2024-03-03", "week", 1),
        ("2024-03-02T23:00:00Z", "2024-03-03T01:00:00Z", "day", 1),
        ("2024-03-02T00:59:00Z", "2024-03-02T01:00:00Z", "hour", 1),
        ("2024-03-02T00:59:00Z", "2024-03-02T01:00:00Z", "second", 60),
        (
            "2024-03-02T00:59:00Z",
            "2024-03-02T01:00:00Z",
            "millisecond",
            60_000,
        ),
    ] {
        check(diff(from, to, unit), doc! {}, Bson::Int64(expected));
    }
    let monday = doc! { "$dateDiff": { "startDate": date("2024-03-02"), "unit": "week",
    "endDate": date("2024-03-03"), "startOfWeek": "Monday" } };
    check(monday, doc! {}, Bson::Int64(0));
    refuse(
        diff("2024-03-02", "2024-03-03", "weeks"),
        doc! {},
        9,
        "time unit: weeks",
    );
}

#[test]
fn truncation_bins() {
    let trunc = |text: &str, unit: &str, bins: i64, zone: &str| {
        doc! { "$dateTrunc": {
        "date": date(text), "unit": unit, "binSize": bins, "timezone": zone } }
    };
    for (text, unit, bins, zone, expected) in [
        ("2021-03-20T11:30:05Z", "month", 1, "UTC", "2021-03-01"),
        ("2021-03-20T11:30:05Z", "month", 2, "UTC", "2021-03-01"),
        ("2021-03-20T11:30:05Z", "quarter", 1, "UTC", "2021-01-01"),
        ("2021-03-20T11:30:05Z", "week", 2, "UTC", "2021-03-14"),
        (
            "2021-03-20T11:30:05Z",
            "hour",
            2,
            "UTC",
            "2021-03-20T10:00:00Z",
        ),
        (
            "2021-03-20T22:30:05Z",
            "day",
            1,
            "Europe/Rome",
            "2021-03-19T23:00:00Z",
        ),
        (
            "1999-12-31T23:59:59Z",
            "minute",
            7,
            "UTC",
            "1999-12-31T23:53:00Z",
        ),
    ] {
        check(trunc(text, unit, bins, zone), doc! {}, date(expected));
    }
    check(
        doc! { "$dateTrunc": { "date": null, "unit": "day" } },
        doc! {},
        Bson::Null,
    );
    refuse(
        trunc("2021-01-01", "day", 0, "UTC"),
        doc! {},
        5_439_018,
        "greater than 0",
    );
    refuse(
        doc! { "$dateTrunc": { "date": 1, "unit": "day" } },
        doc! {},
        5_439_012,
        "got int",
    );
}

#[test]
fn a_date_string_of_a_wrong_type_goes_to_on_error_before_null_options() {
    for option in [bson!({"timezone": null}), bson!({"format": null})] {
        let mut spec = doc! { "dateString": 5, "onError": "bad" };
        spec.extend(option.as_document().unwrap().clone());
        check(
            doc! { "$dateFromString": spec.clone() },
            doc! {},
            Bson::from("bad"),
        );
        spec.remove("onError");
        refuse(
            doc! { "$dateFromString": spec },
            doc! {},
            241,
            "be a string, found: int",
        );
    }
    // An invalid format is an error even if the text is null.
    for (format, code) in [("%Y-%q", 18_536), ("%Y-%", 18_535)] {
        let spec = doc! { "dateString": null, "format": format, "onNull": 1 };
        refuse(
            doc! { "$dateFromString": spec },
            doc! {},
            code,
            "format string",
        );
    }
}

#[test]
fn iso_years_do_not_go_with_months_and_days() {
    let mixing = "Mixing of ISO dates with natural dates is not allowed";
    for (text, format) in [
        ("07/04/2017", "%m/%d/%G"),
        ("2017-27", "%Y-%V"),
        ("2017 2017-W01-1", "%Y %G-W%V-%u"),
        ("2017 4", "%G %d"),
    ] {
        let spec = doc! { "dateString": text, "format": format };
        refuse(doc! { "$dateFromString": spec }, doc! {}, 241, mixing);
    }
}
