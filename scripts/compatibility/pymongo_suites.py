"""PyMongo's own tests, mongomock's comparison with a server, and the check of scripts/smoke."""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ElementTree

from common import CLIENTS, HERE, Broken, Group, Server, folder, install, need

PYMONGO, MONGOMOCK = "4.20.0", "4.3.0"
# Those that talk to a server about what a document database does.
FILES = """
    test_bulk test_collation test_collection test_collection_management test_command_monitoring
    test_comment test_create_entities test_crud_unified test_cursor test_custom_types test_database
    test_gridfs test_gridfs_bucket test_index_management test_read_concern
    test_read_write_concern_spec test_retryable_reads test_retryable_reads_unified
    test_retryable_writes test_retryable_writes_unified test_run_command test_session
    test_sessions_unified test_transactions test_transactions_unified test_unified_format
    test_versioned_api_integration
""".split()


def python():
    """A Python with PyMongo and pytest."""
    venv = CLIENTS / "venv"
    program = venv / "bin" / "python"
    works = "import pymongo, pytest, pytest_timeout, mongomock"
    if program.exists() and subprocess.run([program, "-c", works]).returncode == 0:
        return program
    folder("")
    install("a virtual environment", [sys.executable, "-m", "venv", venv])
    packages = [f"pymongo=={PYMONGO}", "pytest", "pytest-timeout", f"mongomock=={MONGOMOCK}"]
    install("PyMongo", [venv / "bin" / "pip", "install", "-q", *packages])
    return program


def source(name, version):
    """The unpacked source package of a client."""
    path = CLIENTS / f"{name}-{version}"
    if path.exists():
        return path
    pip = python().parent / "pip"
    packed = folder("packed")
    command = [pip, "download", "-q", "--no-deps", "--no-binary", name, "-d", packed]
    install(name, [*command, f"{name}=={version}"])
    with tarfile.open(packed / f"{name}-{version}.tar.gz") as archive:
        archive.extractall(CLIENTS, filter="data")
    if name == "pymongo":
        # The installed ones are tested: those have their C parts.
        for package in ("pymongo", "bson", "gridfs"):
            shutil.rmtree(path / package)
    return path


def pytest(server, suite, path, files, environment, more=()):
    """Run files of tests, and count them file by file."""
    report = path / f"report-{server.port}.xml"
    command = [python(), "-m", "pytest", "-q", "-o", "addopts=", "-o", "filterwarnings="]
    for plugin in ("cacheprovider", "threadexception", "unraisableexception"):
        command += ["-p", f"no:{plugin}"]
    command += ["--timeout=120", "--timeout-method=thread", f"--junitxml={report}", *more, *files]
    subprocess.run(
        command,
        cwd=path,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    if not report.exists():
        group = Group(suite, " ".join(pathlib.Path(file).stem for file in files))
        group.add("whole", "fail", "pytest ended without a report")
        return [group]
    groups = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        module = case.get("classname").split(".")
        name = next((part for part in module if part.startswith("test_")), module[-1])
        group = groups.setdefault(name, Group(suite, name))
        test = f"{module[-1]}.{case.get('name')}"
        problem = case.find("failure") if case.find("failure") is not None else case.find("error")
        if problem is not None:
            lines = (problem.get("message") or "").strip().splitlines() or [""]
            group.add(test, "fail", lines[0][:200])
        elif case.find("skipped") is not None:
            group.add(test, "skip")
        else:
            group.add(test, "pass")
    report.unlink()
    return list(groups.values())


def smoke(server):
    """common operations with PyMongo"""
    need("python3")
    group = Group("PyMongo", "smoke")
    script = HERE.parent / "smoke.py"
    command = [python(), script, server.uri]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    for line in done.stdout.decode(errors="replace").splitlines():
        name, _, outcome = line.strip().partition(" ")
        outcome = outcome.strip()
        if outcome == "passed":
            group.add(name, "pass")
        elif outcome.startswith("FAILED"):
            group.add(name, "fail", outcome)
    if group.executed == 0:
        said = done.stdout.decode(errors="replace")[-500:]
        raise Broken(f"{script} checked nothing, exit code {done.returncode}: {said}")
    if done.returncode != 0 and not group.failed:
        group.add("whole", "fail", f"exit code {done.returncode}")
    return [group]


def pymongo(server):
    """PyMongo's own tests, file by file"""
    need("python3")
    path = source("pymongo", PYMONGO)
    more = ["-m", "default or search_index"]
    groups = []
    for name in FILES:
        file = f"test/{name}.py"
        if not (path / file).exists():
            continue
        # A store for each: files leave things behind. Some tests want this port.
        with Server(server.binary, server.engine, 27017) as own:
            environment = {"DB_IP": "127.0.0.1", "DB_PORT": str(own.port)}
            groups += pytest(own, f"PyMongo {PYMONGO}", path, [file], environment, more)
        print("  ", groups[-1].describe().splitlines()[0], flush=True)
    return groups


def mongomock(server):
    """each operation of mongomock's tests, compared with mongomock"""
    need("python3")
    path = source("mongomock", MONGOMOCK)
    environment = {"TEST_MONGO_HOST": f"mongodb://127.0.0.1:{server.port}/"}
    files = ["tests/test__mongomock.py"]
    return pytest(server, f"mongomock {MONGOMOCK}", path, files, environment)


SUITES = {"smoke": smoke, "pymongo": pymongo, "mongomock": mongomock}
