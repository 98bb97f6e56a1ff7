"""Types of betree. Keys and values are bytes; key order is byte order."""

import os
from types import TracebackType
from typing import Literal, Optional, Sequence, Type, TypedDict, Union, final

_Durability = Literal["none", "interval", "group", "sync"]
"""What a commit has survived when the call returns.

none: nothing yet. interval: the end of the process; a power loss takes about the interval of the
store. group, sync: a power loss. Group shares its sync with other commits.
"""

class Error(Exception):
    """Any error of the engine. Its text says what happened, to what, and what to do next."""

class NotFoundError(Error):
    """No such tree."""

class ExistsError(Error):
    """The key or the tree exists already."""

class ConflictError(Error):
    """Another transaction wrote a key of this one and was first: retry the transaction."""

class InvalidError(Error):
    """A mistake of the caller: a key too long, a bad option, a dropped tree."""

class TooOldError(Error):
    """The snapshot is older than the age limit: take a new one."""

class FullError(Error):
    """No room on disk or in memory. Reads continue; free space and try again."""

class ClosedError(Error):
    """The store is closed, or closed for writes after a failed sync: open it again."""

class CorruptError(Error):
    """Stored bytes are wrong."""

class StorageError(Error):
    """The operating system failed an input or output."""

class _Statistics(TypedDict):
    """What a store holds and owes, in bytes and counts."""

    buckets: int
    runs_per_bucket: float
    buffered_bytes: int
    file_bytes: int
    debt_bytes: int

def open(
    path: Union[str, "os.PathLike[str]"],
    *,
    preset: Literal["btree", "balanced", "ingest"] = "balanced",
    memory: Optional[int] = None,
    threads: Optional[int] = None,
    log: Optional[bool] = None,
    codec: Optional[str] = None,
    interval: Optional[float] = None,
    snapshot_max_age: Optional[float] = None,
) -> Database:
    """Open the store in a directory; both are made when missing.

    memory: bytes for buffers, cache, log and background work together (default 128 MiB).
    threads: background threads (default 2). log: whether commits are logged (default True).
    codec: none, lz4, snappy, zlib or zstd, with a level as in zstd:3 (default lz4).
    interval: seconds between syncs for commits at "interval" (default 0.1).
    snapshot_max_age: seconds after which snapshots and transactions end (default: never).

    Raises InvalidError (an option out of range, a store that is open elsewhere), CorruptError,
    FullError, StorageError.
    """

