//! The state of a member by MongoDB's numbers and names, as clients and tools see it.

use repl::event::State;

/// The state of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Waits for `replSetInitiate`.
    Startup,
    Primary,
    Secondary,
    /// In maintenance, or too far behind.
    Recovering,
    /// In initial sync.
    Startup2,
    /// It has not reported yet.
    Unknown,
    Arbiter,
    /// It has not reported for long.
    Down,
    Rollback,
    Removed,
}

impl Standing {
    const ALL: [(Standing, i32, &'static str); 10] = [
        (Standing::Startup, 0, "STARTUP"),
        (Standing::Primary, 1, "PRIMARY"),
        (Standing::Secondary, 2, "SECONDARY"),
        (Standing::Recovering, 3, "RECOVERING"),
        (Standing::Startup2, 5, "STARTUP2"),
        (Standing::Unknown, 6, "UNKNOWN"),
        (Standing::Arbiter, 7, "ARBITER"),
        (Standing::Down, 8, "(not reachable/healthy)"),
        (Standing::Rollback, 9, "ROLLBACK"),
        (Standing::Removed, 10, "REMOVED"),
    ];

    /// That of a member whose protocol is in `state`. A primary is one only while it accepts
    /// writes.
    pub(crate) fn of(state: State) -> Standing {
        match state {
            State::Startup2 => Standing::Startup2,
            State::Recovering => Standing::Recovering,
            State::Primary { writable: true } => Standing::Primary,
            State::Rollback => Standing::Rollback,
            State::Arbiter => Standing::Arbiter,
            State::Removed => Standing::Removed,
            _ => Standing::Secondary,
        }
    }

    pub(crate) fn of_number(number: i32) -> Option<Standing> {
        let found = Standing::ALL.iter().find(|(_, n, _)| *n == number);
        found.map(|(standing, _, _)| *standing)
    }

    pub(crate) fn number(self) -> i32 {
        let found = Standing::ALL.iter().find(|(own, _, _)| *own == self);
        found.map_or(6, |(_, number, _)| *number)
    }

    pub(crate) fn name(self) -> &'static str {
        let found = Standing::ALL.iter().find(|(own, _, _)| *own == self);
        found.map_or("UNKNOWN", |(_, _, name)| name)
    }
}
