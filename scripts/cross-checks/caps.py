"""The laboratory's caps on I/O against fio, which runs in the laboratory's own control group."""

import json
import os
import pathlib

import common

SECONDS = 6
# The first seconds are not counted: a group may begin with what it has saved up.
RAMP = 2

# What is capped: its name in the laboratory, fio's direction and block, and the cap. They are the
# caps of `lab calibrate`. A block of 4 KiB meets the cap on operations, one of 256 KiB that on
# bytes.
CAPS = [
    ("read_iops", "randread", 4 << 10, 300, "iops"),
    ("write_iops", "randwrite", 4 << 10, 200, "iops"),
    ("read_bps", "randread", 256 << 10, 30 << 20, "bw_bytes"),
    ("write_bps", "randwrite", 256 << 10, 20 << 20, "bw_bytes"),
]


def descendants(pid):
    """The processes below one, from /proc."""
    parents = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, todo = [], [pid]
    while todo:
        below = parents.get(todo.pop(), [])
        found += below
        todo += below
    return found


def group_of(pid):
    """The control group that caps a process's I/O, if the laboratory made it."""
    try:
        lines = pathlib.Path(f"/proc/{pid}/cgroup").read_text().splitlines()
        mounts = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        number, controllers, path = line.split(":", 2)
        unified = number == "0" and not controllers
        if "romanesco" not in path or not (unified or "blkio" in controllers.split(",")):
            continue
        for mount in mounts:
            words = mount.split()
            after = words[words.index("-") + 1 :]
            fits = after[0] == "cgroup2" if unified else "blkio" in after[-1].split(",")
            if fits:
                inner = os.path.relpath(path, words[3]) if words[3] != "/" else path.lstrip("/")
                return pathlib.Path(words[4]) / inner
    return None


def entering(group):
    """What a process does first to be in a control group."""
    return lambda: (group / "cgroup.procs").write_text(str(os.getpid()))


def fio(program, group, folder, job, seconds):
    """Run one job in the group; operations or bytes per second."""
    name, direction, block, _, field = job
    command = [
        program,
        f"--name={name}",
        f"--filename={folder / 'fio.data'}",
        f"--rw={direction}",
        f"--bs={block}",
        "--size=64M",
        "--direct=1",
        "--ioengine=psync",
        "--numjobs=4",
        "--thread",
        "--group_reporting",
        "--time_based",
        f"--runtime={seconds}",
        f"--ramp_time={RAMP}",
        "--output-format=json",
    ]

    told = common.run(command, preexec_fn=entering(group))
    jobs = json.loads(told[told.index("{") : told.rindex("}") + 1])["jobs"]
    return jobs[0]["read" if direction == "randread" else "write"][field]


def under_caps(lab, caps, work):
    """Call `work(group)` while a worker of the laboratory idles under the caps."""
    # `null` keeps nothing, so the worker itself does no I/O.
    _, command = lab.command(
        *("iibench-classic", "-t", "null", "--preset", "smoke", "--rate", "100"),
        *("--rows", "1000000", "--time", "3600", "--mem", "1G", *caps),
    )
    log = lab.folder / "capped.log"
    with common.Started(command, log, env=lab.environment, cwd=lab.folder) as process:

        def group():
            if process.poll() is not None:
                raise RuntimeError(f"the capped run ended:\n{common.said(log)}")
            return next(filter(None, map(group_of, descendants(process.pid))), None)

        return work(common.wait_for(group, 60, "a worker in a control group"))


def calibrated(lab):
    """What the laboratory's own probe measured under the same caps."""
    # Only the caps are read, which a busy machine does not change.
    target = ["--aa", "3", "--preset", "smoke", "--allow-busy", "--target", "null", "--quiet"]
    directory = ["--data-dir", str(lab.folder)]
    command = [lab.binary, "lab", "calibrate", *target, *directory]
    common.run(command, env=lab.environment, cwd=lab.folder)
    kept = next((lab.folder / "state").rglob("calibration.json"))
    return {check["limit"]: check["measured"] for check in json.loads(kept.read_text())["caps"]}


def check(lab):
    """Caps on operations and bytes, read back by fio in the laboratory's control group."""
    program = common.tool("fio", "fio")
    if os.geteuid() != 0:
        raise common.Missing("control groups need root")
    # Written before, as the group would have to write it under its caps.
    common.run([
        *(program, "--name=fill", f"--filename={lab.folder / 'fio.data'}", "--rw=write"),
        *("--bs=1M", "--size=64M", "--direct=1", "--end_fsync=1"),
    ])
    probes = [calibrated(lab) for _ in range(lab.turns)]

    def all_jobs(group):
        seconds = lab.size(SECONDS, 1)
        return {job[0]: [fio(program, group, lab.folder, job, seconds) for _ in range(lab.turns)]
                for job in CAPS}

    reads, writes, bytes_read, bytes_written = [job[3] for job in CAPS]
    caps = ["--iops", f"{reads}/{writes}", "--bw", f"{bytes_read >> 20}M/{bytes_written >> 20}M"]
    measured = under_caps(lab, caps, all_jobs)
    rows = []
    for name, _, _, cap, _ in CAPS:
        unit, scale = ("1/s", 1) if name.endswith("iops") else ("MiB/s", 1 << 20)
        theirs = [value / scale for value in measured[name]]
        words = name.replace("_iops", " operations").replace("_bps", " bytes")
        caps = [cap / scale] * lab.turns
        rows.append(common.paired(f"cap on {words}", unit, caps, theirs, 0.98, 1.02))
        probe = [found[name] / scale for found in probes if name in found]
        if probe:
            rows.append(
                common.paired(f"probe under it, {words}", unit, probe, theirs, 0.98, 1.02)
            )
    return common.Made(
        rows,
        [
            "Rows `cap`: ours is the cap that was set, theirs what fio got: direct random I/O of 4 "
            f"KiB (operations) and 256 KiB (bytes), 4 threads, {SECONDS} s after {RAMP} s that are "
            "not counted, in the control group of a worker of `lab run -t null` that idles.",
            "Rows `probe`: ours is what `lab calibrate` itself measured under the same caps in 2 "
            "s, without leaving out the beginning.",
        ],
    )
