"""redo-log at durability sync against PostgreSQL's pg_test_fsync."""

import re
import subprocess

import common

SECONDS = 2
# The steps of redo-log at sync are a twentieth of this.
ROWS = 100_000


def floor(program, folder):
    """Writes of 8 KiB with fdatasync per second; the tests after that one are not waited for."""
    command = [program, "-s", str(SECONDS), "-f", str(folder / "pg_test_fsync")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            for line in process.stdout:
                found = re.match(rb"\s+fdatasync\s+([\d.]+) ops/sec", line)
                if found:
                    return float(found.group(1))
        finally:
            # It removes its file when it is told to end.
            process.terminate()
    raise RuntimeError("pg_test_fsync did not say how many fdatasync it did")


def check(lab):
    """Syncs per second of redo-log against the floor that pg_test_fsync measures."""
    program = common.tool(
        "pg_test_fsync", "postgresql", "/usr/lib/postgresql/*/bin/pg_test_fsync"
    )
    floors, syncs, per_commit = [], [], []
    for _ in range(lab.turns):
        floors.append(floor(program, lab.folder))
        steps = lab.run(
            "redo-log", "-t", "betree", "--preset", "smoke", "--rows", str(ROWS), "--time", "2"
        )
        step = steps["sync"]
        per_commit.append(step["extra"]["log_syncs"] / step["rows"])
        syncs.append(step["rate_mean"] * per_commit[-1])
    one = [1.0] * lab.turns
    return common.Made(
        [
            common.paired("one client: syncs", "1/s", syncs, floors, 0.5, 1.1),
            common.paired("one client: syncs of a commit", "", per_commit, one, 1.0, 1.1),
        ],
        [
            "Ours is the step `sync` of `lab run redo-log -t betree`: rows of 228 bytes with one "
            "index, one row per commit, each commit synced. Theirs is the line `fdatasync` of "
            "`pg_test_fsync`, which overwrites the same 8 KiB of an existing file repeatedly.",
            "No durable commit is faster than such a sync, so a ratio above 1.1 would mean commits "
            "that are not on the disk; below 0.5 the engine would add more to a commit than the "
            "sync itself takes.",
        ],
    )
