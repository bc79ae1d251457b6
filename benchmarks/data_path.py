"""The way of the data: a hundred times the data in memory, image files by workers, and how many workers are chosen."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.contestants.ours import ROOT
from tricks.template.rendering import Template, write

# CPU seconds of an epoch in memory, and the memory of the process, for SCALE times 1280 samples.
IN_MEMORY = """
import json, resource, sys, time
import torch
torch.set_num_threads(1)
from benchmarks import work as w
scale = int(sys.argv[1])
train, _ = w.digits()
bare = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
train.images, train.labels = train.images.repeat(scale, 1, 1, 1), train.labels.repeat(scale)
from benchmarks.contestants.ours import Contestant
times = []
for epochs in (1, 1, 2):
    contestant_work = w.Work("perceptron", epochs=epochs)
    if not times:
        contestant = Contestant(contestant_work)
        import config, dataclasses
    contestant.config = dataclasses.replace(contestant.config, epochs=epochs)
    began = time.process_time()
    contestant.train(contestant_work)
    times.append(time.process_time() - began)
held = (train.images.nbytes + train.labels.nbytes) / 2**20
peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - bare) / 1024
print(json.dumps({"epoch": times[2] - times[1], "data": held, "more": peak}))
"""

# Image files by workers, for a model that keeps its device busy for 10 ms a step while the CPU is free. With an
# accelerator, DataLoader has a thread that takes the batches from the workers and pins them ahead of the loop; "thread"
# starts it here, where there is nothing to pin for.
FOLDER = """
import json, sys, time
import torch
torch.set_num_threads(1)
from pathlib import Path
from torch.utils.data import _utils
from data import DataConfig, load
from loader import Loader, LoaderConfig
cpu = torch.device("cpu")
source, _ = load(DataConfig(root=Path("photos"), size=32), 0, cpu)
if sys.argv[1] == "thread":
    torch.accelerator.is_available = lambda: True
    torch.accelerator.current_accelerator = lambda *given, **named: torch.device("cuda")
    torch.accelerator.current_device_index = lambda: 0
    torch.accelerator.set_device_index = lambda index: None
    _utils.pin_memory.pin_memory = lambda data, device=None: data

def epoch(workers, step):
    device = torch.device("cuda" if sys.argv[1] == "thread" else "cpu")
    loader = Loader(source, 16, 0, LoaderConfig(workers=workers), device, shuffle=True)
    for _ in loader.epoch(0):  # starts the workers
        pass
    waited, began, asked = [], time.perf_counter(), time.perf_counter()
    for micro in loader.epoch(1):
        waited.append(time.perf_counter() - asked)
        time.sleep(step)
        asked = time.perf_counter()
    total = time.perf_counter() - began
    loader.close()
    return sum(waited) / total, waited[0], total

class Tiny:
    '''Digits as if they did not lie on the device.'''
    on_device, info = False, {}
    images, labels = torch.zeros(1280, 1, 8, 8, dtype=torch.uint8), torch.zeros(1280, dtype=torch.int64)
    def __len__(self):
        return 1280
    def fetch(self, ids, epoch):
        return self.images[ids], self.labels[ids]

idle, first, _ = epoch(2, 0.010)
if sys.argv[1] == "thread":
    print(json.dumps({"idle": idle, "first": first}))
    sys.exit()
from workers import choose_workers
files = choose_workers(source, 16)
chosen = choose_workers(Tiny(), 16)
source = Tiny()
seconds = {workers: epoch(workers, 0.0)[2] for workers in (0, 2)}
slower = seconds[2] / seconds[0]
print(json.dumps({"idle": idle, "first": first, "chosen": chosen, "chosen_files": files, "slower": slower}))
"""


def run(folder: Path, script: str, *arguments: str) -> dict[str, float]:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def pictures(folder: Path) -> None:
    """Two classes of 2000 JPEG files of 64 x 64 pixels."""
    import numpy as np
    from PIL import Image

    draw = np.random.default_rng(0)
    for kind in ("cat", "dog"):
        (folder / kind).mkdir(parents=True)
        for index in range(2000):
            pixels = draw.integers(0, 255, (8, 8, 3), dtype=np.uint8)
            Image.fromarray(pixels).resize((64, 64)).save(folder / kind / f"{index}.jpg")


def main(rounds: int = 5) -> str:
    lines = ["| samples | CPU s an epoch | against 1280 samples | data, MiB | more memory, MiB |", "|-:|-:|-:|-:|-:|"]
    one = 0.0
    for scale in (1, 10, 100):
        found = [run(ROOT, IN_MEMORY, str(scale)) for _ in range(rounds if scale < 100 else 2)]
        epoch, more = (statistics.median(each[name] for each in found) for name in ("epoch", "more"))
        one = one or epoch
        lines.append(f"| {1280 * scale:,} | {epoch:.3f} | {epoch / one:.1f} | {found[0]['data']:.1f} | {more:.1f} |")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(Template(ROOT).render({"techniques": []}), folder)
        pictures(folder / "photos")
        time.sleep(1)
        rows, threads = zip(
            *((run(folder, FOLDER, "none"), run(folder, FOLDER, "thread")) for _ in range(rounds)), strict=True
        )
    idle, slower, first = (statistics.median(row[name] for row in rows) for name in ("idle", "slower", "first"))
    thread = statistics.median(row["idle"] for row in threads)
    lines += [
        "",
        "3200 JPEG files of 64 x 64, batch 16, two workers, a step of 10 ms: with the receiving thread that "
        f"DataLoader has beside an accelerator the step waits {thread:.1%} of the time; without it, as on a CPU, "
        f"{idle:.1%}. The first batch of an epoch takes {1000 * first:.0f} ms.",
        f"Workers chosen on this machine for them: {rows[0]['chosen_files']}; for tiny samples in memory: "
        f"{rows[0]['chosen']}, where two would take {slower:.1f} times as long.",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(main(*map(int, sys.argv[1:])))
