"""Tests of the kit: `python3 -m unittest discover kit`. Without PyTorch or the stepcast program parts are skipped."""

from __future__ import annotations

import argparse
import csv
import gzip
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

KIT = Path(__file__).resolve().parent
sys.path.insert(0, str(KIT))

import common  # noqa: E402
import gemm  # noqa: E402
import kernels  # noqa: E402

HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = unittest.skipUnless(HAS_TORCH, "PyTorch is not installed")
PARAMETERS = {
    "alexnet": (61_100_840, 16),
    "vgg11": (132_863_336, 22),
    "vgg13": (133_047_848, 26),
    "vgg16": (138_357_544, 32),
    "vgg19": (143_667_240, 38),
    "resnet18": (11_689_512, 62),
    "resnet34": (21_797_672, 110),
    "resnet50": (25_557_032, 161),
    "resnet101": (44_549_160, 314),
    "resnet152": (60_192_808, 467),
    "densenet121": (7_978_856, 364),
    "mobilenet-v2": (3_504_872, 158),
    "resnet32": (464_154, 95),
    "resnet56": (853_018, 167),
}


def stepcast() -> str | None:
    """The program named by STEPCAST, or the one that was built last."""
    if named := os.environ.get("STEPCAST"):
        return named
    built = [path for kind in ("release", "debug") if (path := KIT.parent / f"target/{kind}/stepcast").exists()]
    return str(max(built, key=lambda path: path.stat().st_mtime)) if built else None


def script(name: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(KIT / name), *map(str, arguments)]
    settings = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    return subprocess.run(command, env=settings, capture_output=True, text=True, timeout=300)


