"""Random documents, filters, sorts, updates and pipelines: this server against another one."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import common
from common import CLIENTS, HERE, Group, Skip
from pymongo_suites import python

# Where the other server is, unless DIFFERENTIAL_SERVER names a program or an address.
PROGRAM = CLIENTS / "secantus" / "bin" / "secantusd-rs"
CASES = os.environ.get("DIFFERENTIAL_CASES", "20000")
SEED = os.environ.get("DIFFERENTIAL_SEED", "1")
HINT = (
    "no other server: DIFFERENTIAL_SERVER=mongodb://HOST:PORT, or install one: cargo +nightly "
    "install secantus-mdb --version 0.5.3-beta.196 --ignore-rust-version --root "
)


class Other:
    """The other server: one that runs, or a program that is started."""

    def __init__(self):
        named = os.environ.get("DIFFERENTIAL_SERVER", str(PROGRAM))
        self.process, self.uri = None, named
        if named.startswith("mongodb://"):
            return
        program = shutil.which(named)
        if program is None:
            raise Skip(HINT + str(PROGRAM.parent.parent))
        port = common.free_port()
        self.uri = f"mongodb://127.0.0.1:{port}/?directConnection=true"
        self.folder = tempfile.TemporaryDirectory(prefix="romanesco-other-")
        data = pathlib.Path(self.folder.name)
        command = [program, "--port", str(port), "--storage-path", data]
        with open(data / "log", "wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)
            self.folder.cleanup()


class Judged(Group):
    """Operations of one kind: those that differ have causes, or none."""

    def __init__(self, kind):
        super().__init__("differential", kind)

    def explain(self):
        """No pattern excuses a difference; the client has judged each."""

    def describe(self):
        counts = f"{self.executed} executed, {self.passed} agree, {len(self.failed)} differ"
        lines = [f"differential: {self.name}: {counts}, {len(self.unexplained())} unexplained"]
        lines += [f"  FAILED: {test}: {self.failed[test]}" for test in self.unexplained()]
        return "\n".join(lines)


class Table:
    """For each cause: differences that it may excuse, verified ones, and unexplained ones."""

    def __init__(self):
        self.rows = {}

    def count(self, causes, verified):
        for cause in causes:
            row = self.rows.setdefault(cause, [0, 0, 0])
            row[0] += 1
            row[1 if verified else 2] += 1

    def __str__(self):
        head = ("cause", "differences", "verified by rerun", "unexplained")
        rows = sorted(self.rows.items(), key=lambda row: -row[1][0])
        body = [(cause, *map(str, counts)) for cause, counts in rows]
        return "\n".join(f"| {' | '.join(row)} |" for row in (head, ("---",) * 4, *body))


def judged(output):
    """The groups and the table in what the client prints."""
    groups, table = {}, Table()
    for line in output.splitlines():
        word, _, rest = line.partition(" ")
        kind = rest.partition(" ")[0]
        if word not in ("count", "EXCUSED", "DIFFERS"):
            continue
        group = groups.setdefault(kind, Judged(kind))
        if word == "count":
            group.passed = int(rest.split()[1])
            continue
        name, causes, *message = rest.split(" | ", 2)
        group.add(name, "fail", " ".join(message))
        if word == "EXCUSED":
            group.reasons[name] = causes
        table.count(causes.split("; "), word == "EXCUSED")
    return groups, table


def differential(server):
    """random operations, compared with another server of the protocol"""
    with Other() as other:
        command = [python(), HERE / "differential_client.py", server.uri, other.uri]
        command += ["--cases", CASES, "--seed", SEED]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = done.stdout.decode(errors="replace")
    groups, table = judged(output)
    if done.returncode != 0 or not groups:
        groups["whole"] = Group("differential", "whole")
        groups["whole"].add("whole", "fail", f"exit code {done.returncode}: {output[-500:]}")
    print(table, flush=True)
    return list(groups.values())


SUITES = {"differential": differential}
