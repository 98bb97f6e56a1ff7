"""The dashboards in the tree are those that `scripts/dashboards` writes."""

import pathlib
import subprocess
import unittest

SCRIPT = pathlib.Path(__file__).with_name("dashboards")


class Dashboards(unittest.TestCase):
    def test_files_are_written_by_the_script(self):
        done = subprocess.run([SCRIPT, "--check"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
