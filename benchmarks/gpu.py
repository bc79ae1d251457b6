"""On an accelerator: each technique's samples per second and memory, and the generated loop against one by hand.

Here: `python -m benchmarks.gpu FOLDER` writes the projects and a copy of this file. There, with torch and what a
project imports: `python FOLDER/gpu.py run FOLDER`. Under eight minutes; the table comes last, results.json beside it.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

WORKS = {"resnet": 256, "transformer": 64}  # samples per step
STEPS, ROUNDS = 40, 5
BASE = ["clipping", "scheduler"]
# name: techniques besides BASE, arguments
CASES: dict[str, tuple[list[str], list[str]]] = {
    "fp32": ([], []),
    "amp bf16": (["amp"], ["--amp.dtype", "bf16"]),
    "amp fp16": (["amp"], ["--amp.dtype", "fp16"]),
    "accumulation 4": (["accumulation"], ["--accumulation.steps", "4"]),
    "compile": (["compile"], ["--compile.mode", "default"]),
    "compile, amp bf16": (["compile", "amp"], ["--amp.dtype", "bf16"]),
    "augmentation, idle": (["augmentation"], ["--augmentation.no-enabled"]),
    "debug hooks": (["debug"], []),
}


def write_projects(folder: Path) -> None:
    from tricks.template.rendering import Template, write

    root = Path(__file__).resolve().parents[1]
    for name, (techniques, _) in CASES.items():
        project = Template(root).render({"techniques": BASE + techniques})
        for file in ("data.py", "model.py"):
            project[Path(file)] = (root / "benchmarks" / "gpu_project" / file).read_text()
        write(project, folder / name)
    (folder / "gpu.py").write_text(Path(__file__).read_text())


def measure(arguments: list[str], batch: int) -> dict[str, Any]:
    """In a project's folder: samples per second of the generated loop and of the one by hand, in turns."""
    sys.path.insert(0, ".")
    import torch
    import train
    from config import parse
    from device import find_device
    from loader import Loader
    from model import build_model, count, loss
    from run import build
    from schedule import factor

    device = find_device()
    accumulation = (
        int(arguments[arguments.index("--accumulation.steps") + 1]) if "--accumulation.steps" in arguments else 1
    )
    config = parse(["--batch-size", str(batch // accumulation), "--max-steps", "100000", *arguments])
    source, _ = train.load(config.data, 0, device)
    run = build(config, source.info, device, 100)
    loader = Loader(source, config.batch_size, 0, config.loader, device, shuffle=True)

    def synchronize() -> None:
        if device.type != "cpu":
            torch.accelerator.synchronize()

    def generated(epoch: int, steps: int) -> None:
        batches = loader.epoch(epoch)
        pending = []
        for _ in range(steps):
            if accumulation > 1:
                pending.append(train.step(run, [next(batches) for _ in range(accumulation)]))
            elif "accumulation" in Path.cwd().name:
                pending.append(train.step(run, [next(batches)]))
            else:
                pending.append(train.step(run, next(batches)))
        torch.stack([total for total, _, _ in pending]).tolist()

    torch.manual_seed(0)
    model = build_model({}).to(device)
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=config.lr, weight_decay=config.weight_decay, fused=True)

    def by_hand(epoch: int, steps: int) -> None:
        order = torch.randperm(len(source), generator=torch.Generator().manual_seed(epoch)).split(batch)
        pending = []
        for step, ids in zip(range(steps), order, strict=False):
            optimizer.zero_grad()
            inputs = source.fetch(ids, epoch)
            total = loss(model, inputs)
            (total / count(inputs)).backward()
            pending.append((total.detach(), torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)))
            for group in optimizer.param_groups:
                group["lr"] = config.lr * factor(step, 100000, config.schedule)
            optimizer.step()
        torch.stack([total for total, _ in pending]).tolist()

    found: dict[str, Any] = {"generated": [], "by hand": []}
    contestants = {"generated": generated} | ({"by hand": by_hand} if not arguments else {})
    for each in contestants.values():
        each(0, 10)
    synchronize()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
        generated(1, STEPS)
        found["peak_memory_mb"] = round(torch.cuda.max_memory_allocated() / 2**20, 1)
        # A hidden wait for the device raises here: a step makes none (fp16 asks whether it overflowed, and says so).
        torch.cuda.set_sync_debug_mode("error")
        batches = loader.epoch(2)
        try:
            for _ in range(3):
                micro = [next(batches) for _ in range(accumulation)]
                train.step(run, micro if "accumulation" in Path.cwd().name else micro[0])
            found["synchronisation"] = "none"
        except RuntimeError as error:
            found["synchronisation"] = str(error).splitlines()[0]
        torch.cuda.set_sync_debug_mode("default")
    for index in range(ROUNDS):
        for name, each in contestants.items():
            synchronize()
            began = time.perf_counter()
            each(3 + index, STEPS)
            synchronize()
            found[name].append(STEPS * batch / (time.perf_counter() - began))
    return found


def main(folder: Path) -> int:
    import torch

    device = torch.accelerator.current_accelerator(check_available=True)
    if device is None and "BENCH_SAMPLES" not in os.environ:
        print("No accelerator here: nothing was measured.")
        return 0
    until, results = time.monotonic() + 420, {}
    for network, batch in WORKS.items():
        for name, (_, arguments) in CASES.items():
            if time.monotonic() > until:
                results[f"{network}, {name}"] = {"problem": "left out for time"}
                continue
            command = [sys.executable, str(folder.resolve() / "gpu.py"), "measure", str(batch), *arguments]
            environment = os.environ | {"BENCH_NETWORK": network}
            done = subprocess.run(
                command, cwd=folder / name, env=environment, capture_output=True, text=True, timeout=240
            )
            lines = done.stdout.splitlines()
            problem = {"problem": done.stderr.strip()[-300:]}
            results[f"{network}, {name}"] = json.loads(lines[-1]) if done.returncode == 0 else problem
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    print(f"{'':<32}{'samples/s':>11}{'against fp32':>14}{'peak MB':>10}{'by hand':>9}  hidden waits")
    for name, found in results.items():
        if "problem" in found:
            print(f"{name:<32}{found['problem']}")
            continue
        rate = statistics.median(found["generated"])
        plain = results[f"{name.split(', ')[0]}, fp32"]
        base = statistics.median(plain["generated"]) if "generated" in plain else float("nan")
        pairs = zip(found["generated"], found["by hand"], strict=False)
        hand = f"{statistics.median(a / b for a, b in pairs):.3f}" if found["by hand"] else ""
        print(
            f"{name:<32}{rate:>11,.0f}{rate / base:>14.2f}{found.get('peak_memory_mb', 0):>10}{hand:>9}  "
            f"{found.get('synchronisation', '')}"
        )
    return 1 if any("problem" in found for found in results.values()) else 0


if __name__ == "__main__":
    if sys.argv[1] == "measure":
        print(json.dumps(measure(sys.argv[3:], int(sys.argv[2]))))
    elif sys.argv[1] == "run":
        raise SystemExit(main(Path(sys.argv[2])))
    else:
        write_projects(Path(sys.argv[1]))
