#!/usr/bin/env python3
"""Judges `stepcast check` on recordings with planted faults, as one_gpu.py and testbed.py write them with --variations.

  research/ranks/judge.py recordings --program target/debug/stepcast

A fault is found if its cause comes first and names the rank; a healthy recording with any cause is a false alarm.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections import Counter
from pathlib import Path

KINDS = {"slow-rank": "rank", "slow-link": "link", "pauses": "pauses", "documents": "documents", "loading": "data-loading"}
JOB = ["--model", "resnet50", "--device", "v100", "--workers", "4x1", "--batch", "24", "--network", "10gbe"]


def causes(program: str, path: Path) -> list[dict[str, object]]:
    command = [program, "check", *JOB, "--json", "--measured", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{path}: {done.stderr}")
    return json.loads(done.stdout)["slowness"]["causes"]


def main() -> None:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("folder", type=Path, help="recordings, with planted.json")
    made.add_argument("--program", default="target/debug/stepcast")
    asked = made.parse_args()
    planted = json.loads((asked.folder / "planted.json").read_text(encoding="utf-8"))
    all_of, right, extra = Counter(), Counter(), Counter()
    for name, fault in planted.items():
        path = next(path for path in (asked.folder / name, asked.folder / f"{name}.csv") if path.exists())
        found = causes(asked.program, path)
        kind, who = fault["fault"], f"rank {fault['rank']}"
        all_of[kind] += 1
        if kind == "healthy":
            is_right = not found
        else:
            is_right = bool(found) and found[0]["kind"] == KINDS[kind] and (kind == "documents" or who in str(found[0]["name"]))
        right[kind] += is_right
        extra[kind] += len(found) > 1
        if not is_right:
            print(f"  {name}: planted {fault}, found {found}")
    for kind, count in all_of.items():
        words = "without a false alarm" if kind == "healthy" else "found and named"
        print(f"{kind:10} {right[kind]:3} of {count} {words}; {extra[kind]} with a second cause")


if __name__ == "__main__":
    main()
