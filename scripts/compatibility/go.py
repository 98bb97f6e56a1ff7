"""The Go driver: its unified suites by group, its integration tests, and a small program."""

import json
import os
import pathlib
import shutil
import subprocess

from common import CLIENTS, HERE, Broken, Group, folder, install, need, run_program

VERSION = "v1.17.10"
MODULE = "go.mongodb.org/mongo-driver"
# Directories of the unified suites; the others want what is not there (encryption, load balancers,
# data lakes).
UNIFIED = """
    unified-test-format/valid-pass versioned-api crud/unified change-streams transactions/unified
    collection-management command-monitoring sessions retryable-writes/unified gridfs run-command
    index-management
""".split()
# Tests of the integration package that concern a server of one member without encryption.
INTEGRATION = """
    TestCrudSpec TestRetryableWritesSpec TestRetryableWritesProse TestRetryableReadsProse
    TestUnifiedSpecs TestCollection TestDatabase TestCursor TestIndexView TestSessions
    TestSessionsProse TestCausalConsistency_Supported TestErrors TestGridFS
    TestWriteErrorsWithLabels TestWriteErrorsDetails TestHintErrors TestWriteConcernError
    TestErrorsCodeNamePropagated
""".split()


def module():
    """A copy of the driver's module that can be built in."""
    need("go")
    path = CLIENTS / f"go-driver-{VERSION}"
    if path.exists():
        return path
    command = ["go", "mod", "download", "-json", f"{MODULE}@{VERSION}"]
    install("the Go driver", command, cwd=folder("go"))
    told = subprocess.run(command, cwd=folder("go"), stdout=subprocess.PIPE).stdout
    shutil.copytree(json.loads(told)["Dir"], path)
    for root, names, files in os.walk(path):
        for name in [*names, *files]:
            os.chmod(pathlib.Path(root) / name, 0o755)
    return path


def test(server, package, chosen, name_of):
    """Run tests, and count the leaves of the tree by the group that `name_of` gives."""
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "MONGODB_URI": server.uri}
    command = ["go", "test", "-count=1", "-json", "-timeout", "20m", package, "-run", chosen]
    done = subprocess.run(
        command, cwd=module(), env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    outcomes, output = {}, {}
    for line in done.stdout.decode(errors="replace").splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        name = event.get("Test")
        if name and event["Action"] in ("pass", "fail", "skip"):
            outcomes[name] = event["Action"]
        elif name and event["Action"] == "output":
            output.setdefault(name, []).append(event["Output"].strip())
    if not outcomes:
        raise Broken("go test said nothing: " + done.stdout.decode(errors="replace")[-300:])
    parents = {name.rpartition("/")[0] for name in outcomes}
    groups = {}
    for name, outcome in outcomes.items():
        # A parent that fails by itself is a failure; through its children it is none.
        if name in parents:
            continue
        group = name_of(name)
        group = groups.setdefault(group, Group(f"Go driver {VERSION}", group))
        # What the test says, without where its source is.
        told = " ".join(output.get(name, [])).replace(f"{module()}/", "")
        group.add(name, outcome, told[:1000])
    return list(groups.values())


def unified(server):
    """the Go driver's unified suites"""
    # A pattern is split at slashes before anything else: choose by the first parts.
    chosen = "TestUnifiedSpec/^(" + "|".join(sorted({u.split("/")[0] for u in UNIFIED})) + ")$"

    def name_of(name):
        rest = name.split("/", 1)[1] if "/" in name else name
        return next((group for group in UNIFIED if rest.startswith(group)), "other")

    return test(server, "./mongo/integration/unified/", chosen, name_of)


def integration(server):
    """the Go driver's integration tests"""
    groups = []
    for chosen in INTEGRATION:
        # One after another: a panic in one would end the others.
        groups += test(server, "./mongo/integration/", f"^{chosen}$", lambda n: n.split("/")[0])
    return groups


def smoke(server):
    """common operations with the Go driver"""
    need("go")
    path = folder("go-smoke")
    shutil.copy(HERE / "smoke.go", path / "main.go")
    if not (path / "go.mod").exists():
        (path / "go.mod").write_text("module smoke\n\ngo 1.21\n")
    install("the Go driver", ["go", "get", f"{MODULE}@{VERSION}"], cwd=path)
    install("the Go driver", ["go", "mod", "tidy"], cwd=path)
    subprocess.run(["go", "build", "-o", "smoke", "."], cwd=path, check=True)
    return [run_program(f"Go driver {VERSION}", "smoke", [path / "smoke", server.uri])]


SUITES = {"go": smoke, "go-unified": unified, "go-integration": integration}
