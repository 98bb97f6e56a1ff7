"""What the checks share: private folders, programs that end with us, runs of the laboratory."""

import dataclasses
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))

# A tool of the system that is not on every user's path.
SYSTEM = ["/usr/sbin", "/sbin", "/usr/local/sbin"]


class Missing(Exception):
    """The check cannot be made here; the text says what is missing."""


# Fewer repeats tell nothing of how far the next one would come out.
REPEATS = 3

# How sure the interval of a ratio is, where there are repeats enough for that.
SURE = 0.9

# The verdicts.
WITHIN, OUTSIDE, NOISY, FEW = "within", "OUTSIDE", "too noisy to say", "too few to say"


@dataclasses.dataclass
class Row:
    """A line of the table. A row without a bound is printed and judges nothing."""

    what: str
    # Medians over the repeats.
    ours: float
    theirs: float
    unit: str
    low: float | None = None
    high: float | None = None
    # Between which ratios the median of many more repeats would lie.
    spread: tuple[float, float] | None = None
    repeats: int = 1
    # Median of the repeats' ratios.
    ratio: float | None = None

    @property
    def bound(self):
        return "-" if self.low is None else f"{self.low:g} to {self.high:g}"

    @property
    def verdict(self):
        """What the interval of the repeats says: where it lies on both sides of an end of the
        bound, more repeats may come out on either."""
        if self.low is None:
            return "-"
        if self.spread is None or self.repeats < REPEATS:
            return FEW
        least, most = self.spread
        if self.low <= least and most <= self.high:
            return WITHIN
        if most < self.low or self.high < least:
            return OUTSIDE
        return NOISY


@dataclasses.dataclass
class Made:
    """What a check found: its rows, and how it was done, in sentences."""

    rows: list
    notes: list


def interval(ratios):
    """Between which of the ratios the true median lies, with a probability of `SURE` or more: as
    many of the least and of the largest are left out as that permits, by the binomial distribution
    of how many repeats fall below the median. Of fewer than eight none is left out, and of fewer
    than five the probability is lower: 0.75 of three."""
    count, out, below = len(ratios), 0, 1
    while 2 * (below + math.comb(count, out + 1)) <= (1 - SURE) * 2**count:
        out += 1
        below += math.comb(count, out)
    ordered = sorted(ratios)
    return ordered[out], ordered[count - 1 - out]


def paired(what, unit, ours, theirs, low=None, high=None):
    """The row of repeats that were made in turns: medians, and how far the ratios lie apart."""
    ratios = [a / b for a, b in zip(ours, theirs) if b]
    row = Row(what, statistics.median(ours), statistics.median(theirs), unit, low, high)
    row.spread = interval(ratios) if ratios else None
    row.repeats = len(ratios)
    row.ratio = statistics.median(ratios) if ratios else None
    return row


def default_binary():
    target = os.environ.get("CARGO_TARGET_DIR", CACHE / "romanesco" / "target")
    return str(pathlib.Path(target) / "release" / "romanesco")


def tool(name, package, *places):
    """The path of a program, or `Missing` with the package that has it."""
    for place in places:
        found = sorted(pathlib.Path("/").glob(place.lstrip("/")))
        if found:
            return str(found[-1])
    path = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *SYSTEM]))
    if path is None:
        raise Missing(f"there is no {name}: install Debian's package {package}")
    return path


def fit_to_measure():
    """Say so if others are at work on this machine."""
    load = os.getloadavg()[0]
    if load > 0.5 * (os.cpu_count() or 1):
        print(f"warning: the load average is {load:.1f}; ratios will be off", file=sys.stderr)


class Folder:
    """A folder of our own that goes again."""

    def __init__(self, parent):
        self.parent = parent

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="romanesco-cross-", dir=self.parent))
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


class Started:
    """A program that is ended with the block: politely, and after half a minute by force."""

    def __init__(self, command, log, **more):
        self.command, self.log, self.more = command, log, more

    def __enter__(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self.more
            )
        return self.process

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def said(log):
    """The last lines of a program's messages."""
    lines = pathlib.Path(log).read_text(errors="replace").strip().splitlines()
    return "\n".join(lines[-12:])


def run(command, **more):
    """A command's output; its messages are in the error if it fails."""
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more
    ) as process:
        try:
            out, err = process.communicate()
        except BaseException:
            process.kill()
            raise
    out, err = out.decode(errors="replace"), err.decode(errors="replace")
    if process.returncode != 0:
        last = "\n".join((err + out).strip().splitlines()[-12:])
        raise RuntimeError(f"{command[0]} ended with {process.returncode}:\n{last}")
    return out + err


def wait_for(condition, seconds, what):
    """Wait until `condition()` is neither false nor `None`; its value."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise RuntimeError(f"waited {seconds} s for {what}")
        time.sleep(0.1)


class Lab:
    """Runs of the laboratory below a folder."""

    def __init__(self, binary, folder, smallest=False):
        self.binary, self.folder, self.runs = str(binary), folder, 0
        # Everything once and short, to see that it works.
        self.smallest = smallest
        self.turns = 1 if smallest else REPEATS
        # The stored calibration of the host is neither used nor replaced.
        self.environment = dict(os.environ, XDG_STATE_HOME=str(folder / "state"))
        for name in [name for name in self.environment if name.startswith("LAB_")]:
            if "PASSWORD" not in name:
                del self.environment[name]

    def command(self, *arguments):
        self.runs += 1
        out = self.folder / f"run-{self.runs}"
        return out, [self.binary, "lab", "run", *arguments, "--out", str(out), "--quiet"]

    def run(self, *arguments):
        """Make a run; the summaries of its steps by name. Invalid ones are errors."""
        out, command = self.command(*arguments)
        run(command, env=self.environment, cwd=self.folder)
        steps = {}
        for file in sorted(out.glob("steps/*/summary.json")):
            step = json.loads(file.read_text())
            if not step["valid"]:
                raise RuntimeError(f"step {step['step']} is invalid: {step['invalid_reason']}")
            steps[step["step"]] = step
        shutil.rmtree(out, ignore_errors=True)
        return steps

    def size(self, full, smallest):
        """Rows or seconds of a check: all of them, or as few as show that it works."""
        return smallest if self.smallest else full

    def version(self):
        return run([self.binary, "--version"]).strip()
