"""Rendered projects on an accelerator: python device.py FOLDER [--seconds 540]

Needs torch and what a project imports, nothing of this repository: `python -m matrix device FOLDER` writes the trees,
jobs.json and a copy of this script into the folder, which travels. Each technique by itself is measured against the
project without it, one at a time. Then every headline combination (without exports, which are made on the CPU) trains
a few steps, several at a time, each in a process of its own. results.json is written beside jobs.json; a short table
comes last. DDP runs as one rank per project: two ranks cannot share a GPU.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=540.0, help="after that no further project begins")
    parser.add_argument("--processes", type=int, default=min(8, os.cpu_count() or 1))
    given = parser.parse_args()
    import torch

    device = torch.accelerator.current_accelerator(check_available=True)
    if device is None:
        print("No accelerator here: nothing was run. (The same projects train on the CPU with `make matrix`.)")
        return 0
    until = time.monotonic() + given.seconds
    jobs = json.loads((given.folder / "jobs.json").read_text(encoding="utf-8"))
    headline = [job for job in jobs if not job["measured"]]
    measured = [job for job in jobs if job["measured"]]
    # The measurements come first: they need the device alone, and are few.
    rows = [run(given.folder, job, until) for job in measured]
    with ThreadPoolExecutor(given.processes) as pool:
        others = list(pool.map(lambda job: run(given.folder, job, until), headline))
    name = torch.cuda.get_device_name() if device.type == "cuda" else str(device)
    result = {"device": name, "torch": torch.__version__, "measured": rows, "headline": others}
    (given.folder / "results.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(table(name, rows, others))
    return 1 if any(row["problem"] for row in [*rows, *others] if not row["left out"]) else 0


def run(folder: Path, job: dict[str, Any], until: float) -> dict[str, Any]:
    """Trains one project in a process of its own; what it logged of its last step."""
    row: dict[str, Any] = {"name": job["name"], "left out": False, "problem": ""}
    if time.monotonic() >= until:
        return row | {"left out": True}
    run_dir = (folder / "runs" / job["name"]).resolve()
    shutil.rmtree(run_dir, ignore_errors=True)
    command = [sys.executable, "train.py", "--run-dir", str(run_dir), *job["arguments"]]
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    if job["ddp"]:
        command[1:1] = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "1"]
    began = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=folder / job["project"], env=environment, capture_output=True, text=True, timeout=180
        )
    except subprocess.TimeoutExpired:
        return row | {"problem": "still running after 180 s"}
    row["seconds"] = round(time.monotonic() - began, 1)
    if done.returncode:
        return row | {"problem": f"ended with {done.returncode}: {done.stderr.strip()[-500:]}"}
    if "Warning" in done.stdout + done.stderr:
        row["problem"] = next(line for line in (done.stdout + done.stderr).splitlines() if "Warning" in line)
    lines = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    trained = [line for line in lines if "grad_norm" in line]
    if not trained or not all(isinstance(line["loss"], float) and math.isfinite(line["loss"]) for line in trained):
        return row | {"problem": "a loss is not finite"}
    rates = sorted(line["samples_per_second"] for line in trained[len(trained) // 2 :])
    row |= {"samples_per_second": rates[len(rates) // 2], "peak_memory_mb": trained[-1].get("peak_memory_mb")}
    return row


def table(name: str, rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> str:
    """Each technique against the project without it, then counts and failures."""
    lines = [f"{name}: samples per second and peak memory, against the project without the technique"]
    plain = {row["name"].partition("-")[0]: row for row in rows if row["name"].endswith("-nothing")}
    for row in rows:
        base = plain.get(row["name"].partition("-")[0], {})
        if "samples_per_second" in row and base.get("samples_per_second"):
            speed = row["samples_per_second"] / base["samples_per_second"]
            memory = row["peak_memory_mb"], base["peak_memory_mb"]
            share = f"{memory[0] / memory[1]:>6.2f}x" if all(memory) else ""
            rate = f"{row['samples_per_second']:>10.0f} {speed:>6.2f}x"
            lines.append(f"  {row['name']:<28} {rate} {memory[0]!s:>9} MB {share}")
    ran = [row for row in [*rows, *others] if not row["left out"]]
    failed = [row for row in ran if row["problem"]]
    lines += [f"  FAILED {row['name']}: {row['problem']}" for row in failed[:10]]
    lines.append(
        f"{len(ran)} projects ran, {len(failed)} failed, {len(rows) + len(others) - len(ran)} left out for time"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
