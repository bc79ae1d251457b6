"""python -m matrix COMMAND: see docs/verification.md."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from matrix.space import ROOT, Space, TooManyError
from tricks.template.rendering import Template

SAID = (
    "Patched out in warm children, and run in the cold sample: curves.png, real compilation, AOTInductor's compiler, "
    "torchrun, all digits. Latencies of exports are not measured."
)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m matrix", description=__doc__)
    top.add_argument("--template", type=Path, default=ROOT, help="folder with copier.yml (default: this repository)")
    top.add_argument("--vary", default="", help="comma-separated options; every other one keeps its first value")
    commands = top.add_subparsers(dest="command", required=True)
    commands.add_parser("static", help="check every project as text")
    train = commands.add_parser("train", help="train projects: all plans, or those that are named")
    train.add_argument("plans", nargs="*", help="basics pairs headline triples proofs cold walk (default: all)")
    train.add_argument("--seconds", type=float, default=0.0, help="length of the random walk")
    train.add_argument("--seed", type=int, default=None, help="of the random walk (default: the time)")
    train.add_argument("--processes", type=int, default=2)
    train.add_argument("--fresh", action="store_true", help="take over no earlier result")
    device = commands.add_parser("device", help="write projects for an accelerator into a folder, and run them there")
    device.add_argument("folder", type=Path)
    one = commands.add_parser("one", help="run one project, as a failure prints it")
    one.add_argument("job")
    one.add_argument(
        "--timeout", type=float, default=120.0, help="seconds; proofs and the cold sample have eight times as many"
    )
    return top


def main(arguments: list[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    # Ends the children and removes their folders, as Ctrl-C does.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        space = reduced(Template(given.template.resolve()), given.vary)
        commands: dict[str, Callable[[Space, argparse.Namespace], int]] = {
            "static": check,
            "train": train,
            "one": one,
            "device": on_device,
        }
        return commands[given.command](space, given)
    except (TooManyError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1


def reduced(template: Template, vary: str) -> Space:
    space = Space(template)
    if not vary:
        return space
    names = vary.split(",")
    if unknown := set(names) - space.options.keys():
        raise ValueError(f"There is no option {', '.join(sorted(unknown))}: choose from {', '.join(space.options)}.")
    return Space(template, {name: option.values[:1] for name, option in space.options.items() if name not in names})


def check(space: Space, given: argparse.Namespace) -> int:
    from matrix import static

    result = static.check(space)
    print(static.report(result))
    return 1 if result.faults else 0


def train(space: Space, given: argparse.Namespace) -> int:
    from matrix import plans, pool
    from matrix.jobs import Job
    from matrix.results import Results
    from matrix.runner import run, table

    results = Results(None if given.fresh else ROOT / "build" / "matrix" / "results.jsonl")
    seed = int(time.time()) if given.seed is None else given.seed
    made: dict[str, Callable[[], Iterable[Job]]] = {
        "basics": lambda: plans.basics(space),
        "pairs": lambda: plans.pairs(space),
        "headline": lambda: plans.headline(space),
        "triples": lambda: plans.triples(space),
        "cold": lambda: plans.cold(space),
        "proofs": lambda: plans.pairs(space, proofs=True),
        "walk": lambda: plans.walk(space, seed),
    }
    if unknown := set(given.plans) - made.keys():
        raise ValueError(f"There is no plan {', '.join(sorted(unknown))}: choose from {', '.join(made)}.")
    pool.rehearse(exports=True in space.options["export"].values)
    tallies = []
    for name in given.plans or list(made):
        until = time.monotonic() + given.seconds if name == "walk" else None
        label = f"walk, seed {seed}" if name == "walk" else name
        tallies.append(run(label, made[name](), space, results, given.processes, until=until))
        print(tallies[-1].line(), flush=True)
    print(f"\n{SAID}\n{table(tallies)}")
    return 1 if any(tally.failed for tally in tallies) else 0


def one(space: Space, given: argparse.Namespace) -> int:
    from matrix import pool
    from matrix.jobs import parse

    job = parse(given.job, space)
    pool.rehearse("export" in job.choice["techniques"])
    outcome = next(pool.outcomes([(job, space.template.render(job.choice))], 1, given.timeout))
    print(outcome.output)
    print(f"{outcome.problem or 'passed'} ({outcome.seconds:.1f} s)")
    return 1 if outcome.problem else 0


def on_device(space: Space, given: argparse.Namespace) -> int:
    from matrix.trees import write_trees

    number = write_trees(space, given.folder)
    print(f"{number} jobs written. On another machine: python {given.folder / 'device.py'} {given.folder}", flush=True)
    return subprocess.call([sys.executable, str(given.folder / "device.py"), str(given.folder)])


if __name__ == "__main__":
    raise SystemExit(main())
