"""The table task beside scikit-learn's gradient boosting, on tables that it brings: python -m benchmarks.tables

A fifth of each table is held out, and seen by neither. The project (recommended techniques, every value at its default)
draws its own validation rows from the rest to choose the best epoch; gradient boosting learns from all of it.
"""

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import accuracy_score, r2_score

from matrix.space import ROOT
from tricks.template.rendering import Template, write

SEEDS = 10
TABLES = {
    "breast cancer (accuracy)": (datasets.load_breast_cancer, HistGradientBoostingClassifier, accuracy_score),
    "diabetes (R²)": (datasets.load_diabetes, HistGradientBoostingRegressor, r2_score),
}


def run(project: Path, *arguments: str) -> list[str]:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=300, check=True)
    return done.stdout.splitlines()


def compare(project: Path, name: str, seed: int) -> tuple[float, float]:
    """The score on the held-out rows of the project's model, and of the gradient boosting."""
    read, boosting, score = TABLES[name]
    table = read(as_frame=True).frame.sample(frac=1, random_state=seed)
    held_out, rest = table[: len(table) // 5], table[len(table) // 5 :]
    rest.to_csv(project / "rest.csv", index=False)
    held_out.drop(columns="target").to_csv(project / "new.csv", index=False)
    folder = f"{name}-{seed}"
    run(project, "train.py", "--data.file", "rest.csv", "--seed", str(seed), "--run-dir", folder)
    lines = run(project, "predict.py", folder, "new.csv")
    found = [float(line.partition(": ")[2].partition(" (")[0]) for line in lines]
    known = boosting(random_state=seed).fit(rest.drop(columns="target"), rest["target"])
    return score(held_out["target"], found), score(held_out["target"], known.predict(held_out.drop(columns="target")))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        write(Template(ROOT).render({"task": "table"}), Path(folder))
        for name in TABLES:
            pairs = [compare(Path(folder), name, seed) for seed in range(SEEDS)]
            shown = [f"{statistics.mean(x):.3f} ± {statistics.stdev(x):.3f}" for x in zip(*pairs, strict=True)]
            wins = sum(ours > theirs for ours, theirs in pairs)
            print(f"| {name} | {shown[0]} | {shown[1]} | {wins} of {SEEDS} |", flush=True)


if __name__ == "__main__":
    main()
