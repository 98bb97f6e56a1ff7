//! Queries without end: their time limit and `killOp` end them wherever the expression is
//! evaluated, and their total memory is limited.

use bson::{Bson, Document, bson, doc};

use crate::auth::{as_user, guarded_with};
use crate::client::{Client, Site, await_so, batch};

const MAX_TIME_MS_EXPIRED: i32 = 50;
const EXCEEDED_MEMORY_LIMIT: i32 = 146;
const INTERRUPTED: i32 = 11_601;

/// An expression that takes hours on one document, with little memory.
fn endless() -> Bson {
    let many = bson!({"$range": [0, 300_000]});
    let inner = bson!({"$size": {"$filter": {"input": many.clone(), "cond": false}}});
    bson!({"$reduce": {"input": many, "initialValue": 0, "in": {"$add": ["$$value", inner]}}})
}

/// Commands that evaluate it in different places.
fn commands() -> Vec<Document> {
    let filter = doc! {"$expr": {"$gt": [endless(), 1]}};
    let set = bson!([{"$set": {"x": endless()}}]);
    let documents = bson!([{"$documents": [{"x": endless()}]}]);
    let update = bson!([{"q": {}, "u": set.clone()}]);
    let delete = bson!([{"q": filter.clone(), "limit": 1}]);
    vec![
        doc! {"aggregate": 1, "cursor": {}, "pipeline": documents},
        doc! {"aggregate": "c", "cursor": {}, "pipeline": [{"$match": filter.clone()}]},
        doc! {"aggregate": "c", "cursor": {}, "pipeline": [{"$group": {"_id": endless()}}]},
        doc! {"aggregate": "c", "cursor": {}, "pipeline": [{"$setWindowFields": {
            "partitionBy": endless(), "output": {"n": {"$sum": 1}},
        }}]},
        doc! {"find": "c", "filter": filter.clone()},
        doc! {"find": "c", "projection": {"x": endless()}},
        doc! {"find": "c", "let": {"x": endless()}, "filter": {"$expr": "$$x"}},
        doc! {"count": "c", "query": filter.clone()},
        doc! {"distinct": "c", "key": "_id", "query": filter.clone()},
        doc! {"update": "c", "updates": update},
        doc! {"delete": "c", "deletes": delete},
        doc! {"findAndModify": "c", "query": {}, "update": set},
        // Evaluated by the validator of the collection.
        doc! {"insert": "v", "documents": [{"_id": 2}]},
    ]
}

fn prepared() -> (Site, Client) {
    let site = Site::new();
    let mut client = site.client();
    client.ok("test", doc! {"insert": "c", "documents": [{"_id": 1}]});
    let validator = doc! {"$expr": {"$lt": [endless(), 1]}};
    client.ok("test", doc! {"create": "v", "validator": validator});
    (site, client)
}

/// The error code of a command, or of its first document.
fn code(reply: &Document) -> i32 {
    let of_document = || {
        let errors = reply.get_array("writeErrors").ok()?;
        errors.first()?.as_document()?.get_i32("code").ok()
    };
    let whole = reply.get_i32("code").ok();
    whole.or_else(of_document).unwrap_or(0)
}

#[test]
fn a_time_limit_ends_an_expression_wherever_it_stands() {
    let (_site, mut client) = prepared();
    for mut command in commands() {
        command.insert("maxTimeMS", 50);
        let reply = client.run("test", command.clone());
        assert_eq!(code(&reply), MAX_TIME_MS_EXPIRED, "{command}: {reply}");
    }
}

#[test]
fn kill_op_ends_an_expression_wherever_it_stands() {
    let (site, mut client) = prepared();
    for command in commands() {
        let mut busy = site.client();
        busy.send("test", command.clone(), 0);
        let name = command.keys().next().unwrap();
        let asked = doc! {"currentOp": 1, format!("command.{name}"): {"$exists": true}};
        let mut number = None;
        await_so("the command to be in work", || {
            let shown = client.ok("admin", asked.clone());
            let first = shown.get_array("inprog").unwrap().first().cloned();
            let first = first.as_ref().and_then(Bson::as_document);
            number = first.and_then(|one| one.get_i32("opid").ok());
            number.is_some()
        });
        client.ok("admin", doc! {"killOp": 1, "op": number.unwrap()});
        let (_, reply) = busy.receive().unwrap();
        assert_eq!(code(&reply), INTERRUPTED, "{command}: {reply}");
    }
}

