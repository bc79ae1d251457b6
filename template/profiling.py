"""A trace of a few optimizer steps: what ran, for how long, with how much memory.

In the run's profile/: trace.json opens in https://ui.perfetto.dev, table.txt lists the dearest operators, and
memory.pickle (cuda only) opens in https://pytorch.org/memory_viz.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, schedule
# {% if ddp %}

from distributed import rank
# {% endif %}


@dataclass(frozen=True)
class ProfilerConfig:
    wait: int = 3
    """Optimizer steps to let pass first: they allocate memory and choose kernels."""
    warmup: int = 2
    """Steps to run with the profiler on but nothing kept, since its own start distorts them."""
    active: int = 5
    """Steps to record; 0 switches the profiler off."""
    memory: bool = True
    """Also record what each operator allocates on an accelerator and, on cuda, a snapshot of the memory."""

    def __post_init__(self) -> None:
        for name, least in (("wait", 0), ("warmup", 1), ("active", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"--profiler.{name} is {getattr(self, name)}: give {least} or more.")


class Profiler:
    """Records once, early. Call step() after each optimizer step, and stop() at the end in any case."""

    def __init__(self, config: ProfilerConfig, run_dir: Path, device: torch.device) -> None:
        self.config, self.folder, self.device = config, run_dir / "profile", device
        self.steps = 0
        self.profile: profile | None = None
        # {% if ddp %}
        # One rank is enough: its trace shows the communication as well.
        if config.active == 0 or rank() > 0:
            return
        # {% else %}
        if config.active == 0:
            return
        # {% endif %}
        # Kineto, the profiler below torch's, otherwise prints each start, and an error where there is no GPU.
        os.environ.setdefault("KINETO_LOG_LEVEL", "6")
        cpu = ProfilerActivity.CPU
        self.profile = profile(
            activities={cpu, getattr(ProfilerActivity, device.type.upper(), cpu)},
            schedule=schedule(wait=config.wait, warmup=config.warmup, active=config.active, repeat=1),
            on_trace_ready=self.write,
            # On a CPU torch complains of each block that is older than the profiler.
            profile_memory=config.memory and device.type != "cpu",
        )
        self.profile.start()

    def step(self) -> None:
        """Tells that an optimizer step is over; free once the trace is written."""
        if self.profile is None:
            return
        self.steps += 1
        if self.steps == self.config.wait + self.config.warmup:
            self.record_memory(True)
        self.profile.step()
        if self.steps == self.config.wait + self.config.warmup + self.config.active:
            self.stop()

    def stop(self) -> None:
        """Writes what was recorded, unless that is done; says so if the run was too short."""
        if self.profile is None:
            return
        ending, self.profile = self.profile, None
        needed = self.config.wait + self.config.warmup + 1
        # Torch records since the step before: worth writing if that is where the run crashed, and else of no step.
        nothing = self.steps < needed and sys.exc_info()[0] is None
        if nothing:
            ending.on_trace_ready = None
        ending.stop()
        self.record_memory(False)
        if nothing:
            print(f"Nothing is profiled in {self.steps} steps, it takes {needed}: lower --profiler.wait.")

    def record_memory(self, on: bool) -> None:
        if self.config.memory and self.device.type == "cuda":
            # Bounded, as every allocation is an entry with its stack.
            torch.cuda.memory._record_memory_history("all" if on else None, max_entries=100_000)

    def write(self, recorded: profile) -> None:
        """Writes the files and prints the table. A disk that is full does not end the training."""
        on_device = self.device.type != "cpu" and hasattr(ProfilerActivity, self.device.type.upper())
        order = "self_device_time_total" if on_device else "self_cpu_time_total"
        averages = recorded.key_averages()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            recorded.export_chrome_trace(str(self.folder / "trace.json"))
            (self.folder / "table.txt").write_text(averages.table(sort_by=order, row_limit=100))
            if self.config.memory and self.device.type == "cuda":
                torch.cuda.memory._dump_snapshot(str(self.folder / "memory.pickle"))
        except OSError as error:
            print(f"The profiler cannot write into {self.folder}: {error.strerror}.")
            return
        print(averages.table(sort_by=order, row_limit=10, max_name_column_width=40))
        print(f"Trace: {self.folder / 'trace.json'} (open it in https://ui.perfetto.dev)")
