"""What the suites share: a served store, folders, and the counts of a group of tests."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
CACHE = CACHE / "romanesco"
# Where clients are installed.
CLIENTS = CACHE / "compatibility"
# Seconds that a server may take to listen, and to end. Only one that hangs takes as long.
START_MAX, END_MAX = 120, 120


class Skip(Exception):
    """A suite cannot run here, because its client is missing; the text says which."""


class Broken(Exception):
    """What is tested does not work, or said nothing that could be counted."""


def default_binary():
    target = os.environ.get("CARGO_TARGET_DIR", CACHE / "target")
    return str(pathlib.Path(target) / "debug" / "romanesco")


def need(*programs):
    for program in programs:
        if shutil.which(program) is None:
            raise Skip(f"no {program}")


def install(what, command, **more):
    """Run a command that fetches a client; without a registry the suite is skipped."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    if done.returncode != 0:
        last = done.stdout.decode(errors="replace").strip().splitlines()[-1:]
        raise Skip(f"cannot install {what} (is its registry reached?): {' '.join(last)[:200]}")


def folder(name):
    path = CLIENTS / name
    path.mkdir(parents=True, exist_ok=True)
    return path


def free_port(wanted=None):
    """The wanted port, or any."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted or 0))
        except OSError:
            raise Skip(f"port {wanted} is in use, and these tests look for a server there")
        return probe.getsockname()[1]


class Server:
    """A store in a temporary folder, served on a port of its own."""

    def __init__(self, binary, engine, port=None):
        if not os.access(binary, os.X_OK):
            raise SystemExit(f"no program at {binary}; build it: cargo build -p romanesco")
        self.port = free_port(port)
        self.binary, self.engine = binary, engine
        self.folder = tempfile.TemporaryDirectory(prefix="romanesco-compatibility-")
        path = pathlib.Path(self.folder.name)
        (path / "db").mkdir()
        command = [binary, "serve", "--dbpath", path / "db", "--port", str(self.port)]
        command += ["--setParameter", "enableTestCommands=1", "--storageEngine", engine]
        with open(path / "log", "wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        self.log = path / "log"
        self.uri = f"mongodb://127.0.0.1:{self.port}/?replicaSet=rs0"

    def __enter__(self):
        end = time.monotonic() + START_MAX
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise self._broken(f"did not start with {self.engine}")
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            time.sleep(0.1)
        self.process.kill()
        self.process.wait()
        raise self._broken(f"did not listen within {START_MAX} s")

    def __exit__(self, *_):
        wrong = None
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(END_MAX)
            if code != 0:
                wrong = f"ended with exit code {code}"
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            wrong = f"did not end within {END_MAX} s of SIGTERM"
        if b"panicked" in self.log.read_bytes():
            wrong = "panicked"
        if wrong:
            raise self._broken(wrong)
        self.folder.cleanup()

    def _broken(self, what):
        """The error of a server that is gone, with the end of its log."""
        text = self.log.read_text(errors="replace")[-2000:]
        self.folder.cleanup()
        return Broken(f"the server {what}; its log: {text}")


def known():
    """Failures that are explained: `[[suite expression, test expression, reason]]`."""
    return json.loads((HERE / "known.json").read_text())


class Group:
    """Tests that are counted together."""

    def __init__(self, suite, name):
        self.suite, self.name = suite, name
        self.passed, self.skipped = 0, 0
        # Failed tests with their messages, then with the reasons that are known.
        self.failed, self.reasons = {}, {}

    def add(self, test, outcome, message=""):
        if outcome == "pass":
            self.passed += 1
        elif outcome == "skip":
            self.skipped += 1
        else:
            self.failed[test] = message

    @property
    def executed(self):
        return self.passed + len(self.failed)

    def explain(self):
        for suite, test, reason in known():
            if not re.search(suite, f"{self.suite} {self.name}"):
                continue
            told = test.removeprefix("message:")
            for failed, message in self.failed.items():
                if re.search(told, failed if told == test else message):
                    self.reasons.setdefault(failed, reason)

    def unexplained(self):
        return [test for test in self.failed if test not in self.reasons]

    def describe(self):
        counts = f"{self.executed} executed, {self.passed} passed, {len(self.failed)} failed"
        lines = [f"{self.suite}: {self.name}: {counts}, {self.skipped} skipped"]
        for test, message in self.failed.items():
            why = self.reasons.get(test)
            lines.append(f"  {'known' if why else 'FAILED'}: {test}: {why or message[:300]}")
        return "\n".join(lines)


def lines_of(group, output):
    """Count lines `ok NAME` and `FAIL NAME message`, which the small programs print."""
    for line in output.splitlines():
        kind, _, rest = line.partition(" ")
        name, _, message = rest.partition(" ")
        if kind == "ok":
            group.add(name, "pass")
        elif kind == "FAIL":
            group.add(name, "fail", message[:200])
    return group


def run_program(suite, name, command, limit=300, **more):
    """Run one of the small programs and count its lines."""
    group = Group(suite, name)
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit, **more
    )
    output = done.stdout.decode(errors="replace")
    lines_of(group, output)
    if done.returncode != 0 or group.executed == 0:
        group.add("whole", "fail", f"exit code {done.returncode}: {output[-500:]}")
    return group
