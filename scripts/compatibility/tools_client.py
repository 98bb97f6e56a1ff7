"""A dump and a restore by the commands that mongodump and mongorestore send.

    tools_client.py SOURCE_URI TARGET_URI

The tools themselves are in no registry of packages. This program sends what they send, in their
order: `listCollections`, `listIndexes`, `count` and `find` with a hint of `_id` while it dumps;
`create` with the options found, batches of `insert`, `createIndexes` and `_mergeAuthzCollections`
over temporary collections while it restores. Prints `ok NAME` or `FAIL NAME message`.
"""

import datetime
import sys

import pymongo
from bson import Binary, Decimal128, Int64, ObjectId, Regex, Timestamp
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from bson.son import SON
from pymongo.errors import OperationFailure

DATABASE = "dumped"
RAW = CodecOptions(document_class=RawBSONDocument)

# The kinds of indexes, and their options, each of which must come back as it was.
INDEXES = [
    {"key": {"a": 1}, "name": "a_1"},
    {"key": {"a": 1, "b.c": -1}, "name": "compound", "sparse": True},
    {
        "key": {"u": 1},
        "name": "unique",
        "unique": True,
        "partialFilterExpression": {"u": {"$gt": 0}},
    },
    {"key": {"when": 1}, "name": "expiring", "expireAfterSeconds": 1_000_000_000},
    {"key": {"h": "hashed"}, "name": "h_hashed"},
    {"key": {"$**": 1}, "name": "wildcard", "wildcardProjection": {"w": 1, "x.y": 1}},
    {"key": {"text": 1}, "name": "folded", "collation": {"locale": "en", "strength": 2}},
    {"key": {"hidden": -1}, "name": "hidden", "hidden": True},
    {"key": {"p": 1}, "name": "prepared", "prepareUnique": True},
]

# Collections with the options that `create` takes.
COLLECTIONS = {
    "plain": {},
    "capped": {"capped": True, "size": 1 << 20, "max": 500},
    "validated": {
        "validator": {"$jsonSchema": {"required": ["n"], "properties": {"n": {"bsonType": "int"}}}},
        "validationLevel": "moderate",
        "validationAction": "error",
    },
    "collated": {"collation": {"locale": "de", "strength": 1}},
    "clustered": {"clusteredIndex": {"key": {"_id": 1}, "unique": True, "name": "by id"}},
    "empty": {},
}


def fill(client):
    """What is dumped: collections, a view, indexes, documents of all types, users and roles."""
    db = client[DATABASE]
    for name, options in COLLECTIONS.items():
        db.command("create", name, **options)
    db.command("create", "view", viewOn="plain", pipeline=[{"$match": {"a": {"$gte": 10}}}])
    db.command("createIndexes", "plain", indexes=INDEXES)
    values = [
        1, Int64(2), 2.5, Decimal128("1.10"), "text", True, None, ObjectId(), b"bytes",
        Binary(bytes(16), 4), Regex("^a", "i"), Timestamp(1, 2), {"c": [1, {"d": 2}]}, [],
        datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
    ]
    db.plain.insert_many(
        {"_id": i, "a": i, "b": {"c": i % 7}, "u": i + 1, "v": values[i % len(values)], "p": i}
        for i in range(1_500)
    )
    db.capped.insert_many({"_id": i} for i in range(700))
    db.validated.insert_many({"n": i} for i in range(10))
    db.clustered.insert_many({"_id": i} for i in range(10))
    client.admin.command(
        "createRole",
        "reader",
        privileges=[{"resource": {"db": DATABASE, "collection": "plain"}, "actions": ["find"]}],
        roles=[],
    )
    roles = [{"role": "readWrite", "db": DATABASE}, {"role": "reader", "db": "admin"}]
    client.admin.command("createUser", "ann", pwd="secret", roles=roles)
    client[DATABASE].command("createUser", "bob", pwd="hidden", roles=["read"], customData={"k": 1})


def cursor(db, command):
    """All documents of a command's cursor, by `getMore` as the tools do."""
    reply = db.command(command)["cursor"]
    found = list(reply["firstBatch"])
    while reply["id"]:
        collection = reply["ns"].partition(".")[2]
        reply = db.command({"getMore": Int64(reply["id"]), "collection": collection})["cursor"]
        found += reply["nextBatch"]
    return found


def raw(db, name):
    """The documents of a collection, byte for byte."""
    return list(db.get_collection(name, RAW).find({}, hint="_id_", no_cursor_timeout=True))


def dump(client):
    """What mongodump reads of a deployment, with its users and roles."""
    client.admin.command("isMaster")
    names = client.admin.command("listDatabases", nameOnly=True)["databases"]
    assert DATABASE in [database["name"] for database in names]
    db, found = client[DATABASE], {}
    for collection in cursor(db, SON([("listCollections", 1), ("cursor", {})])):
        name = collection["name"]
        if name.startswith("system."):
            continue
        one = found[name] = {"options": collection["options"], "type": collection["type"]}
        if collection["type"] == "view":
            continue
        one["uuid"] = collection["info"]["uuid"]
        one["indexes"] = cursor(db, SON([("listIndexes", name), ("cursor", {})]))
        one["documents"] = raw(db, name) if name != "clustered" else list(db[name].find())
        assert db.command("count", name)["n"] == len(one["documents"])
    return found