/// A computation that takes hours and little memory, so that many fit.
fn lean() -> Bson {
    let sum = |of: Bson| bson!({"$sum": {"$map": {"input": {"$range": [0, 2_000]}, "in": of}}});
    sum(sum(sum(bson!({"$add": ["$$this", "$_id"]}))))
}

/// `state::shares`: H1.
#[test]
fn long_queries_of_one_user_leave_places_for_others() {
    /// More than the server executes at once.
    const MANY: usize = 270;
    let few_rounds = ("scramSHA256IterationCount".to_owned(), "5000".to_owned());
    let site = guarded_with(|config| config.parameters.push(few_rounds));
    let mut root = as_user(&site, "admin", "root");
    let mut busy: Vec<Client> = (0..MANY)
        .map(|_| as_user(&site, "test", "reader"))
        .collect();
    let count = doc! {"count": "c", "query": {"$expr": {"$gt": [lean(), 1]}}};
    for client in &mut busy {
        client.send("test", count.clone(), 0);
    }
    await_so("some to wait for a place", || {
        let status = root.ok("admin", doc! {"serverStatus": 1});
        let queue = status.get_document("globalLock").unwrap();
        let queue = queue.get_document("currentQueue").unwrap();
        30 <= queue.get_i32("readers").unwrap()
    });
    let mut writer = as_user(&site, "test", "writer");
    assert_eq!(batch(&writer.ok("test", doc! {"find": "c"})).len(), 1);
    writer.ok("test", doc! {"insert": "c", "documents": [{"_id": 2}]});
}

/// C1: the socket is read while a command runs, so the server notices that its client disconnects.
#[test]
fn a_client_that_hangs_up_ends_its_query() {
    let (site, mut client) = prepared();
    let mut busy = site.client();
    busy.send(
        "test",
        doc! {"count": "c", "query": {"$expr": endless()}},
        0,
    );
    let asked = doc! {"currentOp": 1, "command.count": {"$exists": true}};
    let mut running = || {
        let shown = client.ok("admin", asked.clone());
        shown.get_array("inprog").unwrap().len()
    };
    await_so("the command to be in work", || running() == 1);
    drop(busy);
    await_so("the command to end", || running() == 0);
}

fn memory(client: &mut Client) -> Document {
    query_metrics(client, "memory")
}

fn query_metrics(client: &mut Client, name: &str) -> Document {
    let status = client.ok("admin", doc! {"serverStatus": 1});
    let metrics = status.get_document("metrics").unwrap();
    let query = metrics.get_document("query").unwrap();
    query.get_document(name).unwrap().clone()
}

#[test]
fn long_operations_take_turns_and_return_their_slots() {
    let (site, mut client) = prepared();
    let slots = query_metrics(&mut client, "timeSlices");
    assert_eq!(slots.get_i64("waits").unwrap(), 0, "{slots}");
    let total = slots.get_i64("slots").unwrap();
    let mut command = commands().into_iter().next().unwrap();
    command.insert("maxTimeMS", 500);
    // Whether as many run at once as is needed for a wait depends on the machine.
    await_so("an operation to wait for its turn", || {
        let mut busy = Vec::new();
        for _ in 0..total + 3 {
            let mut one = site.client();
            one.send("test", command.clone(), 0);
            busy.push(one);
        }
        for mut one in busy {
            let (_, reply) = one.receive().unwrap();
            assert_eq!(code(&reply), MAX_TIME_MS_EXPIRED, "{reply}");
        }
        let slots = query_metrics(&mut client, "timeSlices");
        slots.get_i64("waits").unwrap() > 0
    });
    let slots = query_metrics(&mut client, "timeSlices");
    for now in ["held", "waiting"] {
        assert_eq!(slots.get_i64(now).unwrap(), 0, "{slots}");
    }
}

