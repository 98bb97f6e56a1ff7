"""What ends a run with which exit code, with small programs in the place of the server.

    python3 -m unittest discover --start-directory scripts/compatibility
"""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import stat
import sys
import tempfile
import unittest

import common
import drivers

# Listens as a server does, until it is told to end. That may be at once, so the signal is kept
# until it is waited for: one that a handler takes just before a pause would be slept through.
LISTEN = """
import signal, socket, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
with socket.create_server(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1]))) as listener:
    {begin}
    signal.sigwait([signal.SIGTERM])
    {end}
"""


def program():
    """The program `run`, which is no module by its name."""
    loader = importlib.machinery.SourceFileLoader("run", str(common.HERE / "run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("run", loader))
    loader.exec_module(module)
    return module


def counted(outcome):
    """A suite with one test."""

    def suite(_):
        group = common.Group("suite", "group")
        group.add("test", outcome, "why")
        return [group]

    return suite


def missing(_):
    raise common.Skip("no client")


class ExitCode(unittest.TestCase):
    def run_with(self, server, suite):
        with tempfile.TemporaryDirectory() as folder:
            binary = pathlib.Path(folder) / "server"
            binary.write_text(f"#!{sys.executable}\n{server}")
            os.chmod(binary, stat.S_IRWXU)
            run = program()
            run.SUITES = {"suite": suite}
            with contextlib.redirect_stdout(io.StringIO()) as said:
                with contextlib.redirect_stderr(said):
                    code = run.main(["--binary", str(binary), "suite"])
            return code, said.getvalue()

    def check(self, expected, says, end="sys.exit(0)", begin="pass", suite=counted("pass")):
        code, said = self.run_with(LISTEN.format(end=end, begin=begin), suite)
        self.assertEqual(code, expected, said)
        self.assertIn(says, said)

    def test_passing_and_failing_tests(self):
        self.check(0, "1 passed")
        self.check(1, "FAILED: test: why", suite=counted("fail"))

    def test_a_server_that_does_not_start(self):
        code, said = self.run_with("raise SystemExit('no such engine')", counted("pass"))
        self.assertEqual(code, 1, said)
        self.assertIn("no such engine", said)

    def test_a_server_that_ends_with_an_error(self):
        self.check(1, "exit code 3", end="sys.exit(3)")

    def test_a_server_that_panics(self):
        panic = "print('thread panicked at', flush=True)"
        self.check(1, "the server panicked", begin=panic)
        # What was counted is shown all the same.
        self.check(1, "1 passed", begin=panic)
        self.check(1, "the server panicked", begin=panic, suite=missing)

    def test_a_suite_that_counts_nothing(self):
        self.check(1, "no test was counted", suite=lambda _: [])
        self.check(1, "no test was counted", suite=lambda _: [common.Group("suite", "empty")])

    def test_a_client_that_is_missing(self):
        self.check(0, "skipped: no client", suite=missing)


class Installed(unittest.TestCase):
    def test_what_an_install_left_that_was_cut_short_is_not_taken_for_whole(self):
        with tempfile.TemporaryDirectory() as folder:
            modules = pathlib.Path(folder)
            (modules / "one").mkdir()
            listed = modules / ".package-lock.json"
            self.assertFalse(drivers.installed(modules, ["one@1.2.3"]))
            listed.write_text("{")
            self.assertFalse(drivers.installed(modules, ["one@1.2.3"]))
            listed.write_text('{"packages": {"node_modules/one": {"version": "1.2.3"}}}')
            self.assertTrue(drivers.installed(modules, ["one@1.2.3"]))
            self.assertFalse(drivers.installed(modules, ["one@1.2.4"]))
            self.assertFalse(drivers.installed(modules, ["one@1.2.3", "other@1.0.0"]))


if __name__ == "__main__":
    unittest.main()
