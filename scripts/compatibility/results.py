"""docs/compatibility-results.md: what was found, engine by engine.

The page is made of the rows that its tables have: rows of suites that did not run this time stay.
"""

import collections
import datetime
import re

import common

PAGE = common.HERE.parent.parent / "docs" / "compatibility-results.md"
HEAD = """# Results of clients' suites

Written by `scripts/compatibility/run --update`, which installs the clients, serves a temporary
store and runs them. Skipped are tests that ask for what the server does not offer them (sharding,
several members, TLS, more than MongoDB 8.0). The causes of failures are in
[compatibility.md](compatibility.md).
"""
ROW = re.compile(r"^\| (?P<key>[^|]+\|[^|]+)\|( \d+ \|){4} \S+ \|$")
FAILURE = re.compile(r"^\| (?P<group>[^|]+) \| [^|]+ \| \d+ \|$")


def read():
    """The rows of the page: engine -> key -> (line, lines of failures)."""
    found = collections.OrderedDict()
    if not PAGE.exists():
        return found
    engine = None
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            engine = found.setdefault(line[3:].split()[-1], {"rows": {}, "failures": {}})
        elif engine is not None and ROW.match(line):
            engine["rows"][ROW.match(line)["key"]] = line
        elif engine is not None and line.startswith("| ") and FAILURE.match(line):
            engine["failures"].setdefault(FAILURE.match(line)["group"], []).append(line)
    return found


def update(engine, groups):
    page = read()
    mine = page.setdefault(engine, {"rows": {}, "failures": {}})
    today = datetime.date.today().isoformat()
    for group in groups:
        key = f"{group.suite} | {group.name} "
        mine["rows"][key] = (
            f"| {key}| {group.executed} | {group.passed} | {len(group.failed)} "
            f"| {group.skipped} | {today} |"
        )
        title = f"{group.suite}, {group.name}"
        mine["failures"].pop(title, None)
        # Random operations have no names worth keeping: their seeds are in the output.
        named = group.suite != "differential"
        # A difference may have several causes, which are counted each.
        causes = collections.Counter(
            cause
            for test in group.failed
            for cause in group.reasons.get(
                test, f"not explained: `{test}`" if named else "not explained"
            ).split("; ")
        )
        if causes:
            told = [f"| {title} | {cause} | {count} |" for cause, count in causes.most_common()]
            mine["failures"][title] = told
    text = [HEAD]
    for name, found in page.items():
        text.append(f"## Engine {name}\n")
        text.append("| suite | group | executed | passed | failed | skipped | date |")
        text.append("| --- | --- | ---: | ---: | ---: | ---: | --- |")
        text.extend(found["rows"].values())
        if any(found["failures"].values()):
            text.append(f"\nCauses of the failures with {name}:\n")
            text.append("| group | cause | failures |")
            text.append("| --- | --- | ---: |")
            for lines in found["failures"].values():
                text.extend(lines)
        text.append("")
    PAGE.write_text("\n".join(text).rstrip() + "\n")
    print(f"wrote {PAGE}")
