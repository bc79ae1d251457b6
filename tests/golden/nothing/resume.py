"""Going on with a run: where its newest whole checkpoint stands, and only as the computation that it was."""

from pathlib import Path
from typing import Any

from checkpoint import Progress, read, restore, set_random_state

# Values that a resumed run may change, because no number that it computes depends on them.
FREE = {
    "run_dir",
    "resume",
    "epochs",
    "max_steps",
    "eval_every",
    "checkpoint_every",
    "log_every",
    "loader",
}


def resume(run_dir: Path, parts: dict[str, Any], progress: Progress, config: dict[str, Any]) -> int:
    """Puts `parts` and `progress` where the newest whole checkpoint stands; returns the steps it was planned for.

    Raises SystemExit when there is no such checkpoint, or when this run would compute something else than it began.
    """
    content = newest(run_dir)
    check_config(content["config"], config)
    restore(content, parts)
    for name in set(content["progress"]) - {"total_steps"}:
        setattr(progress, name, content["progress"][name])
    set_random_state(content["random"][0])
    return content["progress"]["total_steps"]


def check_config(saved: dict[str, Any], config: dict[str, Any], prefix: str = "") -> None:
    """Raises SystemExit when a resumed run would compute something else than it began."""
    for name in saved.keys() & config.keys() - FREE:
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
