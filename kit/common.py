"""What the scripts of the kit share: errors, time budget, progress, files and where they come from."""

from __future__ import annotations

import argparse
import datetime
import gzip
import json
import os
import platform
import shlex
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NoReturn

BAD_INPUT = 2
INTERRUPTED = 130


class KitError(Exception):
    """Something the user can mend: what is wrong, and what to do about it."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


def complain(error: KitError) -> None:
    print(f"error: {error.reason}\n |\n = help: {error.remedy}", file=sys.stderr)


def note(text: str) -> None:
    print(f"note: {text}", file=sys.stderr)


def guarded(main: Callable[[], None]) -> NoReturn:
    """Runs a script: errors of the user exit with 2, Ctrl-C and a request to end with 130."""

    def interrupt(*_: object) -> NoReturn:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)  # the file is being written
        raise KeyboardInterrupt

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, interrupt)
    try:
        main()
    except KitError as error:
        complain(error)
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt:
        if os.environ.get("RANK", "0") == "0":
            print("\ninterrupted: what was measured until now is in the file", file=sys.stderr, flush=True)
        os._exit(INTERRUPTED)  # threads of a process group may still wait for their peers
    sys.exit(0)


def import_torch() -> Any:
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
    try:
        import torch
    except ImportError as error:
        raise KitError(
            f"PyTorch cannot be imported: {error}", "install it: https://pytorch.org/get-started/locally"
        ) from error
    return torch


def pick_device(name: str) -> Any:
    """`auto` is the GPU if there is one."""
    torch = import_torch()
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise KitError(f'"{name}" is no device', "use cuda, cuda:1 or cpu") from error
    if device.type not in ("cuda", "cpu"):
        raise KitError(f'"{name}" is neither a GPU that runs CUDA or ROCm nor a CPU', "use cuda or cpu")
    if device.type == "cuda":
        device = torch.device("cuda", device.index or 0)
        if not torch.cuda.is_available():
            raise KitError("PyTorch sees no GPU here", "use --device cpu, or install PyTorch for your GPU")
        if device.index >= torch.cuda.device_count():
            raise KitError(f"there is no GPU {device.index}", f"use a number below {torch.cuda.device_count()}")
        torch.cuda.set_device(device)
    return device


class Budget:
    """Seconds that a measurement may take; none means any number."""

    def __init__(self, seconds: float | None) -> None:
        self._start = time.monotonic()
        self._seconds = seconds

    @property
    def spent(self) -> float:
        return time.monotonic() - self._start

    def is_over(self) -> bool:
        return self._seconds is not None and self.spent >= self._seconds


class Progress:
    """A bar on stderr; a line now and then where that is no terminal."""

    def __init__(self, total: int, quiet: bool = False) -> None:
        self._total, self._quiet = max(total, 1), quiet
        self._done, self._start, self._shown = 0, time.monotonic(), 0.0
        self._live = sys.stderr.isatty()

    def step(self, label: str) -> None:
        self._done += 1
        now = time.monotonic()
        wait = 0.1 if self._live else 10.0
        if self._quiet or (now - self._shown < wait and self._done < self._total):
            return
        self._shown = now
        share = self._done / self._total
        left = (now - self._start) * (1 / share - 1)
        bar = "#" * int(24 * share)
        text = f"[{bar:<24}] {self._done}/{self._total}  {left:.0f} s left  {label}"
        end = "\n" if not self._live or self._done == self._total else ""
        print(("\r\x1b[K" if self._live else "") + text[:118], end=end, file=sys.stderr, flush=True)

    def stop(self) -> None:
        if self._live and not self._quiet and self._done < self._total:
            print(file=sys.stderr)


def rename_into_place(path: Path, data: bytes) -> None:
    """Writes beside, then renames: the file is the old one or the new one, never half of it."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        beside.write_bytes(data)
        os.replace(beside, path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise KitError(f"{path} cannot be written: {error.strerror}", "name another file with -o") from error


def packed(path: Path, text: str) -> bytes:
    data = text.encode()
    return gzip.compress(data, mtime=0) if path.suffix == ".gz" else data


def unpacked(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def provenance(device: Any, **more: Any) -> dict[str, Any]:
    """Where measurements come from: machine, versions, date, command."""
    torch = import_torch()
    facts: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": shlex.join(["python3", *sys.argv]),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "system": platform.platform(),
        "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    }
    if device.type == "cuda":
        facts["device"] = torch.cuda.get_device_name(device)
        facts["cuda"] = torch.version.cuda or torch.version.hip
        facts["cudnn"] = torch.backends.cudnn.version()
    else:
        facts["device"] = facts["cpu"]
    return facts | more


def cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


class Output:
    """A file of measurements that is valid at all times, and beside it FILE.provenance.json.

    Stepcast's readers take no comments and no rows of other kinds, so where data come from stands beside them.
    """

    def __init__(self, path: Path, *, force: bool = False, append: bool = False) -> None:
        if path.exists() and not (force or append):
            raise KitError(f"{path} exists", "use --force to write over it, --append to add rows, or name another file")
        if not path.parent.is_dir():
            raise KitError(f"there is no folder {path.parent}", "make it first")
        self.path = path
        self._beside = path.with_name(path.name + ".provenance.json")
        self._runs: list[dict[str, Any]] = []
        self._before = ""
        if append and path.exists():
            self._before = unpacked(path)
            if self._before and not self._before.endswith("\n"):
                self._before += "\n"
            if self._beside.exists():
                try:
                    self._runs = json.loads(self._beside.read_text())["runs"]
                except (ValueError, KeyError, TypeError) as error:
                    raise KitError(f"{self._beside} is damaged", "mend it, or take it away") from error

    def write(self, lines: Iterable[str], run: dict[str, Any]) -> None:
        """Replaces the file by what it held before and these lines."""
        text = self._before + "".join(f"{line}\n" for line in lines)
        rename_into_place(self.path, packed(self.path, text))
        facts = json.dumps({"file": self.path.name, "runs": [*self._runs, run]}, indent=1)
        rename_into_place(self._beside, facts.encode() + b"\n")


def parser(description: str, examples: str, default: str, *, append: bool) -> argparse.ArgumentParser:
    """The options that all scripts have."""
    made = argparse.ArgumentParser(
        description=description,
        epilog="examples:\n" + examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("-o", "--output", type=Path, default=Path(default), help=f"file to write (default {default})")
    made.add_argument("--force", action="store_true", help="write over the file if it exists")
    if append:
        made.add_argument("--append", action="store_true", help="add rows to the file if it exists")
    made.add_argument("--budget", type=positive, metavar="SECONDS", help="stop after so long, with a valid file")
    made.add_argument("--device", default="auto", help="cuda, cuda:1 or cpu (default: the GPU if there is one)")
    made.add_argument("--quiet", action="store_true", help="no progress")
    return made


def positive(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text} is not above zero")
    return value


def count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is no number from 1 on")
    return value


def listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def counts(text: str) -> list[int]:
    return [count(part) for part in listed(text)]
