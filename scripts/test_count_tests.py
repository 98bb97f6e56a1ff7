"""What `count-tests` prints of a command's output, and with which exit code it ends.

    python3 -m unittest discover --start-directory scripts
"""

import pathlib
import subprocess
import unittest

PROGRAM = pathlib.Path(__file__).resolve().parent / "count-tests"
RESULT = "test result: {}. {} passed; {} failed; {} ignored; 0 measured; 0 filtered out"


def counted(script):
    """The exit code, and the lines printed, with a shell script as the command."""
    command = [PROGRAM, "sh", "-c", script]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout.decode().splitlines()


class Counts(unittest.TestCase):
    def test_results_of_all_programs_are_added_up(self):
        script = f"echo '{RESULT.format('ok', 3, 0, 1)}'; echo '{RESULT.format('ok', 4, 0, 0)}'"
        code, lines = counted(script)
        self.assertEqual((code, lines[-1]), (0, "7 passed, 0 failed, 1 skipped"))

    def test_a_skipped_test_is_named_and_not_counted_as_passed(self):
        script = (
            "for why in one two; do echo \"a::b: $why\" >> \"$ROMANESCO_SKIPPED_TESTS\"; done; "
            f"echo '{RESULT.format('ok', 3, 0, 0)}'"
        )
        code, lines = counted(script)
        self.assertEqual(code, 0)
        self.assertEqual(
            lines[1:],
            ["skipped: a::b: one", "skipped: a::b: two", "2 passed, 0 failed, 1 skipped"],
        )

    def test_a_failure_keeps_its_exit_code(self):
        code, lines = counted(f"echo '{RESULT.format('FAILED', 1, 2, 0)}'; exit 101")
        self.assertEqual((code, lines[-1]), (101, "1 passed, 2 failed, 0 skipped"))

    def test_a_command_that_runs_no_test_fails(self):
        code, lines = counted("echo hello")
        self.assertEqual((code, lines[-1]), (1, "0 passed, 0 failed, 0 skipped"))


if __name__ == "__main__":
    unittest.main()
