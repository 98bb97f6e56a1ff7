//! Starting, resuming and ending.

use bson::{Document, Timestamp, doc};
use docdb::change::event::Event;
use docdb::change::token::Token;

use super::{Beside, Log, behind, drain, events, everything, kinds, on, open};
use crate::lab::{Lab, ns, on_each, op};

fn resumed(log: &Log, stage: &Document, coll: &str) -> query::Result<Vec<Event>> {
    let mut stream = open(stage, &on(coll))?;
    drain(&mut stream, &mut log.clone(), &Beside::default())
}

fn code(result: query::Result<Vec<Event>>) -> i32 {
    result.unwrap_err().code.0
}

/// Two lives of a collection.
fn lives(lab: &Lab) -> Log {
    lab.insert(&ns("c"), &[doc! { "_id": 1 }]);
    lab.store.drop_collection(&op(), &ns("c")).unwrap();
    lab.insert(&ns("c"), &[doc! { "_id": 2 }]);
    Log::of(&lab.store)
}

/// `change::stream`: S4.
#[test]
fn an_invalidate_ends_the_stream_and_can_be_started_after() {
    on_each(|lab| {
        let log = lives(lab);
        let found = events(&log, &doc! {}, &on("c"));
        assert_eq!(kinds(&found), ["insert", "drop", "invalidate"]);
        let mut stream = open(&doc! {}, &on("c")).unwrap();
        drain(&mut stream, &mut log.clone(), &Beside::default()).unwrap();
        assert!(stream.is_over());
        let (drop, end) = (&found[1].token, &found[2].token);
        assert_eq!(stream.token(), end);
        let after = drain(&mut stream, &mut log.clone(), &Beside::default());
        assert_eq!(after.unwrap().len(), 0, "S4: nothing follows");
        for field in ["resumeAfter", "startAfter"] {
            let rest = resumed(&log, &behind(field, drop), "c").unwrap();
            assert_eq!(kinds(&rest), ["invalidate"], "{field}");
            assert_eq!(rest[0].token, *end);
        }
        let rest = resumed(&log, &behind("startAfter", end), "c").unwrap();
        assert_eq!(kinds(&rest), ["insert"], "S4");
        assert_eq!(code(resumed(&log, &behind("resumeAfter", end), "c")), 260);
    });
}

/// `change::stream`: S2.
#[test]
fn a_stream_resumes_only_after_an_event_that_it_finds() {
    on_each(|lab| {
        let log = lives(lab);
        let found = events(&log, &doc! {}, &on("c"));
        lab.insert(&ns("other"), &[doc! { "_id": 3 }]);
        let log = Log::of(&lab.store);
        let after = |token: &Token, coll: &str| {
            let stage = behind("resumeAfter", token);
            resumed(&log, &stage, coll)
        };
        assert_eq!(code(after(&found[0].token, "other")), 280, "S2");
        let rest = after(&found[0].token, "").unwrap();
        assert_eq!(kinds(&rest), ["drop", "insert", "insert"]);
        // An event that the stream does not show.
        let expanded = doc! { "showExpandedEvents": true };
        let created = &events(&log, &expanded, &on("c"))[0];
        assert_eq!(created.kind.name(), "create");
        let rest = after(&created.token, "c").unwrap();
        assert_eq!(kinds(&rest), ["insert", "drop", "invalidate"], "S2");
        // Another place in the oplog.
        let mut moved = log.clone();
        for (time, _) in &mut moved.entries {
            time.increment += 100;
        }
        let stage = behind("resumeAfter", &found[0].token);
        let mut stream = open(&stage, &on("c")).unwrap();
        let error = drain(&mut stream, &mut moved, &Beside::default()).unwrap_err();
        assert_eq!(error.code.0, 280, "S2");
        // A token of the future may still come.
        let mut young = log.clone();
        young.visible = Timestamp {
            time: 1,
            increment: 0,
        };
        let mut stream = open(&stage, &on("c")).unwrap();
        let none = drain(&mut stream, &mut young, &Beside::default()).unwrap();
        assert_eq!(none.len(), 0);
        assert_eq!(stream.token(), &found[0].token);
    });
}

