"""The projects under review are what the template gives now."""

from pathlib import Path

from tests.conftest import tree
from tests.golden import GOLDEN, refresh


def test_golden_projects_are_up_to_date(template_folder: Path, tmp_path: Path) -> None:
    refresh(template_folder, tmp_path / "golden")
    now, kept = tree(tmp_path / "golden"), tree(GOLDEN)
    different = sorted(name for name in now.keys() | kept.keys() if now.get(name) != kept.get(name))
    assert not different, f"{different} differ: run `make golden` and review the change"


def test_sizes() -> None:
    """What is generated stays small: limits of docs/decisions/0002-limits.md."""
    lines = {name: len((GOLDEN / name / "train.py").read_text().splitlines()) for name in ("nothing", "everything")}
    assert lines["nothing"] < 140
    assert lines["everything"] < 220
    for name in ("nothing", "recommended", "everything"):
        modules = {path: len(path.read_text().splitlines()) for path in (GOLDEN / name).glob("*.py")}
        assert all(count <= 250 for path, count in modules.items() if path.name != "train.py"), modules
        tests = sum(len(path.read_text().splitlines()) for path in (GOLDEN / name / "tests").glob("*.py"))
        assert tests <= 1.5 * sum(modules.values())
