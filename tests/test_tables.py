"""The table task: tables as people have them, with numbers, categories, gaps, and columns that teach nothing."""

import importlib.util
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from tests import warm
from tests.choices import PRESETS

Render = Callable[..., Path]
# Run in a project: what it knows about a table's columns, and how rows reach the model.
LOOK = """
import json, sys
import torch
from pathlib import Path
from data import DataConfig, encode, load, read_table
sources = load(DataConfig(file=Path(sys.argv[1]), target="price"), 0, torch.device("cpu"))
info = sources[0].info
rows = encode(read_table(sys.argv[2]), info)
print(json.dumps({"info": info, "rows": rows.tolist(), "sizes": [len(source) for source in sources]}))
"""


def houses(number: int = 400) -> pd.DataFrame:
    """Prices that follow from area, rooms and city; the area is missing in each tenth row."""
    draw = np.random.default_rng(0)
    city = draw.choice(["Rome", "Oslo", "Lima", None], number, p=[0.4, 0.3, 0.2, 0.1])
    area, rooms = draw.normal(80, 20, number), draw.integers(1, 6, number)
    price = 2000 * area + 9000 * rooms + 50_000 * (city == "Oslo")
    area[::10] = math.nan
    name = [f"house {i}" for i in range(number)]
    table = {"name": name, "city": city, "rooms": rooms, "area": area, "garden": rooms > 3, "empty": math.nan}
    return pd.DataFrame(table | {"country": 3, "price": price})


@pytest.fixture
def project(render: Render) -> Path:
    return render(task="table", techniques=PRESETS["recommended"])


def look(project: Path, table: Path, new: Path) -> dict[str, Any]:
    (project / "look.py").write_text(LOOK)
    code, output = warm.script(project, "look.py", str(table), str(new))
    assert code == 0, output
    return dict(json.loads(output.splitlines()[-1]))


def test_columns_are_taken_for_what_they_are(project: Path, tmp_path: Path) -> None:
    table, new = tmp_path / "houses.csv", tmp_path / "new.csv"
    houses().to_csv(table, index=False)
    new.write_text("garden,area,rooms,city,other\nTrue,,2,Oslo,x\nFalse,80,2,,x\nmaybe,80,2,Paris,x\n")
    found = look(project, table, new)
    info, rows = found["info"], found["rows"]
    assert found["sizes"] == [320, 80]
    assert list(info["numbers"]) == ["rooms", "area"], "the others are names, empty or the same in each row"
    assert info["categories"] == {"city": ["", "Lima", "Oslo", "Rome"], "garden": ["False", "True"]}
    assert info["classes"] == []
    area = info["numbers"]["area"]
    assert area["missing"] and not info["numbers"]["rooms"]["missing"]
    # rooms, area, whether the area is missing, city, garden
    assert rows[0][1:] == pytest.approx([(area["median"] - area["mean"]) / area["std"], 1, 3, 2])
    assert rows[1][1:] == pytest.approx([(80 - area["mean"]) / area["std"], 0, 1, 1])
    assert rows[2][3:] == [0, 0], "what was not there in training is unknown"


def test_statistics_are_those_of_the_training_rows(project: Path, tmp_path: Path) -> None:
    """Another value in a row for validation changes nothing of them; the same in one for training does."""
    order = torch.randperm(400, generator=torch.Generator().manual_seed(0)).tolist()
    infos = []
    for place in (None, order[3], order[200]):
        table = houses()
        if place is not None:
            table.loc[place, ["city", "rooms", "area", "price"]] = ["Oslo", 1000, 1e6, 1e9]
        table.to_csv(tmp_path / "houses.csv", index=False)
        infos.append(look(project, tmp_path / "houses.csv", tmp_path / "houses.csv")["info"])
    assert infos[0] == infos[1] != infos[2]


