"""Going on with a run: from its newest whole checkpoint, and only as the computation that it was."""

from pathlib import Path
from typing import Any

from checkpoint import read, restore
from config import write_config
from run import Run, load_weights, set_random_state
from schedule import check_total

# Values that a resumed run may change: what it computes does not depend on them, but for rounding.
FREE = {
    "run_dir",
    "resume",
    "resume_data_changed",
    "epochs",
    "max_steps",
    "eval_every",
    "checkpoint_every",
    "checkpoint_minutes",
    "keep",
    "log_every",
    "device",
    "loader",
    "schedule.extend",
}


def resume(run_dir: Path, run: Run, constants: dict[str, Any]) -> None:
    """Puts the run where its newest whole checkpoint stands, and keeps the values that were changed for it.

    `constants` are what its checkpoints will say of config and data. Raises SystemExit when no checkpoint is whole, or
    when this run would compute something else than it began.
    """
    content = newest(run_dir)
    if content is None:
        say(f"{run_dir} has no checkpoint yet: the run begins anew.")
        load_weights(run.model, run.config)
        return
    paths = {f"data.{name}" for name, value in vars(run.config.data).items() if isinstance(value, Path)}
    check_config(content["config"], constants["config"], FREE | paths)
    data_changed = check_data(content, constants, run.config.resume_data_changed)
    restore(content, run.parts())
    progress = run.progress
    for name in content["progress"].keys() - {"total_steps", "steps_per_epoch"}:
        setattr(progress, name, content["progress"][name])
    if data_changed and progress.step:
        progress.epoch_step = progress.steps_per_epoch  # the next step opens an epoch
        progress.shift = progress.step - (progress.epoch + 1) * progress.steps_per_epoch
    if not run.config.max_steps:
        progress.total_steps += progress.shift
    allowed = run.config.schedule.extend or data_changed
    check_total(content["progress"]["total_steps"], progress, run.config.schedule, allowed)
    before = content["random"][0].get("device_type", run.device.type)
    if before != run.device.type:
        say(
            f"This run goes on on {run.device.type} and was on {before}: the same but for rounding, and for what the "
            "model itself draws at random there (dropout)."
        )
    set_random_state(content["random"][0], run.device)
    write_config(run_dir, run.config)


def say(sentence: str) -> None:
    print(sentence, flush=True)


def check_config(saved: dict[str, Any], config: dict[str, Any], free: set[str], prefix: str = "") -> None:
    """Raises SystemExit when a value differs that is not `free` to."""
    for name in sorted(saved.keys() & config.keys()):
        before, now, option = saved[name], config[name], prefix + name
        if not prefix and isinstance(before, dict):
            check_config(before, now, free, f"{option}.")
        elif option not in free and before != now:
            flag = f"--{option.replace('_', '-')}"
            raise SystemExit(f"This run was begun with {flag} {before}, not {now}: give that, or start a new run.")


def check_data(content: dict[str, Any], constants: dict[str, Any], allowed: bool) -> bool:
    """Whether the data are others than those of the checkpoint. Raises SystemExit when that was not allowed."""
    changes = []
    for name, now in constants["samples"].items():
        before = content.get("samples", constants["samples"])[name]
        if before != now:
            changes.append(f"there were {before} {name} samples and there are {now}")
    before, now = content["info"], constants["info"]
    if isinstance(before, dict) and isinstance(now, dict):  # an entry that data.py did not have says nothing
        different = [name for name in sorted(before) if before[name] != now.get(name)]
        changes += [f"{name} was {str(before[name])[:200]} and is {str(now.get(name))[:200]}" for name in different]
    elif before != now:
        changes.append("source.info is another")
    if changes and not allowed:
        raise SystemExit(
            f"The data are not those that this run was begun with: {'; '.join(changes)}. Put them back, or go on with "
            "the next epoch by --resume-data-changed."
        )
    return bool(changes)


def newest(run_dir: Path) -> dict[str, Any] | None:
    """The newest whole checkpoint of a run; None where it was ended before its first. Raises SystemExit for damage."""
    folder, problems = run_dir / "checkpoints", []
    # previous.pt, previous-2.pt, previous-10.pt
    older = sorted(folder.glob("previous*.pt"), key=lambda path: (len(path.name), path.name))
    for path in (folder / "last.pt", *older):
        try:
            content = read(path)
        except ValueError as error:
            problems.append(str(error))
            continue
        if problems and "damaged" in problems[0]:
            print(f"{problems[0][0].upper()}{problems[0][1:]}: going on from {path.name}.")
        return content
    if any("damaged" in problem for problem in problems):
        raise SystemExit(f"Nothing to resume in {run_dir}: {'; '.join(problems)}.")
    return None
