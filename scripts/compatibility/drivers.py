"""Small programs of drivers: the same operations in each language."""

import json
import os
import shutil
import subprocess

from common import HERE, folder, install, need, run_program

NODE, MONGOSH, JAVA, RUST = "7.9.0", "2.12.0", "5.6.1", "3.9.1"
MONGOOSE = "9.12.1"


def npm(path, *packages):
    need("node", "npm")
    if not (path / "package.json").exists():
        (path / "package.json").write_text('{"private": true}\n')
    if not installed(path / "node_modules", packages):
        # What an install left that was cut short is taken for whole by the next.
        shutil.rmtree(path / "node_modules", ignore_errors=True)
        command = ["npm", "install", "--no-audit", "--no-fund", *packages]
        install("packages of npm", command, cwd=path)


def installed(modules, packages):
    """Whether npm came to its end with packages of these versions: it writes its list last."""
    try:
        there = json.loads((modules / ".package-lock.json").read_text())["packages"]
    except (OSError, ValueError, KeyError):
        return False
    asked = [package.rpartition("@") for package in packages]
    return all(
        there.get(f"node_modules/{name}", {}).get("version") == version
        for name, _, version in asked
    )


def node(server):
    """common operations with the Node driver"""
    path = folder("node")
    npm(path, f"mongodb@{NODE}")
    shutil.copy(HERE / "smoke.js", path)
    command = ["node", "smoke.js", server.uri]
    return [run_program(f"Node driver {NODE}", "smoke", command, cwd=path)]


def mongoose(server):
    """schemas, references, discriminators and transactions with the object mapper mongoose"""
    path = folder("mongoose")
    npm(path, f"mongoose@{MONGOOSE}")
    shutil.copy(HERE / "smoke.mongoose.js", path)
    command = ["node", "smoke.mongoose.js", server.uri]
    return [run_program(f"mongoose {MONGOOSE}", "smoke", command, cwd=path)]


def mongosh(server):
    """a script of mongosh"""
    path = folder("mongosh")
    npm(path, f"mongosh@{MONGOSH}")
    program = path / "node_modules" / ".bin" / "mongosh"
    command = [program, server.uri, "--quiet", "--norc", HERE / "smoke.mongosh.js"]
    return [run_program(f"mongosh {MONGOSH}", "smoke", command, cwd=path)]


def java(server):
    """common operations with the Java driver"""
    need("java", "javac", "mvn")
    path = folder("java")
    pom = (HERE / "pom.xml").read_text().replace("DRIVER_VERSION", JAVA)
    (path / "pom.xml").write_text(pom)
    jars = path / "target" / "dependency"
    if not list(jars.glob(f"mongodb-driver-sync-{JAVA}.jar")):
        copy = ["mvn", "-q", "-B", "dependency:copy-dependencies"]
        install("the Java driver", copy, cwd=path)
    classes = f"{jars}/*"
    compile = ["javac", "-cp", classes, "-d", path, HERE / "Smoke.java"]
    subprocess.run(compile, check=True)
    command = ["java", "-cp", f"{path}{os.pathsep}{classes}", "Smoke", server.uri]
    return [run_program(f"Java driver {JAVA}", "smoke", command, cwd=path)]


def rust(server):
    """common operations with the Rust driver"""
    need("cargo")
    path = folder("rust")
    (path / "src").mkdir(exist_ok=True)
    shutil.copy(HERE / "smoke.rs", path / "src" / "main.rs")
    (path / "Cargo.toml").write_text(
        '[package]\nname = "smoke"\nversion = "0.0.0"\nedition = "2024"\n\n[dependencies]\n'
        f'mongodb = {{ version = "={RUST}", default-features = false, features = '
        '["bson-3", "compat-3-3-0", "sync", "rustls-tls"] }\n'
        # The driver's blocking half needs it and does not ask for it.
        'tokio = { version = "1", features = ["rt-multi-thread"] }\n\n[workspace]\n'
    )
    environment = {**os.environ, "CARGO_TARGET_DIR": str(path / "target")}
    install("the Rust driver", ["cargo", "fetch", "-q"], cwd=path)
    subprocess.run(["cargo", "build", "-q"], check=True, cwd=path, env=environment)
    command = [path / "target" / "debug" / "smoke", server.uri]
    return [run_program(f"Rust driver {RUST}", "smoke", command)]


SUITES = {"node": node, "mongoose": mongoose, "mongosh": mongosh, "java": java, "rust": rust}
