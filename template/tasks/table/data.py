"""The data: a table, by default scikit-learn's measurements of breast tumours. Replace this file with your own.

The rest of the project uses `DataConfig`, `load`, `augment` and what a source offers: `on_device`, `info`,
`len()` and `fetch`. A batch is (rows, targets): rows float32 [n, columns], first the numbers, scaled, then a whole
number for each category; targets int64 [n], the class, or float32 [n], the number to predict, scaled.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import torch
from torch import Tensor

Batch = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class DataConfig:
    file: Path | None = None
    """CSV or Parquet file whose first line names the columns (default: scikit-learn's breast cancer data)."""
    target: str = ""
    """Column to predict (default: the last one)."""
    kind: Literal["auto", "classes", "number"] = "auto"
    """What the target is. auto: classes where it is text, or whole numbers of which there are at most 20."""
    rare: int = 3
    """Categories with fewer rows than this count as unknown ones, and so teach the model what to do with these."""


class TableSource:
    """Rows that lie on the device: a batch is one indexing."""

    on_device = True

    def __init__(self, rows: Tensor, targets: Tensor, info: dict):
        self.rows, self.targets, self.info = rows, targets, info

    def __len__(self) -> int:
        return len(self.targets)

    def fetch(self, ids: Tensor, epoch: int) -> Batch:
        """The rows `ids` (int64 [n], on the CPU)."""
        ids = ids.to(self.targets.device, non_blocking=True)  # the loader pins them: no wait
        return self.rows.index_select(0, ids), self.targets.index_select(0, ids)


def load(config: DataConfig, seed: int, device: torch.device) -> tuple[TableSource, TableSource]:
    """The training and the validation source: `seed` draws a fifth of the rows for validation."""
    table = read_table(config.file) if config.file else load_demo()
    if len(table.columns) < 2:
        raise SystemExit(f"The table has a single column, {table.columns[0]!r}: a CSV file is separated by commas.")
    target = config.target or str(table.columns[-1])
    if target not in table:
        raise SystemExit(f"The table has no column {target!r}: --data.target is one of {', '.join(table.columns)}.")
    table = table[table[target].notna()]  # a row without an answer teaches nothing
    order = torch.randperm(len(table), generator=torch.Generator().manual_seed(seed)).numpy()
    cut = len(table) // 5
    if not cut:
        raise SystemExit(f"The table has {len(table)} rows with a value of {target}: give 5 or more.")
    parts = table.iloc[order[cut:]], table.iloc[order[:cut]]
    info = describe(parts[0], table[target], config)
    training, validation = (
        TableSource(encode(part, info).to(device), encode_target(part[target], info).to(device), info) for part in parts
    )
    return training, validation


def load_demo() -> pd.DataFrame:
    """569 tumours: 30 measurements, and whether each is malignant or benign."""
    from sklearn.datasets import load_breast_cancer  # slow to import, and a file does not need it

    found = load_breast_cancer(as_frame=True)
    return found.frame.assign(target=found.target_names[found.target])


def read_table(file: Path | str) -> pd.DataFrame:
    """The table; of a CSV file as text, since what a column is depends on its training rows alone."""
    if not Path(file).exists():
        raise SystemExit(f"The table {file} does not exist.")
    try:
        if Path(file).suffix == ".parquet":
            return pd.read_parquet(file)
        return pd.read_csv(file, dtype=str, skipinitialspace=True)
    except ImportError:
        raise SystemExit('Reading Parquet files needs pyarrow: pip install -e ".[parquet]"') from None
    except (OSError, ValueError) as error:
        raise SystemExit(f"Cannot read the table {file}: {str(error).strip()}.") from None


def describe(training: pd.DataFrame, target: pd.Series, config: DataConfig) -> dict[str, Any]:
    """What the columns are, from the training rows alone; of the target's classes all are known."""
    numbers, categories = {}, {}
    for name in training.columns.drop(target.name):
        if (values := as_numbers(training[name])) is None:
            counts = as_text(training[name]).value_counts()
            if kept := sorted(counts[counts >= config.rare].index):
                categories[name] = kept
        elif (scale := values.std()) > 0:  # neither empty nor constant
            missing = bool(values.isna().any())
            mean, median = float(values.mean()), float(values.median())
            numbers[name] = {"mean": mean, "std": float(scale), "median": median, "missing": missing}
    if not numbers and not categories:
        raise SystemExit("The table has no column to learn from: all are empty, or the same or another in each row.")
    info = {"target": target.name, "numbers": numbers, "categories": categories, "classes": []}
    values = as_numbers(target)
    whole = values is not None and (values == values.round()).all() and values.nunique() <= 20
    if config.kind == "classes" or (config.kind == "auto" and (values is None or whole)):
        return info | {"classes": sorted(as_text(target).unique())}
    if values is None:
        raise SystemExit(f"--data.kind number: the target {target.name} holds values that are none.")
    values = as_numbers(training[target.name])
    return info | {"mean": float(values.mean()), "std": float(values.std()) or 1.0}


def encode(table: pd.DataFrame, info: dict) -> Tensor:
    """Rows float32 [n, columns]. A missing number is the median, and a column of its own says so; an unknown
    category is 0.

    Raises SystemExit where a column is absent, or holds text in place of numbers.
    """
    if absent := [name for name in (*info["numbers"], *info["categories"]) if name not in table]:
        raise SystemExit(f"The table has no column {', '.join(absent)}, which the model was trained with.")
    columns = []
    for name, known in info["numbers"].items():
        values = as_numbers(table[name])
        if values is None:
            raise SystemExit(f"The column {name} holds values that are no numbers, and did not when training.")
        columns.append((values.fillna(known["median"]) - known["mean"]) / known["std"])
        if known["missing"]:
            columns.append(values.isna())
    for name, known in info["categories"].items():
        codes = {value: code for code, value in enumerate(known, 1)}
        columns.append(as_text(table[name]).map(codes).fillna(0))
    return torch.stack([torch.tensor(column.to_numpy("float32")) for column in columns], 1)


def encode_target(target: pd.Series, info: dict) -> Tensor:
    if info["classes"]:
        codes = {value: code for code, value in enumerate(info["classes"])}
        return torch.tensor(as_text(target).map(codes).to_numpy("int64"))
    return torch.tensor(((as_numbers(target) - info["mean"]) / info["std"]).to_numpy("float32"))


def as_numbers(column: pd.Series) -> pd.Series | None:
    """The column as float64, what is missing or infinite as nan; None where some of it is no number."""
    if pd.api.types.is_bool_dtype(column):
        return None
    values = pd.to_numeric(column, errors="coerce")
    if (values.isna() & column.notna()).any():
        return None
    return values.astype("float64").replace([float("inf"), -float("inf")], float("nan"))


def as_text(column: pd.Series) -> pd.Series:
    """The column as text; what is missing is a category like any other: the empty one."""
    return column.astype(object).where(column.notna(), "").astype(str).str.strip()


def augment(batch: Batch, noise: Callable[[int], Tensor]) -> Batch:
    """Nothing: rows of any table are not known to mean the same after a change. `noise(k)` gives random numbers."""
    return batch
