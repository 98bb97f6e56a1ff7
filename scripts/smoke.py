"""Serve a temporary store and try what applications do with PyMongo; see scripts/smoke."""

import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

import gridfs
import pymongo
from pymongo import DeleteOne, InsertOne, MongoClient, ReplaceOne, UpdateOne, errors

CHECKS = []

# Seconds that a server may take to end. Only one that hangs takes as long.
END_MAX = 120


def check(function):
    CHECKS.append(function)
    return function


def refused(kind, act):
    try:
        act()
    except kind:
        return
    raise AssertionError(f"no {kind.__name__}")


@check
def insert_and_find(client, db):
    db.a.insert_many([{"_id": i, "n": i, "g": i % 5, "l": [i, i + 1]} for i in range(1000)])
    assert db.a.find_one({"_id": 7})["n"] == 7
    assert len(list(db.a.find())) == 1000
    top = list(db.a.find({"n": {"$gte": 990}}, {"n": 1}).sort("n", -1).limit(2))
    assert top == [{"_id": 999, "n": 999}, {"_id": 998, "n": 998}]


@check
def count_and_distinct(client, db):
    assert db.a.count_documents({"g": 1}) == 200
    assert db.a.estimated_document_count() == 1000
    assert db.a.distinct("g") == [0, 1, 2, 3, 4]


@check
def update_operators(client, db):
    change = {"$set": {"z": 1}, "$inc": {"n": 5}, "$push": {"l": {"$each": [9], "$slice": -2}}}
    assert db.a.update_one({"_id": 3}, change).modified_count == 1
    assert db.a.find_one({"_id": 3}) == {"_id": 3, "n": 8, "g": 3, "l": [4, 9], "z": 1}
    assert db.a.update_many({}, [{"$set": {"m": {"$add": ["$n", 1]}}}]).modified_count == 1000
    assert db.a.update_one({"_id": "u"}, {"$set": {"k": 1}}, upsert=True).upserted_id == "u"
    filters = [{"e": {"$gt": 5}}]
    changed = db.a.update_one({"_id": 5}, {"$set": {"l.$[e]": 0}}, array_filters=filters)
    assert changed.modified_count == 1


@check
def find_and_modify(client, db):
    after = db.a.find_one_and_update({"_id": 6}, {"$set": {"f": 1}}, return_document=True)
    assert after["f"] == 1
    assert db.a.find_one_and_delete({"_id": 6})["_id"] == 6
    assert db.a.find_one({"_id": 6}) is None


@check
def delete(client, db):
    assert db.a.delete_one({"_id": 8}).deleted_count == 1
    assert db.a.delete_many({"n": {"$gte": 900}}).deleted_count == 100


@check
def bulk_write(client, db):
    ops = [
        InsertOne({"k": 5}),
        UpdateOne({"k": 5}, {"$set": {"a": 1}}),
        ReplaceOne({"k": 9}, {"k": 9}, upsert=True),
        DeleteOne({"k": 5}),
    ]
    done = db.b.bulk_write(ops)
    counts = (done.inserted_count, done.modified_count, done.upserted_count, done.deleted_count)
    assert counts == (1, 1, 1, 1)


@check
def aggregate(client, db):
    groups = [{"$group": {"_id": "$g", "c": {"$sum": 1}}}, {"$sort": {"_id": 1}}, {"$limit": 1}]
    assert list(db.a.aggregate([{"$match": {"g": 4}}, *groups]))[0]["_id"] == 4
    list(db.a.aggregate([{"$limit": 3}, {"$out": "out"}]))
    assert db.out.count_documents({}) == 3
    join = {"from": "out", "localField": "_id", "foreignField": "_id", "as": "j"}
    assert len(list(db.a.aggregate([{"$lookup": join}, {"$match": {"j": {"$ne": []}}}]))) == 3


@check
def indexes(client, db):
    assert db.a.create_index([("n", 1), ("g", -1)]) == "n_1_g_-1"
    plan = db.a.find({"n": 500}).explain()["queryPlanner"]["winningPlan"]
    assert plan["inputStage"]["stage"] == "IXSCAN"
    db.u.create_index("k", unique=True)
    db.u.insert_one({"k": 1})
    refused(errors.DuplicateKeyError, lambda: db.u.insert_one({"k": 1}))
    db.a.drop_index("n_1_g_-1")
    assert list(db.a.index_information()) == ["_id_"]


@check
def transactions(client, db):
    with client.start_session() as session:
        with session.start_transaction():
            db.a.insert_one({"_id": "t1"}, session=session)
            assert db.a.find_one({"_id": "t1"}) is None
            assert db.a.find_one({"_id": "t1"}, session=session)
        assert db.a.find_one({"_id": "t1"})
        session.start_transaction()
        db.a.insert_one({"_id": "t2"}, session=session)
        session.abort_transaction()
        assert db.a.find_one({"_id": "t2"}) is None


