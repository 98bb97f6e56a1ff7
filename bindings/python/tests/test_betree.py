"""The binding against a model: dicts sorted by key."""

import random
import threading

import pytest

import betree


@pytest.fixture
def db(tmp_path):
    with betree.open(tmp_path / "store", memory=8 << 20) as db:
        yield db


def fill(tree, db, count=1000, seed=1):
    """Put and delete in several flushes; return what is left."""
    rng, model = random.Random(seed), {}
    for round in range(4):
        batch = betree.Batch()
        for _ in range(count):
            key = b"k%05d" % rng.randrange(count)
            if rng.random() < 0.3:
                batch.delete(tree, key)
                model.pop(key, None)
            else:
                value = b"v%d" % round * 10
                batch.put(tree, key, value)
                model[key] = value
        db.write(batch, durability="none")
        if round < 3:
            db.flush()
    return model


def test_a_value_is_read_back_after_opening_again(tmp_path):
    with betree.open(tmp_path / "a" / "store") as db:
        tree = db.tree("t")
        assert tree.name == "t"
        assert tree.get(b"key") is None
        tree.put(b"key", b"value", durability="sync")
        tree.put(b"other", b"", durability="interval")
        assert db.trees() == ["t"]
    db = betree.open(str(tmp_path / "a" / "store"), preset="btree", codec="none", threads=1)
    tree = db.tree("t", create=False)
    assert tree.get(b"key") == b"value"
    assert tree.get(b"other") == b""
    tree.delete(b"key")
    assert tree.get(b"key") is None
    db.close()
    db.close()


def test_ranges_are_those_of_a_sorted_dict_both_ways(db):
    tree = db.tree("t")
    model = fill(tree, db)
    rng = random.Random(2)
    for _ in range(50):
        start, end = (rng.choice([None, b"k%05d" % rng.randrange(1000)]) for _ in range(2))
        inside = [
            (key, model[key])
            for key in sorted(model)
            if (start is None or start <= key) and (end is None or key < end)
        ]
        assert list(tree.range(start, end)) == inside
        assert list(tree.range(start, end, reverse=True)) == inside[::-1]
        items, front, back = tree.range(start, end), [], []
        while True:
            if rng.random() < 0.5:
                item = next(items, None)
                front.append(item)
            else:
                item = items.next_back()
                back.append(item)
            if item is None:
                break
        assert [i for i in front + back[::-1] if i is not None] == inside
        assert next(items, None) is None and items.next_back() is None


def test_a_prefix_gives_the_keys_that_begin_with_it(db):
    tree = db.tree("t")
    keys = [b"", b"a", b"a\0", b"a\xff", b"a\xff\xff", b"b", b"\xff\xff"]
    for key in keys:
        tree.put(key, key, durability="none")
    with db.snapshot() as snapshot:
        for prefix in [b"", b"a", b"a\xff", b"\xff", b"c"]:
            found = sorted(key for key in keys if key.startswith(prefix))
            assert [key for key, _ in tree.prefix(prefix)] == found
            assert [key for key, _ in tree.prefix(prefix, reverse=True)] == found[::-1]
            assert [key for key, _ in snapshot.prefix(tree, prefix)] == found


def test_several_keys_are_read_in_the_order_given(db):
    tree = db.tree("t")
    model = fill(tree, db)
    keys = [b"k%05d" % random.Random(3).randrange(1000) for _ in range(200)] + [b"no"]
    expected = [model.get(key) for key in keys]
    assert tree.get_many(keys) == expected
    with db.snapshot() as snapshot:
        tree.put(keys[0], b"new")
        assert snapshot.get_many(tree, keys) == expected
        assert snapshot.get(tree, keys[0]) == expected[0]
    assert tree.get_many([]) == []


def test_a_snapshot_keeps_what_it_sees(db):
    tree = db.tree("t")
    tree.put(b"a", b"1")
    snapshot = db.snapshot()
    items = snapshot.range(tree)
    tree.put(b"a", b"2")
    tree.put(b"b", b"2")
    assert list(snapshot.range(tree)) == [(b"a", b"1")]
    snapshot.close()
    assert list(items) == [(b"a", b"1")]
    with pytest.raises(betree.ClosedError):
        snapshot.get(tree, b"a")


def test_a_transaction_sees_its_writes_and_commits_at_the_end(db):
    tree = db.tree("t")
    model = fill(tree, db)
    with db.begin(durability="interval") as transaction:
        transaction.put(tree, b"k00000", b"own")
        transaction.put_blind(tree, b"zz", b"own")
        assert transaction.delete(tree, min(k for k in model if k != b"k00000"))
        assert not transaction.delete(tree, b"missing")
        model.pop(min(k for k in model if k != b"k00000"))
        model.update({b"k00000": b"own", b"zz": b"own"})
        assert list(transaction.range(tree)) == sorted(model.items())
        assert list(transaction.range(tree, reverse=True)) == sorted(model.items())[::-1]
        assert transaction.get(tree, b"zz") == b"own"
        assert transaction.get_many(tree, [b"zz", b"no"]) == [b"own", None]
        assert [k for k, _ in transaction.prefix(tree, b"z")] == [b"zz"]
        assert tree.get(b"zz") is None
        transaction.delete_range(tree, b"k00500", b"k00600")
        transaction.delete_blind(tree, b"k00700")
    gone = {k for k in model if b"k00500" <= k < b"k00600"} | {b"k00700"}
    assert list(tree.range()) == sorted((k, v) for k, v in model.items() if k not in gone)


