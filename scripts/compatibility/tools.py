"""The command sequences of mongodump and mongorestore, from one server to another."""

from common import HERE, Server, need, run_program
from pymongo_suites import python


def dump_restore(server):
    """a dump with users, roles, and all kinds of indexes, restored into another server"""
    need("python3")
    with Server(server.binary, server.engine) as target:
        command = [python(), HERE / "tools_client.py", server.uri, target.uri]
        return [run_program("mongodump and mongorestore", "round trip", command)]


SUITES = {"dump-restore": dump_restore}