@check
def validators_and_views(client, db):
    db.create_collection("v", validator={"$jsonSchema": {"required": ["a"]}})
    refused(errors.WriteError, lambda: db.v.insert_one({}))
    db.create_collection("w", viewOn="a", pipeline=[{"$match": {"n": 500}}])
    assert [found["n"] for found in db.w.find()] == [500]


@check
def large_files(client, db):
    bucket = gridfs.GridFSBucket(db)
    key = bucket.upload_from_stream("f", b"x" * 600_000)
    assert len(bucket.open_download_stream(key).read()) == 600_000


@check
def administration(client, db):
    assert "a" in db.list_collection_names()
    assert db.name in client.list_database_names()
    assert db.validate_collection("a")["valid"]
    assert db.command("dbStats")["ok"] == 1
    db.out.rename("renamed")
    db.drop_collection("renamed")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run(address):
    """Try everything on a server; the number of failures."""
    failed = 0
    client = MongoClient(address, serverSelectionTimeoutMS=60_000, timeoutMS=120_000)
    print(f"PyMongo {pymongo.version}")
    for act in CHECKS:
        try:
            act(client, client.smoke)
            outcome = "passed"
        except Exception as error:  # a table shows every failure, then goes on
            failed += 1
            outcome = f"FAILED {type(error).__name__}: {error}"
        print(f"  {act.__name__:<24}{outcome}")
    client.close()
    print(f"executed {len(CHECKS)}, passed {len(CHECKS) - failed}, failed {failed}")
    return failed


def served(binary, folder, *options):
    """A server of a folder, and its port."""
    port = free_port()
    command = [binary, "serve", "--port", str(port), "--dbpath", folder, "--quiet", *options]
    return subprocess.Popen(command), port


def certificates(folder):
    """An authority, a server of 127.0.0.1 and a client, as files of the folder."""

    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    for name in ("ca", "other"):
        own = ["-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}"]
        openssl("req", "-x509", "-days", "2", *key, *own)
    for name in ("server", "client"):
        subject = f"/O=smoke/CN={name}"
        openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", subject)
        (folder / "san").write_text("subjectAltName=IP:127.0.0.1\n")
        signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "san"]
        own = ["-in", f"{name}.csr", "-out", f"{name}.crt", "-days", "2"]
        openssl("x509", "-req", *own, *signed)
        both = (folder / f"{name}.crt").read_text() + (folder / f"{name}.key").read_text()
        (folder / f"{name}.pem").write_text(both)


def encrypted(binary):
    """Try a server that asks for certificates; the number of failures."""
    if shutil.which("openssl") is None:
        print("  encrypted connections   skipped: no openssl")
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        certificates(folder)
        (folder / "db").mkdir()
        options = ["--tlsMode", "requireTLS", "--tlsCertificateKeyFile", folder / "server.pem"]
        options += ["--tlsCAFile", folder / "ca.pem", "--auth"]
        server, port = served(binary, folder / "db", *options)
        try:
            with_certificates(port, folder)
            outcome, failed = "passed", 0
        except Exception as error:
            outcome, failed = f"FAILED {type(error).__name__}: {error}", 1
        finally:
            server.terminate()
            server.wait(END_MAX)
    print(f"  {'encrypted connections':<24}{outcome}")
    return failed


def with_certificates(port, folder):
    def client(authority="ca", key="client", wait=60_000, **more):
        if authority:
            more.update(tls=True, tlsCAFile=str(folder / f"{authority}.pem"))
        if key:
            more.update(tlsCertificateKeyFile=str(folder / f"{key}.pem"))
        return MongoClient("127.0.0.1", port, serverSelectionTimeoutMS=wait, **more)

    with client() as first:
        first.admin.command("createUser", "root", pwd="secret", roles=["root"])
    with client(username="root", password="secret") as root:
        roles = [{"role": "root", "db": "admin"}]
        root["$external"].command("createUser", "CN=client,O=smoke", roles=roles)
    with client(authMechanism="MONGODB-X509") as known:
        known.smoke.t.insert_one({"_id": 1})
        assert known.smoke.t.count_documents({}) == 1
    with client() as nobody:
        refused(errors.OperationFailure, lambda: nobody.smoke.t.find_one())
    # A server of another authority, a client without a certificate, a client without TLS.
    for wrong in ({"authority": "other"}, {"key": None}, {"authority": None, "key": None}):
        with client(wait=1_000, **wrong) as wrong:
            refused(errors.PyMongoError, lambda: wrong.admin.command("ping"))


def main(binary):
    with tempfile.TemporaryDirectory() as folder:
        server, port = served(binary, folder)
        try:
            failed = run(f"mongodb://127.0.0.1:{port}/")
        finally:
            server.terminate()
            server.wait(END_MAX)
    failed += encrypted(binary)
    return 1 if failed else 0


if __name__ == "__main__":
    target = sys.argv[1]
    sys.exit(run(target) if target.startswith("mongodb://") else main(target))
