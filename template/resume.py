"""Going on with a run: where its newest whole checkpoint stands, and only as the computation that it was."""

from pathlib import Path
from typing import Any

# {% filter regex_replace("\n+", "\n") %}
from checkpoint import read, restore, same_kind, set_random_state
from config import to_dict, write_config

# {% if ddp %}
from distributed import from_rank_0, rank, world_size

# {% endif %}
from run import Run

# {% if stepwise %}
from schedule import check_total

# {% endif %}
# {% endfilter %}

# Values that a resumed run may change, because no number that it computes depends on them.
FREE = {
    "run_dir",
    "resume",
    "device",
    "epochs",
    "max_steps",
    # {% if not plateau %}
    "eval_every",
    # {% endif %}
    "checkpoint_every",
    "log_every",
    "loader",
    # {% if ddp %}
    "ddp",
    "batch_size",  # check_ranks looks at it together with the number of processes
    # {% endif %}
    # {% if stepwise %}
    "schedule.extend",
    # {% endif %}
    # {% if compile %}
    "compile",
    # {% endif %}
    # {% if profiler %}
    "profiler",
    # {% endif %}
    # {% if debug %}
    "debug",
    # {% endif %}
    # {% if cache %}
    "cache",
    # {% endif %}
}


def resume(run_dir: Path, run: Run) -> None:
    """Puts the run where its newest whole checkpoint stands, and keeps the values that were changed for it.

    Raises SystemExit when there is no such checkpoint, or when this run would compute something else than it began.
    """
    content, config = newest(run_dir), to_dict(run.config)
    # {% if ddp %}
    check_ranks(content, config)
    # {% endif %}
    check_config(content["config"], config)
    restore(content, run.parts())
    for name in content["progress"].keys() - {"total_steps"}:
        setattr(run.progress, name, content["progress"][name])
    # {% if stepwise %}
    check_total(content["progress"]["total_steps"], run.progress, run.config.schedule)
    # {% endif %}
    if not same_kind(content["random"][0], run.device):
        warning = (
            f"This run goes on on {run.device.type} and was on {content['random'][0]['device_type']} before: the same "
            "but for rounding, and for what the model itself draws at random (dropout)."
        )
        # {% if ddp %}
        from_rank_0(lambda: print(warning))
        # {% else %}
        print(warning)
        # {% endif %}
    # {% if ddp %}
    if len(content["random"]) == world_size():
        set_random_state(content["random"][rank()], run.device)
    from_rank_0(lambda: write_config(run_dir, run.config))
    # {% else %}
    set_random_state(content["random"][0], run.device)
    write_config(run_dir, run.config)
    # {% endif %}


# {% if ddp %}
def check_ranks(content: dict[str, Any], config: dict[str, Any]) -> None:
    """Another number of processes goes on exactly if all together see the same samples in each step."""
    saved, samples = len(content["random"]), len(content["random"]) * content["config"]["batch_size"]
    if samples != world_size() * config["batch_size"]:
        raise SystemExit(
            f"This run was begun with {saved} processes of --batch-size {content['config']['batch_size']}: with "
            f"{world_size()} its product has to be {samples} as well."
        )


# {% endif %}
def check_config(saved: dict[str, Any], config: dict[str, Any], prefix: str = "") -> None:
    """Raises SystemExit when a resumed run would compute something else than it began."""
    for name in sorted(saved.keys() & config.keys() - FREE):
        before, now, option = saved[name], config[name], prefix + name
        if not prefix and isinstance(before, dict):
            check_config(before, now, f"{option}.")
        elif option not in FREE and before != now:
            raise SystemExit(
                f"This run was begun with --{option.replace('_', '-')} {before}, not {now}: "
                "leave it out, or start a new run."
            )


def newest(run_dir: Path) -> dict[str, Any]:
    """The newest whole checkpoint of a run. Raises SystemExit when there is none."""
    problems = []
    for name in ("last.pt", "previous.pt"):
        try:
            content = read(run_dir / "checkpoints" / name)
        except ValueError as error:
            problems.append(str(error))
            continue
        if problems and "damaged" in problems[0]:
            print(f"{problems[0][0].upper()}{problems[0][1:]}: going on from {name}.")
        return content
    raise SystemExit(f"Nothing to resume in {run_dir}: {'; '.join(problems)}.")
