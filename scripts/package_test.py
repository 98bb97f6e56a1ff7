"""The steps of scripts/package-test, inside of a copy of the system.

There is no service manager in it, so this script starts the program as the unit says: as its user,
with the socket that it reports to.
"""

import os
import pathlib
import pwd
import re
import shlex
import signal
import socket
import subprocess
import sys

UNIT = pathlib.Path("/lib/systemd/system/romanesco.service")
CONFIGURATION = pathlib.Path("/etc/romanesco.yaml")
DATA = pathlib.Path("/var/lib/romanesco")
LOG = pathlib.Path("/var/log/romanesco/romanesco.log")
NOTIFY = "/run/romanesco-notify"

# The longest wait for a server to start or to end, in seconds. Not reached by a test that passes.
WAIT = 300


def run(*command, **options):
    return subprocess.run(command, check=True, text=True, capture_output=True, **options).stdout


def installed(package):
    # Tests are offline: what the package depends on is not looked up.
    run("dpkg", "--install", "--force-depends", "--force-confold", package)
    return run("dpkg-query", "--show", "--showformat=${Version}", "romanesco")


def unit_setting(name):
    return re.search(rf"^{name}=(.*)$", UNIT.read_text(), re.MULTILINE).group(1)


class Service:
    """The server as its unit starts it."""

    def __init__(self):
        user = pwd.getpwnam(unit_setting("User"))
        if os.path.exists(NOTIFY):
            os.unlink(NOTIFY)
        self.reports = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.reports.bind(NOTIFY)
        os.chmod(NOTIFY, 0o777)
        self.reports.settimeout(WAIT)
        self.process = subprocess.Popen(
            shlex.split(unit_setting("ExecStart")),
            user=user.pw_uid,
            group=user.pw_gid,
            extra_groups=[],
            env={"PATH": "/usr/bin:/bin", "NOTIFY_SOCKET": NOTIFY},
            cwd="/",
        )
        self.until("READY=1")

    def until(self, state):
        while state not in self.reports.recv(4096).decode().splitlines():
            pass

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.until("STOPPING=1")
        assert self.process.wait(WAIT) == 0
        self.reports.close()


def check_files():
    mode = CONFIGURATION.stat().st_mode & 0o777
    assert mode == 0o640, f"{CONFIGURATION} has mode {mode:o}"
    assert DATA.stat().st_mode & 0o777 == 0o700
    shared = ("man/man1/romanesco.1.gz", "man/man1/romanesco-serve.1.gz")
    shared += ("doc/romanesco/guides/watch.md", "romanesco/dashboards/signals.json")
    for path in shared:
        assert (pathlib.Path("/usr/share") / path).exists(), path
    assert pathlib.Path("/usr/share/bash-completion/completions/romanesco").exists()
    assert pathlib.Path("/etc/logrotate.d/romanesco").exists()
    if pathlib.Path("/usr/bin/systemd-analyze").exists():
        run("systemd-analyze", "verify", "--man=no", str(UNIT))


def step(text):
    print(f"  {text}", flush=True)


def main(old, new):
    first = installed(old)
    step(f"installed {first}")
    check_files()
    service = Service()
    assert service.process.args[0] == "/usr/bin/romanesco"
    log = LOG.read_text()
    assert '"Romanesco starting"' in log and "betree" in log, log
    step("started, and reported that it is ready")
    with CONFIGURATION.open("a") as configuration:
        configuration.write("\noperationProfiling: {slowOpThresholdMs: 250}\n")
    second = installed(new)
    assert second != first
    assert "slowOpThresholdMs: 250" in CONFIGURATION.read_text(), "an edited file is kept"
    step(f"upgraded to {second} while it runs")
    service.stop()
    service = Service()
    assert '"slowOpThresholdMs":250' in LOG.read_text()
    service.stop()
    step("restarted with the data and the edited configuration")
    run("dpkg", "--remove", "romanesco")
    assert not pathlib.Path("/usr/bin/romanesco").exists()
    assert CONFIGURATION.exists() and any(DATA.iterdir()), "removing keeps files and data"
    step("removed; configuration and data are kept")
    run("dpkg", "--purge", "romanesco")
    assert not CONFIGURATION.exists() and not LOG.exists() and any(DATA.iterdir())
    step("purged; data are kept")
    print("executed 5, passed 5, failed 0")


if __name__ == "__main__":
    main(*sys.argv[1:])
