"""Verdicts and the kept rows of the cross-checks, without any tool."""

import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import common  # noqa: E402
import page  # noqa: E402


def verdict(*ratios, bound=(0.9, 1.1)):
    return common.paired("rate", "1/s", list(ratios), [1.0] * len(ratios), *bound).verdict


class Verdicts(unittest.TestCase):
    def test_all_repeats_must_lie_on_one_side(self):
        self.assertEqual(verdict(0.95, 1.0, 1.05), common.WITHIN)
        self.assertEqual(verdict(1.2, 1.15, 1.3), common.OUTSIDE)
        self.assertEqual(verdict(0.7, 0.8, 0.85), common.OUTSIDE)
        # The median alone would be within, and outside.
        self.assertEqual(verdict(0.95, 1.0, 1.2), common.NOISY)
        self.assertEqual(verdict(0.95, 1.2, 1.3), common.NOISY)
        self.assertEqual(verdict(0.5, 1.0, 1.5), common.NOISY)

    def test_the_interval_is_that_of_the_median(self):
        one = [0.5] + [1.0] * 6
        self.assertEqual(common.interval(one), (0.5, 1.0))
        # 2 * (1 + 8) of 256 ways to fall leave the median outside: 7 %.
        self.assertEqual(common.interval([*one, 2.0]), (1.0, 1.0))
        self.assertEqual(common.interval([*one[1:], 2.0, 2.0]), (1.0, 2.0))
        # 2 * (1 + 11 + 55) of 2048: 6.5 %; with three left out it were 22 %.
        self.assertEqual(common.interval(list(range(11))), (2, 8))
        self.assertEqual(verdict(0.5, 0.6, *[1.0] * 7, 1.5, 2.0), common.WITHIN)

    def test_two_repeats_tell_nothing(self):
        self.assertEqual(verdict(1.0, 1.0), common.FEW)
        self.assertEqual(verdict(2.0), common.FEW)

    def test_a_row_without_a_bound_is_not_judged(self):
        self.assertEqual(verdict(5.0, 5.0, 5.0, bound=()), "-")

    def test_medians_and_the_interval_are_kept(self):
        row = common.paired("rate", "1/s", [10, 30, 20], [10, 10, 10])
        self.assertEqual((row.ours, row.theirs, row.repeats), (20, 10, 3))
        self.assertEqual(row.spread, (1.0, 3.0))


class Kept(unittest.TestCase):
    def test_new_rows_replace_all_old_ones_of_their_check(self):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            files = {"FIXTURE": place / "kept.json", "PAGE": place / "kept.md"}
            said = mock.patch.object(common, "run", side_effect=["old 1\n", "old 1\n", "new 2\n"])
            with mock.patch.multiple(page, **files), said:
                for name, what in [("one", "gone"), ("other", "stays"), ("one", "comes")]:
                    row = common.paired(what, "1/s", [1, 1, 1], [1, 1, 1], 0.9, 1.1)
                    page.keep(name, common.Made([row], []), "program")
                text = (place / "kept.md").read_text()
                self.assertEqual(page.load()["one"]["program"], "new 2")
                self.assertEqual(text, page.text(page.load()))
        self.assertNotIn("gone", text)
        for words in ["| stays |", "| comes |", "new 2", "old 1", "| 3 | 0.9 to 1.1 | within |"]:
            self.assertIn(words, text)


if __name__ == "__main__":
    unittest.main()