class Folder(unittest.TestCase):
    def setUp(self) -> None:
        made = tempfile.TemporaryDirectory()
        self.addCleanup(made.cleanup)
        self.folder = Path(made.name)

    def run_ok(self, name: str, *arguments: object, **environment: str) -> str:
        done = script(name, *arguments, **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def assert_read(self, *arguments: object, codes: tuple[int, ...] = (0,)) -> None:
        """By the stepcast program, if it was built."""
        program = stepcast()
        if program is None:
            print("not read back: no stepcast program was built", file=sys.stderr)
            return
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
        self.assertIn(done.returncode, codes, done.stderr)


class Pure(Folder):
    def test_grids_are_those_of_the_measured_file(self) -> None:
        self.assertEqual(gemm.grid(16, 128, 2), [16, 23, 32, 45, 64, 91, 128])
        self.assertEqual(gemm.grid(16, 8192, 1), [16 << power for power in range(10)])
        self.assertEqual(gemm.grid(16, 128, 2, 0.5), [19, 27, 38, 54, 76, 108])
        self.assertEqual(gemm.grid(16, 128, 1, 0.25), [19, 38, 76])

    def test_a_plan_measures_nothing_twice(self) -> None:
        args = argparse.Namespace(dtype=["f32", "bf16"], trans=["nn", "tn"], grid="auto", low=16, high=64, held=5)
        products = gemm.plan(args)
        self.assertEqual(len(products), len(set(products)))
        kinds = [product[:3] for product in products]
        self.assertEqual([kinds.count(("fit", "f32", "nn")), kinds.count(("held", "f32", "nn"))], [125, 15])
        self.assertEqual([kinds.count(("fit", "bf16", "tn")), kinds.count(("held", "bf16", "tn"))], [27, 5])

    def test_files_are_kept_unless_asked(self) -> None:
        path = self.folder / "rows.jsonl.gz"
        common.Output(path).write(["1"], {"command": "a"})
        with self.assertRaises(common.KitError):
            common.Output(path)
        common.Output(path, append=True).write(["2", "3"], {"command": "b"})
        self.assertEqual(gzip.decompress(path.read_bytes()), b"1\n2\n3\n")
        beside = json.loads((self.folder / "rows.jsonl.gz.provenance.json").read_text())
        self.assertEqual([run["command"] for run in beside["runs"]], ["a", "b"])
        common.Output(path, force=True).write(["4"], {})
        self.assertEqual(common.unpacked(path), "4\n")
        self.assertEqual(len(list(self.folder.iterdir())), 2)

    def test_a_budget_ends(self) -> None:
        self.assertFalse(common.Budget(None).is_over())
        budget = common.Budget(0.01)
        time.sleep(0.02)
        self.assertTrue(budget.is_over())

    def test_without_torch_it_says_so(self) -> None:
        (self.folder / "torch.py").write_text("raise ImportError('not here')\n")
        for name, more in (
            ("gemm.py", []),
            ("kernels.py", []),
            ("sprint.py", []),
            ("steps.py", []),
            ("gradients.py", []),
            ("allreduce.py", ["--ranks", 2, "--rate", "1gbit"]),
            ("export_onnx.py", []),
        ):
            done = script(name, *more, "-o", self.folder / "x", PYTHONPATH=str(self.folder))
            self.assertEqual(done.returncode, 2, name)
            self.assertIn("PyTorch cannot be imported", done.stderr)
            self.assertNotIn("Traceback", done.stderr)

    def test_help_and_bad_arguments(self) -> None:
        for name in ("gemm.py", "kernels.py", "sprint.py", "steps.py", "gradients.py", "allreduce.py", "export_onnx.py"):
            done = script(name, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn("examples:", done.stdout)
            self.assertEqual(script(name, "--budget", "-1", "--rate", "1gbit").returncode, 2)
        for bad in (["--rate", "fast", "--ranks", 2], ["--rate", "1gbit"]):
            self.assertEqual(script("allreduce.py", *bad).returncode, 2)
        self.assertIn("no precision", script("gemm.py", "--dtype", "f12").stderr)


@needs_torch
class Measuring(Folder):
    def test_layouts_are_those_of_the_zoo(self) -> None:
        import torch

        import nets

        self.assertEqual(set(nets.BUILT_IN), set(PARAMETERS))
        for name, (shape, classes, make) in nets.BUILT_IN.items():
            with torch.device("meta"):
                module = make()
                out = module(torch.empty(2, *shape))
            sizes = [parameter.numel() for parameter in module.parameters()]
            self.assertEqual((sum(sizes), len(sizes)), PARAMETERS[name], name)
            self.assertEqual(tuple(out.shape), (2, classes), name)

    def test_products(self) -> None:
        path = self.folder / "gemm.csv"
        self.run_ok(
            "gemm.py",
            "--device",
            "cpu",
            "--dtype",
            "f32",
            "--trans",
            "nn,tn",
            "--to",
            128,
            "--grid",
            "whole",
            "--held",
            9,
            "-o",
            path,
        )
        with path.open() as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(",".join(rows[0]), gemm.TITLES)
        self.assertEqual(len(rows), 2 * (64 + 9))
        self.assertTrue(all(0 < float(row["min_us"]) <= float(row["mean_us"]) for row in rows))
        self.assert_read("fit", "gemm", path, "-o", self.folder / "gemm.toml")

    def test_kernels(self) -> None:
        path = self.folder / "kernels.csv"
        self.run_ok("kernels.py", "--device", "cpu", "--most", 4, "-o", path)
        with path.open() as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(",".join(rows[0]), kernels.TITLES)
        self.assertEqual({row["set"] for row in rows}, {"fit", "held"})
        self.assertEqual(len({row["kernel"] for row in rows}), 7)
        self.assert_read("fit", "kernels", path, "-o", self.folder / "kernels.toml")

    def test_components_of_sprint(self) -> None:
        path = self.folder / "sprint.csv"
        arguments = ("--device", "cpu", "--model", "resnet32", "--batch", "1,2,4", "--most", 4 << 20)
        self.run_ok("sprint.py", *arguments, "-o", path)
        with path.open() as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len({row["component"] for row in rows}), 11)
        self.assert_read("fit", "sprint", path, "-o", self.folder / "sprint.toml")

    def test_products_within_a_budget(self) -> None:
        path = self.folder / "gemm.csv.gz"
        errors = self.run_ok("gemm.py", "--device", "cpu", "--to", 1024, "--budget", 1, "-o", path)
        self.assertIn("were left out", errors)
        self.assertGreater(len(gzip.decompress(path.read_bytes()).splitlines()), 1)
        self.assertTrue(json.loads((self.folder / "gemm.csv.gz.provenance.json").read_text())["runs"][0]["left_out"])

    def test_an_interrupt_leaves_a_valid_file(self) -> None:
        path = self.folder / "gemm.csv"
        command = [sys.executable, str(KIT / "gemm.py"), "--device", "cpu", "--to", "512", "-o", str(path)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:
            assert run.stderr is not None
            run.stderr.readline()  # the first product is done
            run.send_signal(signal.SIGINT)
            self.assertEqual(run.wait(60), 130)
        lines = path.read_text().splitlines()
        self.assertEqual(lines[0], gemm.TITLES)
        self.assertTrue(len(lines) > 1 and all(line.count(",") == 7 for line in lines))

    def test_steps(self) -> None:
        path = self.folder / "steps.jsonl.gz"
        short = ["--device", "cpu", "--steps", 2, "--warm-up", 1, "--profile-steps", 1, "--batch", 2, "-o", path]
        self.run_ok("steps.py", "--model", "resnet32", "--precision", "fp32,bf16", *short)
        (self.folder / "mine.py").write_text(
            "import torch\ndef make():\n    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 5))\n"
        )
        self.run_ok(
            "steps.py", "--model", "mine:make", "--input", "3,2,2", "--append", *short, PYTHONPATH=str(self.folder)
        )
        rows = [json.loads(line) for line in common.unpacked(path).splitlines()]
        self.assertEqual([row["model"] for row in rows], ["resnet32", "resnet32", "mine:make"])
        keys = "model precision batch fwd_ms bwd_ms opt_ms iter_ms params tensors mem profile".split()
        for row in rows:
            self.assertEqual(list(row), keys)
            profile = row["profile"]
            self.assertEqual(list(profile), ["layers", "grads", "bwd_ms_with_hooks"])
            self.assertEqual(list(profile["layers"][0]), ["name", "type", "inp", "out", "desc", "fwd_ms"])
            self.assertEqual(list(profile["grads"][0]), ["name", "shape", "ready_ms"])
            self.assertEqual(len(profile["grads"]), row["tensors"])
            ready = [gradient["ready_ms"] for gradient in profile["grads"]]
            self.assertEqual(ready, sorted(ready))
            self.assertLessEqual(ready[-1], profile["bwd_ms_with_hooks"] + 1e-3)
        self.assertEqual(rows[0]["profile"]["grads"][-1]["name"], "conv1.weight")
        self.assertEqual(rows[0]["profile"]["layers"][0]["inp"], [2, 3, 32, 32])

    def test_jobs(self) -> None:
        path = self.folder / "jobs.jsonl"
        self.run_ok(
            "gradients.py",
            "--device",
            "cpu",
            "--cores",
            1,
            "--model",
            "resnet32",
            "--batch",
            2,
            "--steps",
            2,
            "-o",
            path,
        )
        self.run_ok(
            "allreduce.py",
            "--device",
            "cpu",
            "--ranks",
            2,
            "--rate",
            "1gbit",
            "--sizes",
            "1024,65536,1048576",
            "--ddp",
            "resnet32",
            "--bucket",
            "25,0.001",
            "--batch",
            2,
            "--steps",
            2,
            "--append",
            "-o",
            path,
        )
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        self.assertEqual([row["kind"] for row in rows], ["profile", *["allreduce"] * 3, *["ddp"] * 2])
        self.assertEqual(
            [(row["N"], row["rate"], row["cores_per_rank"]) for row in rows], [(1, "1gbit", 1)] + [(2, "1gbit", 1)] * 5
        )
        self.assertEqual([len(rows[-1][key]) for key in ("iter", "parts", "no_sync")], [2, 2, 3])
        # 1: read and predicted, but not as well as the bounds ask
        self.assert_read("validate", "ddp-gloo", "--data", path, codes=(0, 1))

    def test_unknown_models_are_refused(self) -> None:
        for name in ("steps.py", "gradients.py"):
            done = script(name, "--device", "cpu", "--model", "resnet43", "-o", self.folder / "x")
            self.assertEqual(done.returncode, 2)
            self.assertIn("did you mean", done.stderr)
            self.assertFalse((self.folder / "x").exists())

    @unittest.skipIf(HAS_TORCH and __import__("torch").cuda.is_available(), "there is a GPU")
    def test_no_gpu_is_said(self) -> None:
        done = script("gemm.py", "--device", "cuda", "-o", self.folder / "x")
        self.assertEqual((done.returncode, "sees no GPU" in done.stderr), (2, True))


if __name__ == "__main__":
    unittest.main()