def dump_users(client):
    """What mongodump --dumpDbUsersAndRoles reads beside."""
    version = client.admin.command("getParameter", 1, authSchemaVersion=1)["authSchemaVersion"]
    assert version == 5, f"authSchemaVersion is {version}"
    admin = client.admin
    stored = admin["system.version"].find_one({"_id": "authSchema"})
    assert stored == {"_id": "authSchema", "currentVersion": 5}, f"stored is {stored}"
    assert admin["system.version"].find_one({"_id": "featureCompatibilityVersion"})["version"]
    return {name: raw(admin, f"system.{name}") for name in ("users", "roles", "version")}


def restore(client, dumped):
    """What mongorestore --drop sends for collections."""
    db = client[DATABASE]
    cursor(db, SON([("listCollections", 1), ("cursor", {})]))
    for name, one in dumped.items():
        try:
            db.command("drop", name)
        except OperationFailure as error:
            assert error.code == 26, error
        options = dict(one["options"])
        by_id = [index for index in one.get("indexes", []) if dict(index["key"]) == {"_id": 1}]
        if by_id and not by_id[0].get("clustered"):
            options["idIndex"] = by_id[0]
        db.command(SON([("create", name), *options.items()]))
        documents = one.get("documents", [])
        for begin in range(0, len(documents), 1_000):
            batch = documents[begin : begin + 1_000]
            done = db.command(
                SON([("insert", name), ("documents", batch), ("ordered", False)]),
                bypassDocumentValidation=True,
                bypassEmptyTsReplacement=True,
                writeConcern={"w": "majority"},
            )
            assert done["n"] == len(batch) and "writeErrors" not in done, done
        rest = [i for i in one.get("indexes", []) if dict(i["key"]) != {"_id": 1}]
        if rest:
            db.command("createIndexes", name, indexes=rest, ignoreUnknownIndexOptions=True)


def restore_users(client, dumped):
    """What mongorestore sends for users and roles: temporary collections, then one command."""
    admin = client.admin
    version = admin.command("getParameter", 1, authSchemaVersion=1)["authSchemaVersion"]
    assert version == 5
    for name in ("users", "roles"):
        admin.drop_collection(f"temp{name}")
        if dumped[name]:
            admin.get_collection(f"temp{name}", RAW).insert_many(dumped[name])
    admin.command(
        "_mergeAuthzCollections",
        1,
        tempUsersCollection="admin.tempusers",
        tempRolesCollection="admin.temproles",
        drop=True,
        db="",
        writeConcern={"w": "majority"},
    )
    for name in ("users", "roles"):
        admin.drop_collection(f"temp{name}")


def check(name, act):
    try:
        act()
        print("ok", name, flush=True)
    except Exception as error:
        text = f"{type(error).__name__}: {error}".replace("\n", " ")
        print("FAIL", name, text[:300], flush=True)


def without_uuid(dumped):
    return {
        name: {key: value for key, value in one.items() if key != "uuid"}
        for name, one in dumped.items()
    }


def main():
    source, target = (pymongo.MongoClient(uri) for uri in sys.argv[1:3])
    fill(source)
    kept = {}

    def same_collections():
        again = dump(target)
        for name, one in without_uuid(kept["data"]).items():
            other = without_uuid(again)[name]
            for part, value in one.items():
                assert other[part] == value, f"{name}: {part}: {value!r} became {other[part]!r}"

    def same_hash():
        hashes = [client[DATABASE].command("dbHash")["collections"] for client in (source, target)]
        for name in COLLECTIONS:
            assert hashes[0][name] == hashes[1][name], name

    def same_users():
        for name in ("users", "roles"):
            both = [c.admin[f"system.{name}"] for c in (source, target)]
            one, other = (list(collection.find().sort("_id")) for collection in both)
            assert one == other, f"{one!r} became {other!r}"
        uri = sys.argv[2]
        for user, password, database in (("ann", "secret", "admin"), ("bob", "hidden", DATABASE)):
            client = pymongo.MongoClient(uri, username=user, password=password, authSource=database)
            shown = client.admin.command("connectionStatus")["authInfo"]["authenticatedUsers"]
            assert shown == [{"user": user, "db": database}], shown

    check("dump", lambda: kept.update(data=dump(source)))
    check("restore", lambda: restore(target, kept["data"]))
    check("collections_and_indexes_are_equal", same_collections)
    check("hashes_are_equal", same_hash)
    check("restore_again_with_drop", lambda: restore(target, kept["data"]))
    check("collections_are_equal_again", same_collections)
    check("dump_users", lambda: kept.update(users=dump_users(source)))
    check("restore_users", lambda: restore_users(target, kept["users"]))
    check("users_are_equal_and_log_in", same_users)


if __name__ == "__main__":
    main()