/// The reasons of many failures are left out beyond a limit, and so are their messages; documents
/// that are valid are stored all the same.
#[test]
fn failures_of_many_documents_fit_a_reply() {
    let site = Site::new();
    let mut client = site.client();
    let rules: Vec<Document> = (0..300).map(|_| doc! {"maxProperties": 2}).collect();
    let validator = doc! {"$jsonSchema": {"allOf": rules}};
    client.ok("test", doc! {"create": "rules", "validator": validator});
    let document = |id: i32| match id {
        1_999 => doc! {"_id": id},
        _ => doc! {"_id": id, "a": 1, "b": 2},
    };
    let documents: Vec<Document> = (0..2_000).map(document).collect();
    let insert = doc! {"insert": "rules", "documents": documents, "ordered": false};
    let reply = client.ok("test", insert);
    assert_eq!(reply.get_i32("n").unwrap(), 1);
    let errors = reply.get_array("writeErrors").unwrap();
    assert_eq!(errors.len(), 1_999);
    let [first, last] = [&errors[0], &errors[1_998]].map(|error| error.as_document().unwrap());
    assert!(first.contains_key("errInfo"), "{first}");
    assert!(!last.contains_key("errInfo"), "{last}");
    assert_eq!(last.get_i32("code").unwrap(), 121);
    assert_eq!(last.get_str("errmsg").unwrap(), "");
}

#[test]
fn all_queries_share_a_budget_of_memory() {
    let site = Site::new();
    let mut client = site.client();
    let most = 32_i64 << 20;
    client.ok(
        "admin",
        doc! {"setParameter": 1, "queryMemoryLimitMegabytes": 32},
    );
    let shown = memory(&mut client);
    assert_eq!(shown.get_i64("limitBytes").unwrap(), most);
    let refused = shown.get_i64("refused").unwrap();
    // Within the limit of one operation, beyond that of all operations together.
    let values = bson!({"$map": {"input": {"$range": [0, 300_000]}, "in": {"x": "$$this"}}});
    let pipeline = bson!([{"$documents": values}, {"$count": "n"}]);
    let command = doc! {"aggregate": 1, "cursor": {}, "pipeline": pipeline};
    let (code, message) = client.fails("test", command);
    assert_eq!(code, EXCEEDED_MEMORY_LIMIT, "{message}");
    let shown = memory(&mut client);
    assert!(refused < shown.get_i64("refused").unwrap(), "{shown}");
    assert!(shown.get_i64("peakBytes").unwrap() <= most, "{shown}");
    assert_eq!(shown.get_i64("usedBytes").unwrap(), 0, "{shown}");
}

#[test]
fn a_sort_spills_when_the_budget_is_spent() {
    let site = Site::new();
    let mut client = site.client();
    let text = "x".repeat(1 << 20);
    for part in 0..6 {
        let document = |at: i32| doc! {"_id": part * 10 + at, "x": -(part * 10 + at), "t": &text};
        let documents: Vec<Document> = (0..10).map(document).collect();
        client.ok("test", doc! {"insert": "c", "documents": documents});
    }
    client.ok(
        "admin",
        doc! {"setParameter": 1, "queryMemoryLimitMegabytes": 32},
    );
    let least = |client: &mut Client, command: Document| {
        let found = batch(&client.ok("test", command));
        let ids = found.iter().map(|one| one.get_i32("_id").unwrap());
        assert_eq!(ids.collect::<Vec<_>>(), [59, 58, 57, 56, 55]);
    };
    let find = doc! {"find": "c", "sort": {"x": 1}, "batchSize": 5, "singleBatch": true};
    least(&mut client, find.clone());
    let stages = bson!([{"$addFields": {"y": "$x"}}, {"$sort": {"y": 1}}]);
    let aggregate = doc! {"aggregate": "c", "cursor": {"batchSize": 5}, "pipeline": stages};
    least(&mut client, aggregate);
    let mut refused = find;
    refused.insert("allowDiskUse", false);
    let (code, message) = client.fails("test", refused);
    assert_eq!(code, EXCEEDED_MEMORY_LIMIT, "{message}");
}

