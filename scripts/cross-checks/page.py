"""docs/cross-check.md: the rows of the newest run of each check. Kept as JSON beside it."""

import dataclasses
import datetime
import json
import os
import pathlib
import platform
import textwrap

import common

FIXTURE = common.ROOT / "docs" / "cross-check.json"
PAGE = common.ROOT / "docs" / "cross-check.md"

HEAD = """# Cross-checks

The laboratory compared with established tools: the same work, on the same machine, in turns. Ours
and theirs are medians; a *ratio* is the median of the turns' ratios. *Between* is the interval that
contains the median of many more turns with a probability of 90 % (75 % with three turns). A row is
*within* or *OUTSIDE* its bound only if the whole interval is; if the interval contains an end of
the bound, the row is *too noisy to say*, and with fewer than three repeats there are *too few to
say*. A row without a bound has no verdict. Made by

```sh
make cross-check               # all of them; installs the tools, builds with every engine
scripts/cross-check fio        # one of them; --list names all
```

which write this page from `cross-check.json`: the rows of a check replace all of its old ones, with
the day and the program they were made with. The code at the end is 1 if a row is outside of its
bound, else 3 if one is undecided.
"""


def number(value):
    if value != value:
        return "n/a"
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 10_000:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.0f}" if size >= 1000 else f"{value:.3g}"


def table(rows):
    lines = [
        "| what | ours | theirs | unit | ratio | between | repeats | bound | verdict |",
        "|---|---:|---:|---|---:|---|---:|---|---|",
    ]
    for row in rows:
        spread = "-" if row.spread is None else f"{row.spread[0]:.3f} to {row.spread[1]:.3f}"
        figures = f"{number(row.ours)} | {number(row.theirs)} | {row.unit} | {row.ratio:.3f}"
        judged = f"{row.repeats} | {row.bound} | {row.verdict}"
        lines.append(f"| {row.what} | {figures} | {spread} | {judged} |")
    return "\n".join(lines)


def first(path, key):
    """What stands behind the first `key : ` of a file of the kernel."""
    for line in pathlib.Path(path).read_text(errors="replace").splitlines():
        if line.startswith(key):
            return line.partition(":")[2].strip()
    return ""


def machine():
    memory = int(first("/proc/meminfo", "MemTotal").split()[0]) / (1 << 20)
    model = first("/proc/cpuinfo", "model name") or platform.machine()
    version = "v2" if pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists() else "v1"
    return (
        f"{os.cpu_count()} cores ({model}), {memory:.0f} GiB of memory, Linux "
        f"{platform.release().split(chr(45))[0]}, control groups {version}"
    )


def load():
    try:
        return json.loads(FIXTURE.read_text())
    except FileNotFoundError:
        return {}


def keep(name, made, binary):
    """Replace the rows of a check, and write the page."""
    every = load()
    every[name] = {
        "at": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": machine(),
        "program": common.run([binary, "--version"]).strip(),
        "notes": made.notes,
        "rows": [dataclasses.asdict(row) for row in made.rows],
    }
    replace(FIXTURE, json.dumps(every, indent=1) + "\n")
    replace(PAGE, text(every))


def replace(path, content):
    new = path.with_suffix(path.suffix + ".new")
    new.write_text(content)
    new.replace(path)


def text(every):
    parts = [HEAD]
    for name, check in sorted(every.items()):
        rows = [common.Row(**dict(row, spread=pair(row["spread"]))) for row in check["rows"]]
        parts.append(f"## {name}\n")
        parts.append(filled(f"{check['at']}; {check['machine']}; {check['program']}.") + "\n")
        parts.append(table(rows) + "\n")
        parts += [filled(f"- {note}", subsequent_indent="  ") for note in check["notes"]]
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def filled(text, **more):
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False, **more)


def pair(spread):
    return tuple(spread) if spread else None
