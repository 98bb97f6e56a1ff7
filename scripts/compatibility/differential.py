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


def differential(server):
    """random operations, compared with another server of the protocol"""
    groups = {}
    with Other() as other:
        command = [python(), HERE / "differential_client.py", server.uri, other.uri]
        command += ["--cases", CASES, "--seed", SEED]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = done.stdout.decode(errors="replace")
    for line in output.splitlines():
        word, _, rest = line.partition(" ")
        if word == "count":
            kind, passed = rest.split()
            groups.setdefault(kind, Group("differential", kind)).passed = int(passed)
        elif word == "DIFFERS":
            kind, _, what = rest.partition(" ")
            name, _, message = what.partition(" | ")
            groups.setdefault(kind, Group("differential", kind)).add(name, "fail", message)
    if done.returncode != 0 or not groups:
        groups["whole"] = Group("differential", "whole")
        groups["whole"].add("whole", "fail", f"exit code {done.returncode}: {output[-500:]}")
    return list(groups.values())


SUITES = {"differential": differential}