def test_an_exception_rolls_a_transaction_back(db):
    tree = db.tree("t")
    with pytest.raises(KeyError), db.begin() as transaction:
        transaction.put(tree, b"a", b"1")
        raise KeyError
    assert tree.get(b"a") is None
    transaction.rollback()
    with pytest.raises(betree.ClosedError):
        transaction.put(tree, b"a", b"1")
    with pytest.raises(betree.ClosedError):
        transaction.commit()


def test_the_second_of_two_writers_of_a_key_conflicts(db):
    tree = db.tree("t")
    first, second = db.begin(), db.begin()
    first.put(tree, b"a", b"1")
    second.put(tree, b"a", b"2")
    first.commit()
    with pytest.raises(betree.ConflictError, match="retry"):
        second.commit()
    assert tree.get(b"a") == b"1"
    with db.begin() as transaction, pytest.raises(betree.ExistsError):
        transaction.insert(tree, b"a", b"3")


def test_a_batch_is_applied_whole(db):
    one, two = db.tree("one"), db.tree("two", ascending=True, point_lookups=True)
    batch = betree.Batch()
    for number in range(10):
        batch.put(one, b"%d" % number, b"x")
        batch.put(two, b"%d" % number, b"y")
    batch.delete(one, b"0")
    batch.delete_range(two, b"5")
    assert len(batch) == 22
    db.write(batch, durability="group")
    assert [key for key, _ in one.range()] == [b"%d" % n for n in range(1, 10)]
    assert [key for key, _ in two.range()] == [b"%d" % n for n in range(5)]
    batch.clear()
    assert len(batch) == 0


def test_errors_are_named_by_what_to_do(db, tmp_path):
    with pytest.raises(betree.NotFoundError):
        db.tree("missing", create=False)
    with pytest.raises(betree.NotFoundError):
        db.drop_tree("missing")
    tree = db.tree("t")
    db.drop_tree("t")
    for call in [lambda: tree.get(b"a"), lambda: tree.put(b"a", b""), lambda: tree.range()]:
        with pytest.raises(betree.InvalidError):
            call()
    for keywords in [
        {"memory": 5},
        {"preset": "fast"},
        {"codec": "zip"},
        {"interval": -1.0},
        {"snapshot_max_age": 0.0},
    ]:
        with pytest.raises(betree.InvalidError):
            betree.open(tmp_path / "other", **keywords)
    with pytest.raises(betree.InvalidError, match="open in another process"):
        betree.open(tmp_path / "store")
    with pytest.raises(betree.InvalidError, match="group"):
        db.tree("u").put(b"a", b"", durability="safe")
    with pytest.raises(TypeError):
        db.tree("u").put("text", b"")
    other = db.tree("u")
    items = other.range()
    db.close()
    for call in [db.trees, db.snapshot, lambda: other.get(b"a"), lambda: next(items)]:
        with pytest.raises(betree.ClosedError):
            call()
    assert issubclass(betree.ClosedError, betree.Error)


def test_a_store_is_looked_after(db, tmp_path):
    tree = db.tree("t")
    model = fill(tree, db)
    db.sync()
    db.checkpoint()
    assert db.settle(limit=30)
    db.verify()
    stats = db.stats()
    assert stats["buckets"] >= 1 and stats["file_bytes"] > 0 and stats["debt_bytes"] == 0
    db.backup(tmp_path / "copy")
    with pytest.raises(betree.ExistsError):
        db.backup(tmp_path / "copy")
    with betree.open(tmp_path / "copy") as copy:
        assert list(copy.tree("t", create=False).range()) == sorted(model.items())


def test_a_store_without_a_log_keeps_what_was_closed(tmp_path):
    with betree.open(tmp_path / "s", log=False) as db:
        with pytest.raises(betree.InvalidError):
            db.tree("t").put(b"a", b"1", durability="sync")
        db.tree("t").put(b"a", b"1", durability="none")
    with betree.open(tmp_path / "s", log=False) as db:
        assert db.tree("t").get(b"a") == b"1"


def test_threads_share_a_store(db):
    counters, failed = db.tree("counters"), []

    def add():
        try:
            for _ in range(50):
                while True:
                    transaction = db.begin(durability="none")
                    value = int(transaction.get(counters, b"n") or 0)
                    try:
                        transaction.put(counters, b"n", b"%d" % (value + 1))
                        transaction.commit()
                        break
                    except betree.ConflictError:
                        pass
        except Exception as error:  # reported below, in the thread of the test
            failed.append(error)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert counters.get(b"n") == b"200"


def test_the_stubs_name_what_the_module_has():
    import ast
    import importlib.resources

    text = (importlib.resources.files("betree") / "__init__.pyi").read_text()
    classes = {
        node.name: {f.name for f in node.body if isinstance(f, ast.FunctionDef)}
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef)
    }
    classes.pop("_Statistics")
    assert sorted([*classes, "open"]) == sorted(betree.__all__)
    for name, methods in classes.items():
        have = {m for m in vars(getattr(betree, name)) if not m.startswith("__")}
        assert have == {m for m in methods if not m.startswith("__")}, name