@final
class Database:
    """An open store. A context manager that closes it."""

    def tree(
        self,
        name: str,
        *,
        create: bool = True,
        ascending: bool = False,
        point_lookups: bool = False,
    ) -> Tree:
        """The tree of that name. A missing one is created, or NotFoundError raised.

        ascending, point_lookups: hints for a tree that is created.
        """
    def trees(self) -> list[str]:
        """The names of all trees, in byte order."""
    def drop_tree(self, name: str) -> None:
        """Drop a tree. Snapshots that see it can still read it. Raises NotFoundError."""
    def snapshot(self) -> Snapshot:
        """A read view of all trees as of now."""
    def begin(self, *, durability: _Durability = "sync") -> Transaction:
        """A transaction on a snapshot of now; durability is that of its commit."""
    def write(self, batch: Batch, *, durability: _Durability = "sync") -> None:
        """Apply a batch atomically, without reading and without conflicts."""
    def flush(self) -> None:
        """Flush every buffer to the data file."""
    def checkpoint(self) -> None:
        """Make a checkpoint, so that the next open has less log to read."""
    def sync(self) -> None:
        """Make everything committed so far durable."""
    def settle(self, limit: float = 60.0) -> bool:
        """Do all background work that is owed. False if that took longer than limit seconds."""
    def verify(self) -> None:
        """Check every byte of the store. Raises CorruptError."""
    def backup(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Copy the store as of one commit to a directory that is empty or missing."""
    def stats(self) -> _Statistics:
        """What the store holds and owes."""
    def close(self) -> None:
        """Make what is committed durable and release the directory. A second call does nothing."""
    def __enter__(self) -> Database: ...
    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> bool: ...

@final
class Tree:
    """A named, ordered map from keys to values. Each call is a unit of its own."""

    @property
    def name(self) -> str: ...
    def get(self, key: bytes) -> Optional[bytes]:
        """The value of key; None when it is absent."""
    def get_many(self, keys: Sequence[bytes]) -> list[Optional[bytes]]:
        """The values of several keys as of one moment, in the order given."""
    def put(self, key: bytes, value: bytes, *, durability: _Durability = "sync") -> None:
        """Set key to value: a commit of its own that does not conflict with transactions."""
    def delete(self, key: bytes, *, durability: _Durability = "sync") -> None:
        """Remove key, if it exists: a commit of its own, as put."""
    def range(
        self,
        start: Optional[bytes] = None,
        end: Optional[bytes] = None,
        *,
        reverse: bool = False,
    ) -> Items:
        """The entries from start up to but not including end, as of now."""
    def prefix(self, prefix: bytes, *, reverse: bool = False) -> Items:
        """The entries whose keys begin with prefix, as of now."""

@final
class Snapshot:
    """A read view of all trees at one moment. A context manager that closes it."""

    def get(self, tree: Tree, key: bytes) -> Optional[bytes]: ...
    def get_many(self, tree: Tree, keys: Sequence[bytes]) -> list[Optional[bytes]]: ...
    def range(
        self,
        tree: Tree,
        start: Optional[bytes] = None,
        end: Optional[bytes] = None,
        *,
        reverse: bool = False,
    ) -> Items: ...
    def prefix(self, tree: Tree, prefix: bytes, *, reverse: bool = False) -> Items: ...
    def close(self) -> None:
        """Release what only this snapshot sees; iterators made from it keep their own hold."""
    def __enter__(self) -> Snapshot: ...
    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> bool: ...

@final
class Transaction:
    """Reads and writes as one unit, at snapshot isolation: it reads its snapshot with its own writes
    on top. As a context manager it commits at the end, and is rolled back by an exception."""

    def get(self, tree: Tree, key: bytes) -> Optional[bytes]: ...
    def get_many(self, tree: Tree, keys: Sequence[bytes]) -> list[Optional[bytes]]: ...
    def range(
        self,
        tree: Tree,
        start: Optional[bytes] = None,
        end: Optional[bytes] = None,
        *,
        reverse: bool = False,
    ) -> Items:
        """The entries of a range, read in pages of at most 256: a write that is made while the
        iterator is used is seen by it, unless its page was read before."""
    def prefix(self, tree: Tree, prefix: bytes, *, reverse: bool = False) -> Items: ...
    def insert(self, tree: Tree, key: bytes, value: bytes) -> None:
        """Set a key that must be absent. Raises ExistsError, ConflictError."""
    def put(self, tree: Tree, key: bytes, value: bytes) -> None:
        """Set key to value. Raises ConflictError."""
    def delete(self, tree: Tree, key: bytes) -> bool:
        """Remove key; returns whether it existed. Raises ConflictError."""
    def put_blind(self, tree: Tree, key: bytes, value: bytes) -> None:
        """Set key to value without conflict detection: for keys derived from others."""
    def delete_blind(self, tree: Tree, key: bytes) -> None:
        """Remove key without conflict detection."""
    def delete_range(
        self, tree: Tree, start: Optional[bytes] = None, end: Optional[bytes] = None
    ) -> None:
        """Remove the keys from start up to but not including end that the transaction sees."""
    def commit(self) -> None:
        """Commit. Raises ConflictError, and nothing is visible then; FullError, ClosedError."""
    def rollback(self) -> None:
        """Give up all changes. After a commit it does nothing."""
    def __enter__(self) -> Transaction: ...
    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> bool: ...

@final
class Batch:
    """Changes of any number of trees, applied atomically by Database.write."""

    def __init__(self) -> None: ...
    def put(self, tree: Tree, key: bytes, value: bytes) -> None: ...
    def delete(self, tree: Tree, key: bytes) -> None: ...
    def delete_range(
        self, tree: Tree, start: Optional[bytes] = None, end: Optional[bytes] = None
    ) -> None: ...
    def clear(self) -> None: ...
    def __len__(self) -> int:
        """The number of changes."""

@final
class Items:
    """An iterator of (key, value), in key order or reversed."""

    def __iter__(self) -> Items: ...
    def __next__(self) -> tuple[bytes, bytes]: ...
    def next_back(self) -> Optional[tuple[bytes, bytes]]:
        """The next entry from the other end; None when all entries were given."""

__all__ = [
    "Batch",
    "ClosedError",
    "ConflictError",
    "CorruptError",
    "Database",
    "Error",
    "ExistsError",
    "FullError",
    "InvalidError",
    "Items",
    "NotFoundError",
    "Snapshot",
    "StorageError",
    "TooOldError",
    "Transaction",
    "Tree",
    "open",
]