def test_numbers_and_classes_are_learnt_and_predicted(project: Path, tmp_path: Path) -> None:
    houses().to_csv(tmp_path / "houses.csv", index=False)
    words = ("--data.file", str(tmp_path / "houses.csv"))
    code, output = warm.train(project, "--run-dir", "number", "--epochs", "30", *words)
    assert code == 0, output
    score = float(output.rpartition("val_r2")[2].split()[0])
    assert score > 0.7, output  # a tenth of the areas are missing
    houses(3).drop(columns=["price", "name"]).to_csv(tmp_path / "new.csv", index=False)
    code, output = warm.script(project, "predict.py", "number", str(tmp_path / "new.csv"))
    assert code == 0, output
    prices = [float(line.partition(", row ")[2].partition(": ")[2]) for line in output.splitlines()]
    assert all(100_000 < price < 350_000 for price in prices), output
    for target, answer in (("city", "Oslo"), ("rooms", "3")):
        code, output = warm.train(project, "--run-dir", target, "--epochs", "2", *words, "--data.target", target)
        assert code == 0 and "val_accuracy" in output, output
        code, output = warm.script(project, "predict.py", target, str(tmp_path / "houses.csv"))
        assert code == 0 and f": {answer} (" in output, output
    if not importlib.util.find_spec("pyarrow"):
        (tmp_path / "houses.parquet").touch()
        code, output = warm.train(project, "--data.file", str(tmp_path / "houses.parquet"))
        assert code == 1 and output.startswith("Reading Parquet files needs pyarrow"), output


@pytest.mark.parametrize(
    ("text", "words", "sentence"),
    [
        ("a,b\n" + "1,x\n" * 9, ("--data.target", "c"), "The table has no column 'c': --data.target is one of a, b."),
        ("a;b\n" + "1;x\n" * 9, (), "The table has a single column, 'a;b': a CSV file is separated by commas."),
        ("a,b\n" + "1,x\n" * 4, (), "The table has 4 rows with a value of b: give 5 or more."),
        ("a,b\n" + "1,x\n" * 9, (), "The table has no column to learn from"),
        ("a,b\n" + "1,x\n2,y\n" * 9, ("--data.kind", "number"), "--data.kind number: the target b holds values that"),
        ("", (), "Cannot read the table TABLE: No columns to parse from file."),
        ("a,b\n1,2\n1,2,3\n", (), "Cannot read the table TABLE:"),
    ],
)
def test_what_cannot_be_learnt_is_a_sentence(
    project: Path, tmp_path: Path, text: str, words: tuple[str, ...], sentence: str
) -> None:
    table = tmp_path / "table.csv"
    table.write_text(text)
    code, output = warm.train(project, "--run-dir", "run", "--data.file", str(table), *words)
    assert code == 1 and "Traceback" not in output, output
    assert output.startswith(sentence.replace("TABLE", str(table))), output


def test_new_rows_that_do_not_fit_are_a_sentence(project: Path, tmp_path: Path) -> None:
    houses(60).to_csv(tmp_path / "houses.csv", index=False)
    code, output = warm.train(
        project, "--run-dir", "run", "--max-steps", "1", "--data.file", str(tmp_path / "houses.csv")
    )
    assert code == 0, output
    code, output = warm.script(project, "predict.py", "run", "absent.csv")
    assert (code, output.strip()) == (1, "The table absent.csv does not exist.")
    for text, sentence in (
        ("city,rooms,garden\nOslo,2,True\n", "The table has no column area, which the model was trained with."),
        ("city,rooms,area,garden\nOslo,2,big,True\n", "The column area holds values that are no numbers"),
    ):
        (tmp_path / "new.csv").write_text(text)
        code, output = warm.script(project, "predict.py", "run", str(tmp_path / "new.csv"))
        assert code == 1 and output.startswith(sentence), output


def test_the_shipped_tests_hold_on_a_table_with_categories(render: Render, tmp_path: Path) -> None:
    project = render(task="table", techniques=[*PRESETS["recommended"], "export"], export_formats=["torch_export"])
    houses().to_csv(tmp_path / "houses.csv", index=False)
    words = ("--data.file", str(tmp_path / "houses.csv"), "--max-steps", "1")
    code, output = warm.train(project, "--run-dir", "run", *words)
    assert code == 0, output
    code, output = warm.prove(project, "tests", "--config", "run/config.json", timeout=400)
    assert code == 0, output[-6000:]
