//! The proleptic Gregorian calendar over all dates that BSON holds: 64 bits of milliseconds.
//!
//! Days are counted from 1970-01-01; the arithmetic is that of Howard Hinnant's "chrono-compatible
//! low-level date algorithms". Nothing here knows of time zones.

/// Milliseconds of a day.
pub(crate) const DAY: i64 = 86_400_000;

/// A local date and time as separate fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Civil {
    pub(crate) year: i64,
    /// 1 to 12.
    pub(crate) month: i64,
    /// 1 to 31.
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
    pub(crate) millisecond: i64,
}

impl Civil {
    /// The date and time of a number of milliseconds since 1970-01-01, local time.
    pub(crate) fn from_millis(millis: i64) -> Civil {
        let (days, rest) = (millis.div_euclid(DAY), millis.rem_euclid(DAY));
        let (year, month, day) = date_of_days(days);
        Civil {
            year,
            month,
            day,
            hour: rest / 3_600_000,
            minute: rest / 60_000 % 60,
            second: rest / 1000 % 60,
            millisecond: rest % 1000,
        }
    }

    /// Days since 1970-01-01.
    pub(crate) fn days(&self) -> i64 {
        days_of_date(self.year, self.month, self.day)
    }

    /// Milliseconds within the day.
    pub(crate) fn time(&self) -> i64 {
        ((self.hour * 60 + self.minute) * 60 + self.second) * 1000 + self.millisecond
    }

    /// 1 (Sunday) to 7 (Saturday).
    pub(crate) fn day_of_week(&self) -> i64 {
        weekday(self.days()) + 1
    }

    /// 1 (Monday) to 7 (Sunday).
    pub(crate) fn iso_day_of_week(&self) -> i64 {
        iso_weekday(self.days())
    }

    /// 1 for January 1.
    pub(crate) fn day_of_year(&self) -> i64 {
        self.days() - days_of_date(self.year, 1, 1) + 1
    }

    /// The number of the week. Weeks start on Sunday; days before the first Sunday are in week 0.
    pub(crate) fn week(&self) -> i64 {
        (self.day_of_year() + 7 - self.day_of_week()) / 7
    }

    /// The year of the week and the number of the week (from 1), by ISO 8601.
    pub(crate) fn iso_week(&self) -> (i64, i64) {
        // A week belongs to the year of its Thursday.
        let thursday = self.days() - iso_weekday(self.days()) + 4;
        let (year, _, _) = date_of_days(thursday);
        (year, (thursday - days_of_date(year, 1, 1)) / 7 + 1)
    }
}

/// 0 (Sunday) to 6 (Saturday), of a day given in days since 1970-01-01.
pub(crate) fn weekday(days: i64) -> i64 {
    (days + 4).rem_euclid(7)
}

/// 1 (Monday) to 7 (Sunday), of a day given in days since 1970-01-01.
pub(crate) fn iso_weekday(days: i64) -> i64 {
    (days + 3).rem_euclid(7) + 1
}

/// The date in days since 1970-01-01; `month` is 1 to 12, `day` may be out of the month.
pub(crate) fn days_of_date(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day of a date in days since 1970-01-01.
pub(crate) fn date_of_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// Number of days of a month.
pub(crate) fn days_in_month(year: i64, month: i64) -> i64 {
    let (next_year, next) = if month == 12 {
        (year + 1, 1)
    } else {
        (year, month + 1)
    };
    days_of_date(next_year, next, 1) - days_of_date(year, month, 1)
}

/// The Monday of the first ISO 8601 week of a year, in days since 1970-01-01.
pub(crate) fn first_iso_monday(year: i64) -> i64 {
    // January 4 is always in the first week.
    let fourth = days_of_date(year, 1, 4);
    fourth - iso_weekday(fourth) + 1
}
