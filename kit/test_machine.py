"""Tests of machine.py: `python3 -m unittest discover kit`. Most are skipped without PyTorch."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path

from test_kit import HAS_TORCH, needs_torch, script

GROUPS = {"product", "attention", "pass", "update", "block", "step"}


class Machine(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "machine.jsonl"

    def rows(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.file.read_text().splitlines()]

    @needs_torch
    def test_a_cpu_is_measured_part_by_part(self) -> None:
        only = "products,attention,passes,updates,blocks,steps"
        done = script("machine.py", "--device", "cpu", "--only", only, "--budget", 120, "--quiet", "-o", self.file)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("left out", done.stderr)
        first, *rows = self.rows()
        self.assertEqual((first["kind"], first["type"]), ("machine", "cpu"))
        self.assertEqual({row["kind"] for row in rows}, GROUPS)
        for row in rows:
            times = [value for key, value in row.items() if key.endswith(("us", "_ms")) and not isinstance(value, list)]
            self.assertTrue(all(value > 0 for value in times), row)
            self.assertTrue(row["family"])

    @needs_torch
    def test_collectives_over_ranks_of_a_cpu_are_added(self) -> None:
        common = ("machine.py", "--device", "cpu", "--quiet", "-o", self.file)
        self.assertEqual(script(*common, "--only", "updates").returncode, 0)
        before = len(self.rows())
        done = script(*common, "--only", "collectives", "--ranks", 2, "--budget", 20, "--append")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = [row for row in self.rows()[before:] if row["kind"] == "collective"]
        self.assertLessEqual({"all-reduce", "all-gather", "send"}, {row["family"] for row in found})
        self.assertEqual({(row["N"], row["machines"]) for row in found}, {(2, 1)})

    @needs_torch
    def test_what_is_not_measured_is_an_error(self) -> None:
        done = script("machine.py", "--only", "dreams", "-o", self.file)
        self.assertEqual(done.returncode, 2)
        self.assertIn("dreams", done.stderr)

    @unittest.skipIf(HAS_TORCH, "PyTorch is installed")
    def test_without_pytorch_there_is_one_error(self) -> None:
        done = script("machine.py", "-o", self.file)
        self.assertEqual(done.returncode, 2)
        self.assertIn("PyTorch cannot be imported", done.stderr)
        self.assertFalse(self.file.exists())


if __name__ == "__main__":
    unittest.main()
