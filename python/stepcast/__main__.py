"""The program `stepcast`, also as `python -m stepcast`: the command line, and sweeps that Dask, Ray or processes share."""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import Any

from . import _stepcast
from .errors import InputError, StepcastError
from .sweeping import CHUNK, sweep

EXAMPLES = """\
examples:
  stepcast sweep --dask tcp://head:8786 job.toml --vary batch=1..512 --vary workers.count=1..64 -o sweep.csv
  stepcast sweep --processes 8 job.toml --vary batch=16,32
  stepcast sweep --ray auto job.toml --vary batch=16,32 -o sweep.jsonl --resume

Without -o, rows are JSON lines on standard output, the same bytes as those of `stepcast sweep --json`."""

EXECUTORS = ("--dask", "--ray", "--processes")

BAD_INPUT, INTERRUPTED = 2, 130


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="stepcast sweep",
        description="Every combination of values, on many machines or processes.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("scenario", help="scenario (TOML) or profile (.json, .json.gz)")
    made.add_argument("--vary", action="append", required=True, metavar="KEY=VALUES", help="may be repeated")
    made.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="may be repeated")
    made.add_argument("--method", default="auto", metavar="NAME")
    made.add_argument("--limit", type=int, metavar="N", help="only the first N points")
    made.add_argument("-o", "--output", metavar="OUT", help="file for all rows: .csv or .jsonl")
    made.add_argument("--resume", action="store_true", help="go on where the file of the same sweep ends")
    made.add_argument("--force", action="store_true", help="write over a file that exists")
    made.add_argument("--threads", type=int, metavar="N", help="threads of each worker; all its cores if left out")
    made.add_argument("--chunk", type=int, default=CHUNK, metavar="N", help=f"points that travel together ({CHUNK})")
    where = made.add_mutually_exclusive_group(required=True)
    where.add_argument("--dask", metavar="ADDRESS", help="the scheduler of a Dask cluster")
    where.add_argument("--ray", metavar="ADDRESS", help="a Ray cluster, or auto")
    where.add_argument("--processes", type=int, metavar="N", help="processes of this machine")
    return made


def _executor(flags: argparse.Namespace) -> Any:
    try:
        if flags.dask:
            dask: Any = importlib.import_module("distributed")
            return dask.Client(flags.dask, timeout=10)
        if flags.ray:
            ray: Any = importlib.import_module("ray")
            ray.init(address=flags.ray)
            return ray
        if flags.processes:
            from concurrent.futures import ProcessPoolExecutor

            return ProcessPoolExecutor(flags.processes)
    except ImportError as error:
        raise InputError(str(error), "pip install 'dask[distributed]', or ray") from error
    except (OSError, ConnectionError, ValueError) as error:
        where = flags.dask or flags.ray or f"--processes {flags.processes}"
        raise InputError(f"nobody answers: {error}", "check the address and that it is up", place=where) from error
    return None


def main(arguments: list[str] | None = None) -> int:
    asked = sys.argv[1:] if arguments is None else arguments
    shared = any(flag.split("=")[0] in EXECUTORS for flag in asked)
    if asked[:1] == ["sweep"] and shared:
        return _shared_sweep(asked[1:])
    return _stepcast.main(["stepcast", *asked])


def _shared_sweep(arguments: list[str]) -> int:
    flags = _parser().parse_args(arguments)
    try:
        swept = sweep(
            flags.scenario,
            flags.vary,
            method=flags.method,
            limit=flags.limit,
            output=flags.output,
            resume=flags.resume,
            force=flags.force,
            threads=flags.threads,
            executor=_executor(flags),
            chunk=flags.chunk,
            set=flags.set,
        )
    except StepcastError as error:
        where = f"\n --> {error.place}" if error.place else ""
        print(f"error: {error.key + ': ' if error.key else ''}{error.reason}{where}", file=sys.stderr)
        if error.remedy:
            print(f"  = help: {error.remedy}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("interrupted: rows so far are in the file, and --resume goes on from there", file=sys.stderr)
        return INTERRUPTED
    if flags.output:
        print(f"{flags.output} has {len(swept):,} rows, one for every point.")
    else:
        sys.stdout.buffer.write(swept.to_jsonl())
    return 0


if __name__ == "__main__":
    sys.exit(main())