/// `change::stream`: S3.
#[test]
fn a_stream_fails_where_entries_may_be_gone() {
    on_each(|lab| {
        let mut log = lives(lab);
        let found = events(&log, &doc! {}, &on("c"));
        let time = found[0].token.time();
        log.first = Timestamp {
            increment: time.increment + 1,
            ..time
        };
        let stage = behind("resumeAfter", &found[0].token);
        assert_eq!(code(resumed(&log, &stage, "c")), 286, "S3");
        let stage = doc! { "startAtOperationTime": time };
        assert_eq!(code(resumed(&log, &stage, "c")), 286, "S3");
        let mut stream = open(&doc! { "startAtOperationTime": log.first }, &on("c")).unwrap();
        let rest = drain(&mut stream, &mut log, &Beside::default()).unwrap();
        assert_eq!(kinds(&rest), ["drop", "invalidate"]);
    });
}

/// `change::stream`: S5.
#[test]
fn without_events_the_token_is_a_mark_that_moves() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 1 }]);
        let log = Log::of(&lab.store);
        let mut stream = open(&doc! {}, &on("c")).unwrap();
        let found = drain(&mut stream, &mut log.clone(), &Beside::default()).unwrap();
        assert_eq!(stream.token(), &found[0].token, "S5: the last entry");
        lab.insert(&ns("other"), &[doc! { "_id": 1 }]);
        let log = Log::of(&lab.store);
        let none = drain(&mut stream, &mut log.clone(), &Beside::default()).unwrap();
        assert_eq!(none.len(), 0);
        assert_eq!(stream.token(), &Token::mark(log.visible), "S5");
        lab.insert(&ns("c"), &[doc! { "_id": 2 }]);
        let log = Log::of(&lab.store);
        let stage = behind("resumeAfter", stream.token());
        let here = drain(&mut stream, &mut log.clone(), &Beside::default()).unwrap();
        let there = resumed(&log, &stage, "c").unwrap();
        assert_eq!(kinds(&here), ["insert"]);
        assert_eq!(here[0].token, there[0].token);
    });
}

/// A stream that starts now has no event of before.
#[test]
fn a_new_stream_starts_behind_the_visible_entries() {
    use docdb::change::options::Options;
    use docdb::change::stream::Stream;
    on_each(|lab| {
        let log = lives(lab);
        let options = Options::parse(&crate::lab::raw(&doc! {}), &on("c")).unwrap();
        let mut stream = Stream::new(options, log.visible, false).unwrap();
        let none = drain(&mut stream, &mut log.clone(), &Beside::default()).unwrap();
        assert_eq!(none.len(), 0);
        lab.insert(&ns("c"), &[doc! { "_id": 9 }]);
        let mut log = Log::of(&lab.store);
        let found = drain(&mut stream, &mut log, &Beside::default()).unwrap();
        assert_eq!(kinds(&found), ["insert"]);
    });
}

#[test]
fn a_fragment_is_resumed_only_with_the_stage_that_splits() {
    on_each(|lab| {
        let log = lives(lab);
        let all = doc! { "allChangesForCluster": true };
        let token = &events(&log, &all, &everything())[0].token;
        let stage = behind("resumeAfter", &token.with_fragment(Some(1)));
        assert_eq!(code(resumed(&log, &stage, "c")), 280);
        let options = docdb::change::options::Options::parse(&crate::lab::raw(&stage), &on("c"));
        let stream = docdb::change::stream::Stream::new(options.unwrap(), log.visible, true);
        let mut stream = stream.unwrap();
        let found = drain(&mut stream, &mut log.clone(), &Beside::default()).unwrap();
        assert_eq!(found[0].token, *token, "the event is split again");
        assert_eq!(kinds(&found), ["insert", "drop", "invalidate"]);
    });
}