/// A user opens cursors with large requests, and leaves them: what they keep is a part of the
/// budget of all queries, so that the user is refused before the memory of the server is used up.
#[test]
fn idle_cursors_share_the_budget_of_queries() {
    let site = Site::new();
    let mut client = site.client();
    let documents: Vec<Document> = (0..10).map(|at| doc! {"_id": at, "a": "a"}).collect();
    client.ok("test", doc! {"insert": "c", "documents": documents});
    let most = 24_i64 << 20;
    client.ok(
        "admin",
        doc! {"setParameter": 1, "queryMemoryLimitMegabytes": 24},
    );
    let list: Vec<String> = (0..5_000).map(|at| format!("value {at}")).collect();
    let other = doc! {"a": {"$nin": &list}};
    client.ok(
        "test",
        doc! {"create": "view", "viewOn": "c", "pipeline": [{"$match": other.clone()}]},
    );
    let find = |more: Document| {
        let mut find = doc! {"find": "c", "batchSize": 1};
        find.extend(more);
        find
    };
    let aggregate = |from: &str, stages: Bson| {
        doc! {"aggregate": from, "pipeline": stages, "cursor": {"batchSize": 1}}
    };
    let regex = |at: i32| {
        Bson::RegularExpression(bson::Regex {
            pattern: format!("^x{at}").try_into().unwrap(),
            options: String::new().try_into().unwrap(),
        })
    };
    let regexes: Vec<Bson> = (0..300).map(regex).collect();
    let range = bson!({"$range": [0, 20_000]});
    let stream = |stages: Bson| doc! {"aggregate": "c", "pipeline": stages, "cursor": {}};
    let commands = [
        find(doc! {"filter": other.clone()}),
        find(doc! {"filter": {"a": {"$nin": regexes}}}),
        find(doc! {"projection": {"x": {"$literal": &list}}}),
        find(doc! {"let": {"x": range}, "filter": {"$expr": {"$ne": ["$a", "$$x"]}}}),
        aggregate("c", bson!([{"$match": other.clone()}])),
        aggregate("c", bson!([{"$limit": 9}, {"$match": other.clone()}])),
        aggregate("view", bson!([])),
        aggregate(
            "c",
            bson!([{"$unionWith": {"coll": "c", "pipeline": [{"$match": other}]}}]),
        ),
        stream(bson!([{"$changeStream": {}}, {"$match": {"documentKey.a": {"$in": &list}}}])),
        // Many small ones.
        find(doc! {}),
    ];
    for command in commands {
        let shown = command.to_string();
        let mut opened = Vec::new();
        let error = loop {
            let reply = client.run("test", command.clone());
            if reply.get_f64("ok").unwrap() != 1.0 {
                break reply;
            }
            let id = reply.get_document("cursor").unwrap().get_i64("id").unwrap();
            assert_ne!(id, 0, "{shown:.200}");
            opened.push(id);
            assert!(opened.len() < 2_000, "{shown:.200}");
        };
        let code = error.get_i32("code").unwrap();
        assert_eq!(code, EXCEEDED_MEMORY_LIMIT, "{shown:.200}: {error}");
        assert!(1 < opened.len(), "{shown:.200}");
        let used = memory(&mut client).get_i64("usedBytes").unwrap();
        assert!(most / 2 < used, "{shown:.200}: {used}");
        let name = command.iter().next().unwrap().1.clone();
        client.ok("test", doc! {"killCursors": name, "cursors": opened});
        let used = memory(&mut client).get_i64("usedBytes").unwrap();
        assert_eq!(used, 0, "{shown:.200}");
    }
}

/// A document that did not fit into a batch waits in its cursor.
#[test]
fn documents_that_wait_in_cursors_share_the_budget_of_queries() {
    let site = Site::new();
    let mut client = site.client();
    let text = "x".repeat(9 << 20);
    for id in 0..3 {
        client.ok(
            "test",
            doc! {"insert": "c", "documents": [{"_id": id, "t": &text}]},
        );
    }
    client.ok(
        "admin",
        doc! {"setParameter": 1, "queryMemoryLimitMegabytes": 40},
    );
    let find = doc! {"find": "c"};
    let mut opened = 0;
    let error = loop {
        let reply = client.run("test", find.clone());
        if reply.get_f64("ok").unwrap() != 1.0 {
            break reply;
        }
        opened += 1;
        assert!(opened < 10, "each keeps 9 MiB");
    };
    assert_eq!(
        error.get_i32("code").unwrap(),
        EXCEEDED_MEMORY_LIMIT,
        "{error}"
    );
}
